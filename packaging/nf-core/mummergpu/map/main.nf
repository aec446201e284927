process MUMMERGPU_MAP {
    tag "$meta.id"
    label 'process_high'

    conda "${moduleDir}/environment.yml"
    container "${ workflow.containerEngine in ['singularity', 'apptainer'] && !task.ext.singularity_pull_docker_container ?
        'https://depot.galaxyproject.org/singularity/mummergpu:1.0.0rc1--pyhdfd78af_0':
        'quay.io/biocontainers/mummergpu:1.0.0rc1--pyhdfd78af_0' }"

    input:
    tuple val(meta), path(reads)
    tuple val(meta2), path(reference)

    output:
    tuple val(meta), path("*.bam")       , emit: bam
    tuple val(meta), path("*.{bai,csi}") , emit: index, optional: true
    tuple val(meta), path("*.stats.json"), emit: stats
    tuple val(meta), path("*_mqc.*")     , emit: multiqc
    tuple val("${task.process}"), val('mummergpu'), eval("mummergpu --version | cut -d ' ' -f 2"), topic: versions, emit: versions_mummergpu

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def group = "-R '@RG\\tID:${prefix}\\tSM:${meta.id}\\tPL:ILLUMINA'"
    """
    mummergpu map \\
        $group \\
        $args \\
        --threads $task.cpus \\
        --stats ${prefix}.stats.json \\
        --multiqc ${prefix}_mqc.json \\
        --output ${prefix}.bam \\
        $reference \\
        $reads
    """

    stub:
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    echo $args
    touch ${prefix}.bam
    touch ${prefix}.bam.bai
    touch ${prefix}.stats.json
    touch ${prefix}_mqc.json
    """
}
