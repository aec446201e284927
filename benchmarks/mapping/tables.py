"""The figures of mappers as text."""

from __future__ import annotations

from typing import Any

from mapping.judge import QUALITIES, Accuracy


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def table(mappers: dict[str, dict[str, Any]]) -> str:
    """Return a table of mappers, one a line: shares of the reads, then reads and wrong ones.

    Parameters
    ----------
    mappers : dict
        The figures of `judge.Accuracy.figures` by the mapper's name.
    """
    head = ["", "right %", "mapped %", *(f"MAPQ>={least}" for least in QUALITIES)]
    text = _row(head) + _row(["---"] * len(head))
    for name, figures in mappers.items():
        counts = (figures["from_quality"][str(least)] for least in QUALITIES)
        text += _row(
            [
                name,
                f"{figures['right_percent']:.3f}",
                f"{figures['mapped_percent']:.3f}",
                *(f"{count['reads']:,}, {count['wrong']:,}" for count in counts),
            ]
        )
    return text


def steps(accuracy: Accuracy) -> str:
    """Return a line for each mapping quality: reads and wrong ones, of it, and from it on."""
    text = "MAPQ\treads\twrong\treads_from\twrong_from\n"
    for quality, reads, wrong in accuracy.by_quality():
        together, errors = accuracy.from_quality(quality)
        text += f"{quality}\t{reads}\t{wrong}\t{together}\t{errors}\n"
    return text


def shortfalls(ours: dict[str, Any], peer: dict[str, Any]) -> list[str]:
    """Return in words what a peer does better than we do; nothing if we reach all of it.

    Reached is: at least the peer's share of right reads, and at mapping qualities of at least 20
    and at least 1 no fewer reads with no more wrong ones.
    """
    found = []
    if ours["right_percent"] < peer["right_percent"]:
        found.append(f"right {ours['right_percent']:.3f}%, not {peer['right_percent']:.3f}%")
    for least in ("20", "1"):
        mine, theirs = ours["from_quality"][least], peer["from_quality"][least]
        if mine["reads"] < theirs["reads"]:
            found.append(f"MAPQ>={least}: {mine['reads']:,} reads, not {theirs['reads']:,}")
        if mine["wrong"] > theirs["wrong"]:
            found.append(f"MAPQ>={least}: {mine['wrong']:,} wrong, not {theirs['wrong']:,}")
    return found
