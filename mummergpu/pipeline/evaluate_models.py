"""Computes the output of a program of hidden Markov models for the sequences of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mummergpu.errors import ModelError, OptionError
from mummergpu.hmm.language.evaluation import CompiledModel, Evaluation, evaluate
from mummergpu.hmm.language.lanes import SymbolBlock
from mummergpu.hmm.language.parser import parse_program
from mummergpu.hmm.language.program import Algorithm, Attribute, Model, Program
from mummergpu.input.blocks.symbols import SymbolFiles, code_table
from mummergpu.input.bytes.files import STANDARD_INPUT, open_binary, reading
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.record_arrays import Records
from mummergpu.matching.options import DeviceOptions
from mummergpu.output.model_values import PrintedBlock, PrintedColumn, open_value_sink
from mummergpu.output.sink import writer_of
from mummergpu.pipeline.context import RunContext
from mummergpu.runtime.arrays import Float64Array, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.output_file import STANDARD_OUTPUT, OutputFile
from mummergpu.runtime.progress import Phase, Work
from mummergpu.runtime.words import pluralize

if TYPE_CHECKING:
    from mummergpu.hmm.language.device import DeviceChains


@frozen
class ModelRunOptions:
    """The options of a run of a program of models.

    Attributes
    ----------
    program : str
        The file of the program.
    sequences : tuple of str
        The files of the sequences.
    output, format : str
        The output file, and its format, one of `model_values.FORMATS`.
    null : str or None
        The null model of the program, with which scores are compared.
    threads : int
        The number of processors that the run may use.
    device : DeviceOptions or None
        The device that computes scores and best paths; None for the processor.
    double : bool
        Whether a device computes sums with 64 bits.
    any_letters : tuple of (str, str)
        Letters, and the symbols that each stands for (``*`` for all symbols).
    """

    program: str
    sequences: tuple[str, ...]
    output: str
    format: str = "tsv"
    null: str | None = None
    threads: int = 1
    device: DeviceOptions | None = None
    double: bool = False
    any_letters: tuple[tuple[str, str], ...] = ()


class _Task(NamedTuple):
    """An algorithm on a model of the program."""

    model: str
    algorithm: Algorithm


def read_program(path: str) -> Program:
    """Return the program of a file, or of standard input; raise `InputError` or `ModelError`."""
    with reading(path):
        file = open_binary(path)
        try:
            content = b"".join(iter(lambda: file.read(1 << 20), b""))
        finally:
            if path != STANDARD_INPUT:
                file.close()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ModelError("text that is not UTF-8", path, line) from None
    return parse_program(text, path)


def run(options: ModelRunOptions, context: RunContext) -> None:
    """Compute and write the output of a program.

    Raises
    ------
    MummergpuError
        If the program, the input, the options or the machine are at fault.
    """
    with context.stats.stage("end_to_end"), ExitStack() as stack:
        program = read_program(options.program)
        job = _Job(program, options, context)
        output = stack.enter_context(OutputFile(options.output))
        threads = stack.enter_context(ReadingThreads(options.threads))
        if options.device is not None:
            job.use(_open_device(options.device, options.double, context, stack))
        texts = [(one.text, one.attribute) for one in program.printed]
        sink = open_value_sink(options.format, writer_of(output, context.stats), texts)
        stack.callback(sink.close)
        files = SymbolFiles(options.sequences, code_table(job.alphabet))
        if options.output == STANDARD_OUTPUT and files.bytes_total is not None:
            # Lines on standard output cannot be taken back: wrong symbols are reported first.
            for _ in files.blocks(threads):
                pass
        done = 0
        for records, names in files.blocks(threads, context.warn):
            block = job.printed(records, names)
            with context.stats.stage("format"):
                sink.write(block)
            done += len(names)
            context.stats.add(queries=len(names), query_bases=records.codes.size)
            share = files.bytes_read / files.bytes_total if files.bytes_total else None
            context.progress.tell(Work(Phase.SEQUENCES, (done,), 0, share))
        sink.finish()
        job.report_left()
        context.stats.set(backend="cpu" if job.device is None else "cuda")
        context.executor.shutdown()


def _with_any_letter(model: Model, letter: str, symbols: str) -> Model:
    """Return a model in which a letter stands for any of some symbols."""
    if letter.swapcase() in model.alphabet or letter in model.alphabet:
        raise OptionError("--any-letter", f"'{letter}' is in the alphabet of '{model.name}'")
    for symbol in symbols if symbols != "*" else "":
        if symbol not in model.alphabet:
            raise OptionError(
                "--any-letter", f"'{symbol}' is not in the alphabet of '{model.name}'"
            )
    return model.with_any_letter(letter, symbols)


def _open_device(
    options: DeviceOptions, double: bool, context: RunContext, stack: ExitStack
) -> DeviceChains:
    """Return a device, closed by the stack; raise `BackendError` if it cannot be used."""
    from mummergpu.hmm.language.device import DeviceChains
    from mummergpu.matching.backends.memory_plan import usable_memory
    from mummergpu.matching.open_cuda import open_device

    device, cache = open_device(options, stack, context.notice)
    stack.enter_context(device.current())
    memory = usable_memory(device.memory()[0], options.memory)
    found = DeviceChains(device, cache, memory, context.stats, double)
    stack.callback(found.close)
    context.stats.set(device=device.name, device_library=device.library)
    return found


class _Job:
    """The models of a program, compiled, and their attributes to print."""

    device: DeviceChains | None = None

    def __init__(self, program: Program, options: ModelRunOptions, context: RunContext) -> None:
        path = options.program
        if not program.printed:
            message = "the program prints nothing: it has no 'print' in a 'main'"
            if not program.calls:
                raise ModelError(message, path)
            context.warn(f"{path}: {message}")
        self._printed = program.printed
        self._context = context
        self._null = options.null
        if options.null is not None and options.null not in program.models:
            known = ", ".join(program.models)
            raise OptionError("--null", f"the program has {known}, and no model '{options.null}'")
        self._wanted: dict[_Task, set[Attribute]] = {}
        for one in program.printed:
            self._wanted.setdefault(_Task(one.model, one.algorithm), set()).add(one.attribute)
        for call in program.calls:
            self._wanted.setdefault(_Task(*call), {Attribute.SCORE})
        if options.null is not None:
            task = _Task(options.null, Algorithm.FORWARD)
            self._wanted.setdefault(task, set()).add(Attribute.SCORE)
        names = dict.fromkeys(task.model for task in self._wanted)
        self._first = next(iter(names))
        for name in names:
            for row, line in program.models[name].unusual_sums:
                write = context.warn if row.total > 1 else context.notice
                write(f"{path}:{line}: {row}")
        models = {name: program.models[name] for name in names}
        for letter, symbols in options.any_letters:
            models = {
                name: _with_any_letter(model, letter, symbols) for name, model in models.items()
            }
        self._models = {name: CompiledModel(model, path) for name, model in models.items()}
        self.alphabet = self._models[self._first].model.alphabet
        self._codes = {name: self._codes_of(name, path) for name in names}

    def use(self, device: DeviceChains) -> None:
        """Compute on a device the models that fit it, and report the others."""
        self.device = device
        for name, model in self._models.items():
            if not device.supports(model.chain.shape):
                self._context.notice(f"{name}: too many states for a device, computed without it")

    def report_left(self) -> None:
        """Report the sequences that the device left to the processor."""
        if self.device is not None and (count := self.device.fallback_count):
            text = f"{pluralize(count, 'sequence')} computed without the device"
            self._context.notice(f"{text}: some states are too far behind others for its numbers")

    def _codes_of(self, name: str, path: str) -> Int64Array:
        """Return the model's code of each code in the files."""
        symbols = self._models[name].model.alphabet
        if set(symbols) != set(self.alphabet):
            raise ModelError(f"the alphabets of '{self._first}' and '{name}' differ", path)
        return np.array([symbols.index(symbol) for symbol in self.alphabet], dtype=np.int64)

    def printed(self, records: Records, names: list[str]) -> PrintedBlock:
        """Return the printed columns of some sequences."""
        found = {task: self._evaluate(task, records) for task in self._wanted}
        null: Float64Array | None = None
        if self._null is not None:
            null = found[_Task(self._null, Algorithm.FORWARD)].scores
        columns = []
        for one in self._printed:
            evaluation, model = found[_Task(one.model, one.algorithm)], self._models[one.model]
            scores = evaluation.scores
            if null is not None:
                with np.errstate(invalid="ignore"):
                    scores = np.where(np.isneginf(scores), scores, scores - null)
            columns.append(
                PrintedColumn(
                    *(one.text, one.algorithm, one.attribute, evaluation, scores),
                    *(model.visits, model.state_names, (model.model.start, model.model.end)),
                )
            )
        return PrintedBlock(names, columns)

    def _evaluate(self, task: _Task, records: Records) -> Evaluation:
        codes = records.codes
        if not np.array_equal(own := self._codes[task.model], np.arange(own.size)):
            codes = own.astype(np.uint8)[codes]
        block = SymbolBlock(codes, records.offsets)
        with self._context.stats.stage("model_evaluation"):
            model, wanted = self._models[task.model], self._wanted[task]
            return evaluate(model, task.algorithm, block, wanted, self._map, self.device)

    def _map(self, work: Callable[[Any], Any], parts: Iterable[Any]) -> Iterator[Any]:
        return self._context.executor.map(work, parts)
