"""The demonstration: five data sets clustered on this machine, with a report of each."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import zarr

from dmkc import MultipleKernelClustering, __version__
from dmkc.datasets import load_digits, load_wdbc, make_ringnorm, make_rings
from dmkc.datasets.embedded import Dataset
from dmkc.metrics import accuracy
from dmkc.plot import kernel_names, sample
from dmkc.plot.clusters import places
from dmkc.report import charts, page, write_report
from dmkc.report.facts import k_means_labels
from dmkc.writing import remove, staged, write_text

RINGNORM_ROWS = 20_000
RINGS_ROWS = 3_000
NAMES = ("rings", "digits-1v7", "digits-2v7", "wdbc", "ringnorm")
SHOWN_ROWS = 300
"""Of a thumbnail."""
CLEARLY = 0.02
"""By how much the accuracy is higher where k-means fails."""
FILES = ("labels.zarr", "model.zarr", "report.html")


@dataclass(frozen=True)
class Case:
    """A data set of the demonstration."""

    name: str
    about: str
    load: Callable[[], tuple[Any, np.ndarray]]


@dataclass(frozen=True)
class Outcome:
    """What came out for one data set."""

    case: Case
    shape: tuple[int, int]
    model: MultipleKernelClustering
    seconds: float
    ours: float
    k_means: float
    points: np.ndarray
    """Where some rows stand on a map,"""
    found: np.ndarray
    """and what they are labelled,"""
    theirs: np.ndarray
    """here and by k-means."""


def run(
    out: Path, seed: int = 0, *, _rows: int = RINGNORM_ROWS, _names: tuple[str, ...] = NAMES
) -> None:
    """Cluster the demonstration's data sets and write labels, models and reports below `out`."""
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{out} is a file; name a folder for the demonstration.")
    for path in (out / "index.html", *(out / name / file for name in _names for file in FILES)):
        _check_own(path)
    out.mkdir(parents=True, exist_ok=True)
    print(f"dmkc {__version__}: two clusters in each of {len(_names)} data sets, on this machine")
    print(f"compiling the inner loops: {_compile(seed):.1f} s, once per environment")
    outcomes = []
    for case in (case for case in _cases(seed, _rows) if case.name in _names):
        outcome = _cluster(case, out / case.name, seed)
        outcomes.append(outcome)
        _show(outcome, out / case.name)
    _write_index(outcomes, out / "index.html")
    best = max(outcomes, key=lambda o: o.ours - o.k_means)
    print(f"\nOpen {out / 'index.html'} in a browser; begin with the report of {best.case.name}.")
    print(f"Then try your own rows: {_python()} -m dmkc fit rows.csv --out run")


def _python() -> str:
    """How to call this interpreter from the current folder."""
    path = os.path.relpath(sys.executable)
    return "python" if path.startswith("..") else path


def _cases(seed: int, n_rows: int) -> list[Case]:
    return [
        Case(
            "rings",
            "two rings around one centre (generated)",
            lambda: _rings(min(n_rows, RINGS_ROWS), seed),
        ),
        Case("digits-1v7", "handwritten digits 1 and 7", lambda: _table(load_digits((1, 7)))),
        Case("digits-2v7", "handwritten digits 2 and 7", lambda: _table(load_digits((2, 7)))),
        Case("wdbc", "breast tumours, benign and malignant", lambda: _table(load_wdbc())),
        Case(
            "ringnorm",
            "a narrow normal cloud inside a wide one (generated)",
            lambda: make_ringnorm(n_rows, 20, seed=seed),
        ),
    ]


def _rings(n_rows: int, seed: int) -> tuple[Any, np.ndarray]:
    X, y = make_rings(n_rows, noise=0.07, factor=0.3, seed=seed)
    return pd.DataFrame(X, columns=["east", "north"]), y


def _table(data: Dataset) -> tuple[Any, np.ndarray]:
    """The rows with their column names, and the names of their classes."""
    _, number = np.unique(data.y, return_inverse=True)
    names = np.array(data.classes if data.classes is not None else np.unique(data.y))
    return pd.DataFrame(data.X, columns=list(data.columns)), names[number]


def _compile(seed: int) -> float:
    """Seconds that a first fit of a few rows takes, for both kinds of rows that follow."""
    began = time.perf_counter()
    for dtype in (np.float64, np.float32):
        rows, _ = make_ringnorm(200, 4, seed=seed, dtype=dtype)
        # Fewer sampled rows than rows, so that scans of a sample and of all rows both happen.
        _fit(rows, seed, sample_rows=128)
    return time.perf_counter() - began


