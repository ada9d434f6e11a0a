"""What all benchmarks share: fair timing, the machine's description, result files."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dmkc

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from subset_to_all import peak  # noqa: F401 - for the benchmarks

RESULTS = Path(
    os.environ.get("DMKC_RESULTS_DIR") or Path(__file__).resolve().parents[2] / "docs" / "results"
)
"""Where pages are written; DMKC_RESULTS_DIR names another folder."""
PACKAGES = ("dmkc", "numpy", "scipy", "scikit-learn", "numba", "dask", "distributed", "clarabel")


def interleaved(jobs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Median seconds of every job; jobs take turns, so that noise hits all of them alike."""
    for job in jobs.values():
        job()
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            began = time.perf_counter()
            job()
            times[name].append(time.perf_counter() - began)
    return {name: float(np.median(t)) for name, t in times.items()}


def one_by_one(
    name: str, keys: Sequence[str], measure: Callable[[str], Any], setting: str = ""
) -> tuple[dict[str, Any], list[str]]:
    """What `measure` finds for every key, and the keys whose data set is not there.

    Finished keys are kept in <name>.partial.json until the page is written, so that a run that was
    stopped goes on where it was; results of another `setting` are made again.
    """
    path = _partial(name)
    kept = json.loads(path.read_text()) if path.exists() else {}
    done = kept["done"] if kept.get("setting") == setting else {}
    absent = []
    for key in keys:
        if key in done:
            continue
        try:
            done[key] = measure(key)
        except FileNotFoundError as problem:
            absent.append(key)
            print(f"{key} is left out: {problem}", flush=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"setting": setting, "done": done}))
        print(key, json.dumps(done[key]), flush=True)
    if len(absent) == len(keys):
        raise SystemExit("None of the data sets is there: set DMKC_DATA_DIR to their folder.")
    return {key: done[key] for key in keys if key in done}, absent


def left_out(absent: Sequence[str]) -> list[str]:
    """A sentence about data sets that were not there, if any."""
    return [f"Not in the folder of data sets, so left out: {', '.join(absent)}."] if absent else []


def _partial(name: str) -> Path:
    return RESULTS / f"{name}.partial.json"


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    model = "unknown processor"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            x.split(":", 1)[1].strip()
            for x in cpuinfo.read_text().splitlines()
            if "model name" in x
        ]
        model = names[0] if names else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": f"{model}, {len(os.sched_getaffinity(0))} cores used",
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "versions": ", ".join(f"{p} {version(p)}" for p in PACKAGES),
        "date": time.strftime("%Y-%m-%d"),
    }


def version(package: str) -> str:
    if package == "dmkc":
        return dmkc.__version__
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def write(name: str, title: str, command: str, parts: Sequence[str], data: Any) -> None:
    """Write docs/results/<name>.md and .json, and print the former."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    about = machine()
    text = "\n\n".join(
        [
            f"# {title}",
            f"Made by `{command}`.",
            "\n".join(f"- {key}: {value}" for key, value in about.items()),
            *parts,
        ]
    )
    (RESULTS / f"{name}.md").write_text(text + "\n")
    (RESULTS / f"{name}.json").write_text(
        json.dumps({"machine": about, "data": data}, indent=1) + "\n"
    )
    _partial(name).unlink(missing_ok=True)
    print(text)
