"""The main job on made references and queries: the oracle's bytes, which are MUMmer's rows."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.main_job import EVERYTHING, Setting, found_text, output_options
from helpers.oracle import mummer_text
from helpers.sequences import write_numbered
from helpers.strategies import queries, references, satellites, sequences
from helpers.trees import LAYOUTS, flags_of
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.index import kmer_order, minimizer_index
from mummergpu.index.tree.policy import LETTERS, Policy
from mummergpu.matching.kmer import unique
from mummergpu.matching.options import Uniqueness
from mummergpu.matching.tree import cpu as trees

FEWER_EXAMPLES = settings(max_examples=max(settings().max_examples // 6, 1))


policies = (
    st.sets(st.sampled_from(sorted(LETTERS.values()))).map("".join).map(lambda c: c or "none")
)


def settings_for(minimum_length):
    small = st.integers(1, minimum_length + 25)

    def without_waste(setting):
        """Pages of few bases are many: what each takes, however few they are, is kept small.

        A strip of wide nodes has 24 MiB, one of the paper's 4 MiB; a table has a number for each
        k-mer that there can be.
        """
        if setting.page_size >= 100:
            return setting
        kmer_length = setting.kmer_length and min(setting.kmer_length, 5)
        if setting.address_bits == 32 or setting.page_size < 10:
            policy = setting.policy.replace("t", "") or "none"
            return replace(setting, policy=policy, kmer_length=kmer_length)
        return replace(setting, kmer_length=kmer_length)

    return st.builds(
        Setting,
        policy=policies,
        page_size=st.one_of(small, st.integers(100, 500), st.just(1 << 23)),
        threads=st.sampled_from([1, 2, 4]),
        block_size=st.sampled_from([1, 7, 40, 1 << 20]),
        memory=st.sampled_from([None, None, 1, 20_000]),
        piece_bases=st.sampled_from([trees.SIZES.piece_bases, 1, 2, 9, 20]),
        address_bits=st.sampled_from([None, 24, 32]),
        search=st.sampled_from(["tree", "kmer"]),
        kmer_length=st.sampled_from([None, 1, 2, 3, 5, 8, 9]),
        reference_step=st.sampled_from([1, 2, 3, 4, 5, 7, 12, 40]),
        is_picked=st.booleans(),
        longest_ascending=st.sampled_from([kmer_order.MAX_UNSORTED_OCCURRENCES, 0, 1, 4]),
        minimizer_lengths=st.sampled_from([minimizer_index.KMER_LENGTHS, (1,), (3,), (1, 5, 9)]),
        task_bases=st.sampled_from([unique.TASK_BASES, 1, 30]),
    ).map(without_waste)


def check(folder, records, reads, minimum_length, several, told):
    expected = mummer_text(records, reads, minimum_length, **told)
    for setting in several:
        found = found_text(folder, records, reads, minimum_length, setting, **told)
        assert found == expected, setting


@given(data=st.data(), told=output_options)
def test_every_option_and_setting_gives_the_oracles_bytes(folder, data, told):
    records = data.draw(references(), "records")
    reads = data.draw(queries(records), "reads")
    minimum_length = data.draw(st.integers(1, 12), "minimum length")
    several = data.draw(st.lists(settings_for(minimum_length), min_size=2, max_size=4))
    check(folder, records, reads, minimum_length, several, told)


@FEWER_EXAMPLES
@given(data=st.data())
def test_sequences_of_some_hundred_bases_on_small_pages(folder, data):
    records = data.draw(references(300), "records")
    reads = data.draw(queries(records, 300), "reads")[:6]
    minimum_length = data.draw(st.integers(2, 40), "minimum length")
    several = data.draw(st.lists(settings_for(minimum_length), min_size=2, max_size=4))
    check(folder, records, reads, minimum_length, several, EVERYTHING)


@FEWER_EXAMPLES
@given(array=satellites(200), shift=st.integers(0, 6), minimum_length=st.integers(1, 30))
def test_diverged_tandem_repeats_against_themselves(folder, array, shift, minimum_length):
    """MUMmer 4 reports matches here that are none."""
    several = [Setting(), Setting("r", minimum_length + 7, 2, 1)]
    several += [Setting(search="kmer", kmer_length=k) for k in (1, 4, min(minimum_length, 9))]
    several += [Setting(search="kmer", kmer_length=2, reference_step=s) for s in (2, 3, 11)]
    several += [replace(setting, is_picked=True) for setting in several[2:]]
    several += [replace(setting, longest_ascending=2) for setting in several[2:]]
    several += [replace(setting, piece_bases=shift + 5) for setting in several]
    check(folder, [array], [array, array[shift:]], minimum_length, several, EVERYTHING)


PERIODIC = {
    "dinucleotide": "AC" * 70,
    "homopolymer": "A" * 90,
    "telomere": "TTAGGG" * 20,
    "an interrupted repeat": "AC" * 30 + "N" + "AC" * 20 + "G" + "CA" * 25,
    "copies that differ": "ACGGTCATTGCA" * 4 + "ACGGTGATTGCA" * 2 + "ACGGTCATTGCA" * 5,
}


@pytest.mark.parametrize("minimum_length", [5, 20])
@pytest.mark.parametrize("array", PERIODIC.values(), ids=PERIODIC.keys())
def test_satellites_against_themselves(folder, array, minimum_length):
    """Whole, and in pieces that end everywhere in a copy."""
    kmers = [
        Setting(search="kmer", kmer_length=k, reference_step=r, longest_ascending=longest)
        for k, r in ((5, 1), (4, 2), (2, 3), (3, 4))
        for longest in (0, 6)
    ]
    kmers += [replace(setting, is_picked=True) for setting in kmers]
    several = [Setting(), Setting("r", minimum_length + 15), *kmers]
    several += [replace(setting, piece_bases=bases) for setting in several for bases in (16, 21)]
    several += [replace(setting, page_size=33) for setting in kmers]
    reads = [array, "TG" + array[7:], array[:50] + "C"]
    check(folder, [array, array[1:60]], reads, minimum_length, several, EVERYTHING)


@FEWER_EXAMPLES
@given(records=references(), minimum_length=st.integers(1, 8), data=st.data())
def test_all_cpu_layouts_formats_and_textures_give_the_same_bytes(
    folder, records, minimum_length, data
):
    reads = data.draw(queries(records), "reads")
    layouts = {
        Policy(*textures, *flags_of(layout)).code
        for layout in LAYOUTS
        for textures in ((False, False, False), (True, False, True), (False, True, False))
    }
    assert len(layouts) == 3 * len(LAYOUTS)
    several = [Setting(code, minimum_length + 20) for code in sorted(layouts)]
    wide = sorted(Policy(False, False, False, *flags_of(layout)).code for layout in LAYOUTS)
    several += [Setting(code, minimum_length + 60, address_bits=32) for code in wide]
    check(folder, records, reads, minimum_length, several, EVERYTHING)


@FEWER_EXAMPLES
@given(data=st.data())
def test_every_page_size_gives_the_same_bytes(folder, data):
    records = data.draw(references(30), "records")
    reads = data.draw(queries(records, 30), "reads")[:4]
    minimum_length = data.draw(st.integers(1, 5), "minimum length")
    length = sum(map(len, records)) + len(records)
    sizes = range(1, length + 2)
    several = [Setting(page_size=size, search=s) for size in sizes for s in ("tree", "kmer")]
    check(folder, records, reads, minimum_length, several, EVERYTHING)


@FEWER_EXAMPLES
@given(data=st.data(), max_rows=st.integers(0, 30))
def test_blocks_cut_for_their_many_matches_give_the_same_bytes(folder, data, max_rows):
    records = data.draw(references(), "records")
    reads = data.draw(queries(records), "reads")
    minimum_length = data.draw(st.integers(1, 4), "minimum length")
    several = data.draw(st.lists(settings_for(minimum_length), min_size=2, max_size=4))
    several = [replace(setting, max_rows=max_rows) for setting in several]
    check(folder, records, reads, minimum_length, several, EVERYTHING)


LONG = "ACGTTGCATGTCAGGCTA" * 3 + "TTGACCAGTANNACG" + "GATTACA" * 5

AWKWARD = {
    "read is the reference": ([LONG], [LONG]),
    "read is longer than the reference": ([LONG], ["TTG" + LONG + "GCA" + LONG]),
    "reads of only N": ([LONG], ["N", "N" * 50]),
    "empty reads": ([LONG], ["", "ACGTTG", ""]),
    "no read is long enough": ([LONG], ["ACG", "A"]),
    "no reads match": (["A" * 30], ["C" * 30]),
    "runs of N at page borders": ([("ACGTTGCA" + "N" * 8) * 6], ["ACGTTGCA", "TTGCANNNNACGT"]),
    "identical records": ([LONG] * 4, [LONG[5:40], LONG]),
    "records shorter than a match": (["AC", "A", "", "GT", "ACGTT"], ["ACGTT", "AC"]),
    "match at both ends of every record": (["GATTACA"] * 3, ["GATTACA", "AGATTACAG"]),
    "homopolymers": (["A" * 60], ["A" * 30, "A" * 70, "T" * 20]),
    "tandem repeats": (["ACT" * 25], ["ACT" * 12, "CTA" * 30]),
    "palindromes": (["ACCGGTACCGGT" + "GGATCC" * 3], ["ACCGGT", "GGATCCGGATCC"]),
    "lower case and other letters": (["acgtTGCAryACGTU" + LONG], ["ACGTtgcaRYacgt", LONG.lower()]),
    "more reads than lanes": ([LONG], [LONG[start : start + 20] for start in range(40)]),
}


@pytest.mark.parametrize("uniqueness", [member.value for member in Uniqueness])
@pytest.mark.parametrize("minimum_length", [1, 6])
@pytest.mark.parametrize(("records", "reads"), AWKWARD.values(), ids=AWKWARD.keys())
def test_awkward_cases(folder, records, reads, minimum_length, uniqueness):
    several = [
        Setting(),
        Setting("none", 61, threads=2, block_size=30),
        Setting("QRrtn", 16, threads=4, block_size=100, memory=1),
        Setting("Tmn", minimum_length + 1, block_size=1),
        Setting("rmt", minimum_length + 9),
        Setting("mn", minimum_length),
        Setting("r", minimum_length // 2 + 1),
        Setting("mr", minimum_length + 3, threads=2, block_size=40, address_bits=32),
        Setting("tn", address_bits=32),
        Setting("m", 50, threads=2, memory=1, piece_bases=3),
        Setting(search="kmer"),
        Setting(search="kmer", minimizer_lengths=(1,)),
        Setting(search="kmer", minimizer_lengths=(3, 5), threads=2, block_size=30),
        Setting(search="kmer", minimizer_lengths=(1, 5), task_bases=7),
        Setting(search="kmer", kmer_length=min(minimum_length, 4), page_size=7, memory=1),
        Setting(search="kmer", kmer_length=minimum_length, page_size=80),
        Setting(search="kmer", kmer_length=1, page_size=20, threads=2, block_size=30),
        Setting(search="kmer", kmer_length=2, piece_bases=3),
        Setting(search="kmer", kmer_length=2, reference_step=2, piece_bases=3),
        Setting(search="kmer", kmer_length=1, reference_step=3, page_size=20, memory=1),
    ]
    told = {**EVERYTHING, "uniqueness": uniqueness}
    check(folder, records, reads, minimum_length, several, told)


@given(
    records=st.lists(sequences().filter(bool), min_size=1, max_size=4),
    data=st.data(),
    minimum_length=st.integers(1, 9),
    told=output_options,
)
def test_the_oracle_prints_the_rows_that_mummer_prints(
    folder, mummer_binary, records, data, minimum_length, told
):
    reads = [read for read in data.draw(queries(records), "reads") if read] or ["A"]
    told = {**told, "show_sequences": False}
    if told["uniqueness"] == "mum":
        # See test_mummer_forgets_a_match_of_one_base_at_the_first_base.
        minimum_length = max(2, minimum_length)
    told["forward_coordinates"] &= told["strands"] != "forward"
    flags = {
        f"-{told['uniqueness']}": True,
        "-b": told["strands"] == "both",
        "-r": told["strands"] == "reverse",
        "-c": told["forward_coordinates"],
        "-F": told["four_columns"],
        "-L": told["show_query_lengths"],
    }
    command = [
        mummer_binary,
        *(flag for flag, on in flags.items() if on),
        *("-n", "-l", str(minimum_length)),
        write_numbered(folder / "reference.fa", "r", records),
        write_numbered(folder / "queries.fa", "q", reads),
    ]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert in_blocks(printed) == in_blocks(mummer_text(records, reads, minimum_length, **told))


def in_blocks(text):
    """Headers in their order, the rows of each sorted."""
    blocks = []
    for line in text.splitlines():
        if line.startswith(">"):
            blocks.append((line, []))
        else:
            blocks[-1][1].append(line)
    return [(header, sorted(rows)) for header, rows in blocks]


def test_mummer_forgets_a_match_of_one_base_at_the_first_base(folder, mummer_binary):
    """Its filter of contained matches begins as if one had ended at the first base.

    By definition the match is unique in both sequences, so we report it.
    """
    paths = [write_numbered(folder / name, "r", ["ACCGG"]) for name in ("one.fa", "same.fa")]
    Path(paths[1]).write_text(">q0\nAT\n")
    command = [mummer_binary, "-n", "-mum", "-l", "1", *paths]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert printed == "> q0\n"
    expected = mummer_text(["ACCGG"], ["AT"], 1, "mum")
    assert expected == "> q0\n       1         1         1\n"
    told = {**EVERYTHING, "uniqueness": "mum", "strands": "forward", "show_sequences": False}
    told["forward_coordinates"] = False
    found = found_text(folder, ["ACCGG"], ["AT"], 1, Setting(), **told)
    assert found == mummer_text(["ACCGG"], ["AT"], 1, **told)
