"""Finds the matches of a job's queries in its reference with mummergpu."""

# Snakemake defines `snakemake`, an object that describes the job.
# ruff: noqa: F821

__author__ = "The mummergpu developers"
__license__ = "MIT"

import shlex

from snakemake.shell import shell

extra = snakemake.params.get("extra", "")
stats = snakemake.output.get("stats")
stats = f"--stats {shlex.quote(str(stats))}" if stats else ""
log = snakemake.log_fmt_shell(stdout=True, stderr=True)

shell(
    "mummergpu {extra} {stats}"
    " --threads {snakemake.threads}"
    " --output {snakemake.output.matches:q}"
    " {snakemake.input.reference:q}"
    " {snakemake.input.queries:q}"
    " {log}"
)
