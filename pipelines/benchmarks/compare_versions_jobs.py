"""One version of dmkc at work: answers the questions of compare_versions.py, one line each.

Not meant to be called by hand.  The version is that of PYTHONPATH; only names that older versions
have too are used.  Questions are read from standard input and answers written to standard output,
both as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster

import dmkc
from dmkc import datasets
from dmkc.scan.meter import Meter, metering

ESTIMATORS: dict[str, Any] = {
    "mkc": dmkc.MultipleKernelClustering,
    "skmmc": dmkc.SparseKernelMMC,
    "odm": dmkc.MarginDistributionClustering,
    "planes": dmkc.NonparallelPlaneClustering,
    "kmeans": dmkc.KMeans,
    "kernel-kmeans": dmkc.KernelKMeans,
    "mkkm": dmkc.MultipleKernelKMeans,
    "hmkkm": dmkc.HierarchicalKernelKMeans,
}
SETS: dict[str, Callable[[], Any]] = {
    "blobs": lambda: datasets.make_blobs(400, 5, 4, seed=0)[0],
    "rings": lambda: datasets.make_rings(400, noise=0.08, seed=0)[0],
    "waveform": lambda: datasets.make_waveform(500, noise=19, seed=0)[0],
    "ringnorm": lambda: datasets.make_ringnorm(600, seed=0)[0],
    "wdbc": lambda: datasets.load_wdbc().X,
    "digits": lambda: datasets.load_digits().X[:800],
}
FORMS = ("plain", "weights", "part of the rows", "sparse", "Dask array")
CHUNK = 65_536


def estimator(name: str, clusters: int, form: str) -> Any:
    model = ESTIMATORS[name](clusters, random_state=0)
    part = {"train_rows": 150, "polish": 2} if form == "part of the rows" else {}
    return model.set_params(**part)


def labels(name: str, rows: str, clusters: int, form: str) -> dict[str, Any]:
    """Labels and objective of a fit, or why it was refused."""
    X = np.asarray(SETS[rows](), dtype=np.float64)
    weights = {"sample_weight": 1.0 + np.arange(len(X)) % 3} if form == "weights" else {}
    if form == "sparse":
        X = sp.csr_array(np.where(np.median(X, axis=0) < X, X, 0.0))
    elif form == "Dask array":
        X = da.from_array(X, chunks=(97, -1))
    try:
        model = estimator(name, clusters, form).fit(X, **weights)
    except (ValueError, TypeError) as problem:
        return {"refused": str(problem)}
    found = np.asarray(model.labels_).astype(int).tolist()
    return {"labels": found, "objective": float(model.objective_)}


class Speed:
    """Rows, fitted models and workers that are kept between questions."""

    def __init__(self, rows: int, small: int, folder: Path) -> None:
        self.X = np.asarray(datasets.make_ringnorm(rows, seed=0)[0])
        self.few = np.asarray(datasets.make_ringnorm(small, seed=1)[0])
        self.path = str(folder / "rows.zarr")
        da.from_array(self.X, chunks=(CHUNK, -1)).to_zarr(self.path)
        self.model = mkc().fit(self.X[:20_000])
        self._client: Client | None = None

    def jobs(self) -> dict[str, Callable[[], float]]:
        """What is timed, by name."""
        return {
            "a scan of held kernel columns": lambda: self.scan("persist"),
            "a scan that makes kernel columns anew": lambda: self.scan("recompute"),
            "whole fit, threads": self.fit,
            "whole fit, two worker processes": self.fit_on_processes,
            "labels of rows in memory": lambda: timed(lambda: self.model.predict(self.X)),
            "labels of rows in Zarr": lambda: timed(
                lambda: dask.compute(self.model.predict(self.path))
            ),
            "small fit": lambda: timed(lambda: mkc().fit(self.few)),
        }

    def scan(self, mode: str) -> float:
        """Median seconds of a scan for cuts in a fit of all rows."""
        meter = Meter()
        with metering(meter):
            mkc(feature_mode=mode).fit(self.X)
        cuts = [c for c in meter.calls if c.name == "cuts" and c.rows == len(self.X)]
        return float(np.median([call.seconds for call in cuts]))

    def fit(self) -> float:
        return timed(lambda: mkc().fit(self.X))

    def fit_on_processes(self) -> float:
        """Two worker processes are started at the first call and stay."""
        if self._client is None:
            cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
            self._client = Client(cluster, set_as_default=False)
        with self._client.as_current():
            return self.fit()

    def end(self) -> None:
        if self._client is not None:
            self._client.shutdown()


def mkc(**params: Any) -> Any:
    return dmkc.MultipleKernelClustering(random_state=0, **params)


def timed(job: Callable[[], Any]) -> float:
    began = time.perf_counter()
    job()
    return time.perf_counter() - began


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # what a fit prints is no answer
    warnings.simplefilter("ignore")
    speed: Speed | None = None
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            question = json.loads(line)
            kind, given = question["kind"], question["given"]
            answer: Any
            if kind == "place":
                answer = str(Path(dmkc.__file__).resolve().parents[1])
            elif kind == "labels":
                answer = labels(*given)
            elif kind == "prepare":
                rows, small = given
                speed = Speed(rows, small, Path(folder))
                answer = list(speed.jobs())
            elif kind == "time" and speed is not None:
                answer = speed.jobs()[given]()
            else:
                raise ValueError(f"The question {kind!r} is not known, or comes before 'prepare'.")
            print(json.dumps(answer), file=answers, flush=True)
        if speed is not None:
            speed.end()


if __name__ == "__main__":
    main()
