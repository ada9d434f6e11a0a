"""The memory of a worker that `dmkc.plan` says, beside the most that a worker has in the fit.

    python pipelines/benchmarks/planner_memory.py [--rows 300_000] [--methods mkc kmeans ...]

Every method is planned and then fitted on new worker processes, whose peak is set back in between.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from common import peak, table, write
from dmkc import plan
from dmkc.datasets import make_ringnorm
from dmkc.modelfile import ESTIMATORS
from planner import METHODS
from subset_to_all import whole

WORKERS = 2


def forget_peak() -> None:
    """Count the most memory of this process from now on (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def measure(method: str, X: np.ndarray, mode: str) -> dict[str, Any]:
    """What is planned, and what the workers of the fit have at most."""
    given = {} if method == "kmeans" else {"feature_mode": mode}
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        model = ESTIMATORS[method](2, random_state=0, client=client, **given)
        found = plan(X, model)
        client.run(forget_peak)
        model.fit(X)
        peaks = list(client.run(peak).values())
    return {
        "method": method,
        "mode": found.feature_mode,
        "held": found.held_bytes // WORKERS,
        "planned": found.memory_per_worker,
        "peak": max(peaks),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=whole, default=300_000)
    parser.add_argument("--methods", nargs="+", choices=list(ESTIMATORS), default=list(METHODS))
    parser.add_argument("--modes", nargs="+", default=["auto", "recompute"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X = np.asarray(make_ringnorm(options.rows, seed=1)[0])
    found = []
    for method in options.methods:
        for mode in options.modes[: 1 if method == "kmeans" else None]:
            found.append(measure(method, X, mode))
            print(found[-1], flush=True)
    rows = [
        (
            f["method"],
            f["mode"],
            *(f"{f[name] / 1e6:.0f}" for name in ("held", "planned", "peak")),
            f"{100 * (f['planned'] / f['peak'] - 1):+.0f} %",
        )
        for f in found
    ]
    header = ("method", "features", "held, MB", "planned, MB", "peak, MB", "error")
    text = (
        f"{options.rows:,} rows of 20 columns in memory, {WORKERS} worker processes. The plan is "
        "compared with the largest peak of a worker during the fit, with what it had before.\n\n"
    )
    command = f"python pipelines/benchmarks/planner_memory.py --rows {options.rows}"
    if list(options.methods) != list(METHODS):
        command += " --methods " + " ".join(options.methods)
    write(
        "planner-memory",
        "The memory that a plan says, and what a worker takes",
        command,
        [text + table(header, rows)],
        found,
    )


if __name__ == "__main__":
    main()
