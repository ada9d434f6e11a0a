"""First and second fits of one method in a fresh process, as a JSON line.

    python start_up_fits.py METHOD here|workers

start_up.py runs it with the dmkc of a checkout.  Seconds are those of the clock and, in this
process, of the processor.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
import warnings
from typing import Any

import numpy as np

METHODS = {
    "kmeans": "KMeans",
    "mkc": "MultipleKernelClustering",
    "skmmc": "SparseKernelMMC",
    "odm": "MarginDistributionClustering",
    "planes": "NonparallelPlaneClustering",
    "kernel-kmeans": "KernelKMeans",
    "mkkm": "MultipleKernelKMeans",
    "hmkkm": "HierarchicalKernelKMeans",
    "spectral": "SpectralClustering",
    "consensus": "ConsensusClustering",
}
ROWS, COLUMNS, CHUNKS = 2_000, 8, 8
"""So few that a fit is short beside its first time."""


def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(ROWS, COLUMNS)) + 4.0 * rng.integers(0, 3, size=(ROWS, 1))


@contextlib.contextmanager
def workers(X: np.ndarray) -> Any:
    """The rows on two worker processes."""
    import dask.array as da
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c, Client(c):
        yield da.from_array(X, chunks=(ROWS // CHUNKS, COLUMNS)).persist()


def fitted(estimator: type, X: Any) -> dict[str, float]:
    """What one fit takes."""
    began, used = time.perf_counter(), time.process_time()
    np.asarray(estimator(2, random_state=0).fit(X).labels_)
    return {"clock": time.perf_counter() - began, "processor": time.process_time() - used}


def main() -> None:
    method, where = sys.argv[1:]
    warnings.simplefilter("ignore")
    import dmkc

    X, estimator = rows(), getattr(dmkc, METHODS[method])
    with contextlib.nullcontext(X) if where == "here" else workers(X) as given:
        print(json.dumps([fitted(estimator, given) for _ in range(3)]))


if __name__ == "__main__":
    main()
