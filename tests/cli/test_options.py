"""What the command line tells the main job: spellings, places, defaults, and ``--for``."""

import os

import pytest
from helpers.loops import each
from helpers.options import match_options, told_value
from helpers.tables import table

import mummergpu
from mummergpu.cli.main import commands, main
from mummergpu.cli.main_group import MAIN_VERB
from mummergpu.index.options import PAPER_PAGE_BASES, TreeOptions
from mummergpu.index.tree.layout import MAX_PAGE_BASES
from mummergpu.index.tree.policy import LETTERS, Policy
from mummergpu.matching.options import Uniqueness
from mummergpu.output.targets import OutputTarget
from mummergpu.sequence.strand import Strand

FORWARD, REVERSE = (Strand.FORWARD,), (Strand.REVERSE,)
BOTH = FORWARD + REVERSE


def options_of(told, command_line):
    assert main(command_line.split()) == 0
    return told.pop()


def value_of(text):
    """The value that a row of the table has as Python."""
    return eval(text)


def test_defaults(told, monkeypatch):
    monkeypatch.delenv("MUMMERGPU_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert options_of(told, "ref.fa reads.fq") == match_options(
        "ref.fa",
        ("reads.fq",),
        "-",
        minimum_length=20,
        strands=(Strand.FORWARD,),
        uniqueness=Uniqueness.ALL,
        threads=len(os.sched_getaffinity(0)),
        backend="auto",
        search="kmer",
        page_size=None,
        block_size=None,
        device=0,
        gpu_memory=None,
        device_library="auto",
        profile=False,
        kernel_folder="/caches/mummergpu",
    )


def test_match_is_the_command_without_a_name(told):
    expected = options_of(told, "-b ref.fa a.fq b.fq")
    assert options_of(told, "match -b ref.fa a.fq b.fq") == expected
    assert expected.query_paths == ("a.fq", "b.fq")


@each("place", ["{} r q", "r {} q", "r q {}", "match {} r q"])
@pytest.mark.parametrize(("words", "field", "value"), table(__file__, "words", str, str, value_of))
def test_words_may_stand_anywhere(told, place, words, field, value):
    options = options_of(told, place.format(words))
    assert told_value(options, field) == value
    assert (options.reference_path, options.query_paths) == ("r", ("q",))


@pytest.mark.parametrize("name", sorted(LETTERS))
def test_policy_flags_overrule_the_code(told, name):
    flag = name.replace("_", "-")
    assert options_of(told, f"--{flag} --policy none r q").index.kind == TreeOptions(
        policy=Policy(**{name: True})
    )
    everything = {other: True for other in LETTERS}
    options = options_of(told, f"--policy QRTmrtn --no-{flag} r q")
    assert told_value(options, "policy") == Policy(**{**everything, name: False})


def test_files_may_begin_with_a_dash(told):
    assert options_of(told, "-b -- -ref.fa -q.fa").query_paths == ("-q.fa",)
    assert options_of(told, "-- -ref.fa -q.fa").reference_path == "-ref.fa"
    assert options_of(told, "ref.fa -").query_paths == ("-",)


