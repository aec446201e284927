"""Small made sequences: the bytes that are kept, which are MUMmer's."""

import gzip

import pytest
from helpers.golden_cases import CASES, FOLDER, mummers_text
from helpers.mummer_comparison import count_rows, difference, our_text


def kept(case):
    return (FOLDER / f"{case}.txt").read_bytes()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "setting",
    [
        "",
        "-t 3 --block-size 1",
        "--page-size 100 --block-size 500 --policy rtn",
        "--page-size 61 -t 2 --max-memory 1 --policy none",
    ],
)
def test_kept_bytes(case, setting, tmp_path):
    reference, queries, *flags = CASES[case].split()
    files = str(FOLDER / reference), [str(FOLDER / queries)]
    assert not difference(our_text(tmp_path, *files, " ".join(flags), setting), kept(case))


@pytest.mark.parametrize("case", CASES)
def test_kept_bytes_are_those_of_mummer(case, mummer_binary, tmp_path):
    assert not difference(kept(case), mummers_text(mummer_binary, case, tmp_path))
    assert count_rows(kept(case)) > 4 or case == "longer_than_all"


@pytest.mark.parametrize(
    "spelling",
    [
        pytest.param(lambda text: text.replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(lambda text: text.rstrip(b"\n"), id="no final newline"),
        # Blanks between the bases of FASTQ are refused.
        pytest.param(lambda text: text.replace(b"\n>", b"\n\n \n>"), id="blank lines"),
        pytest.param(
            lambda text: text.replace(b"GA", b"G A") if text[:1] == b">" else text, id="blanks"
        ),
        pytest.param(gzip.compress, id="gzip"),
        pytest.param(
            lambda text: b"".join(
                gzip.compress(text[begin : begin + 777]) for begin in range(0, len(text), 777)
            ),
            id="members of gzip",
        ),
    ],
)
def test_spelling_of_the_files_does_not_matter(spelling, tmp_path):
    for name in ("several.fa", "queries.fa", "reads.fq"):
        text = (FOLDER / name).read_bytes()
        (tmp_path / name).write_bytes(spelling(text))
        assert name == "reads.fq" or spelling(text) != text
    for case in ("all_of_several_records", "simulated_reads_unique"):
        reference, queries, *flags = CASES[case].split()
        files = str(tmp_path / reference), [str(tmp_path / queries)]
        assert not difference(our_text(tmp_path, *files, " ".join(flags)), kept(case))
