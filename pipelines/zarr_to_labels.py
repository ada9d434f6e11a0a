"""Rows in a Zarr store to labels in a Zarr store, on a Dask cluster.

    python pipelines/zarr_to_labels.py rows.zarr --clusters 3 --out run \\
        --cluster cluster_configs/slurm.yaml
    python pipelines/zarr_to_labels.py --demo

The cluster is what a YAML file says (see cluster_configs); without one, the threads of this
process.  Labels are computed and written by the workers.  The fit keeps a record in the folder, so
that the same command goes on after a kill; a folder that is finished is left alone.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

import dmkc
import dmkc.clusters
from dmkc.clusterers.registry import ESTIMATORS
from dmkc.datasets import make_ringnorm

HERE = {"kind": "threads"}


def run(rows: str, out: Path, estimator: Any, cluster: Any = None) -> dict[str, Any]:
    """Fit `rows`, write model and labels to `out`, and return what is worth knowing."""
    result = out / "result.json"
    if result.exists():
        return json.loads(result.read_text())
    began = time.perf_counter()
    with dmkc.clusters.open(cluster or HERE) as client:
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        with dmkc.checkpoint(out):
            model = estimator.fit(rows)
        model.save(out / "model.zarr", overwrite=True)
        model.labels_.to_zarr(str(out / "labels.zarr"), overwrite=True)
        labels = da.from_zarr(str(out / "labels.zarr"))
        sizes = np.asarray(da.bincount(labels, minlength=int(model.n_clusters)))
    found = {
        "rows": len(labels),
        "cluster sizes": sizes.tolist(),
        "passes over the rows": int(model.n_scans_),
        "workers": workers,
        "seconds": round(time.perf_counter() - began, 2),
    }
    result.write_text(json.dumps(found, indent=1) + "\n")
    return found


def demo(folder: Path) -> tuple[str, Path]:
    """A small store to try it on."""
    X, _ = make_ringnorm(20_000, seed=0, chunks=5_000)
    X.to_zarr(str(folder / "rows.zarr"))
    return str(folder / "rows.zarr"), folder / "run"


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="?", help='Zarr array, or "store.zarr::name" in a group')
    parser.add_argument(
        "--out", type=Path, default=Path("zarr-to-labels"), help="folder of results"
    )
    parser.add_argument("--clusters", type=int, default=2)
    parser.add_argument("--method", choices=sorted(ESTIMATORS), default="mkc")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cluster", metavar="CONFIG", help="YAML file: where to run")
    parser.add_argument("--demo", action="store_true", help="20,000 generated rows, in seconds")
    options = parser.parse_args(words)
    if not options.demo and options.rows is None:
        parser.error("name a Zarr store of rows, or try --demo")
    estimator = ESTIMATORS[options.method](options.clusters, random_state=options.seed)
    if options.demo:
        with tempfile.TemporaryDirectory() as folder:
            found = run(*demo(Path(folder)), estimator, options.cluster)
    else:
        found = run(options.rows, options.out, estimator, options.cluster)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