def _fit(rows: Any, seed: int, **settings: Any) -> tuple[MultipleKernelClustering, list[str]]:
    """The fitted model and what the fit warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = MultipleKernelClustering(random_state=seed, **settings).fit(rows)
    return model, [str(w.message) for w in caught if issubclass(w.category, UserWarning)]


def _cluster(case: Case, folder: Path, seed: int) -> Outcome:
    rows, truth = case.load()
    began = time.perf_counter()
    model, notes = _fit(rows, seed)
    seconds = time.perf_counter() - began
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        remove(folder / name)
    labels = np.asarray(model.labels_, dtype=np.int32)
    with staged(folder / "labels.zarr", replace=True) as fresh:
        zarr.create_array(store=fresh, data=labels)
    model.save(folder / "model.zarr")
    title = f"{case.name}: {case.about}"
    write_report(
        model,
        rows,
        folder / "report.html",
        title=title,
        truth=truth,
        seconds=seconds,
        notes=notes,
    )
    theirs = k_means_labels(rows, 2, seed)
    scores = accuracy(truth, labels), accuracy(truth, theirs)
    if np.mean(theirs == labels) < 0.5:
        theirs = 1 - theirs  # the same colours for the same clusters
    some, drawn = sample(rows, SHOWN_ROWS)
    points = np.asarray(drawn) if rows.shape[1] == 2 else places(model, drawn).points
    return Outcome(case, rows.shape, model, seconds, *scores, points, labels[some], theirs[some])


def _check_own(path: Path) -> None:
    """Refuse to replace what an earlier demonstration has not written."""
    if path.is_dir():
        own = path.suffix == ".zarr" and (path / "zarr.json").is_file()
    else:
        own = not path.exists() or "Written by dmkc" in path.read_text("utf-8", "replace")
    if not own:
        raise FileExistsError(
            f"{path} is not from an earlier demonstration; move it or name another folder."
        )


def _show(outcome: Outcome, folder: Path) -> None:
    model = outcome.model
    weights = [
        f"{weight:.2f} {name}"
        for name, weight in zip(kernel_names(model), model.kernel_weights_, strict=True)
    ]
    n_rows, n_columns = outcome.shape
    print(f"\n{outcome.case.name}: {outcome.case.about}")
    _line("size", f"{n_rows:,} rows x {n_columns} columns")
    _line("kernels", "; ".join(weights))
    _line("effort", f"{model.n_scans_} scans of all rows, {outcome.seconds:.1f} s")
    _line("accuracy", f"{100 * outcome.ours:.1f} %, k-means {100 * outcome.k_means:.1f} %")
    _line("written", f"{folder}/")
    _line("", ", ".join(FILES))


def _line(name: str, value: str) -> None:
    print(f"  {name:<11}{value}")


def _write_index(outcomes: list[Outcome], path: Path) -> None:
    ranked = sorted(outcomes, key=lambda o: o.k_means - o.ours)
    better = [o for o in ranked if o.ours - o.k_means > CLEARLY]
    rest = [o for o in ranked if o not in better]
    words = (
        "Every point is a row, at the same place on the left and on the right, and every colour a "
        "cluster. Percentages are the rows in the right cluster, under the best matching of "
        "clusters and classes, which were not used in the clustering."
    )
    body = [
        page.section("What k-means cannot do", page.paragraph(words), _cards(better)),
        page.section("Where k-means does as well", _cards(rest)),
    ]
    lead = f"Two clusters in each of {len(outcomes)} data sets, beside k-means."
    text = page.page("dmkc demonstration", lead, body, f"Written by dmkc {__version__}.")
    write_text(path, text)


def _cards(outcomes: list[Outcome]) -> page.Markup:
    return page.grid([_card(o) for o in outcomes], "cases") if outcomes else page.Markup()


def _card(o: Outcome) -> page.Markup:
    """A data set with a small map of either clustering."""
    pictures = [
        (name, f"{100 * right:.1f} %", charts.thumbnail(o.points, labels, f"{o.case.name}, {name}"))
        for name, right, labels in (("dmkc", o.ours, o.found), ("k-means", o.k_means, o.theirs))
    ]
    size = f"{o.shape[0]:,} rows of {o.shape[1]} columns"
    return page.case(f"{o.case.name}/report.html", o.case.name, o.case.about, size, pictures)
