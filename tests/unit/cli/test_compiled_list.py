"""The list of what is compiled."""

from __future__ import annotations

from pathlib import Path

from mummergpu.cli.compiled_list import (
    PATH,
    Entry,
    entries,
    marks_of,
    needed_by,
    text_of,
)
from mummergpu.runtime.compiled.ahead import Listed, function_of


def test_all_that_is_listed_is_there() -> None:
    """If this fails, run packaging/list_compiled.py."""
    listed = list(entries())
    assert len(listed) > 100
    assert not [one.listed[:3] for one in listed if function_of(one.listed) is None]
    assert text_of(listed) == PATH.read_text(encoding="ascii")


def test_marks_tell_verb_files_formats_and_options() -> None:
    assert marks_of("map -t 2 r.fa 1.fq.gz 2.fastq -o x.bam --sort".split()) == {
        *("map", "<.fa", "<.fq", "mates", ">.bam", "--sort")
    }
    assert marks_of("r.fna q.fa -b -l 20 -mum".split()) == {
        *("match", "<.fa", "k-mers", ">.mummer", "-mum")
    }
    assert marks_of("r.fa q.fa --search tree -o x.txt".split()) == {
        *("match", "<.fa", "trees", ">.mummer")
    }
    assert marks_of(["align", "x.mgi", "q.fa", "--format", "PAF"]) == {
        *("align", "<.mgi", "<.fa", ">.paf")
    }
    assert marks_of([]) == {"match", "k-mers", ">.mummer"}


def test_a_run_needs_what_it_has_all_marks_of(tmp_path: Path) -> None:
    names = [one.name for one in needed_by("map -t 2 r.fa reads.fa.gz -o x.sam".split())]
    assert {"parse_fasta", "map_templates", "write_sam_rows"} <= set(names)
    assert not {"parse_fastq", "trace_stored"} & set(names)
    runs = frozenset({frozenset({"map", "mates"}), frozenset({"align"})})
    lines = [Entry(runs, Listed("m", "f", "i", 3)), Entry(frozenset(), Listed("m", "g", "i", 1))]
    written = tmp_path / "list.tsv"
    written.write_text(text_of(lines))
    assert set(entries(written)) == set(lines)


def test_a_list_that_is_missing_or_strange_is_empty(tmp_path: Path) -> None:
    assert not list(entries(tmp_path / "none"))
    (tmp_path / "strange").write_text("a\tb\n")
    assert not list(entries(tmp_path / "strange"))
