"""Which functions of dmkc one run enters, as JSON; `code_paths.py` starts it for every run.

NUMBA_DISABLE_JIT=1 python pipelines/benchmarks/code_paths_trace.py RUN
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import dmkc
import dmkc.cli
from dmkc.datasets import make_ringnorm

ROWS, COLUMNS, SAMPLED = 300, 4, 128
"""Fewer sampled rows than rows, so that both a sample and all rows are scanned."""
INPUT = "x.npy"
PACKAGE = Path(dmkc.__file__).resolve().parent

Run = Callable[[np.ndarray], Any]


class Watch:
    """Collects the functions of dmkc that any thread enters."""

    def __init__(self) -> None:
        self.entered: set[CodeType] = set()
        self.is_on = False

    def start(self) -> None:
        """Watch from here on; what is on the stack has been entered too."""
        self.is_on = True
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            self(frame, "call", None)
            frame = frame.f_back

    def start_at(self, name: str) -> None:
        """Watch from the first time that the file `name` is opened."""

        def opened(event: str, details: tuple[Any, ...]) -> None:
            if event == "open" and not self.is_on and str(details[0]).endswith(name):
                self.start()

        sys.addaudithook(opened)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not self.is_on or code in self.entered:
            return
        if _is_function(code) and not _is_importing(frame):
            self.entered.add(code)


def _is_function(code: CodeType) -> bool:
    """A function of the package: no module, class or template, no lambda or comprehension."""
    path = Path(code.co_filename)
    ours = path.suffix == ".py" and PACKAGE in path.parents
    return ours and bool(code.co_flags & inspect.CO_OPTIMIZED) and not code.co_name.startswith("<")


def _is_importing(frame: FrameType) -> bool:
    above = frame.f_back
    while above is not None:
        if above.f_code.co_filename.startswith("<frozen importlib"):
            return True
        above = above.f_back
    return False


def command(X: np.ndarray) -> None:
    words = (
        f"fit {INPUT} --method mkc --clusters 2 --seed 0 --sample-rows {SAMPLED} --out run --quiet"
    )
    with contextlib.redirect_stdout(io.StringIO()):
        if dmkc.cli.main(words.split()) != 0:
            raise RuntimeError("dmkc fit has failed.")


def fit(name: str) -> Run:
    estimator = getattr(dmkc, name)
    return lambda X: estimator(random_state=0, sample_rows=SAMPLED).fit(X)


def select(X: np.ndarray) -> None:
    dmkc.select(X, dmkc.MultipleKernelClustering(random_state=0), sample_rows=SAMPLED)


RUNS: dict[str, Run] = {
    "MultipleKernelClustering.fit": fit("MultipleKernelClustering"),
    "dmkc fit x.npy": command,
    "HierarchicalKernelKMeans.fit": fit("HierarchicalKernelKMeans"),
    "NonparallelPlaneClustering.fit": fit("NonparallelPlaneClustering"),
    "dmkc.select": select,
}


def main() -> None:
    warnings.simplefilter("ignore")
    name = sys.argv[1]
    X = make_ringnorm(ROWS, COLUMNS, seed=0, dtype=np.float64)[0]
    np.save(INPUT, X)
    watch = Watch()
    threading.setprofile(watch)  # for the threads that the run will start
    sys.setprofile(watch)
    if RUNS[name] is command:
        watch.start_at(INPUT)
    else:
        watch.start()
    RUNS[name](X)
    watch.is_on = False
    found = {(str(Path(c.co_filename).relative_to(PACKAGE)), c.co_qualname) for c in watch.entered}
    print(json.dumps(sorted(found)))


if __name__ == "__main__":
    main()
