"""The parts of the workload generator: random bits, genomes, reads, declarations."""

import dataclasses
import re
from collections import Counter

import numpy as np
import pytest
from helpers.in_memory import named_records
from helpers.sequences import reverse_complement
from helpers.truth import fragment, parse

from mummergpu.errors import InputError
from mummergpu.sequence.codes import BREAK, decode
from mummergpu.workload.declaration import (
    Copy,
    Gaps,
    Genome,
    Reads,
    Repeats,
    Satellites,
    Segments,
    Tandems,
    read_declaration,
    workload_folder,
)
from mummergpu.workload.genome import diverge, synthesize
from mummergpu.workload.read_simulator import Tally, error_table, sequence_reads
from mummergpu.workload.splitmix import GAMMA, RandomStream, scramble


def made_of(*records):
    return named_records((b"record%d" % at, text.encode()) for at, text in enumerate(records))


def exact(**changes):
    """Reads of 50 bases without errors, but for the changes."""
    flat = ((0.0, 0.0), (1.0, 0.0))
    reads = Reads("test", 1000, 50, 0, 50, 50, flat, flat, flat, flat, ((0, 30), (1, 30)), ())
    return dataclasses.replace(reads, **changes)


def draw(reference, reads, count, seed=1):
    tally = Tally()
    text = b"".join(bytes(t) for (t,) in sequence_reads(reference, reads, count, "R", seed, tally))
    return parse(text), tally


def random_text(length, seed=5):
    return decode(synthesize(Genome(length, 0.5, (), (), ()), seed, "text")).decode()


def share_repeated(codes):
    """The share of positions whose 21-mer stands elsewhere too, on either strand."""
    text = decode(codes).decode()
    other = reverse_complement(text)
    kmers = [strand[at : at + 21] for strand in (text, other) for at in range(len(text) - 20)]
    seen = Counter(kmers)
    return float(np.mean([seen[kmer] > 1 for kmer in kmers[: len(text) - 20]]))


WHOLE = (0.0, 0.0)


@pytest.mark.parametrize(
    ("elements", "share"),
    [
        ({"repeats": (Repeats(2, (300, 300), WHOLE, share=0.1),)}, 0.1),
        ({"repeats": (Repeats(1, (6_000, 6_000), WHOLE, share=0.2, is_cut=True),)}, 0.2),
        ({"segments": (Segments(0.1, (5_000, 9_000), WHOLE),)}, 0.2),
        ({"satellites": (Satellites(0.1, 171, 12, (0.2, 0.3), (4, 6), WHOLE),)}, 0.1),
    ],
)
def test_elements_have_their_share_of_the_genome(elements, share):
    genome = dataclasses.replace(Genome(300_000, 0.5, (), (), ()), **elements)
    assert share_repeated(synthesize(genome, 1, "shares")) == pytest.approx(share, rel=0.3)


def test_most_copies_of_cut_repeats_are_short_ends_of_their_family():
    family = Repeats(1, (4_000, 4_000), WHOLE, share=0.4, is_cut=True)
    text = decode(synthesize(Genome(200_000, 0.5, (family,), (), ()), 3, "cut")).decode()
    text += "N" + reverse_complement(text)
    ends = [text[place : place + 21] for place in range(len(text) - 20)]
    (last, copies), *_ = Counter(end for end in ends if "N" not in end).most_common(1)
    assert copies > 30  # 80,000 bases in copies of 1,333 in the mean
    begin = text.index(last)
    assert text.count(text[begin - 1_000 : begin + 21]) < 0.8 * copies


# Random bits


def test_splitmix64_gives_its_published_numbers():
    states = np.arange(1, 6, dtype=np.uint64) * GAMMA + np.uint64(1234567)
    assert scramble(states).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_a_stream_does_not_depend_on_how_it_is_asked():
    whole = RandomStream(7, "a").bits(10)
    stream = RandomStream(7, "a")
    assert np.concatenate([stream.bits(3), stream.bits(7)]).tolist() == whole.tolist()
    assert RandomStream(7, "b").bits(10).tolist() != whole.tolist()
    assert {RandomStream(seed, "a").between(3, 5) for seed in range(50)} == {3, 4, 5}


# Reads


def test_exact_reads_are_pieces_of_the_reference():
    reference = made_of(random_text(3_000), random_text(900, seed=6))
    texts = [decode(reference.codes[:3_000]).decode(), decode(reference.codes[3_001:]).decode()]
    records = {f"record{n}": text for n, text in enumerate(texts)}
    reads, tally = draw(reference, exact(), 30_000)
    assert all(read.bases == fragment(records, read) for read in reads)
    assert {read.record for read in reads} == set(records)
    assert all(set(read.quality) <= set(map(chr, range(33 + 26, 33 + 34))) for read in reads)
    counts = tally.as_dict()
    assert counts.pop("forward_reads") + sum(read.strand == "-" for read in reads) == 30_000
    assert counts.pop("bases") == 1_500_000 and set(counts.values()) == {0}
    # Every place of the reference is a place to start from.
    assert {read.position for read in reads if read.record == "record1"} >= {1, 851}


