"""The language of hidden Markov models: what it says, and the places of its errors."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.errors import ModelError
from mummergpu.hmm.language.parser import parse_program
from mummergpu.hmm.language.program import Algorithm, Attribute, State

CASINO = """
hmm casino {
  alphabet [1, 2, 3, 4, 5, 6];
  startstate start;
  state fair emits fairemission;
  state loaded emits loadedemission;
  endstate end;
  emission fairemission = [1/6, 1/6, 1/6, 1/6, 1/6, 1/6];
  emission loadedemission = [0.1, 0.1, 0.1, 0.1, 0.1, 0.5];
  start -> fair 1;
  fair -> fair 0.95;  fair -> loaded 0.05;
  loaded -> loaded 0.97999;  loaded -> fair 0.02;
  loaded -> end 0.00001;  fair -> end 0.00001;
}
"""
BEGIN = "hmm m { alphabet [A, B]; startstate s; state a emits e; emission e = [0.5, 0.5]; "


def test_the_casino_of_the_paper_with_and_without_its_semicolon():
    for mark in (";", ""):
        main = "main() { cas = new casino()" + mark + " dptable = forward(cas); "
        program = parse_program(CASINO + main + "print dptable.score; }")
        (printed,) = program.printed
        assert printed == ("dptable.score", "casino", Algorithm.FORWARD, Attribute.SCORE)
        model = program.models["casino"]
        assert model.alphabet == tuple("123456") and (model.start, model.end) == ("start", "end")
        assert model.emissions["fairemission"][0] == 1 / 6 and len(model.transitions) == 7
        ((row, line),) = model.unusual_sums
        assert (str(row), line) == ("the transitions of fair sum to 1.00001", 11)


def test_declarations_in_any_order_comments_and_main_first():
    text = """main() { print viterbi(new m()).traceback; }
    hmm m { a -> b 1 emits e; // to the end of the line
      state b; /* over
      lines */ emission e = [.5, 1e-1, exp(-2)]; start -> a 2/4*0.5; endstate b2; a -> b2 0;
      startstate start; state a emits e; alphabet [',', '/', x]; }"""
    program = parse_program(text)
    model = program.models["m"]
    assert model.alphabet == (",", "/", "x") and model.emissions["e"] == (0.5, 0.1, math.exp(-2))
    assert [one.probability for one in model.transitions] == [1, 0.25, 0]
    assert model.transitions[0].emission == "e"
    assert program.printed[0].text == "viterbi(new m()).traceback"


def test_repetitions_write_out_profiles():
    text = BEGIN + "for k in 1..3 { state M[k] emits e; for j in k..k+1 { state D[j] ; } } }"
    with pytest.raises(ModelError, match=r"1:\d+: there is another state 'D\[2\]'"):
        parse_program(text)
    text = BEGIN + "for k in 1..3 { state M[k] emits e; } for k in 2..3 { M[k-1] -> M[k] 1; } }"
    model = parse_program(text).models["m"]
    assert [one.name for one in model.states] == ["s", "a", "M[1]", "M[2]", "M[3]"]
    assert model.states[2] == State("M[1]", "e")
    assert [one[:2] for one in model.transitions] == [("M[1]", "M[2]"), ("M[2]", "M[3]")]


ERRORS = {
    "hmm": "1:4: expected the name of a model, found the end of the program",
    "hmm m {\n state;}": "2:7: expected the name of a state, found ';'",
    "hmm m { alphabet [AC]; }": "1:19: expected a symbol of one character",
    "hmm m { alphabet [A, A]; }": "1:23: the symbol 'A' stands twice",
    "hmm m { startstate s; }": "1:5: the model 'm' has no alphabet",
    "hmm m { alphabet [A]; }": "1:5: the model 'm' has no startstate",
    BEGIN + "a -> a; }": "expected a probability, found ';'",
    BEGIN + "a -> a -1; }": "expected a probability, found '-'",
    BEGIN + "a -> a 1/0; }": "a division by 0",
    BEGIN + "a -> a exp(1e9); }": "a probability that is not finite",
    BEGIN + "a -> q 1; }": "there is no state 'q'",
    BEGIN + "a -> a 1 emits e; }": "the transition and its target 'a' both emit",
    BEGIN + "a -> s 1 emits f; }": "there is no emission 'f'",
    BEGIN + "state b emits f; }": "there is no emission 'f'",
    BEGIN + "emission f = [1]; }": "the emission 'f' has 1 probabilities for 2 symbols",
    BEGIN + "emission e = [1, 1]; }": "there is another emission 'e'",
    BEGIN + "endstate t; t -> a 1; }": "a transition from the endstate",
    BEGIN + "startstate t; }": "there is another startstate",
    BEGIN
    + "\nemission f = [0.9, 0.2]; }": "2:10: the probabilities of f sum to 1.1, which is more",
    BEGIN + "a -> a 0.5;\n a -> s 0.51; }": "1:82: the transitions of a sum to 1.01, which is more",
    BEGIN + "for k in 3..1 { } }": "3..1 has no number",
    BEGIN + "for k in 1..2 { for k in 1..2 { } } }": "'k' is counted already",
    BEGIN + "for k in 1..999999999 { } }": "more than 200,000 declarations",
    BEGIN + "for k in 1..n { } }": "expected an integer or the variable of a 'for', found 'n'",
    BEGIN + "state a; }": "there is another state 'a'",
    BEGIN + "} hmm m { }": "there is another model 'm'",
    BEGIN + "/* }": "a comment without its end",
    BEGIN + "\u00e9 }": "'\u00e9' has no meaning here",
    "main() { print forward(new m()).score; }": "1:28: there is no model 'm'",
    "main() { print x.score; }": "1:16: there is no table 'x' before",
    BEGIN + "} main() { x = new m(); x = new m(); }": "'x' has a value already",
    BEGIN + "} main() { print forward(new m()).traceback; }": "forward has score, score&, and no",
    BEGIN + "} main() { x = y; }": "expected 'new', a model, or viterbi",
}


@pytest.mark.parametrize("text", ERRORS)
def test_errors_have_a_place_and_say_what_was_expected(text):
    with pytest.raises(ModelError) as found:
        parse_program(text, "p.hmm")
    assert ERRORS[text] in str(found.value)
    assert str(found.value).startswith(f"p.hmm:{found.value.line}:{found.value.column}: ")


def test_unusual_sums_are_told_of():
    text = BEGIN + "emission f = [1, 1e-3];\n a -> a 0.5; a -> s 0.25; s -> a 1.0000009; }"
    assert [(str(row), line) for row, line in parse_program(text).models["m"].unusual_sums] == [
        ("the probabilities of f sum to 1.001", 1),
        ("the transitions of a sum to 0.75", 2),
    ]


names = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,6}", fullmatch=True)
symbols = st.sampled_from("ACGT123-+*,]'x")
blanks = st.sampled_from([" ", "\n", " // a note\n", " /* a\nnote */ ", "\t"])


@st.composite
def programs(draw):
    """The text of a program, and what it says."""
    states = draw(st.lists(names, min_size=2, max_size=5, unique=True))
    alphabet = draw(st.lists(symbols, min_size=1, max_size=4, unique=True))
    emissions = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    numbers = st.floats(0, 1 / len(alphabet), allow_nan=False)
    values = {name: [draw(numbers) for _ in alphabet] for name in emissions}
    emits = {name: draw(st.sampled_from([None, *emissions])) for name in states[1:]}
    shares = st.floats(0, 1 / 6, allow_nan=False)
    steps = draw(
        st.lists(st.tuples(st.sampled_from(states), st.sampled_from(states), shares), max_size=6)
    )
    declared = [
        "alphabet [" + ", ".join(f"'{one}'" for one in alphabet) + "]",
        f"startstate {states[0]}",
        *(
            f"state {name}" + (f" emits {emits[name]}" if emits[name] else "")
            for name in states[1:]
        ),
        *(f"emission {name} = [{', '.join(map(repr, row))}]" for name, row in values.items()),
        *(f"{source} -> {target} {value!r}" for source, target, value in steps),
    ]
    draw(st.randoms(use_true_random=False)).shuffle(declared)
    text = "".join(f"{draw(blanks)}{one}{draw(blanks)};" for one in declared)
    words = {"steps": steps, "emits": emits, "values": values, "alphabet": alphabet}
    return f"hmm m {{{text}}} main() {{ print forward(new m()).score }}", words


WORDS = {"state", "startstate", "endstate", "emission", "alphabet", "for", "emits", "exp", "in"}


@settings(max_examples=60)
@given(programs())
def test_programs_say_what_they_were_made_of(made):
    text, said = made
    if WORDS & {
        *said["emits"],
        *said["values"],
        *(word for step in said["steps"] for word in step[:2]),
    }:
        return
    model = parse_program(text).models["m"]
    assert model.alphabet == tuple(said["alphabet"])
    assert {state.name: state.emission for state in model.states if state.name != model.start} == (
        said["emits"]
    )
    assert model.emissions == {name: tuple(row) for name, row in said["values"].items()}
    found = sorted((one.source, one.target, one.probability) for one in model.transitions)
    assert found == sorted(said["steps"])
