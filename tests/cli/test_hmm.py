"""The command ``hmm``: its formats, its inputs and its errors."""

import gzip
import io
import json
import math
import sys
from pathlib import Path

import pytest
from helpers.hidden_models import whole_matrix_scores

from mummergpu.cli.main import main
from mummergpu.hmm.language.parser import parse_program
from mummergpu.input.blocks.symbols import SymbolFiles
from mummergpu.input.records import parallel_records
from mummergpu.output import model_values

CASINO = """hmm casino {
  alphabet [1, 2, 3, 4, 5, 6];
  startstate start; endstate end;
  state fair emits even; state loaded emits biased;
  emission even = [1/6, 1/6, 1/6, 1/6, 1/6, 1/6];
  emission biased = [0.1, 0.1, 0.1, 0.1, 0.1, 0.5];
  start -> fair 1;
  fair -> fair 0.95;  fair -> loaded 0.05;
  loaded -> loaded 0.97999;  loaded -> fair 0.02;
  loaded -> end 0.00001;  fair -> end 0.00001;
}
hmm uniform { alphabet [6, 5, 4, 3, 2, 1]; startstate s; state any emits even;
  emission even = [1/6, 1/6, 1/6, 1/6, 1/6, 1/6]; s -> any 1; any -> any 1; }
"""
THROWS = "316664\n55\n12345666666666666666666666\n"


def write(folder, printed, throws=THROWS):
    program, sequences = folder / "casino.hmm", folder / "throws.txt"
    program.write_text(f"{CASINO} main() {{ cas = new casino() {printed} }}")
    sequences.write_text(throws)
    return ["hmm", "-q", str(program), str(sequences)]


def rows(text):
    return [line.split("\t") for line in text.splitlines()]


def test_the_table_has_a_line_for_each_sequence(tmp_path, capfd):
    words = write(tmp_path, "t = viterbi(cas); print t.score; print t.traceback; print t.score&;")
    assert main(words) == 0
    head, *found = rows(capfd.readouterr().out)
    assert head == ["sequence", "t.score", "t.traceback", "t.score&"]
    assert [row[0] for row in found] == ["1", "2", "3"]
    assert found[2][2] == "fair*5 loaded*21"
    score = 5 * math.log(1 / 6) + 4 * math.log(0.95) + math.log(0.05 * 0.5)
    score += 20 * math.log(0.97999 * 0.5) + math.log(0.00001)
    assert float(found[2][1]) == pytest.approx(score, rel=1e-9)
    start, fair, loaded, end = found[0][3].split(";")
    assert fair.startswith("fair=-inf,-1.791759469,-3.634812233,")
    assert loaded.startswith("loaded=-inf,-inf,")
    assert start == "start=0" + ",-inf" * 6 and end == f"end={'-inf,' * 6}{found[0][1]}"


def test_a_table_has_the_rows_and_the_columns_of_figure_5(tmp_path, capfd):
    """Start and End are rows, and the first column is before any symbol."""
    printed = "print forward(cas).score&; print backward(cas).score&; print forward(cas).score;"
    assert main([*write(tmp_path, printed, ">a\n31\n>b\n\n>c\n1\n"), "--json"]) == 0
    one, empty, _ = map(json.loads, capfd.readouterr().out.splitlines())
    forward, backward = one["forward(cas).score&"], one["backward(cas).score&"]
    score = one["forward(cas).score"]
    assert list(forward) == list(backward) == ["start", "fair", "loaded", "end"]
    assert forward["start"] == [0, None, None] and forward["end"] == [None, None, score]
    assert backward["start"] == [pytest.approx(score), None, None]
    assert backward["end"] == [None, None, 0]
    assert forward["loaded"] == [None, None, pytest.approx(math.log(1 / 6 * 0.05 * 0.1))]
    second = math.log(0.95 / 6 * 1e-5 + 0.05 * 0.1 * 1e-5)
    assert backward["fair"][1:] == pytest.approx([second, math.log(1e-5)])
    assert empty["forward(cas).score&"] is None
    open_end = "print viterbi(new uniform()).score&;"
    assert main([*write(tmp_path, open_end, "12\n"), "--json"]) == 0
    table = json.loads(capfd.readouterr().out)["viterbi(new uniform()).score&"]
    assert list(table) == ["s", "any"] and len(table["any"]) == 3


