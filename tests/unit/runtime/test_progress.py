"""The line of progress, its words, and the counters and timers of a run."""

import io
import itertools
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers.children import child, printed_by

from mummergpu.matching.summary import FileCounts, LengthCount, MatchCounts, StrandCounts
from mummergpu.runtime import progress as runtime
from mummergpu.runtime import stats as statistics
from mummergpu.runtime.progress import Messages, Phase, Progress, ProgressShares, Work
from mummergpu.runtime.stats import SCHEMA_VERSION, STAGES, Stats, peak_memory
from mummergpu.runtime.words import pluralize


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
    program = """
import sys
from mummergpu.runtime.progress import Phase, Progress, Work
progress = Progress(sys.stderr)
progress.tell(Work(Phase.READS, (1,)))
progress.close()
assert 'tqdm' not in sys.modules
"""
    assert child("-c", program, check=True).stderr == ""


def test_nothing_appears_before_there_is_something_to_tell(stream):
    progress = Progress(stream)
    progress._draw()
    progress.close()
    assert stream.getvalue() == ""


def test_the_line_is_rewritten_and_the_last_one_is_kept(stream):
    progress = Progress(stream)
    progress.tell(pages(1, 3))
    progress._draw()
    assert last_line(stream).startswith("mummergpu: 1 of 3 pages ready [00:")
    progress.tell(reads(7))
    progress._draw()
    progress.tell(reads(1_234_567, 145_000_000))
    progress.close()
    assert last_line(stream).startswith("mummergpu: 1,234,567 reads done: 145Mbp [00:")
    assert stream.getvalue().endswith("\n") and "\n" not in stream.getvalue()[:-1]


