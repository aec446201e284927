"""Which files of proteins are accepted, and how nucleotides are translated."""

from __future__ import annotations

from typing import Final

from mummergpu.errors import OptionError
from mummergpu.input.bytes.formats import BY_CONTENT, EASEL_FORMATS, PROTEIN_FORMATS
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import between, check_bool, keep_values, one_of, positive

MOST_RESIDUES: Final = 100_000
"""The maximum length of a protein that HMMER searches, in residues."""

DEFAULT_CODE: Final = 1
"""The standard genetic code, in NCBI's numbering."""

DEFAULT_MIN_ORF: Final = 20
"""The default minimum length of an ORF in esl-translate, in residues."""

STRANDS: Final = {"both": (0, 2), "plus": (0, 1), "minus": (1, 2)}
"""The strands to translate, as a half-open range."""


@frozen
class ProteinRules:
    """Which files of proteins are accepted, and how nucleotides are translated.

    Attributes
    ----------
    any_letters : bool
        Accept files whose first letters are nearly all nucleotides; or, if nucleotides are
        translated, files whose letters are mostly not nucleotides.
    no_empty : bool
        Raise an error if a file has no protein.
    long_proteins : {"skip", "error"}
        How to treat a protein, or an ORF, of more than `MOST_RESIDUES`.
    code : int
        The genetic code, in NCBI's numbering.
    min_orf : int
        The minimum length of an ORF, in residues.
    strand : {"both", "plus", "minus"}
        Which strands are translated.
    sequence_format : str
        The format of the files: one of `PROTEIN_FORMATS`.

    Raises
    ------
    OptionError
        If a value makes no sense.
    """

    any_letters: bool = False
    no_empty: bool = False
    long_proteins: str = "skip"
    code: int = DEFAULT_CODE
    min_orf: int = DEFAULT_MIN_ORF
    strand: str = "both"
    sequence_format: str = BY_CONTENT

    def __post_init__(self) -> None:
        keep_values(
            self,
            any_letters=check_bool("any_letters", self.any_letters),
            long_proteins=one_of("long_proteins", self.long_proteins, ("skip", "error")),
            code=positive("code", self.code),
            min_orf=between("min_orf", self.min_orf, 1, MOST_RESIDUES),
            strand=one_of("strand", self.strand, STRANDS),
            sequence_format=one_of("sequence_format", self.sequence_format, PROTEIN_FORMATS),
        )

    def check_if_translated(self, translates: bool) -> None:
        """Refuse rules of translation if nothing is translated."""
        for name in ("code", "min_orf", "strand"):
            if not translates and getattr(self, name) != getattr(ProteinRules, name):
                raise OptionError(name, "it is of use with translate only")
        if translates and self.sequence_format in EASEL_FORMATS:
            raise OptionError("sequence_format", "it is of proteins, which translate cannot use")
