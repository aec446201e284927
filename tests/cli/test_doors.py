"""Every format of every verb has one content: through each door, however it is cut and shared."""

import random
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
from helpers.alignment_tools import samtools
from helpers.doors import Case, can_be_packed, command, content_of, rows_of_index, run_of_python
from helpers.genomes import changed
from helpers.oracle import mummer_text
from helpers.read_pairs import write_pairs
from helpers.sequences import random_bases, read_fasta, reverse_complement, write_fasta, write_fastq
from helpers.tables import table

import mummergpu
from mummergpu.cli.main import main
from mummergpu.output.formats import FORMATS

GAPS = "--gap-open 3 --gap-extend 7"
"""Unless told, gaps cost less in a VCF."""


def cases_of(title):
    """The cases in the text beside this file."""
    for *given, formats in table(__file__, title):
        yield Case(*given, tuple(formats.split()))


MATCHES = list(cases_of("MATCHES"))
EVERY = (*MATCHES, *cases_of("READS"), *cases_of("GENOMES"))
CASES = {f"{case.verb} {case.files} {case.words}": case for case in EVERY}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A genome with a repeat and unknown bases, pairs and contigs of it, and an index."""
    made = tmp_path_factory.mktemp("doors")
    write_pairs(made, 120)
    chance = random.Random(6)
    records = read_fasta(made / "r.fa")
    one, two = (records[name] for name in ("one", "two"))
    with (made / "r.fa").open("a") as file:
        unit = random_bases(chance, 130)
        copies = [_changed(unit, chance, 30) for _ in range(40)]
        file.write(f">many\n{''.join(copies)}\n")
        file.write(f">none\n>three more words\n{random_bases(chance, 90)}NNNNN{one[300:700]}\n")
    contigs = {
        "straight a comment": _changed(one[1000:5000], chance),
        "turned": reverse_complement(_changed(two[200:3000], chance)),
        **{"nothing": random_bases(chance, 60), "short": "ACG", "empty": ""},
        "both": one[3000:3900] + reverse_complement(one[300:700]) + two[5000:5600],
        "twice": reverse_complement(2 * one[6000:6700]),
        "distant": reverse_complement(changed(one[8000:12_000], chance, 0.03, 0.004)),
        "family": "".join(copies)[200:2200],
        "letters": one[600:700].lower() + "R" + two[100:180],
    }
    write_fasta(made / "q.fa", contigs)
    reads = enumerate(_changed("".join(copies)[at : at + 110], chance) for at in range(0, 4000, 97))
    write_fastq(made / "repeats.fq", ((f"m{number}", bases) for number, bases in reads))
    write_fasta(made / "short.fa", {"a": one[:300], "b": reverse_complement(two[100:350])})
    few = {
        "a first": records["one"][:400],
        "none": "",
        "b": records["two"][:200] + "NN" + one[90:190],
    }
    few["c"] = reverse_complement(one[120:330])
    write_fasta(made / "few.fa", few)
    many = {"nothing": "", "short": "ACG", "all": few["b"]}
    for number in range(30):
        text = "N".join(few.values())
        begin = chance.randrange(len(text) - 60)
        piece = _changed(text[begin : begin + chance.randrange(20, 90)], chance)
        many[f"q{number} of"] = piece if number % 2 else reverse_complement(piece)
    write_fasta(made / "many.fa", many)
    lines = [f"@{n}\tBC:Z:AC\tXi:i:{n}\n{one[at : at + 90]}\n+\n{'F' * 90}\n"
             for n, at in enumerate(range(0, 6000, 400))]  # fmt: skip
    (made / "tags.fq").write_text("".join(lines))
    odd = {
        f"parts{at}": one[at : at + 70] + two[at + 900 : at + 980] for at in range(90, 2000, 300)
    }
    odd |= {f"no{at}": random_bases(chance, 120) for at in range(3)}
    odd |= {f"gaps{at}": _changed(two[at : at + 150], chance, 25) for at in range(0, 3000, 130)}
    odd |= {"few": one[500:535] + random_bases(chance, 75)}
    write_fastq(made / "odd.fq", odd.items())
    samtools("import", "-1", made / "1.fq", "-2", made / "2.fq", "-o", made / "mates.bam")
    samtools(
        "import", "-T", "*", "-r", "ID:l1\tSM:s", "-0", made / "tags.fq", "-o", made / "tags.bam"
    )
    for kind in ("kmer", "tree"):
        words = ["index", "-q", "-l", "12", "--search", kind, "-o", f"{made}/{kind}.mgi"]
        assert main([*words, f"{made}/r.fa"]) == 0
    return made


def _changed(bases, chance, step=60):
    """At each step, a base is another one, missing, or has one beside it."""
    kinds = ("", chance.choice("ACGT"), "A{}", "{}")
    return "".join(
        base if at % step else chance.choice(kinds).format(base) for at, base in enumerate(bases)
    )


@pytest.fixture(scope="module")
def index(folder):
    return mummergpu.Index.build(folder / "r.fa", min_length=12)


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture(scope="module")
def expected(case, folder, tmp_path_factory):
    """The files of the command, all of one run by one thread."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        made = tmp_path_factory.mktemp("expected")
        command(case, with_packed(case), made, "-t 1")
        yield made