@pytest.mark.parametrize("words", ["-h", "--help", "-help", "match -h", "r q -h"])
def test_help_tells_the_options_and_how_we_differ(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(words.split()) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("Usage: mummergpu [OPTIONS] REFERENCE QUERY...")
    text = " ".join(out.split())
    assert "the default is -maxmatch (mummer's is -mumreference)" in text
    assert "ordered by query position" in text
    assert "[default: 20]" in text
    assert "mummergpu workload" in text
    for verb, command in commands.commands.items():
        summary = f"mummergpu {verb} {command.get_short_help_str(200)}"
        assert (summary in text) == (verb != MAIN_VERB)
    assert "write ./index for a file" in text
    assert "2 wrong usage, 130 interrupted, 141 broken pipe." in text
    for line in out.splitlines():
        assert len(line) <= 80


@pytest.mark.parametrize("width", [40, 80, 100, 200])
@pytest.mark.parametrize(
    "verb", ["", *"index workload doctor completion report nucmer-shim align".split()]
)
def test_help_fits_the_terminal(verb, width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    assert main([*verb.split(), "--help"]) == 0
    longest = max(map(len, capsys.readouterr().out.splitlines()))
    assert longest <= max(80, min(width, 100))


@pytest.mark.parametrize(
    "words", ["--version", "match --version", "-b --version", "--version doctor"]
)
def test_version(words, capsys):
    assert main(words.split()) == 0
    assert capsys.readouterr().out == f"mummergpu {mummergpu.__version__}\n"


def test_workload_is_made_and_the_next_command_told(tmp_path, capsys):
    reference = tmp_path / "r.fa"
    reference.write_bytes(b">r\n" + b"ACGTTGCATCGATCGGATCA" * 200 + b"\n")
    folder = tmp_path / "made"
    words = ["workload", "LMONO", "-o", str(folder), "--scale", "0.00001", "--seed", "1"]
    assert main([*words, "--reference", str(reference)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert f"mummergpu -l 20 {folder}/reference.fa {folder}/reads.fq" in err
    assert (folder / "reads.fq").read_bytes().startswith(b"@")


def test_options_before_a_verb_belong_to_the_verb(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.fa").write_bytes(b">r\n" + b"ACGTTGCATCGATCGGATCA" * 3 + b"\n")
    expected = b""
    for words in ("index -q -t 2 -l 12", "-q index -t 2 -l 12", "-q -t 2 -l 12 index"):
        assert main(f"{words} r.fa -o made".split()) == 0
        assert capfd.readouterr() == ("", "")
        made = (tmp_path / "made").read_bytes()
        assert made == (expected or made)
        expected = made
    assert main("-ql 12 index r.fa -o made".split()) == 0
    assert (tmp_path / "made").read_bytes() == expected
    assert main("-o other index -t 2 -q r.fa --min-length=12".split()) == 0
    assert (tmp_path / "other").read_bytes() == expected
    assert main("--info index made".split()) == 0
    assert "least length    12" in capfd.readouterr().out
    assert main("--reference r.fa -q workload LMONO --scale 0.00001 -o w".split()) == 0
    assert capfd.readouterr() == ("", "")
    assert (tmp_path / "w" / "reads.fq").exists()


def test_a_file_may_be_named_like_a_verb(told):
    for words in ("./index reads.fq", "match index reads.fq", "-- index reads.fq"):
        options = options_of(told, words)
        assert (options.reference_path, options.query_paths) == (words.split()[-2], ("reads.fq",))
    assert options_of(told, "r.fa index doctor").query_paths == ("index", "doctor")
    assert options_of(told, "-o index r.fa q.fa").outputs == (OutputTarget("index"),)
    assert options_of(told, "-b match index q.fa").reference_path == "index"


def test_threads_as_in_mummer_4(told):
    expected = options_of(told, "-t 2 -b r q")
    for words in ("-qthreads 2 -b", "-b -qthreads=2"):
        assert options_of(told, f"{words} r q") == expected


def test_letters_that_another_command_has_too_keep_their_meaning(told):
    expected = options_of(told, "-t 2 -b -L -s r q")
    for words in ("-L -qthreads 2 -b -s r q", "-b -s -L -t 2 r q", "-b -s -t2 -L r q"):
        assert options_of(told, words) == expected


@pytest.mark.parametrize(("words", "code"), table(__file__, "flags of policies"))
def test_policy_flags_without_a_code_begin_from_none(told, words, code):
    kind = options_of(told, f"{words} ref.fa reads.fq").index.kind
    assert kind.policy.code == code


@pytest.mark.parametrize(("words", "search", "page_size"), table(__file__, "trees"))
def test_options_that_speak_of_trees_mean_a_search_of_trees(told, words, search, page_size):
    options = options_of(told, f"{words} ref.fa reads.fq")
    kind = options.index.kind
    assert (kind.search, str(kind.page_size)) == (search, page_size)


def test_the_pages_of_trees_are_as_large_as_the_papers_format_allows():
    assert PAPER_PAGE_BASES == MAX_PAGE_BASES


@each("line, strands, mode, flipped, three_columns_for", table(__file__, "purposes"))
def test_what_is_set(line, strands, mode, flipped, three_columns_for, told):
    options = options_of(told, f"ref.fa reads.fq {line}")
    assert options.search.strands == value_of(strands)
    assert options.search.uniqueness is value_of(mode)
    assert options.style.forward_coordinates == value_of(flipped)
    assert options.style.three_columns_for == three_columns_for
