"""What the benchmarks of neighbour graphs share: fits as processes, kept line by line."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from dask.utils import parse_bytes

from dmkc.metrics import all_metrics

HERE = Path(__file__).resolve().parent
MEASURES = ("accuracy", "majority_accuracy", "normalized_mutual_info", "adjusted_rand_index")
PEERS = ("secuer", "genie", "dask-ml")
"""Methods that may have a virtual environment of their own."""
TOO_LONG, NO_MEMORY, MISSING = "too long", "out of memory", "not installed"
REASONS = {
    "ModuleNotFoundError: ": MISSING,
    "ImportError: cannot import name": MISSING,
    "MemoryError": NO_MEMORY,
}
"""What the last line of a failed process contains, and what it means."""

Cell = dict[str, Any]


class Cells:
    """Finished fits, one JSON line each, so that a run that was stopped goes on where it was."""

    def __init__(self, path: Path, key: Sequence[str]) -> None:
        self.path, self.key = path, tuple(key)
        lines = path.read_text().splitlines() if path.exists() else []
        self.found = {self._of(cell): cell for cell in map(json.loads, filter(None, lines))}

    def _of(self, cell: Cell) -> tuple[Any, ...]:
        return tuple(cell[name] for name in self.key)

    def __contains__(self, cell: Cell) -> bool:
        return self._of(cell) in self.found

    def add(self, cell: Cell) -> None:
        self.found[self._of(cell)] = cell
        print(json.dumps(cell), flush=True)
        if cell.get("failed") == MISSING:  # it may be there next time
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(cell) + "\n")

    def where(self, **values: Any) -> list[Cell]:
        """The fits that have these values."""
        wanted = values.items()
        return [cell for cell in self.found.values() if wanted <= cell.items()]

    def is_hopeless(self, method: str, size: int, **values: Any) -> bool:
        """Whether a method is not there, or has failed for want of time or memory on less."""
        known = self.where(method=method, **values)
        beyond = [c["size"] for c in known if c.get("failed") in (TOO_LONG, NO_MEMORY)]
        return bool(self.where(method=method, failed=MISSING)) or size >= min(beyond, default=1e99)


def in_process(command: Sequence[Any], limit: float, memory: str | None = None) -> Any:
    """What the last line that a process prints says, or why there is none."""

    def bound() -> None:
        if memory is not None:
            size = int(parse_bytes(memory))
            resource.setrlimit(resource.RLIMIT_AS, (size, size))

    words = [str(word) for word in command]
    try:
        said = subprocess.run(
            words, capture_output=True, text=True, timeout=limit, preexec_fn=bound
        )
    except subprocess.TimeoutExpired:
        return {"failed": TOO_LONG, "seconds": limit}
    if said.returncode == 0:
        return json.loads(said.stdout.splitlines()[-1])
    last = (said.stderr.strip().splitlines() or [f"ended with {said.returncode}"])[-1]
    known = (why for words, why in REASONS.items() if words in last)
    return {"failed": next(known, last[:200])}


def fit_in_memory(
    method: str,
    rows: Path,
    truth: np.ndarray,
    seeds: Sequence[int],
    limit: float,
    peers: str = sys.executable,
    memory: str | None = None,
) -> list[Cell]:
    """Seconds, peak memory and measures of fits to the rows of a file, one for each seed."""
    python = peers if method in PEERS else sys.executable
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "labels.npy"
        clusters = int(truth.max()) + 1
        listed = ",".join(map(str, seeds))
        command = [python, HERE / "graphs_fit.py", method, rows, clusters, listed, out]
        found = in_process(command, limit * len(seeds), memory)
        if isinstance(found, dict):
            return [found] * len(seeds)
        pairs = zip(found, np.load(out), strict=True)
        return [cell | measures(truth, labels) for cell, labels in pairs]


def measures(truth: Any, labels: Any) -> Cell:
    """The measures of the tables, in %."""
    found = all_metrics(truth, labels)
    return {name: 100 * found[name] for name in MEASURES}


def failures(cells: Cells, names: Sequence[str]) -> str:
    """A line for every kind of failure of every method."""
    said: dict[tuple[str, str], list[str]] = {}
    for cell in cells.found.values():
        if "failed" in cell:
            where = ", ".join(str(cell[name]) for name in names)
            said.setdefault((cell["method"], cell["failed"]), []).append(where)
    lines = [
        f"- {method}: {why}" + ("" if why == MISSING else f" ({'; '.join(places)})")
        for (method, why), places in said.items()
    ]
    return "\n".join(lines) or "None."
