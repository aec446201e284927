"""Sequences that are awkward for suffix trees, made by hypothesis."""

from hypothesis import strategies as st

from helpers.oracle import reverse_complement

bases = st.sampled_from("ACGT")


def words(most, letters="ACGT"):
    return st.text(alphabet=letters, min_size=1, max_size=most)


@st.composite
def tandem_repeats(draw, most):
    return (draw(words(5)) * most)[: draw(st.integers(1, most))]


@st.composite
def satellites(draw, most):
    """A tandem repeat whose copies differ here and there."""
    letters = list(draw(tandem_repeats(most)))
    for place in draw(st.lists(st.integers(0, len(letters) - 1), max_size=4)):
        letters[place] = draw(bases)
    return "".join(letters)


@st.composite
def palindromes(draw, most):
    half = draw(words(max(1, most // 2)))
    return half + reverse_complement(half)


@st.composite
def homopolymers(draw, most, letters="ACGT"):
    return draw(st.sampled_from(letters)) * draw(st.integers(1, most))


def pieces(most):
    return st.one_of(
        words(most),
        words(most, "AC"),
        words(most, "ACGTN"),
        tandem_repeats(most),
        satellites(most),
        palindromes(most),
        homopolymers(most),
        homopolymers(max(1, most // 3), "N"),
    )


@st.composite
def sequences(draw, most=60, count=4):
    """Pieces one behind the other, some of them twice; may be empty."""
    pool = draw(st.lists(pieces(max(1, most // count)), max_size=count))
    if not pool:
        return ""
    return "".join(draw(st.lists(st.sampled_from(pool), min_size=1, max_size=count)))[:most]


tiny_records = st.lists(st.text("ACGN", max_size=3), min_size=5, max_size=20)


@st.composite
def references(draw, most=60):
    """Records of which at least one holds a base; some are empty, some the same."""
    records = draw(st.one_of(st.lists(sequences(most), min_size=1, max_size=4), tiny_records))
    if draw(st.booleans()):
        records = [*records, draw(st.sampled_from(records))]
    if not any(set(record) & set("ACGT") for record in records):
        records = [*records, draw(words(8))]
    return records


@st.composite
def queries_of(draw, records, most=60):
    """A query that has something to do with the reference, or nothing."""
    kind = draw(st.integers(0, 7))
    record = draw(st.sampled_from(records))
    begin = draw(st.integers(0, len(record)))
    part = record[begin : begin + draw(st.integers(0, most))]
    if kind == 0:
        return draw(sequences(most))
    if kind == 1:
        return record
    if kind == 2:
        return draw(words(6)) + "".join(records) + draw(words(6)) + record
    if kind == 3:
        return "N" * draw(st.integers(0, most))
    if kind == 4:
        return "N".join(records)
    if kind == 5:
        return part + draw(sequences(20)) + part
    if kind == 6 and part:
        place = draw(st.integers(0, len(part) - 1))
        return part[:place] + draw(st.sampled_from(["A", "T", "N", "", "CG"])) + part[place + 1 :]
    return draw(sequences(12)) + part


@st.composite
def queries(draw, records, most=60):
    """Several queries, some of them turned to the other strand, some of them again."""
    made = draw(st.lists(queries_of(records, most), min_size=1, max_size=5))
    turned = draw(st.lists(st.booleans(), min_size=len(made), max_size=len(made)))
    made = [
        reverse_complement(query) if turn else query
        for query, turn in zip(made, turned, strict=True)
    ]
    return made + draw(st.lists(st.sampled_from(made), max_size=20))
