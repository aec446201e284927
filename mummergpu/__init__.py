"""Find every maximal exact match of sequencing reads in a reference genome.

The command line is in `mummergpu.cli`. Start reading at `mummergpu.pipeline.match`, which
follows a block of queries through all steps of a search.
"""

__version__ = "0.1.0"
