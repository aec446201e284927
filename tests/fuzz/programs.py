"""Target: any text as a program of hidden Markov models, and random words of the language.

It is refused with its place, or is a program whose models have what it promises.
"""

from typing import Final

from fuzz.visible import instrument_module
from mummergpu.errors import ModelError
from mummergpu.hmm.language import parser
from mummergpu.hmm.language.chain import BEST, SUMS, chain_of
from mummergpu.hmm.language.parser import parse_program
from mummergpu.hmm.language.program import ATTRIBUTES

CASINO: Final = b"""hmm casino {
  alphabet [1, 2, ','];  startstate start;  endstate end;
  state fair emits even;  state loaded emits odd;  state pause;
  emission even = [1/3, 1/3, 1/3];  emission odd = [exp(-2.5), 0.1, 8e-1];
  start -> fair 1;  fair -> loaded 0.05;  fair -> fair 0.9;  loaded -> pause 0.02;
  pause -> pause 0.5;  pause -> fair 0.5;  loaded -> loaded 0.9;  loaded -> end 0.01;
}
main() { cas = new casino()  table = viterbi(cas); print table.score; print table.score&; }
"""
PROFILE: Final = b"""// A profile.
hmm profile { alphabet [A, C]; startstate begin; emission x = [0.5, 0.5]; state b;
  for k in 1..4 { state M[k] emits x; state D[k]; begin -> M[k] 0.1; }
  for k in 1..3 { M[k] -> M[k+1] 0.8; M[k] -> D[k+1] 0.2; D[k] -> M[k+1] 0.9; D[k] -> D[k+1] 0.1; }
  M[4] -> b 0.5 emits x; /* the end is anywhere */ }
main() { print posterior(new profile()).traceback; }
"""
EXAMPLES: Final = (CASINO, PROFILE)

_WORDS: Final = (
    *("hmm", "main", "(", ")", "{", "}", "[", "]", ";", ",", "->", "..", "=", ".", "&", "/", "*"),
    *("alphabet", "startstate", "endstate", "state", "emits", "emission", "for", "in", "new"),
    *("print", "viterbi", "forward", "backward", "posterior", "score", "traceback", "a", "b", "A"),
    *("1", "2", "0", "0.5", "1e999", "99999999", "exp", "-", "+", "','", "'", "//", "/*", "*/"),
    "A",
    *("hmm m { alphabet [A]; startstate a; state b emits e; emission e = [1]; a -> b 1; ", "\n"),
    *("for k in 1..3 {", "b[k]", "b[k-1]", "m", "k", "print forward(new m()).score;", "}}"),
)


def instrument(function):
    """Show the branches of the parser to a fuzzer."""
    instrument_module(parser, function)


def _parsed(text):
    try:
        return parse_program(text, "program.hmm")
    except ModelError as error:
        lines = text.count("\n") + 1
        assert error.line is not None and 1 <= error.line <= lines, error
        assert error.column is not None and error.column >= 1, error
        assert str(error).startswith(f"program.hmm:{error.line}:{error.column}: "), error
        assert "\n" not in str(error) or "\n" in error.message, error
        return None


def _check(model):
    """Hold a model to what is promised of it, and make chains of small ones."""
    names = [state.name for state in model.states]
    assert len(set(names)) == len(names) and model.start in names
    assert model.end is None or model.end in names
    assert len(set(model.alphabet)) == len(model.alphabet) > 0
    for step in model.transitions:
        assert step.source in names and step.target in names and step.probability >= 0
    if len(names) + len(model.transitions) < 60:
        for semiring in (SUMS, BEST):
            try:
                chain = chain_of(model, semiring)
            except ModelError:
                continue
            assert chain.probabilities.size == len(chain.shape.steps)
            assert chain.start.size == chain.shape.emitting > 0


def one_input(data):
    """Read bytes as a program, and as numbers of words."""
    texts = [data.decode("latin-1"), data.decode("utf-8", "replace")]
    texts.append(" ".join(_WORDS[byte % len(_WORDS)] for byte in data))
    for text in texts:
        program = _parsed(text)
        if program is None:
            continue
        for model in program.models.values():
            _check(model)
        for one in program.printed:
            assert one.model in program.models and one.attribute in ATTRIBUTES[one.algorithm]
