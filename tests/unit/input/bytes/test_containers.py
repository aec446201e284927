"""Containers that have been cut off, at every byte and at every border of their blocks."""

from __future__ import annotations

import gzip
import random
import subprocess
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from helpers.containers import bgzf, bgzf_blocks, cram_borders, write_alignments
from helpers.naive import Pairs, fold, pairs_of

from mummergpu.errors import InputError
from mummergpu.input.blocks.reader import query_reader
from mummergpu.input.bytes.formats import BGZF_END, MissingEndError, check_end
from mummergpu.input.reference import read_reference
from mummergpu.sequence.codes import decode

BASES = "".join(random.Random(1).choices("ACGT", k=500))
COUNT = 24
READS: Pairs = [(b"r%d" % n, BASES[7 * n : 7 * n + 30].encode()) for n in range(COUNT)]
FASTA = b"".join(b">%s\n%s\n" % read for read in READS)
FASTQ = b"".join(b"@%s\n%s\n+\n%s\n" % (name, bases, b"I" * 30) for name, bases in READS)
SAM = b"@SQ\tSN:c1\tLN:500\n" + b"".join(
    b"%s\t0\tc1\t%d\t60\t30M\t*\t0\t0\t%s\t*\n" % (name, 7 * number + 1, bases)
    for number, (name, bases) in enumerate(READS)
)
BARE_SAM = SAM[SAM.index(b"\n") + 1 :]
TEXTS = {"fa": FASTA, "fq": FASTQ, "sam": SAM, "bare.sam": BARE_SAM}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The reads as BAM of many blocks, and as CRAM of many containers of each version."""
    folder = tmp_path_factory.mktemp("containers")
    reference = folder / "reference.fa"
    reference.write_text(f">c1\n{BASES}\n")
    write_alignments(folder / "one.bam", "wb", reference, BASES, COUNT)
    packed = gzip.decompress((folder / "one.bam").read_bytes())
    (folder / "reads.bam").write_bytes(bgzf(packed, 400))
    for version in ("2.1", "3.0", "3.1"):
        options = [f"version={version}".encode(), b"seqs_per_slice=6"]
        path = folder / f"reads{version}.cram"
        write_alignments(path, "wc", reference, BASES, COUNT, format_options=options)
    return folder


def outcome_of(path):
    """Return ``whole`` if all reads come, or what the error says."""
    try:
        with query_reader([path], 1000, chunk_size=500) as reader:
            pairs = pairs_of(reader)
    except InputError as error:
        assert error.path == path
        assert str(error).count("\n") == 0
        return error.message
    assert pairs == READS, "fewer reads, and no error"
    return "whole"


def outcomes(content, sizes, folder, name):
    """Return what comes of a file that is cut to each of these sizes."""
    found = {}
    path = folder / name
    for size in sizes:
        path.write_bytes(content[:size])
        found[size] = outcome_of(str(path))
    return found


def piped_outcomes(content, sizes, monkeypatch):
    """Return what comes of standard input that ends too early."""
    found = {}
    for size in sizes:
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(content[:size])))
        found[size] = outcome_of("-")
    return found


def assert_all_cut(found):
    """Each is told as cut off, or as too short to be anything; none as whole."""
    for size, outcome in found.items():
        assert "truncated" in outcome or size < 30, (size, outcome)
        assert outcome != "whole", size


@pytest.mark.parametrize("name", TEXTS)
def test_bgzf_text_is_told_wherever_it_is_cut(name, tmp_path, monkeypatch):
    content = bgzf(TEXTS[name], 200)
    borders = [0]
    for block in bgzf_blocks(TEXTS[name], 200):
        borders.append(borders[-1] + len(block))
    every = range(1, len(content))
    assert_all_cut(outcomes(content, every, tmp_path, f"{name}.gz"))
    # From a pipe, alignments go through a temporary file.
    some = [*every[:60:7], *borders[1:], *every[-40::3]]
    assert_all_cut(piped_outcomes(content, some, monkeypatch))
    at_borders = outcomes(content, borders[1:], tmp_path, "cut.gz")
    expected = "the compressed data lack bgzf's empty block at their end (truncated?"
    assert all(outcome.startswith(expected) for outcome in at_borders.values())
    assert outcomes(content, [len(content)], tmp_path, "whole.gz") == {len(content): "whole"}
    assert piped_outcomes(content, [len(content)], monkeypatch) == {len(content): "whole"}


def test_bgzf_reference_is_told_wherever_it_is_cut(tmp_path):
    path = tmp_path / "reference.fa.gz"
    content = bgzf(FASTA, 200)
    path.write_bytes(content)
    assert decode(read_reference(str(path)).codes) == b"N".join(bases for _, bases in READS)
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(InputError):
            read_reference(str(path))


def test_plain_gzip_has_no_mark_but_its_own_trailer(tmp_path):
    content = gzip.compress(FASTA[:300]) + gzip.compress(b"") + gzip.compress(FASTA[300:])
    found = outcomes(content, [len(content)], tmp_path, "whole.gz")
    assert found == {len(content): "whole"}
    border = len(gzip.compress(FASTA[:300]))
    for size in range(1, len(content)):
        path = tmp_path / "cut.gz"
        path.write_bytes(content[:size])
        if size in (border, border + len(gzip.compress(b""))):
            # Between members nothing tells; the text is shorter, and sound.
            assert gzip.decompress(path.read_bytes()) == FASTA[:300]
        else:
            assert outcome_of(str(path)) != "whole"


def test_bgzf_files_that_are_joined_have_empty_blocks_inside(tmp_path, monkeypatch):
    joined = bgzf(FASTQ[:400]) + BGZF_END + bgzf(FASTQ[400:])
    assert outcomes(joined, [len(joined)], tmp_path, "joined.gz") == {len(joined): "whole"}
    assert piped_outcomes(joined, [len(joined)], monkeypatch) == {len(joined): "whole"}
    for cut in (len(BGZF_END), 1, 100):
        assert outcome_of_bytes(joined[:-cut], tmp_path) != "whole"
    # The mark must be the end, not only be near it.
    assert outcome_of_bytes(joined + gzip.compress(b"@x\nA\n+\nI\n"), tmp_path) != "whole"


def outcome_of_bytes(content, folder):
    (folder / "bytes.gz").write_bytes(content)
    return outcome_of(str(folder / "bytes.gz"))


@pytest.mark.parametrize("name", ["reads.bam", "reads2.1.cram", "reads3.0.cram", "reads3.1.cram"])
def test_alignments_are_told_wherever_they_are_cut(
    name, folder, tmp_path, monkeypatch, capfd, samtools_binary
):
    content = (folder / name).read_bytes()
    if name.endswith(".cram"):
        borders = cram_borders(content)
    else:
        blocks = bgzf_blocks(gzip.decompress(content), 400)
        borders = [sum(map(len, blocks[:count])) for count in range(1, len(blocks) + 1)]
    assert len(borders) >= 5
    near = {border + step for border in borders for step in (-1, 0, 1)} - {len(content) + 1}
    # The header of CRAM 2.1 has some 10,000 bytes of room.
    step = {"reads2.1.cram": 101, "reads3.1.cram": 5}.get(name, 1)
    sizes = sorted(near | {*range(1, len(content), step), len(content)})
    found = outcomes(content, sizes, tmp_path, name)
    whole = [size for size, outcome in found.items() if outcome == "whole"]
    assert whole == [len(content)]
    assert_all_cut({size: outcome for size, outcome in found.items() if size != len(content)})
    # A pipe shows only at its end that the mark is missing, a file before it is decompressed.
    piped = piped_outcomes(content, sorted(near), monkeypatch)
    assert piped.pop(len(content), "whole") == "whole"
    assert_all_cut(piped)
    assert capfd.readouterr() == ("", "")
    assert sound_for_samtools(samtools_binary, content, sizes, tmp_path) == whole


def sound_for_samtools(samtools, content, sizes, folder):
    """Return which sizes ``samtools quickcheck`` has nothing against."""
    paths = {str(folder / f"{size}.cut"): size for size in sizes}
    for path, size in paths.items():
        Path(path).write_bytes(content[:size])
    done = subprocess.run(
        [samtools, "quickcheck", "-v", *paths], capture_output=True, text=True, check=False
    )
    bad = set(done.stdout.split())
    return [size for path, size in paths.items() if path not in bad]


def test_cram_of_version_2_0_ends_without_a_mark(folder, tmp_path):
    content = (folder / "reads2.1.cram").read_bytes()
    older = content[:5] + b"\0" + content[6:]
    end = cram_borders(content)[-2]
    for size in (len(content), end):
        assert outcomes(older, [size], tmp_path, "older.cram") == {size: "whole"}


def test_marks_of_old_and_new_writers_of_cram_are_the_same(folder):
    """Some wrote the first reference number of the last container with other upper bits."""
    content = (folder / "reads3.0.cram").read_bytes()
    other = bytearray(content[-38:])
    other[8] |= 0xF0
    check_end(content[:18], bytes(other))
    other[9] ^= 1
    with pytest.raises(MissingEndError, match="CRAM data lack the empty container"):
        check_end(content[:18], bytes(other))


def test_what_is_compared_are_reads():
    assert all(fold(bases) == bases for _, bases in READS)
