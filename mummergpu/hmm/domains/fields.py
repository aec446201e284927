"""The columns of the arrays that `parses` and `hits` are about."""

from __future__ import annotations

from typing import Final

BEGIN, RESIDUES, CORRECTIONS, IS_UNUSUAL, REGIONS, CLUSTERED, ENVELOPES, OVERLAPS, DOMAINS, BEST = (
    range(10)
)
"""Of a sequence: the place of its first residue, its length, and where its corrections begin;
whether float32 cannot hold its numbers; its regions, those of them that were sampled, its
envelopes, those of sampled paths that overlap with the one before, its domains, and which of these
is the best."""
FORWARD, NULL, CORRECTED, EXPECTED, SCORE, PLAIN, SUM = range(7)
"""Its scores over all paths and without the profile, in nats, the latter plain and corrected for
the profile's composition; the expected number of its domains; and in bits the score that is
reported, that without correction, and that of its domains."""

SEQUENCE, FIRST, LAST, IS_SEVERAL = range(4)
"""Of a part of a sequence: the sequence, the first and the last residue, from 1 on, and whether it
may have several domains."""
PIECE_FIELDS: Final = 4

IS_SAMPLED, IS_DOMAIN, NODE, RESIDUE, LAST_NODE, LAST_RESIDUE = range(3, 9)
"""Of an envelope, besides: whether its correction is known from sampled paths, whether a domain is
in it, and the first and the last aligned node and residue of this domain."""
ENVELOPE_FIELDS: Final = 9

ENVELOPE, CORRECTION, ACCURACY, BIAS, BITS = range(5)
"""The numbers of a domain: its score and its correction in nats, the expected number of residues
that are aligned right, the correction of the score in bits, and this score."""
NUMBERS: Final = 5

STAGE, DONE, COUNT, REGIONS_FOUND, ENVELOPES_FOUND, SEGMENTS, SEED, RANDOM = range(8)
"""Of a task: its stage, how many of the stage's pieces are done, and how many there are; how many
regions and envelopes are found; the segments that there is memory for; the first random number of
each region, or 0 where they go on from the one before, and the last one."""
STATE_FIELDS: Final = 8