def with_packed(case):
    """The files of a case, and once more compressed as a whole."""
    return [*case.names, *(f"{name}.gz" for name in case.names if can_be_packed(name))]


def check(case, expected, found, names=None, bare=False):
    """Compare files with those of the command; they may be compressed."""
    for name in names or case.names:
        theirs = content_of(expected / name, bare)
        assert content_of(found / name, bare) == theirs, name


def test_the_formats_tell_the_same(case, expected):
    of_records = [name for name in case.names if name[2:] in ("sam", "bam", "cram")]
    if not of_records:
        pytest.skip("there is one format")
    first, *others = ([*content_of(expected / name)[1]] for name in of_records)
    in_cram = [[*row[:5], row[5].replace("=", "M"), *row[6:]] for row in first]
    assert all(rows in (first, in_cram) for rows in others) and len(first) > 1
    if case.verb != "match" and "x.paf" in case.names:
        mapped = sorted(row[0] for row in first if not int(row[1]) & 4)
        lines = [line.split(b"\t") for line in content_of(expected / "x.paf").splitlines()]
        assert sorted(line[0].decode() for line in lines) == mapped
    if case.verb == "align":
        # All alignments of two sequences stand below one header.
        heads = [line for line in content_of(expected / "x.delta").splitlines() if line[:1] == b">"]
        assert 0 < len(heads) == len(set(heads))
    for name in of_records[1:]:
        samtools("quickcheck", "-v", expected / name)


def test_every_option_means_something(case, expected, tmp_path):
    """Otherwise nobody would see whether a door loses it."""
    names = [name for name in case.names if name[2:] in ("paf", "sam", "bam", "vcf")]
    for option in case.options:
        if GAPS in case.words != GAPS and option in GAPS:
            continue
        others = replace(case, words=" ".join(one for one in case.options if one != option))
        command(others, names, tmp_path)
        differ = [content_of(tmp_path / name) != content_of(expected / name) for name in names]
        assert any(differ), option


def test_threads_blocks_and_compression_change_nothing(case, expected, tmp_path):
    command(case, with_packed(case), tmp_path, "-t 3 --block-size 900")
    check(case, expected, tmp_path, with_packed(case))
    for name in with_packed(case):
        if name.removesuffix(".gz") not in ("x.sam", "x.bam", "x.cram"):
            assert (tmp_path / name).read_bytes() == (expected / name).read_bytes(), name


def test_a_file_alone_is_that_among_others(case, expected, tmp_path, capfdbinary):
    """Named by its end, or by an option and then on standard output."""
    for name in case.names:
        command(case, [name], tmp_path)
        own = (tmp_path / name).read_bytes()
        kind = {"txt": "mummer"}.get(name[2:], name[2:])
        if kind not in ("html", "sam", "bam", "cram"):
            capfdbinary.readouterr()
            command(case, [], tmp_path, f"--format {kind}")
            assert capfdbinary.readouterr().out == own == (expected / name).read_bytes(), name
    check(case, expected, tmp_path)


@pytest.mark.parametrize("kind", ["kmer", "tree"])
def test_an_index_file_stands_for_its_reference(case, kind, expected, tmp_path, index):
    if kind == "tree" and case.verb == "map":
        pytest.skip("reads are mapped by k-mers")
    names = [name for name in case.names if name != "x.html"]
    command(case, case.names, tmp_path, reference=f"{kind}.mgi")
    check(case, expected, tmp_path, names)
    if not case.has_rows_in_memory:
        return
    with mummergpu.Index.open(f"{kind}.mgi") as opened:
        rows_of_index(case, names, tmp_path, opened)
    check(case, expected, tmp_path, names, bare=case.verb == "match")


def test_python_writes_the_files_of_the_command(case, expected, tmp_path):
    made = [tmp_path / threads for threads in "14"]
    for folder in made:
        folder.mkdir()
        stats = run_of_python(case, with_packed(case), folder, threads=int(folder.name))
        check(case, expected, folder, with_packed(case))
        sizes = [(folder / name).stat().st_size for name in with_packed(case)]
        assert stats.output_bytes == sum(sizes)
        assert stats.backend == "cpu"
        if case.verb != "map" and "x.paf" in case.names:
            written = stats.matches if case.verb == "match" else stats.alignments
            assert written == content_of(expected / "x.paf").count(b"\n")
        if case.verb == "match":
            # Each query has a header on each strand.
            headers = content_of(expected / "x.txt").count(b"> ")
            assert headers == stats.queries * (2 if "-b" in case.words else 1)
    for name in with_packed(case):
        # Without the command in the headers, all bytes are the same.
        assert (made[0] / name).read_bytes() == (made[1] / name).read_bytes(), name


