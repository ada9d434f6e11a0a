"""One small scan on a cluster, compared bit by bit with the same scan in this process."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from distributed import Client

from dmkc.clusters.schema import Config
from dmkc.clusters.start import ClusterError
from dmkc.data import as_rows
from dmkc.scan.engine import Engine, ThreadEngine, open_engine
from dmkc.scan.survey import SurveyScan, sample_positions

ROWS, COLUMNS = 50_000, 16


@dataclass(frozen=True)
class Smoke:
    """What the trial scan found."""

    description: str
    """Where it ran."""
    seconds: float
    """Time of the second scan, when everything is in place."""


def one_worker(config: Config) -> Config:
    """The same cluster with a single worker (job)."""
    changed = {
        "adapt": None,
        **{name: 1 for name in ("jobs", "workers", "workers_per_host") if name in config},
    }
    known = {name: value for name, value in changed.items() if name in config}
    return replace(config, settings={**config.settings, **known})


def smoke_scan(client: Client) -> Smoke:
    """Run the trial; raises ClusterError when the cluster computes something else."""
    X = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
    here, _ = _survey(ThreadEngine(), X)
    engine = open_engine(client)
    there, seconds = _survey(engine, X)
    same = all(
        np.array_equal(getattr(here, name), getattr(there, name))
        for name in ("mean", "deviation", "low", "high", "sample")
    )
    if not same:
        raise ClusterError(
            "The workers computed other numbers than this process; do all machines have the same "
            "processor and the same versions?"
        )
    return Smoke(engine.description, seconds)


def _survey(engine: Engine, X: np.ndarray) -> tuple[Any, float]:
    rows = as_rows(X)
    grid = engine.grid(ROWS, COLUMNS)
    blocks = engine.bring(rows.blocks(grid.block_rows))
    scan = SurveyScan(sample_positions(ROWS, 100, 0))
    engine.scan(scan, blocks, grid)
    began = time.perf_counter()
    found = engine.scan(scan, blocks, grid)
    return found, time.perf_counter() - began
