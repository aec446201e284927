"""The colours of all figures and pages."""

from __future__ import annotations

from typing import Final

INK: Final = "#1b1b1b"
"""The colour of text and lines; on a page they have the colour of the page's text instead."""

FAINT: Final = "#8a8a8a"

BLUE: Final = "#0072b2"
ORANGE: Final = "#e69f00"
SKY: Final = "#56b4e9"
GREEN: Final = "#009e73"
VERMILION: Final = "#d55e00"
PURPLE: Final = "#cc79a7"
"""The colours of Okabe and Ito, which colour-blind readers can distinguish."""

FORWARD: Final = BLUE
REVERSE: Final = VERMILION
"""The colours of matches on the two strands."""

STRAND, IDENTITY = "strand", "identity"
COLOURINGS: Final = (STRAND, IDENTITY)
"""The meanings of the colours of a dot plot."""
