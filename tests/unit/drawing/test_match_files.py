"""Files of matches say what was written into them."""

import pytest

import mummergpu
from mummergpu.drawing.match_files import format_of_matches, read_matches

RECORDS = [("r", "ACGTTGCAGGATCCTTAGCA" * 2), ("s", "TTTTGGGGCATCATCGAC")]
QUERIES = [("none", "AC"), ("q", "TGCTAAGGATCCTGCAACGT"), ("p", "GGGGCATCATAAAACGTTGCAGG")]


@pytest.mark.parametrize("name", ["x.paf", "x.paf.gz"])
def test_matches_come_back(name, tmp_path):
    found = mummergpu.Index.build(RECORDS, min_length=6).match(
        QUERIES, backend="cpu", strands="both"
    )
    path = str(tmp_path / name)
    found.write(path)
    read = read_matches(path)

    def rows(matches):
        queries, references = matches.query_names, matches.reference_names
        columns = (matches.query_start, matches.reference_start, matches.length, matches.reverse)
        places = zip(*(column.tolist() for column in columns), strict=True)
        names = [queries[number] for number in matches.query.tolist()]
        others = [references[number] for number in matches.reference.tolist()]
        return sorted(zip(names, others, places, strict=True))

    assert rows(read) == rows(found)
    assert len(rows(read)) > 5 and read.reverse.any() and not read.reverse.all()
    assert dict(zip(read.query_names, read.query_lengths.tolist(), strict=True)) == {
        name: len(bases) for name, bases in QUERIES[1:]
    }
    least = int(read.length.max())
    longest = read_matches(path, least)
    assert longest.length.tolist() == [one for one in read.length if one == least]
    assert set(read.identity.tolist()) == {100} and longest.identity.size < len(rows(read))


def test_an_alignment_with_gaps_has_the_length_of_its_shorter_side(tmp_path):
    path = tmp_path / "x.paf"
    path.write_text("q\t80\t10\t40\t-\tr\t90\t1\t35\t30\t36\t60\tcg:Z:30M\n\n")
    read = read_matches(str(path))
    assert (read.query_start[0], read.reference_start[0], read.length[0]) == (10, 1, 30)
    assert read.identity.tolist() == [100 * 30 / 36]
    path = tmp_path / "x.delta"
    path.write_text("r q\nNUCMER\n>r q 90 80\n2 35 40 11 4 4 0\n-12\n3\n0\n")
    read = read_matches(str(path))
    assert (read.query_start[0], read.reference_start[0], read.length[0]) == (10, 1, 30)
    assert read.reverse.tolist() == [True]
    # Four errors in the 34 bases of the longer side.
    assert read.identity.tolist() == [pytest.approx(100 * 30 / 34)]


def test_the_name_tells_the_format():
    names = ("x.paf", "x.PAF.gz", "a.b/x.delta", "x.mums", "paf", "x.fa.gz", "-")
    assert list(map(format_of_matches, names)) == ["paf", "paf", "delta", None, None, None, None]
