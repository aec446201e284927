"""Parts of files: together they have all records, in order, each once."""

import gzip
import random
from pathlib import Path

import pytest

from mummergpu.errors import InputError
from mummergpu.input.blocks.file_cuts import UncutError, cut_source, is_cuttable
from mummergpu.input.blocks.read_files import MateFiles, ReadFile
from mummergpu.input.blocks.reader import read_reader
from mummergpu.output.bytes.compression import BGZF_END, BgzfCompressor

Reads = list[tuple[bytes, bytes, bytes]]


def made_reads(count, seed, end=""):
    made = random.Random(seed)
    reads = []
    for number in range(count):
        size = made.randrange(1, 150)
        bases = "".join(made.choices("ACGTN", k=size))
        # Qualities that begin like names and like the third line.
        reads.append((f"r{number}{end}", bases, "".join(made.choices("@+F", k=size))))
    return reads


def fastq(reads, line_end="\n"):
    text = "".join(f"@{name} c\n{bases}\n+\n{quality}\n" for name, bases, quality in reads)
    return text.replace("\n", line_end).encode()


def bgzf(content, size=700):
    compressor = BgzfCompressor()
    blocks = [compressor.compress(content[at : at + size]) for at in range(0, len(content), size)]
    return b"".join(blocks) + BGZF_END


def records_of(sources):
    """Return names, codes and qualities of all reads of some sources, one after the other."""
    found = []
    for source in sources:
        with read_reader([source], 1000) as reader:
            for block in reader:
                names, bases = block.name_offsets, block.offsets
                for number in range(block.query_count):
                    here = slice(bases[number], bases[number + 1])
                    found.append(
                        (
                            block.names[names[number] : names[number + 1]].tobytes(),
                            block.codes[here].tobytes(),
                            block.base_qualities[here].tobytes(),
                        )
                    )
    return found


SINGLE = made_reads(300, 1)
FIRST, SECOND = made_reads(300, 2, "/1"), made_reads(300, 3, "/2")
MIXED = [read for pair in zip(FIRST, SECOND, strict=True) for read in pair]
LARGE_BLOCKS = bgzf(fastq(SINGLE), 20_000)
FASTA = "".join(f">{name}\n{bases[:40]}\n{bases[40:]}\n" for name, bases, _ in SINGLE).encode()


@pytest.mark.parametrize("part_bytes", [1, 2500, 10_000, 1 << 40])
@pytest.mark.parametrize(
    ("contents", "interleaved"),
    [
        ([fastq(SINGLE)], False),
        ([fastq(SINGLE, "\r\n")], False),
        ([FASTA], False),
        ([bgzf(fastq(SINGLE))], False),
        ([LARGE_BLOCKS], False),
        ([fastq(MIXED)], True),
        ([bgzf(fastq(MIXED))], True),
        ([fastq(FIRST), fastq(SECOND)], False),
        ([bgzf(fastq(FIRST)), fastq(SECOND)], False),
        ([fastq(FIRST), bgzf(fastq(SECOND), 900)], False),
    ],
)
def test_parts_have_all_reads(tmp_path, contents, interleaved, part_bytes):
    paths = [str(tmp_path / f"{number}.fq") for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        Path(path).write_bytes(content)
    source = ReadFile(paths[0], interleaved)
    if len(paths) == 2:
        source = MateFiles(paths[0], paths[1])
    assert is_cuttable([source])
    parts = list(cut_source(source, part_bytes))
    # No block of bgzf begins two parts.
    if len(contents[0]) > 5000 and contents[0] != LARGE_BLOCKS:
        assert (len(parts) == 1) == (part_bytes == 1 << 40)
        assert len(parts) > 3 or part_bytes != 2500
    assert records_of(parts) == records_of([source])


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(fastq(SINGLE)),
        bgzf(fastq(SINGLE))[: -len(BGZF_END)],
        b"\xef\xbb\xbf" + fastq(SINGLE),
        b"@HD\tVN:1.6\nr\t4\t*\t0\t0\t*\t*\t0\t0\tA\tF\n",
        b"nothing of that kind\n",
        b"",
    ],
)
def test_what_cannot_be_cut(tmp_path, content):
    path = tmp_path / "reads"
    path.write_bytes(content)
    assert not is_cuttable([ReadFile(str(path))])
    with pytest.raises(UncutError):
        list(cut_source(ReadFile(str(path)), 1000))


def test_standard_input_and_missing_files_cannot_be_cut(tmp_path):
    assert not is_cuttable([ReadFile("-")])
    assert not is_cuttable([ReadFile(str(tmp_path / "none.fq"))])


def test_mates_in_another_order_cannot_be_cut(tmp_path):
    one, other = tmp_path / "1.fq", tmp_path / "2.fq"
    one.write_bytes(fastq(FIRST))
    other.write_bytes(fastq([(f"x{name}", bases, quality) for name, bases, quality in SECOND]))
    with pytest.raises(UncutError):
        list(cut_source(MateFiles(str(one), str(other)), 2000))


def test_parts_of_folded_fastq_are_no_valid_files(tmp_path):
    """Who reads them learns that the cuts are wrong."""
    folded = "".join(
        f"@{name}\n{bases}\n+\n@{quality[1:]}\n+{quality[:9]}\n" for name, bases, quality in SINGLE
    )
    path = tmp_path / "folded.fq"
    path.write_text("@first\nAC\n+\nFF\n" + folded)
    with pytest.raises((InputError, UncutError)):
        records_of(list(cut_source(ReadFile(str(path)), 3000)))


def test_a_wrong_range_of_bgzf_is_refused(tmp_path):
    path = tmp_path / "r.fq.bgz"
    path.write_bytes(bgzf(fastq(SINGLE)))
    first, *_ = cut_source(ReadFile(str(path)), 5000)
    assert isinstance(first, ReadFile) and first.part is not None
    begin = first.part.begin._replace(at=first.part.begin.at + 5)
    wrong = ReadFile(str(path), part=first.part._replace(begin=begin))
    with pytest.raises(InputError, match="other bytes between blocks"):
        records_of([wrong])