def test_there_are_a_share_a_rate_and_a_time_left(stream):
    progress = Progress(stream)
    for bases in (0, 4_000_000, 5_000_000):
        progress.tell(reads(bases // 100, bases, bases / 50_000_000))
        time.sleep(0.001)
        progress._draw()
    line = last_line(stream)
    assert line.startswith("mummergpu: 50,000 reads done:  10%|")
    # However long the machine has taken for these lines.
    assert re.search(r"\| 5\.00M/50\.0M \[\d\d:\d\d<\d\d:\d\d, .*bp/s\]", line)


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
    lines = [line.partition(":  ")[0] for line in stream.getvalue().splitlines()]
    one, two = (f"mummergpu: {count},000 reads done" for count in (1, 2))
    assert lines == [one, "text", two, "text", two]
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


def test_one_thing_has_a_singular():
    told = [pluralize(number, "read") for number in (0, 1, 2000)]
    assert told == ["0 reads", "1 read", "2,000 reads"]
    told = [pluralize(number, "run is", "runs are") for number in (1, 2)]
    assert told == ["1 run is", "2 runs are"]


def test_progress_of_one_thing_has_a_singular():
    assert Work(Phase.READS, (1,)).text == "1 read done"
    assert Work(Phase.READS, (4096,)).text == "4,096 reads done"
    assert Work(Phase.PAGES, (0, 1)).text == "0 of 1 page ready"
    assert Work(Phase.READS_OF_GROUP, (1, 2, 3)).text == "1 read searched in pages of group 2 of 3"
    assert Work(Phase.WRITING_FILE, ("x",)).text == "writing x"


def test_report_has_the_stages_that_ran_and_a_version():
    stats = Stats()
    with stats.stage("match_kernel"):
        pass
    report = json.loads(stats.as_json())
    assert report["schema_version"] == SCHEMA_VERSION
    assert report["stages"].keys() == {"match_kernel"} and "match_kernel" in STAGES
    assert report["stages"]["match_kernel"].keys() == {"seconds", "count", "peak_memory_bytes"}


def test_timeline_has_the_stages_of_each_thread_up_to_a_number(monkeypatch):
    with monkeypatch.context() as clock:
        clock.setattr(time, "perf_counter", itertools.count().__next__)
        clock.setattr(statistics, "MOST_SPANS", 3)
        stats = Stats()
        with stats.stage("mapping"), stats.stage("summary"):
            pass
        with ThreadPoolExecutor(1, thread_name_prefix="worker") as executor:

            def run():
                with stats.stage("format"):
                    pass

            executor.submit(run).result()
            executor.submit(run).result()
    assert stats.as_dict()["timeline"] == {
        "MainThread": ["summary 2.0000 3.0000", "mapping 1.0000 4.0000"],
        "worker_0": ["format 5.0000 6.0000"],
    }


def test_stage_adds_up_seconds_and_runs(monkeypatch):
    stats = Stats()
    with monkeypatch.context() as clock:
        # Each look at the clock is a second later.
        clock.setattr(time, "perf_counter", itertools.count().__next__)
        for _ in range(2):
            with stats.stage("match_kernel"):
                pass
    stage = stats.stages["match_kernel"]
    assert (stage.count, stage.seconds) == (2, 2)
    assert 1_000_000 < stage.peak_memory_bytes <= peak_memory()


def test_stage_that_fails_is_timed_too():
    stats = Stats()
    with pytest.raises(RuntimeError), stats.stage("format"):
        raise RuntimeError
    assert stats.stages["format"].count == 1


def test_unknown_stage_is_refused():
    with pytest.raises(KeyError), Stats().stage("kernel_match"):
        pass


def test_nothing_is_lost_between_threads():
    stats = Stats()

    def work(_number):
        for _ in range(500):
            stats.add(queries=1, matches=2)
            with stats.stage("print_kernel"):
                pass

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert stats.counts == {"queries": 4000, "matches": 8000}
    assert stats.stages["print_kernel"].count == 4000


def test_numbers_of_numpy_reach_the_report():
    stats = Stats()
    stats.add(queries=np.int64(3))
    stats.add_bytes(output=np.int64(5))
    stats.set(backend="cpu")
    report = json.loads(stats.as_json())
    assert report["counts"] == {"queries": 3}
    assert report["bytes"] == {"output": 5}
    assert report["settings"] == {"backend": "cpu"}


def test_what_was_counted_of_matches_is_in_the_report():
    stats = Stats()
    report = json.loads(stats.as_json())
    assert report["files"] == report["strands"] == report["match_lengths"] == []
    assert report["counts"] == {}
    lengths = LengthCount(20, 20, 4), LengthCount(1024, 1055, 1)
    files = FileCounts("a.fq", 9, 900, 3, 4), FileCounts("b.fq", 1, 2000, 1, 1)
    stats.set_match_counts(MatchCounts(17, lengths, files, (StrandCounts("reverse", 4, 5),)))
    report = json.loads(stats.as_json())
    assert report["counts"] == {"queries_with_match": 4, "bases_covered": 17}
    assert report["files"][1] == {
        **{"path": "b.fq", "queries": 1, "query_bases": 2000},
        **{"queries_with_match": 1, "matches": 1},
    }
    assert report["strands"] == [{"strand": "reverse", "queries_with_match": 4, "matches": 5}]
    assert report["match_lengths"][1] == {"first": 1024, "last": 1055, "matches": 1}


def test_summary_names_the_stages_that_were_run():
    stats = Stats()
    with stats.stage("tree_flatten"):
        pass
    (line,) = stats.summary()
    assert line.startswith("tree_flatten ")
    assert "in 1 run," in line


PROGRAM = """
import builtins, sys
from types import SimpleNamespace
sys.platform = sys.argv[1]
from mummergpu.runtime import stats

def refuse(*_arguments):
    raise FileNotFoundError

builtins.open = refuse
stats.resource.getrusage = lambda _: SimpleNamespace(ru_maxrss=3_000_000)
print(stats.peak_memory())
"""


def test_macos_tells_bytes_and_other_systems_tell_kibibytes():
    for system, peak in (("darwin", 3_000_000), ("freebsd14", 3_000_000 * 1024)):
        assert printed_by("-c", PROGRAM, system) == f"{peak}\n"