def test_rows_in_memory_are_written_as_the_command_writes_them(case, expected, tmp_path, index):
    if not case.has_rows_in_memory:
        pytest.skip("an index finds other rows")
    names = [name for name in with_packed(case) if "html" not in name]
    rows_of_index(case, names, tmp_path, index)
    check(case, expected, tmp_path, names, bare=case.verb == "match")
    if case.files.endswith(".fa"):
        named = [tuple(one.split("\n")[:2]) for one in Path(case.files).read_text().split(">")[1:]]
        rows_of_index(case, names, tmp_path, index, queries=named)
        check(case, expected, tmp_path, [name for name in names if "vcf" not in name], bare=True)


def rows_by_definition(case):
    """The matches in the order of the files, with what formats tell of them."""
    records, queries = read_fasta("few.fa"), read_fasta("many.fa")
    mode = case.arguments.get("mode", "maxmatch")
    text = mummer_text(
        *(list(records.values()), list(queries.values()), case.arguments["min_length"], mode),
        strands=case.arguments.get("strands", "forward"),
        four_columns=True,
    )
    rows = []
    for block in text.split("> q")[1:]:
        header, *lines = block.splitlines()
        query = list(queries)[int(header.split()[0])]
        for line in lines:
            name, start, place, length = line.split()
            record, row = list(records)[int(name[1:])], {"strand": "+-"["Reverse" in header]}
            row |= {"query": query, "size": len(queries[query]), "length": int(length)}
            row |= {"record": record, "whole": len(records[record]), "start": int(start) - 1}
            row["place"], row["at"] = int(place), int(place) - 1
            if row["strand"] == "-":
                row["at"] = row["size"] - row["at"] - row["length"]
            row["end"], row["stop"] = row["at"] + row["length"], row["start"] + row["length"]
            clips = [row["at"], row["size"] - row["end"]][:: 1 if row["strand"] == "+" else -1]
            before, after = (f"{clip}S" * (clip > 0) for clip in clips)
            rows.append({**row, "cigar": f"{before}{length}={after}", "one": row["start"] + 1})
    return rows


PLACES = "{query} {size} {at} {end} {strand} {record} {whole} {start} {stop}"
LINES = {
    "tsv": f"{PLACES} {{length}}",
    "paf": f"{PLACES} {{length}} {{length}} 255 cg:Z:{{length}}=",
    "bed": "{record} {start} {stop} {query} {length} {strand}",
}
"""The fields of a match in each format of lines."""


@pytest.mark.parametrize("case", MATCHES[:3], ids=lambda case: case.words)
def test_matches_are_those_by_definition_in_every_format(case, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    case = replace(case, files="many.fa")
    command(case, case.names, tmp_path, reference="few.fa")
    found = {name[2:]: content_of(tmp_path / name) for name in case.names}
    rows = rows_by_definition(case)
    assert len(rows) > 20
    for kind, line in LINES.items():
        told = [line.format(**row).split(" ") for row in rows]
        own = [line.split("\t") for line in found[kind].decode().splitlines()]
        assert own[kind == "tsv" :] == told
    columns = ("query", "record", "at", "start", "length", "strand")
    for kind in ("arrow", "parquet"):
        assert [(*list(row.values())[:5], "+-"[row["reverse"]]) for row in found[kind]] == [
            tuple(row[name] for name in columns) for row in rows
        ]
    (header, records), queries = found["sam"], list(read_fasta("many.fa"))
    assert [name for name, _ in header["SQ"]] == ["a", "b", "c"]
    mapped = [row for row in records if not int(row[1]) & 4]
    assert [(row[0], "+-"[int(row[1]) >> 4 & 1], *row[2:4], row[5]) for row in mapped] == [
        (row["query"], row["strand"], row["record"], str(row["one"]), row["cigar"]) for row in rows
    ]
    # Every query is there, in the order of the file, and the first of the longest is primary.
    assert [name for name, _ in groupby(row[0] for row in records)] == queries
    for name in queries:
        own = [row for row in mapped if row[0] == name]
        sizes = [row["length"] for row in rows if row["query"] == name]
        for place, row in enumerate(own):
            is_primary = place == sizes.index(max(sizes))
            assert int(row[1]) & ~16 == (0 if is_primary else 256)
            assert (row[9] != "*") == is_primary
            assert {f"NH:i:{len(own)}", f"HI:i:{place + 1}", f"AS:i:{sizes[place]}"} <= {*row[11:]}
    # MUMmer's text counts on the strand that was searched.
    text = found["txt"].decode().splitlines()
    assert [line.split() for line in text if line[0] != ">"] == [
        "{record} {one} {place} {length}".format(**row).split(" ") for row in rows
    ]


def test_every_format_is_in_the_table():
    assert {
        "txt" if name == "mummer" else "html" if name == "plot" else name for name in FORMATS
    } == {name[2:] for case in CASES.values() for name in case.names}