def test_a_bare_call_runs(tmp_path, capfd):
    """The paper has one in section 3.1; it prints nothing."""
    _, _, *files = write(tmp_path, "viterbi(new casino());")
    assert main(["hmm", *files]) == 0
    found = capfd.readouterr()
    assert found.out == "sequence\n1\n2\n3\n" and "the program prints nothing" in found.err
    assert main(write(tmp_path, "forward(cas); print viterbi(cas).traceback; viterbi(cas)")) == 0
    found = capfd.readouterr()
    assert found.out.startswith("sequence\tviterbi(cas).traceback\n1\tfair*6\n") and not found.err
    assert main(write(tmp_path, "viterbi(new casino());", "317\n")) == 1
    assert main(write(tmp_path, "viterbi(new roulette());")) == 1
    assert "there is no model 'roulette'" in capfd.readouterr().err


def test_long_paths_are_written_in_parts(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    printed = "print viterbi(cas).traceback; print viterbi(cas).score;"
    long = "1" * 30 + "6" * 30
    throws = f">a\n{long * 3}\n>no\n\n>b\n1\n>c\n66\n>d\n{long}\n"
    words = write(tmp_path, f"{printed} print posterior(cas).traceback;", throws)

    def written():
        found = []
        for name in ("o.tsv", "o.json", "o.parquet"):
            assert main([*words, "-o", str(tmp_path / name)]) == 0
            file = tmp_path / name
            rows = parquet.read_table(file).to_pylist() if "parquet" in name else None
            found.append(rows or file.read_text())
        return found

    whole = written()
    assert "\tfair*" in whole[0] and "\nno\t-inf\t" in whole[0]
    for size in (1, 2, 3, 5):
        monkeypatch.setattr(model_values, "PART_RUNS", size)
        monkeypatch.setattr(model_values, "_GROUP_BYTES", 1)
        assert written() == whole
    monkeypatch.setattr(model_values, "_MAX_TEXT", 10)
    assert main([*words, "-o", str(tmp_path / "o.parquet")]) == 2


def test_every_format_has_the_same_values(tmp_path, capfd):
    parquet = pytest.importorskip("pyarrow.parquet")
    printed = "forward(cas).score backward(cas).score posterior(cas).score&".split()
    statements = [f"print {one};" for one in [*printed, "viterbi(new casino()).traceback"]]
    words = write(tmp_path, " ".join(statements))
    assert main([*words, "--json"]) == 0
    objects = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    names = "forward(cas).score, backward(cas).score, posterior(cas).score&"
    assert list(objects[0]) == f"sequence, {names}, viterbi(new casino()).traceback".split(", ")
    for one in objects:
        assert one["forward(cas).score"] == pytest.approx(one["backward(cas).score"], rel=1e-12)
        posteriors = one["posterior(cas).score&"]
        totals = [sum(pair) for pair in zip(posteriors["fair"], posteriors["loaded"], strict=True)]
        assert totals == pytest.approx([1] * len(totals))
    assert main([*words, "--parquet", "-o", str(tmp_path / "t.parquet")]) == 0
    table = parquet.read_table(tmp_path / "t.parquet").to_pylist()
    for row, one in zip(table, objects, strict=True):
        values = {each["state"]: each["values"] for each in row.pop("posterior(cas).score&")}
        assert {**row, "posterior(cas).score&": values} == one
    assert main([*words, "--bed"]) == 0
    text = "1\t0\t6\tfair\n2\t0\t2\tfair\n3\t0\t5\tfair\n3\t5\t26\tloaded\n"
    assert capfd.readouterr().out == text


def test_bed_joins_the_states_of_a_family(tmp_path, capfd):
    text = "hmm m { alphabet [A, C]; startstate s; emission a = [1, 0]; emission c = [0, 1];"
    text += " state in[1] emits a; state in[2] emits c; state out emits a; s -> in[1] 1;"
    text += " in[1] -> in[2] 0.9; in[2] -> in[1] 0.5; in[1] -> out 0.1; out -> out 0.5; }"
    (tmp_path / "m.hmm").write_text(text + " main() { print viterbi(new m()).traceback; }")
    (tmp_path / "s.fa").write_text(">x note\nACAC\nacaaa\n>y\nC\n")
    assert main(["hmm", "-q", str(tmp_path / "m.hmm"), str(tmp_path / "s.fa"), "--bed"]) == 0
    assert capfd.readouterr().out == "x\t0\t7\tin\nx\t7\t9\tout\n"


def test_log_odds_against_another_model(tmp_path, capfd):
    words = write(tmp_path, "print forward(cas).score;")
    assert main(words) == 0
    plain = [float(row[1]) for row in rows(capfd.readouterr().out)[1:]]
    assert main([*words, "--null", "uniform"]) == 0
    odds = [float(row[1]) for row in rows(capfd.readouterr().out)[1:]]
    lengths = [len(line) for line in THROWS.split()]
    expected = [score + n * math.log(6) for score, n in zip(plain, lengths, strict=True)]
    assert odds == pytest.approx(expected, rel=1e-8)


def test_rows_of_probabilities_that_sum_to_more_than_1(tmp_path, capfd):
    """The paper's casino has a row of 1.00001."""
    words = write(tmp_path, "print forward(cas).score;")
    assert main(["hmm", *words[2:]]) == 0
    warned = "casino.hmm:8: the transitions of fair sum to 1.00001"
    assert [line for line in capfd.readouterr().err.splitlines() if "sum to" in line] == [
        f"mummergpu: warning: {tmp_path}/{warned}"
    ]
    program = Path(words[2])
    program.write_text(program.read_text().replace("fair -> fair 0.95", "fair -> fair 0.96"))
    assert main(words) == 1
    said = f"{program}:8:3: the transitions of fair sum to 1.01001, which is more than 1\n"
    assert capfd.readouterr() == ("", f"mummergpu: error: {said}")


def test_log_odds_against_an_impossible_null(tmp_path, capfd):
    """JSON has no infinity, and no program may fail to read a line."""
    one = "hmm one { alphabet [A, B]; startstate s; state n emits e; emission e = [1, 0]; "
    text = f"{one} s -> n 1; n -> n 1; }} {one.replace('one', 'both').replace('1, 0', '.5, .5')}"
    text += " s -> n 1; n -> n 1; } main() { print forward(new both()).score; }"
    (tmp_path / "m.hmm").write_text(text)
    (tmp_path / "s.txt").write_text("AB\nAA\n")
    words = ["hmm", "-q", str(tmp_path / "m.hmm"), str(tmp_path / "s.txt"), "--null", "one"]
    assert main(words) == 0
    assert [row[1] for row in rows(capfd.readouterr().out)[1:]] == ["inf", "-1.386294361"]
    assert main([*words, "--json"]) == 0
    out = capfd.readouterr().out
    assert "Infinity" not in out
    found = [json.loads(line)["forward(new both()).score"] for line in out.splitlines()]
    assert found == [math.inf, pytest.approx(2 * math.log(0.5))]


SCORES = [
    f"{whole_matrix_scores(parse_program(CASINO).models['casino'], codes)[0]:.10g}"
    for codes in ([int(throw) - 1 for throw in line] for line in THROWS.split())
]


@pytest.mark.parametrize("form", ["lines", "fasta", "fastq", "gzip", "stdin"])
def test_sequences_come_in_every_form(form, tmp_path, capfd, monkeypatch):
    words = write(tmp_path, "print forward(cas).score;")
    record = {"fasta": ">{} note\n{}\n", "fastq": "@{}\n{}\n+\n{}\n"}.get(form)
    named = [(n, one, "I" * len(one)) for n, one in enumerate(THROWS.split())]
    text = "".join(record.format(*one) for one in named) if record else THROWS
    path = tmp_path / f"throws.{form}"
    path.write_bytes(gzip.compress(text.encode()) if form == "gzip" else text.encode())
    if form == "stdin":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main([*words[:3], "-" if form == "stdin" else str(path)]) == 0
    found = rows(capfd.readouterr().out)[1:]
    assert [row[0] for row in found] == (["0", "1", "2"] if "fast" in form else ["1", "2", "3"])
    assert [row[1] for row in found] == SCORES


FAULTS = {
    "316\n3x6\n": ":2: the symbol 'x' at position 2 is not in the model's alphabet (record '2')",
    ">a\n31\n>b\n3\n17\n": ":5: the symbol '7' at position 3 is not in the model's alphabet",
    "@a\n316\n+\nII\n": ":4: quality has 2 characters, sequence has 3 (record 'a')",
    "@a\n316\n": ":2: the file ends inside this record (record 'a')",
    "@HD\tVN:1.6\n": ": no FASTA, FASTQ or lines of symbols",
}

BASES = """hmm m { alphabet [A, C, G, T]; startstate s; state a emits x; state b emits y;
  emission x = [0.1, 0.2, 0.3, 0.4]; emission y = [0.25, 0.25, 0.25, 0.2]; s -> a 0.5; s -> b 0.5;
  a -> a 0.9; a -> b 0.1; b -> b 0.8; b -> a 0.2; }
"""


def bases(folder, sequences, printed="forward(new m()).score"):
    """The words that print something of sequences of bases, behind the names."""
    (folder / "m.hmm").write_text(f"{BASES} main() {{ print {printed}; }}")
    (folder / "s.fa").write_bytes(sequences)
    return ["hmm", "-q", str(folder / "m.hmm"), str(folder / "s.fa")]


def test_u_is_t_where_one_of_them_is_in_the_alphabet(tmp_path, capfd):
    words = bases(tmp_path, b">r\nACGUu\n>d\nACGTt\n")
    for alphabet in ("[A, C, G, T]", "[A, C, G, U]", "[a, c, g, t]"):
        program = Path(words[2])
        program.write_text(program.read_text().replace("[A, C, G, T]", alphabet))
        assert main(words) == 0
        first, second = rows(capfd.readouterr().out)[1:]
        assert (first[0], second[0]) == ("r", "d") and first[1] == second[1]
        program.write_text(program.read_text().replace(alphabet, "[A, C, G, T]"))
    # Of proteins they are two residues.
    program.write_text(program.read_text().replace("[A, C, G, T]", "[A, C, L, T]"))
    Path(words[3]).write_text("ACLU\n")
    assert main(words) == 1
    assert "the symbol 'U' at position 4" in capfd.readouterr().err


def test_a_letter_stands_for_any_of_its_symbols(tmp_path, capfd):
    """The sum over all sequences that it may stand for."""
    words = bases(tmp_path, b">x\nANGr\n>y\nn\n")
    assert main(words) == 1
    message = "the symbol 'N' at position 2 is not in the model's alphabet (record 'x')\n"
    assert capfd.readouterr() == ("", f"mummergpu: error: {words[3]}:2: {message}")
    assert main([*words, "--any-letter", "N=*", "--any-letter=R=AG"]) == 0
    found = [float(row[1]) for row in rows(capfd.readouterr().out)[1:]]
    model = parse_program(BASES).models["m"]
    every = [[0, one, 2, other] for one in range(4) for other in (0, 2)], [[0], [1], [2], [3]]
    sums = [sum(math.exp(whole_matrix_scores(model, one)[0]) for one in some) for some in every]
    assert [math.exp(score) for score in found] == pytest.approx(sums, rel=1e-8)


def test_a_wrong_symbol_is_told_before_anything_is_printed(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(SymbolFiles.__init__, "__defaults__", (16,))
    # Three threads read a file in pieces.
    for name, size in (("LEAST_BYTES", 1), ("PIECE_BYTES", 16), ("SAMPLE_BYTES", 16)):
        monkeypatch.setattr(parallel_records, name, size)
    text = b">x\n" + b"ACGT" * 9 + b"\n>y\nAC\n>z\nAXC\n"
    words = bases(tmp_path, text)
    for option in ((), ("--json",), ("--bed",), ("-t", "1"), ("-t", "3")):
        bases(tmp_path, text, "viterbi(new m()).traceback")
        assert main([*words, *option]) == 1
        out, err = capfd.readouterr()
        assert out == "" and "the symbol 'X' at position 2" in err
    (tmp_path / "other.fa").write_bytes(b">z\nAXC\n")
    bases(tmp_path, b">x\nACGT\n")
    assert main([*words, str(tmp_path / "other.fa")]) == 1
    assert capfd.readouterr().out == ""


def test_letters_beyond_ascii_in_names_go_through(tmp_path, capfdbinary):
    text = b">caf\xc3\xa9 one\nACGT\n>\xffb\nAC\n"
    for fastq in (False, True):
        own = b"@\xe9 x\nAC\n+\nII\n" if fastq else text
        for option in ((), ("--bed",)):
            assert main([*bases(tmp_path, own, "viterbi(new m()).traceback"), *option]) == 0
            names = [line.split(b"\t")[0] for line in capfdbinary.readouterr().out.splitlines()]
            expected = [b"\xe9"] if fastq else [b"caf\xc3\xa9", b"\xffb"]
            assert list(dict.fromkeys(names))[not option :] == expected
    parquet = pytest.importorskip("pyarrow.parquet")
    assert main([*bases(tmp_path, text), "--parquet", "-o", str(tmp_path / "t.parquet")]) == 0
    table = parquet.read_table(tmp_path / "t.parquet")
    assert table["sequence"].to_pylist() == ["caf\u00e9", "\ufffdb"]
    assert main(bases(tmp_path, b"\xe9\x01\x02\n")) == 1
    assert b"binary data, but not FASTA" in capfdbinary.readouterr().err


@pytest.mark.parametrize("text", FAULTS)
def test_a_wrong_file_is_told_with_its_place(text, tmp_path, capfd):
    assert main(write(tmp_path, "print forward(cas).score;", text)) == 1
    assert f"throws.txt{FAULTS[text]}" in capfd.readouterr().err


def test_a_wrong_program_is_told_with_its_place(tmp_path, capfd):
    assert main(write(tmp_path, "print forward(cas)")) == 1
    assert "casino.hmm:14:49: expected '.', found '}'" in capfd.readouterr().err
    assert main(write(tmp_path, "")) == 1
    assert "prints nothing" in capfd.readouterr().err
    assert main([*write(tmp_path, "print forward(cas).score;"), "--bed", "--json"]) == 2
    assert main([*write(tmp_path, "print forward(cas).score;"), "--backend", "cuda"]) == 1
    assert "backend 'cuda'" in capfd.readouterr().err


def test_impossible_sequences_and_none(tmp_path, capfd):
    printed = "print viterbi(cas).score; print viterbi(cas).traceback;"
    words = write(tmp_path, printed, ">a\n\n>b\n1\n")
    assert main([*words, "--json"]) == 0
    first, second = map(json.loads, capfd.readouterr().out.splitlines())
    assert first == {"sequence": "a", "viterbi(cas).score": None, "viterbi(cas).traceback": None}
    assert second["viterbi(cas).traceback"] == "fair*1"
    for option in ("--tsv", "--json", "--bed"):
        assert main([*write(tmp_path, "print viterbi(cas).traceback;", ""), option]) == 0
    assert capfd.readouterr().out == "sequence\tviterbi(cas).traceback\n"


def test_the_name_of_the_output_tells_its_format(tmp_path, capfd):
    words = bases(tmp_path, b">x\nACGT\n", "viterbi(new m()).traceback")
    texts = {}
    for name in ("tsv", "json", "bed"):
        assert main([*words, f"--{name}"]) == 0
        texts[name] = capfd.readouterr().out
    for name in ("o", "o.txt", "o.tsv", "o.json", "o.BED"):
        output = tmp_path / name
        assert main([*words, "-o", str(output)]) == 0
        assert output.read_text() == texts[output.suffix.lower()[1:].replace("txt", "") or "tsv"]
    assert main([*words, "--bed", "-o", str(tmp_path / "o.unknown")]) == 0
    assert (tmp_path / "o.unknown").read_text() == texts["bed"]