def test_reads_are_the_same_without_qualities():
    reference = made_of(random_text(3_000), random_text(900, seed=6))
    wrong = exact(substitution=((0.0, 0.1), (1.0, 0.1)), deletion=((0.0, 0.1), (1.0, 0.1)))
    reads, tally = draw(reference, wrong, 500)
    bare = dataclasses.replace(wrong, quality=())
    other = Tally()
    text = b"".join(bytes(t) for (t,) in sequence_reads(reference, bare, 500, "R", 1, other))
    assert text.decode() == "".join(f">{read.name}\n{read.bases}\n" for read in reads)
    assert other.as_dict() == tally.as_dict()


@pytest.mark.parametrize("kind", ["insertion", "deletion", "substitution", "unknown"])
def test_one_kind_of_error_alone(kind):
    text = random_text(5_000)
    reads, tally = draw(made_of(text), exact(**{kind: ((0.0, 0.1), (1.0, 0.1))}), 1_000)
    counts = tally.as_dict()
    key = {"unknown": "unknown_bases"}.get(kind, kind + "s")
    assert 4_000 < counts[key] < 6_500
    del counts["bases"], counts["forward_reads"], counts[key]
    assert set(counts.values()) == {0}
    records = {"record0": text}
    for read in reads[:50]:
        source = fragment(records, read)
        assert len(read.bases) == 50
        if kind == "substitution":
            assert "N" not in read.bases and len(source) == 50
        elif kind == "unknown":
            assert all(base in ("N", true) for base, true in zip(read.bases, source, strict=True))
        else:
            longer, shorter = (read.bases, source) if kind == "insertion" else (source, read.bases)
            letters = iter(longer)
            assert all(letter in letters for letter in shorter), "not a subsequence"


def test_substitutions_choose_among_the_three_other_bases():
    reads, _ = draw(made_of("A" * 2_000), exact(substitution=((0.0, 0.2), (1.0, 0.2))), 2_000)
    letters = [letter for read in reads if read.strand == "+" for letter in read.bases]
    share = [letters.count(letter) / len(letters) for letter in "ACGT"]
    assert share == pytest.approx([0.8, 0.2 / 3, 0.2 / 3, 0.2 / 3], abs=0.01)


def test_homopolymers_are_called_too_long_or_too_short():
    text = "ACGTTTTTCA" * 200
    reads, tally = draw(made_of(text), exact(homopolymer=(0.0, 0.0, 0.0, 0.0, 0.4)), 2_000)
    runs = Counter()
    for read in reads:
        letter = "T" if read.strand == "+" else "A"
        runs.update(len(run) for run in re.findall(f"{letter}{{4,}}", read.bases[8:-8]))
    shares = [runs[size] / runs.total() for size in (4, 5, 6)]
    assert set(runs) == {4, 5, 6} and shares == pytest.approx([0.2, 0.6, 0.2], abs=0.06)
    counts = tally.as_dict()
    assert counts["substitutions"] == counts["unknown_bases"] == 0
    assert counts["insertions"] > 500 and counts["deletions"] > 500


def test_reads_keep_clear_of_gaps_and_of_records_that_are_too_short():
    reference = made_of(random_text(60), "ACGT" * 12, random_text(70) + "N" * 40 + "ACG" * 30)
    reads, _ = draw(reference, exact(length_minimum=50, length_maximum=80, length_mean=80), 500)
    assert {read.record for read in reads} == {"record0", "record2"}
    assert not any("N" in read.bases for read in reads)
    assert all(50 <= len(read.bases) <= 80 for read in reads)
    assert {len(read.bases) for read in reads if read.record == "record0"} <= set(range(50, 61))
    assert {read.position for read in reads if read.record == "record2"} & set(range(111, 201))


def test_deletions_never_leave_the_fragment():
    text = random_text(50)
    reads, _ = draw(made_of(text), exact(deletion=((0.0, 0.2), (1.0, 0.2))), 50)
    assert {read.bases for read in reads if read.strand == "+"} == {text}


def test_profiles_are_read_along_the_read():
    table = error_table(
        exact(
            unknown=((0.0, 0.0), (0.5, 0.1), (1.0, 0.0)),
            substitution=((0.0, 0.0), (1.0, 0.2)),
            quality=((0.0, 40), (1.0, 8)),
        )
    )
    unknown = table[:, 0] / 2**32
    substitution = (table[:, 3] - table[:, 2]) / 2**32
    middle = (np.arange(256) + 0.5) / 256
    assert unknown == pytest.approx(0.1 - abs(middle - 0.5) * 0.2, abs=1e-6)
    assert substitution == pytest.approx(middle * 0.2, abs=1e-6)
    assert table[[0, 128, 255], 4].tolist() == [40, 24, 8]


# Genomes


def test_families_are_laid_in_both_orientations():
    genome = Genome(100_000, 0.4, (Repeats(1, (400, 400), (0.0, 0.0), (30, 30)),), (), ())
    codes = synthesize(genome, 3, "families")
    assert codes.size == 100_000
    text = decode(codes).decode()
    reverse = reverse_complement(text)
    ((word, count),) = Counter(text[at : at + 20] for at in range(len(text) - 19)).most_common(1)
    assert min(count, reverse.count(word)) >= 8 and 20 <= count + reverse.count(word) <= 30


