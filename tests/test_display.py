"""What is shown while something is done, with a clock that tests move themselves."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from dask import array as da

from dmkc import AutoClustering, KMeans, MultipleKernelClustering, display, surfaces
from dmkc.data import passes
from dmkc.datasets import make_blobs


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Screen(io.StringIO):
    """A terminal that keeps all that was written to it."""

    def isatty(self):
        return True


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def terminal(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()
    return screen, display.Display(surfaces.Terminal(screen, clock), clock)


def newest(screen):
    """What was written since the last look, without colours."""
    found = screen.getvalue()
    screen.seek(0)
    screen.truncate()
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", found)


class Told:
    """A surface that keeps what it is told."""

    eager = True

    def __init__(self):
        self.lines, self.stages, self.records, self.views = [], [], [], []

    def opened(self, lock):
        return contextlib.nullcontext()

    def prepare(self):
        return

    def line(self, text):
        self.lines.append(text)

    def begin(self, text):
        self.stages.append(text)

    def add(self, record):
        self.records.append(record)

    def draw(self, view):
        self.views.append(view)

    def clear(self):
        return


def test_a_terminal_shows_stage_share_and_time_left(terminal, clock):
    screen, shown = terminal
    stage = shown.begin("fitting candidates")
    shown.tick()
    assert newest(screen) == ""  # what is done at once is not shown
    clock.now = 2.0
    stage.advance(2, 10, "candidate 3: spectral")
    shown.tick()
    text = newest(screen)
    for part in (
        "dmkc: fitting candidates",
        "20 %",
        "2 s, about 8 s left",
        "candidate 3: spectral",
    ):
        assert part in text
    clock.now = 3.0
    shown.tick()
    assert "3 s, about 12 s left" in newest(screen)  # it moves though nothing has happened
    assert all(len(line) <= 80 for line in text.split("\n"))


def test_lines_stay_above_the_live_ones(terminal, clock):
    screen, shown = terminal
    clock.now = 1.0
    shown.begin("reading")
    shown.tick()
    above = surfaces._Above(screen, shown.surface, shown.lock)
    newest(screen)
    above.write("half")
    shown.tick()
    assert newest(screen).endswith("half")  # nothing is drawn into the middle of a line
    above.write(" a line\n")
    shown.tick()
    assert " a line\ndmkc: reading" in newest(screen)


def test_nothing_is_written_after_the_end(terminal, clock):
    screen, shown = terminal
    clock.now = 1.0
    stage = shown.begin("reading")
    shown.tick()
    shown.close()
    newest(screen)
    stage.advance(1, 2)
    shown.tick()
    shown.line("late")
    shown.close()
    assert newest(screen) == ""


def test_a_pipe_has_a_line_a_stage_and_few_more(clock):
    stream = io.StringIO()
    shown = display.Display(surfaces.Plain(stream, clock), clock)
    first = shown.begin("reading x.csv")
    for second in range(1, 21):
        clock.now = float(second)
        first.advance(second, 20)
        shown.tick()
    shown.end(first)
    shown.begin("writing labels")
    lines = stream.getvalue().splitlines()
    assert lines[0] == "dmkc: reading x.csv" and lines[-1] == "dmkc: writing labels"
    assert lines[1] == "dmkc: reading x.csv: 25 %, 5 s, about 15 s left"
    assert len(lines) == 2 + 20 // surfaces.LINE_SECONDS


def test_the_innermost_stage_is_shown(clock):
    surface = Told()
    shown = display.Display(surface, clock)
    outer = shown.begin("outer")
    inner = shown.begin("inner")
    shown.begin("left open")
    shown.tick()
    shown.end(inner)
    shown.tick()
    shown.end(outer)
    shown.tick()
    assert [view.stage for view in surface.views] == ["left open", "outer"]


def test_names_of_others_cannot_write_to_the_terminal(terminal, clock):
    screen, shown = terminal
    clock.now = 1.0
    shown.begin("reading \x1b]0;evil\x07.csv").advance(1, 2, "\x1b[2J")
    shown.tick()
    assert "\x1b]0" not in screen.getvalue() and "\x1b[2J" not in screen.getvalue()


def test_passes_of_dask_are_counted_while_they_run():
    surface, seen = Told(), []
    with display.shown_on(surface) as shown:
        stage = shown.begin("a pass")
        lock = threading.Lock()

        def look(block):
            with lock:
                seen.append(stage.view(0.0, 0.0).share)
            return block

        with passes.counted():
            da.zeros(8, chunks=1).map_blocks(look, dtype=float, meta=np.empty(0)).compute(
                scheduler="sync"
            )
        assert stage.view(0.0, 0.0).share is None
    assert seen[0] == 0.0 and seen == sorted(seen) and 0 < seen[-1] < 1
    with passes.counted():  # nobody watches
        assert da.zeros(3, chunks=1).sum().compute() == 0


@pytest.fixture
def told(monkeypatch):
    """A surface for fits of this process, which no thread draws on."""
    surface = Told()
    monkeypatch.setattr("dmkc.progress.Progress._surface", lambda self: surface)
    monkeypatch.setattr(display.Display, "run", lambda self: None)
    return surface


def test_a_fit_tells_its_stages(told):
    X = make_blobs(4000, 4, 3, seed=0)[0]
    model = MultipleKernelClustering(
        3, random_state=0, rank=20, sample_rows=500, init="k-means", verbose=1
    ).fit(X)
    assert told.stages == [
        "preparing 4000 rows",
        "looking for starts",
        "fitting to a sample of the rows",
        "fitting to all rows",
        "labelling 4000 rows",
    ]
    assert len(told.records) == len(model.history_)
    on_all = [view for view in told.views if view.stage.startswith("all rows, round")]
    assert len(on_all) == sum(r["on"] == "all" for r in model.history_)
    assert all(view.share is not None and 0 < view.share < 1 for view in on_all)
    assert all("objective" in view.detail and "gap" in view.detail for view in on_all)
    assert told.lines[-1].startswith("dmkc: ") and f"{model.objective_:.6g}" in told.lines[-1]


def test_the_choice_among_methods_is_shown(told):
    X = make_blobs(300, 2, 3, seed=0)[0]
    model = AutoClustering(random_state=0, verbose=1).fit(X)
    assert told.stages[0] == "taking a sample of 300 rows"
    (candidates,) = [text for text in told.stages if "candidates" in text]
    shares = [view.share for view in told.views if view.stage == candidates]
    assert shares == sorted(shares) and len(shares) >= len(model.candidates_)
    assert any("candidate 1: kmeans" in view.detail for view in told.views)
    assert told.stages.count("labelling 300 rows") == 1  # candidates say nothing themselves


def test_a_silent_fit_shows_nothing_on_an_open_display(told):
    X = make_blobs(200, 2, 2, seed=0)[0]
    with display.shown_on(told) as shown:
        shown.begin("report")
        KMeans(2, random_state=0).fit(X)
        assert told.stages == ["report"] and told.records == []
        KMeans(2, random_state=0, verbose=1).fit(X)
    assert "labelling 200 rows" in told.stages and len(told.records) > 0


def test_a_fit_that_fails_closes_its_display(told):
    with pytest.raises(ValueError, match=r"infinity|infinite|NaN"):
        KMeans(2, verbose=1).fit(np.array([[np.nan], [1.0], [2.0]]))
    assert display.current() is None


def test_a_thread_draws_and_leaves_with_the_display():
    before, surface = set(threading.enumerate()), Told()
    with display.shown_on(surface) as shown:
        shown.begin("waiting")
        while not surface.views:
            shown._over.wait(0.01)
    ended = len(surface.views)
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=2 * display.TICK_SECONDS)
    assert len(surface.views) == ended and not set(threading.enumerate()) - before


def run_in_terminal(words, folder):
    """Exit code and all that a command writes to a terminal."""
    ours, theirs = pty.openpty()
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "TERM": "xterm",
        "COLUMNS": "80",
    }
    command = [sys.executable, "-m", "dmkc", *map(str, words)]
    running = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    found = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        found += part
    os.close(ours)
    return running.wait(timeout=60), found.decode()


def test_a_command_in_a_terminal(tmp_path):
    X = make_blobs(250, 4, 3, seed=0)[0]
    pd.DataFrame(X, columns=list("abcd")).to_csv(tmp_path / "x.csv", index=False)
    words = ("fit", "x.csv", "--seed", "0", "--out", "run", "--no-report")
    code, text = run_in_terminal(words, tmp_path)
    assert code == 0
    assert "dmkc: loading libraries" in text and "candidates to a sample" in text
    assert " %" in text and "candidate " in text
    # Results stand in lines of their own, and nothing is left of the live lines.
    lines = text.replace("\r", "").split("\n")
    assert any(line.startswith("clusters ") or "\x1b[2Kclusters " in line for line in lines)
    assert "\x1b[?25l" not in text  # the cursor is left alone
    words = ("predict", "run", "x.csv", "--out", "labels.csv", "--quiet")
    code, text = run_in_terminal(words, tmp_path)
    assert code == 0 and "\x1b[2K" not in text and "dmkc:" not in text and "cluster 0" in text
