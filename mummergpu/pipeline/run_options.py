"""What every job is told, whatever it does."""

from __future__ import annotations

from dataclasses import KW_ONLY, field

from mummergpu.matching.options import DeviceOptions
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import keep_values, path, positive, truth


@frozen
class RunOptions:
    """The reference of a run, and how and where it runs.

    Attributes
    ----------
    reference_path : str
        FASTA file or index file of the reference.
    threads : int
        Number of working threads.
    device : DeviceOptions
        The backend and the device of the search.
    verify : bool
        Whether to compare an index file with its checksums first.
    any_letters : bool
        Whether to accept records that are not DNA or RNA, such as proteins.
    no_empty : bool
        Whether a file without a record is an error.
    command : str
        The command line, for formats that keep it; empty if there is none.
    """

    reference_path: str
    _: KW_ONLY
    threads: int = 1
    device: DeviceOptions = field(default_factory=DeviceOptions)
    verify: bool = False
    any_letters: bool = False
    no_empty: bool = False
    command: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        keep_values(
            self,
            reference_path=path("reference", self.reference_path),
            threads=positive("threads", self.threads),
            any_letters=truth("any_letters", self.any_letters),
            no_empty=truth("no_empty", self.no_empty),
        )
