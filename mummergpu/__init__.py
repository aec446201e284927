"""Find every maximal exact match of sequencing reads in a reference genome.

>>> import mummergpu
>>> index = mummergpu.Index.build([("chr", "ACGTACGGTTCAGTTGACCA")], min_length=8)
>>> m = index.match("TTGACCAACC", strands="forward", min_length=7)
>>> m.reference_start.tolist(), m.length.tolist()
([13], [7])

The command line is in `mummergpu.cli`. Start reading at `mummergpu.pipeline.match`, which
follows a block of queries through all steps of a search.
"""

from mummergpu.version import __version__ as __version__

# As in `typing`, whose import would come before the handlers of signals.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from mummergpu import plot as plot
    from mummergpu.api.align_run import align as align
    from mummergpu.api.aligned_genomes import AlignedGenomes as AlignedGenomes
    from mummergpu.api.aligned_genomes import GenomeAlignment as GenomeAlignment
    from mummergpu.api.alignments import Alignment as Alignment
    from mummergpu.api.alignments import Alignments as Alignments
    from mummergpu.api.hidden_markov_model import BestPath as BestPath
    from mummergpu.api.hidden_markov_model import FittedModel as FittedModel
    from mummergpu.api.hidden_markov_model import HiddenMarkovModel as HiddenMarkovModel
    from mummergpu.api.index import Index as Index
    from mummergpu.api.map_run import map as map
    from mummergpu.api.matches import DeviceMatches as DeviceMatches
    from mummergpu.api.matches import Match as Match
    from mummergpu.api.matches import Matches as Matches
    from mummergpu.api.profile_hits import Hit as Hit
    from mummergpu.api.profile_hits import Hits as Hits
    from mummergpu.api.profile_hits import hmmscan as hmmscan
    from mummergpu.api.profile_hits import hmmsearch as hmmsearch
    from mummergpu.api.run import RunStats as RunStats
    from mummergpu.api.run import match as match
    from mummergpu.cuda.device_array import DeviceArray as DeviceArray
    from mummergpu.errors import MummergpuError as MummergpuError
    from mummergpu.mapping.options import Scores as Scores
    from mummergpu.output.options import RecordStyle as RecordStyle
    from mummergpu.output.options import SamOptions as SamOptions
    from mummergpu.output.options import TextStyle as TextStyle

# A star import of these hides Python's own `map`.
__all__ = [
    "AlignedGenomes",
    "Alignment",
    "Alignments",
    "BestPath",
    "DeviceArray",
    "DeviceMatches",
    "FittedModel",
    "GenomeAlignment",
    "HiddenMarkovModel",
    "Hit",
    "Hits",
    "Index",
    "Match",
    "Matches",
    "MummergpuError",
    "RecordStyle",
    "RunStats",
    "SamOptions",
    "Scores",
    "TextStyle",
    "__version__",
    "align",
    "hmmscan",
    "hmmsearch",
    "map",
    "match",
    "plot",
]

_PLACES = {
    "AlignedGenomes": "mummergpu.api.aligned_genomes",
    "Alignment": "mummergpu.api.alignments",
    "Alignments": "mummergpu.api.alignments",
    "BestPath": "mummergpu.api.hidden_markov_model",
    "DeviceArray": "mummergpu.cuda.device_array",
    "DeviceMatches": "mummergpu.api.matches",
    "GenomeAlignment": "mummergpu.api.aligned_genomes",
    "FittedModel": "mummergpu.api.hidden_markov_model",
    "HiddenMarkovModel": "mummergpu.api.hidden_markov_model",
    "Hit": "mummergpu.api.profile_hits",
    "Hits": "mummergpu.api.profile_hits",
    "Index": "mummergpu.api.index",
    "Match": "mummergpu.api.matches",
    "Matches": "mummergpu.api.matches",
    "MummergpuError": "mummergpu.errors",
    "RecordStyle": "mummergpu.output.options",
    "RunStats": "mummergpu.api.run",
    "SamOptions": "mummergpu.output.options",
    "Scores": "mummergpu.mapping.options",
    "TextStyle": "mummergpu.output.options",
    "align": "mummergpu.api.align_run",
    "hmmscan": "mummergpu.api.profile_hits",
    "hmmsearch": "mummergpu.api.profile_hits",
    "map": "mummergpu.api.map_run",
    "match": "mummergpu.api.run",
}
"""The module of each public name: it is imported when the name is used (PEP 562)."""

_MODULES = ("plot",)
"""Public modules, which are imported when they are used, too."""


def __getattr__(name: str) -> object:
    if name not in _PLACES and name not in _MODULES:
        raise AttributeError(f"module 'mummergpu' has no attribute {name!r}")
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"mummergpu.{name}")
    value = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
