"""Seeded workloads: a reference and queries, with the sizes of the paper's Table 1 or larger.

A workload is declared in a small TOML file (`declaration`); its reference is given or made
(`genome`), its reads are drawn from it with the errors of a platform (`sequencing`) or it is
copied whole with some differences (`copying`), and all of it is written by `generation`. The
same declaration, seed and reference give the same bytes on every machine: every random bit
comes from one counter-based generator (`stable_random`), and is only ever used in integer
arithmetic.
"""

from mummergpu.workload.declaration import load_declaration, workload_names
from mummergpu.workload.generation import WorkloadFiles, generate

__all__ = ["WorkloadFiles", "generate", "load_declaration", "workload_names"]
