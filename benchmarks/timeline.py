"""Draws the timeline of threads that ``--stats`` writes, and prints how busy they are."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

COLOURS = {
    "queries_from_disk": "#8c564b",
    "device_search": "#bcbd22",
    "matches_from_device": "#9467bd",
    "kmer_kernel": "#1f77b4",
    "mapping": "#ff7f0e",
    "summary": "#7f7f7f",
    "format": "#2ca02c",
    "compression": "#17becf",
    "results_to_disk": "#d62728",
}
OTHER = "#c7c7c7"
LEFT, ROW, WIDTH = 130, 14, 1100


class Span(NamedTuple):
    """A stage of a thread, in seconds from the start."""

    stage: str
    begin: float
    end: float


def spans_of(lines: Iterable[str]) -> list[Span]:
    """Return the spans of a thread; the whole run is none."""
    words = (line.split() for line in lines)
    return [Span(name, float(b), float(e)) for name, b, e in words if name != "end_to_end"]


def own_seconds(spans: Sequence[Span]) -> Counter[str]:
    """Return the seconds of each stage without those of the stages inside it."""
    found: Counter[str] = Counter()
    times = sorted({time for span in spans for time in (span.begin, span.end)})
    ordered = sorted(spans, key=lambda span: span.begin)
    under_way: list[Span] = []
    for begin, end in pairwise(times):
        while ordered and ordered[0].begin <= begin:
            under_way.append(ordered.pop(0))
        under_way = [span for span in under_way if span.end > begin]
        if under_way:
            # The one that began last is the innermost.
            found[max(under_way, key=lambda span: span.begin).stage] += end - begin
    return found


def picture(threads: dict[str, list[Span]], title: str) -> str:
    """Return an SVG with a row for each thread; stages inside others lie on top of them."""
    last = max(span.end for spans in threads.values() for span in spans)
    height = ROW * (len(threads) + 4)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{height}" '
        'font-family="sans-serif" font-size="10"><rect width="100%" height="100%" fill="white"/>',
        f'<text x="4" y="11">{escape(title)}</text>',
    ]
    scale = WIDTH / last
    for row, (thread, spans) in enumerate(threads.items()):
        y = ROW * (row + 1) + 4
        parts.append(f'<text x="4" y="{y + 10}">{escape(thread)}</text>')
        for span in sorted(spans, key=lambda one: one.begin - one.end):
            x, width = LEFT + scale * span.begin, max(0.2, scale * (span.end - span.begin))
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 2}" '
                f'fill="{COLOURS.get(span.stage, OTHER)}"><title>{span.stage} {span.begin:.3f} to '
                f"{span.end:.3f} s</title></rect>"
            )
    y = ROW * (len(threads) + 1) + 16
    for second in range(int(last) + 1):
        parts.append(f'<text x="{LEFT + scale * second:.1f}" y="{y}">{second} s</text>')
    for place, (stage, colour) in enumerate(COLOURS.items()):
        x = LEFT + place * WIDTH // len(COLOURS)
        parts.append(f'<rect x="{x}" y="{y + 6}" width="9" height="9" fill="{colour}"/>')
        parts.append(f'<text x="{x + 12}" y="{y + 14}">{stage}</text>')
    return "\n".join((*parts, "</svg>\n"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stats", type=Path, help="a file of --stats")
    parser.add_argument("-o", "--output", type=Path, help="write this SVG")
    options = parser.parse_args()
    report = json.loads(options.stats.read_text())
    found = ((name, spans_of(lines)) for name, lines in sorted(report["timeline"].items()))
    threads = {name: spans for name, spans in found if spans}
    wall = report["stages"]["end_to_end"]["seconds"]
    stages = sum((own_seconds(spans) for spans in threads.values()), Counter[str]())
    for stage, seconds in stages.most_common():
        print(f"{stage:20} {seconds:9.2f} thread-seconds")
    cores = report["settings"]["threads"]
    busy = sum(stages.values()) - stages["device_search"]
    print(f"{busy:.1f} of {cores * wall:.1f} thread-seconds: {busy / cores / wall:.0%} busy")
    workers = [spans for name, spans in threads.items() if name.startswith("mummergpu")]
    if workers:
        ends = [max(span.end for span in spans) for spans in workers]
        print(f"threads end from {min(ends):.2f} to {max(ends):.2f} s of {wall:.2f}")
    if options.output:
        options.output.write_text(picture(threads, report["settings"].get("command", "")))


if __name__ == "__main__":
    main()
