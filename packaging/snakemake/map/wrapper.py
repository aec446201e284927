"""Maps the reads of a job to its reference with mummergpu."""

# Snakemake defines `snakemake`, an object that describes the job.
# ruff: noqa: F821

__author__ = "The mummergpu developers"
__license__ = "MIT"

import shlex

from snakemake.shell import shell

extra = snakemake.params.get("extra", "")
reports = ""
for option, path in (
    ("--stats", snakemake.output.get("stats")),
    ("--multiqc", snakemake.output.get("multiqc")),
):
    if path:
        reports += f" {option} {shlex.quote(str(path))}"
log = snakemake.log_fmt_shell(stdout=True, stderr=True)

shell(
    "mummergpu map {extra} {reports}"
    " --threads {snakemake.threads}"
    " --output {snakemake.output.alignments:q}"
    " {snakemake.input.reference:q}"
    " {snakemake.input.reads:q}"
    " {log}"
)
