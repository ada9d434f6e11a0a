"""Peers of constrained clustering, run in an environment of their own.

    python constraints_peers.py JOB.npz OUT.npz --limit SECONDS

The package active-semi-supervised-clustering pins nothing and is old, so it gets its own
environment.  JOB holds rows, the pairs of every draw and the names of the classes to run; OUT gets
labels and seconds, or why there are none.
"""

from __future__ import annotations

import argparse
import signal
import time
import warnings
from typing import Any

import numpy as np


class TooLong(Exception):
    """A fit that took longer than the limit."""


def labels_of(name: str, X: np.ndarray, must: np.ndarray, cannot: np.ndarray, limit: int) -> tuple:
    """Labels (or None), seconds and what happened."""
    from active_semi_clustering.semi_supervised import pairwise_constraints

    def stop(*_: Any) -> None:
        raise TooLong

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(limit)
    began = time.perf_counter()
    try:
        model = getattr(pairwise_constraints, name)(n_clusters=2)
        pairs = [[(int(a), int(b)) for a, b in p] for p in (must, cannot)]
        model.fit(X, ml=pairs[0], cl=pairs[1])
        return np.asarray(model.labels_), time.perf_counter() - began, "fitted"
    except TooLong:
        return None, float(limit), f"over {limit} s"
    except Exception as problem:
        return None, time.perf_counter() - began, f"{type(problem).__name__}"
    finally:
        signal.alarm(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job")
    parser.add_argument("out")
    parser.add_argument("--limit", type=int, default=60)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    job = np.load(options.job, allow_pickle=False)
    found: dict[str, Any] = {}
    for name in job["names"].tolist():
        for draw in job["draws"].tolist():
            np.random.seed(draw)
            pairs = job[f"must_{draw}"], job[f"cannot_{draw}"]
            labels, seconds, said = labels_of(name, job["X"], *pairs, options.limit)
            key = f"{name}_{draw}"
            found[f"{key}_said"], found[f"{key}_seconds"] = said, seconds
            if labels is not None:
                found[f"{key}_labels"] = labels
            elif said.startswith("over"):
                break  # the other draws would take as long
    np.savez(options.out, **found)


if __name__ == "__main__":
    main()
