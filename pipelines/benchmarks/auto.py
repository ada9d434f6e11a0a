"""`dmkc.AutoClustering` beside k-means, mixtures, spectral clustering, HDBSCAN and genie.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/auto.py [--peers PYTHON] [--kept FOLDER] \\
        [--sets iris ...]

The sets are those of selection.md and generated shapes (auto_shapes.py), split into design and
unseen ones before.  True labels are used to measure only; "oracle" is the best candidate of the
pool by them.  Candidates are kept in FOLDER, so that another rule is measured in a minute, and a
run that was stopped goes on where it was.  --peers names an interpreter that has genieclust.
"""

from __future__ import annotations

import argparse
import pickle
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

import auto_shapes
import selection_sets
from auto_page import write_page
from dmkc import AutoClustering
from dmkc.metrics import accuracy
from dmkc.scan.engine import one_blas_thread
from dmkc.selection.families import fitted
from dmkc.selection.judge import judge
from dmkc.selection.structure import structure

HERE = Path(__file__).resolve().parent
SAMPLE = 1000
SHAPES = tuple(auto_shapes.SHAPES)
REAL = tuple(name for name in selection_sets.SETS if name not in SHAPES)
DESIGN = {*selection_sets.DESIGN, *auto_shapes.DESIGN}
"""Sets that rules were tried on; the others were measured once the rule was fixed."""


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes of a set; class -1 is noise."""
    if name in auto_shapes.SHAPES:
        return auto_shapes.shape(name)
    return selection_sets.prepared(name)


def file_name(name: str) -> str:
    return name.replace("/", "_").replace(" ", "-").replace(",", "")


def rand(y: np.ndarray, labels: Any) -> float:
    """Adjusted Rand index of rows that have a class."""
    known = y >= 0
    return float(adjusted_rand_score(y[known], np.asarray(labels)[known]))


def matched(y: np.ndarray, labels: Any) -> float:
    """Accuracy by the best matching, of the same rows; noise of a method is a cluster."""
    known, numbers = y >= 0, np.unique(labels, return_inverse=True)[1]
    return accuracy(y[known], numbers[known])


def kept(path: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What was made before, or is made now."""
    if not path.exists():
        path.write_bytes(pickle.dumps(make()))
    return pickle.loads(path.read_bytes())


def gathered(name: str) -> dict[str, Any]:
    """Sample, candidates and structure of a set."""
    X, y = rows_of(name)
    k = len(np.unique(y[y >= 0]))
    some = np.sort(np.random.default_rng(1).permutation(len(X))[:SAMPLE])
    began = time.perf_counter()
    with one_blas_thread():
        candidates = fitted(X[some], k, 0).candidates
    after = time.perf_counter()
    with one_blas_thread():
        seen = structure(X[some], 2, 10, 0)
    return {
        "X": X[some], "y": y[some], "k": k, "candidates": candidates, "structure": seen,
        "seconds": (after - began, time.perf_counter() - after),
    }  # fmt: skip


def whole(name: str) -> dict[str, Any]:
    """The whole course on all rows: with the true number of clusters, and with an open one."""
    X, y = rows_of(name)
    k = len(np.unique(y[y >= 0]))
    found: dict[str, Any] = {}
    for asked in (k, "auto"):
        began = time.perf_counter()
        model = AutoClustering(asked, random_state=0).fit(X)
        found["known" if asked == k else "open"] = {
            "index": rand(y, model.labels_),
            "accuracy": matched(y, model.labels_),
            "seconds": time.perf_counter() - began,
            "clusters": model.n_clusters_,
            "verdict": model.verdict_,
            "evidence": model.evidence_,
            "confidence": model.confidence_,
            "method": model.method_,
        }
    return found


def measured(name: str, folder: Path) -> dict[str, Any]:
    """All that the page tells of a set."""
    made = kept(folder / f"{file_name(name)}.pkl", lambda: gathered(name))
    stored = np.load(folder / f"{file_name(name)}.npz")
    others = np.load(folder / f"{file_name(name)}.peers.npz")
    indices = [rand(made["y"], c.labels) for c in made["candidates"]]
    found = judge(made["candidates"], made["X"], made["k"])
    course = kept(folder / f"{file_name(name)}.whole.pkl", lambda: whole(name))
    accuracies = [matched(made["y"], found.candidates[i].labels) for i in found.order]
    return {
        "is shape": name in auto_shapes.SHAPES,
        "is design": name in DESIGN,
        "pool": made,
        "pool chosen": found.candidates[found.order[0]],
        "candidates": indices,
        "oracle": max(indices[i] for i in found.order),
        "peers": {key: rand(stored["y"], others[key]) for key in others.files},
        **course,
        "by accuracy": {
            "oracle": max(accuracies),
            "peers": {key: matched(stored["y"], others[key]) for key in others.files},
            "known": {"index": course["known"]["accuracy"]},
        },
    }


def peers(names: list[str], folder: Path, python: str) -> None:
    """Labels of other libraries for all sets."""
    for name in names:
        path = folder / f"{file_name(name)}.npz"
        if not path.exists():
            X, y = rows_of(name)
            np.savez(path, X=X, y=y, k=len(np.unique(y[y >= 0])))
    subprocess.run([python, HERE / "auto_peers.py", folder], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=[*REAL, *SHAPES])
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--kept", type=Path, default=Path("auto-kept"), metavar="FOLDER")
    options = parser.parse_args()
    options.kept.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    peers(options.sets, options.kept, options.peers)
    data = {}
    for name in options.sets:
        data[name] = measured(name, options.kept)
        print(name, data[name]["known"], flush=True)
    groups = {
        f"{kind}, {part}": [n for n in sets if (n in DESIGN) == (part == "design")]
        for kind, sets in (("real", REAL), ("shapes", SHAPES))
        for part in ("design", "unseen")
    }
    write_page(data, groups)


if __name__ == "__main__":
    main()