def test_copies_diverge_as_declared():
    def shared_words(divergence):
        repeats = Repeats(1, (2_000, 2_000), (divergence, divergence), (2, 2))
        text = decode(synthesize(Genome(50_000, 0.5, (repeats,), (), ()), 11, "two")).decode()
        reverse = reverse_complement(text)
        last = len(text) - 16
        words = [min(text[i : i + 16], reverse[last - i :][:16]) for i in range(last + 1)]
        return len(words) - len(set(words))

    assert shared_words(0.0) >= 1_900 and 200 < shared_words(0.05) < 1_000
    assert shared_words(0.3) < 100


def lengths_of_runs(flags):
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return edges[1::2] - edges[::2]


def test_tandem_arrays_repeat_their_unit():
    tandems = Tandems(1, (37, 37), (40, 40), (0.0, 0.0))
    codes = synthesize(Genome(20_000, 0.5, (), (tandems,), ()), 3, "tandem")
    equal = codes[37:] == codes[:-37]
    assert 39 * 37 <= lengths_of_runs(equal).max() < 39 * 37 + 20


def test_gaps_are_runs_of_n():
    codes = synthesize(Genome(50_000, 0.5, (), (), (Gaps(2, (1_000, 1_200)),)), 3, "gaps")
    lengths = lengths_of_runs(codes == BREAK)
    assert lengths.size == 2
    assert lengths.min() >= 1_000 and lengths.max() <= 1_200


# Copies


def test_a_copy_without_differences_is_the_reference():
    reference = made_of(random_text(300) + "NNN" + random_text(50, seed=6), "", "ACG")
    copy, counts = diverge(reference, Copy(0, 0, 0), 1, "same")
    for name in ("codes", "record_starts", "record_lengths"):
        assert np.array_equal(getattr(copy, name), getattr(reference, name))
    assert copy.names == (b"record0.copy", b"record1.copy", b"record2.copy")
    assert counts == {"bases": 356, "substitutions": 0, "insertions": 0, "deletions": 0}


@pytest.mark.parametrize("kind", ["substitution", "insertion", "deletion"])
def test_one_kind_of_difference_alone(kind):
    text = random_text(20_000) + "N" * 10 + random_text(4_000, seed=6)
    rates = {"substitution": 0.0, "insertion": 0.0, "deletion": 0.0} | {kind: 0.05}
    copy, counts = diverge(made_of(text, "ACGT" * 100), Copy(**rates), 1, kind)
    made = decode(copy.codes[: copy.record_lengths[0]]).decode()
    assert made.count("N") == 10 and copy.codes[copy.record_starts[1] - 1] == BREAK
    assert 1_050 < counts[kind + "s"] < 1_400
    assert sum(counts.values()) == counts["bases"] + counts[kind + "s"]
    if kind == "substitution":
        differs = sum(a != b for a, b in zip(made, text, strict=True))
        assert counts["substitutions"] - 60 < differs <= counts["substitutions"]
    else:
        longer, shorter = (made, text) if kind == "insertion" else (text, made)
        assert abs(len(longer) - len(shorter) - 1_200) < 150
        letters = iter(longer)
        assert all(letter in letters for letter in shorter), "not a subsequence"


def test_substitutions_of_a_copy_choose_among_the_three_other_bases():
    copy, counts = diverge(made_of("A" * 30_000), Copy(0.9, 0, 0), 1, "three")
    share = np.bincount(copy.codes, minlength=4) / copy.codes.size
    assert share == pytest.approx([0.1, 0.3, 0.3, 0.3], abs=0.015)
    assert counts["substitutions"] == np.count_nonzero(copy.codes)


def test_everything_or_nothing_of_a_copy_may_differ():
    text = random_text(500)
    assert diverge(made_of(text), Copy(0, 0, 1), 1, "gone")[0].codes.size == 0
    doubled, _ = diverge(made_of(text), Copy(0, 1, 0), 1, "doubled")
    assert decode(doubled.codes[::2]).decode() == text
    changed, _ = diverge(made_of(text), Copy(1, 0, 0), 1, "changed")
    assert not (changed.codes == made_of(text).codes).any()


# Declarations


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("minimum_length = 20", "", "minimum_length"),
        ("minimum_length = 20", "minimum_length = 20\nsed = 1", "does not take 'sed'"),
        ("minimum_length = 20", "minimum_length 20", "is not the declaration of a workload: "),
        ("gc = 0.38", "gc = 0.38\ncg = 1", "does not take 'cg'"),
        ("[reads]", "[[reads]]", "is not the declaration of a workload: "),
        ("[reads]", "[copies]", "lacks the table 'reads'"),
    ],
)
def test_a_wrong_declaration_is_refused(old, new, message, tmp_path):
    text = (workload_folder() / "LMONO.toml").read_text()
    assert old in text
    path = tmp_path / "wrong.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=message) as caught:
        read_declaration(path)
    assert caught.value.path == str(path)


def test_a_missing_declaration_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_declaration(tmp_path / "missing.toml")
