"""Find every maximal exact match of sequencing reads in a reference genome.

The command line lives in `mummergpu.cli`; `mummergpu.pipeline.match` is the place to
start reading: it follows a block of reads through every other module.
"""

__version__ = "0.1.0"
