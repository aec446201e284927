"""The line of progress, which the test draws, and the share of a job that is done."""

import io
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from mummergpu.runtime import progress as runtime
from mummergpu.runtime.progress import Messages, Phase, Progress, ProgressShares, Work


@pytest.fixture
def stream(monkeypatch):
    for name in ("DELAY", "INTERVAL", "LINE_INTERVAL"):
        monkeypatch.setattr(runtime, name, 1000.0)
    return io.StringIO()


def pages(done, total):
    return Work(Phase.PAGES, (done, total))


def reads(done, bases=0, share=None):
    return Work(Phase.READS, (done,), bases, share)


def last_line(stream):
    return stream.getvalue().rpartition("\r")[2]


def test_a_short_run_shows_nothing_and_imports_nothing():
    program = (
        "import sys\n"
        "from mummergpu.runtime.progress import Phase, Progress, Work\n"
        "progress = Progress(sys.stderr)\n"
        "progress.tell(Work(Phase.READS, (1,)))\n"
        "progress.close()\n"
        "assert 'tqdm' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stderr == b""


def test_nothing_appears_before_there_is_something_to_tell(stream):
    progress = Progress(stream)
    progress._draw()
    progress.close()
    assert stream.getvalue() == ""


def test_the_line_is_rewritten_and_the_last_one_is_kept(stream):
    progress = Progress(stream)
    progress.tell(pages(1, 3))
    progress._draw()
    assert last_line(stream).startswith("mummergpu: 1 of 3 pages ready [00:00]")
    progress.tell(reads(7))
    progress._draw()
    progress.tell(reads(1_234_567, 145_000_000))
    progress.close()
    assert last_line(stream).startswith("mummergpu: 1,234,567 reads done: 145Mbp [00:00, ")
    assert stream.getvalue().endswith("\n") and "\n" not in stream.getvalue()[:-1]


def test_there_are_a_share_a_rate_and_a_time_left(stream):
    progress = Progress(stream)
    for bases in (0, 4_000_000, 5_000_000):
        progress.tell(reads(bases // 100, bases, bases / 50_000_000))
        time.sleep(0.001)
        progress._draw()
    line = last_line(stream)
    assert line.startswith("mummergpu: 50,000 reads done:  10%|")
    assert "| 5.00M/50.0M [00:00<00:0" in line and "bp/s]" in line


def test_without_bases_there_are_a_share_and_a_time_left(stream):
    progress = Progress(stream)
    for done in (1, 1, 2):
        progress.tell(Work(Phase.RUNS, ("LMONO", done, 4), 0, done / 4))
        progress._draw()
    assert last_line(stream).startswith("mummergpu: LMONO: 2 of 4 runs:  50%|")
    progress.tell(Work(Phase.RUNS, ("HSILL", 1, 4), 0, 0.25))
    progress._draw()
    assert last_line(stream).startswith("mummergpu: HSILL: 1 of 4 runs:  25%|")


def test_text_is_written_above_the_line(stream):
    progress = Progress(stream)
    progress.write_line("early")
    progress.tell(pages(1, 1))
    progress._draw()
    progress.write_line("late")
    progress.close()
    early, late, line, nothing = stream.getvalue().split("\n")
    assert early == "early" and late.endswith("\rlate") and nothing == ""
    assert "mummergpu: 1 of 1 page ready" in line


def test_without_a_terminal_there_is_a_line_at_times(stream):
    progress = Progress(stream, on_terminal=False)
    for count in (1, 2):
        progress.tell(reads(1000 * count, 59_000 * count, 0.4 * count))
        progress._draw()
        progress.write_line("text")
    progress.close()
    lines = stream.getvalue().splitlines()
    assert [line.partition(":  ")[0] for line in lines] == [
        "mummergpu: 1,000 reads done",
        "text",
        *(["mummergpu: 2,000 reads done", "text"]),
        "mummergpu: 2,000 reads done",
    ]
    assert "\r" not in stream.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_thread_draws_when_a_line_is_due(stream, monkeypatch, terminal):
    for name in ("DELAY", "INTERVAL", "LINE_INTERVAL"):
        monkeypatch.setattr(runtime, name, 0.001)
    progress = Progress(stream, terminal)
    progress.tell(pages(1, 1))
    while not stream.getvalue():
        time.sleep(0.001)
    progress.close()
    assert "mummergpu: 1 of 1 page ready" in stream.getvalue()
    assert stream.getvalue().endswith("\n")


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_that_has_gone_is_no_error(monkeypatch, terminal):
    class Gone(io.StringIO):
        def write(self, text):
            raise OSError(5, "Input/output error")

    for name in ("DELAY", "LINE_INTERVAL"):
        monkeypatch.setattr(runtime, name, 0.0)
    progress = Progress(Gone(), terminal)
    progress.tell(pages(1, 1))
    while progress._bar is None:
        time.sleep(0.001)
    progress.close()


def test_messages_show_only_text(stream):
    for progress in (Messages(stream), Messages(None)):
        progress.tell(pages(1, 2))
        progress.write_line("text")
        progress.close()
    assert stream.getvalue() == "text\n"


def test_parts_add_up_to_the_whole():
    told = []
    shares = ProgressShares(told.append)
    parts = [(shares.part(0.25, 5), 5, 0.25), (shares.part(0.75, 300), 300, 1.0)]
    with ThreadPoolExecutor(4) as pool:
        for step, count, share in parts:
            for future in [pool.submit(step) for _ in range(count)]:
                future.result()
            assert told == sorted(told) and max(told) <= 1
            assert told[-1] == pytest.approx(share)
    assert len(told) == 305


def test_a_part_without_steps_is_no_error():
    told = []
    ProgressShares(told.append).part(0.5, 0)
    assert told == []
