"""A fit on a scheduler's workers that waits for a file before two of its scans.

    python fit_across_hosts.py ADDRESS FOLDER

It says that it has come to a scan by writing FOLDER/reached-N, goes on when FOLDER/go-N is there,
and writes its labels, and the workers of every scan, to FOLDER.  It waits for two workers at its
beginning and at the last of these scans.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
from distributed import Client

from dmkc import MultipleKernelClustering
from dmkc.scan import cluster

STOPS, WORKERS = (3, 5), 2


def rows(n: int = 30_000) -> np.ndarray:
    rng = np.random.default_rng(0)
    side = rng.random(n) < 0.4
    return rng.normal(size=(n, 4)) + np.where(side, 1.5, -1.0)[:, None]


def estimator() -> MultipleKernelClustering:
    return MultipleKernelClustering(random_state=1, rank=10, sample_rows=500, dtype="float32")


def main(address: str, folder: Path) -> None:
    scan, homes = cluster.ClusterEngine.scan, []

    def watched(self, kind, blocks, grid):
        number = len(homes) + 1
        if number in STOPS:
            (folder / f"reached-{number}").touch()
            while not (folder / f"go-{number}").exists():
                time.sleep(0.05)
        if number == STOPS[-1]:
            self.client.wait_for_workers(WORKERS, timeout=60)
        found = scan(self, kind, blocks, grid)
        homes.append(sorted({b.home for b in blocks if isinstance(b, cluster.Placed)}))
        return found

    cluster.ClusterEngine.scan = watched
    cluster.REFRESH_SECONDS = 0.0
    with Client(address) as client:
        client.wait_for_workers(WORKERS, timeout=60)
        model = estimator().fit(rows())
    np.save(folder / "labels.npy", np.asarray(model.labels_))
    (folder / "homes.json").write_text(json.dumps(homes))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
