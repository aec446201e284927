process MUMMERGPU_ALIGN {
    tag "$meta.id"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"
    container "${ workflow.containerEngine in ['singularity', 'apptainer'] && !task.ext.singularity_pull_docker_container ?
        'https://depot.galaxyproject.org/singularity/mummergpu:1.0.0rc1--pyhdfd78af_0':
        'quay.io/biocontainers/mummergpu:1.0.0rc1--pyhdfd78af_0' }"

    input:
    tuple val(meta), path(query)
    tuple val(meta2), path(reference)

    output:
    tuple val(meta), path("*.{delta,paf,paf.gz,sam,bam,vcf}"), emit: alignments
    tuple val(meta), path("*.stats.json")                    , emit: stats
    tuple val("${task.process}"), val('mummergpu'), eval("mummergpu --version | cut -d ' ' -f 2"), topic: versions, emit: versions_mummergpu

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def suffix = task.ext.suffix ?: 'paf'
    """
    mummergpu align \\
        $args \\
        --threads $task.cpus \\
        --stats ${prefix}.stats.json \\
        --output ${prefix}.${suffix} \\
        $reference \\
        $query
    """

    stub:
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def suffix = task.ext.suffix ?: 'paf'
    """
    echo $args
    touch ${prefix}.${suffix}
    touch ${prefix}.stats.json
    """
}
