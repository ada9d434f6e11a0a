"""Write docs/scaling.md from the measured results: python pipelines/docs/scaling.py."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs" / "scaling.md"
RESULTS = PROJECT / "docs" / "results"

sys.path.insert(0, str(PROJECT / "pipelines" / "benchmarks"))
from common import table  # noqa: E402

TEXT = """# Scaling

Which way to cluster how many rows, and what it costs. The figures on this page are taken from the
[results](results/README.md) by `python pipelines/docs/scaling.py`; they were measured on
{machine}. Ratios carry over to other machines better than seconds do.

## Where to begin

| rows | do this |
|---|---|
| they fit in memory, with some room | give `fit` the array or DataFrame |
| they fit on the disk | write them as Zarr, give `fit` the path |
| more than you want to train on | the same, with `train_rows=100_000`, and perhaps `polish=3` |
| one machine is too slow | a YAML file of [clusters](clusters.md), and the same lines |

Labels do not depend on the choice between memory, disk, threads and workers. They do depend on
`train_rows`.

## What a pass costs

A fit is some tens of passes over a sample and about ten over all rows. A pass reads every kernel
column once; here it is compared with reading the same numbers and adding them up
([speed](results/speed.md)):

{scans}

Twice the rows take twice the time: from the second to the third size it grows as
n^{growth_threads:.2f} on threads and n^{growth_processes:.2f} on processes.

## A whole fit, beside others

{fits}

Rows in memory, ringnorm, two clusters ([speed](results/speed.md)).

## Train on a part, label everything

From one Zarr store to another, training on 100,000 rows ([labelling](results/labelling.md)):

{growth}

Workers need nearly the same memory whatever the number of rows is. What training on a part changes:
over the {n_subsets} comparisons of [subsets](results/subsets.md), between {lowest:+.1f} and
{highest:+.1f} points of accuracy, with a median of {middle:+.1f}. A part can be better by luck of
the start; it can never hold a cluster too small to be drawn.

## Features that do not fit into memory

Kernel columns are often wider than the rows: about `rank` x kernels numbers each. Where they do not
fit into the workers' memory they are made anew on every pass (`recompute`) or written once to a
temporary store (`store`); `feature_mode="auto"` decides, and makes them anew wherever that is as
fast as reading them ([features](mkc.md#features)). Both give the same bits. With features
eight times the memory of all workers ([larger than memory](results/larger-than-memory.md)):

{larger}

## What to turn

| parameter | smaller or fewer | larger or more |
|---|---|---|
| `rank` | faster passes, less memory; coarse kernels | follows finer structure |
| kernels in the bank | faster passes | more shapes can be found |
| `train_rows` | shorter fits; small clusters may be missed | nearer to the fit on all rows |
| `sample_rows` | starts are found faster | better starts |
| `tol` | labels settle further | fewer passes |
| chunks of the store | many small reads | few large reads, which a worker must have room for |
| workers | | shorter passes, until the round trip through the scheduler dominates |

On one machine threads are a good choice: they share memory and need no scheduler, and in the tables
above worker processes are no faster.

## Many workers

What a scan of {paper_rows:,} rows on {paper_workers} workers would cost beside its work, on paper,
from scans that do nothing ([scheduler load](results/scheduler-load.md)):

{beside}
"""


def page() -> str:
    """The text, with figures from the results."""
    speed, labelling, subsets, larger = (
        _data(name) for name in ("speed", "labelling", "subsets", "larger-than-memory")
    )
    load = _data("scheduler-load")
    lost = [_mean(found["subset"]) - _mean(found["all rows"]) for found in subsets.values()]
    about = json.loads((RESULTS / "speed.json").read_text())["machine"]
    return TEXT.format(
        machine=f"{about['processor']} and {about['memory']} of memory",
        scans=_scans(speed["scan"]),
        growth_threads=speed["scan"]["growth threads"],
        growth_processes=speed["scan"]["growth processes"],
        fits=_fits(speed["fit"]),
        growth=_growth(labelling["growth"]),
        n_subsets=len(lost),
        lowest=min(lost),
        highest=max(lost),
        middle=statistics.median(lost),
        larger=_larger(larger),
        paper_rows=load["paper"]["rows"],
        paper_workers=load["paper"]["workers"],
        beside=_beside(load["derived"]),
    )


def _data(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["data"]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _scans(found: dict[str, Any]) -> str:
    rows = [
        (
            f"{int(key.split()[1]):,}",
            key.split()[0],
            f"{1000 * each['scan']:.0f}",
            f"{each['scan'] / each['read']:.1f}x",
        )
        for key, each in found.items()
        if isinstance(each, dict)
    ]
    return table(("rows", "on", "a pass, ms", "against reading alone"), rows)


def _fits(found: dict[str, Any]) -> str:
    rows = []
    for key, (seconds, _, right) in found.items():
        method, _, count = key.rpartition(" ")
        rows.append(
            (f"{int(count):,}", method, f"{statistics.median(seconds):.1f}", f"{100 * right:.1f}")
        )
    return table(("rows", "method", "fit, s", "accuracy, %"), rows)


def _growth(found: list[dict[str, Any]]) -> str:
    rows = [
        (
            f"{each['rows']:,}",
            "all rows, from there" if each["polish"] else "the subset",
            f"{each['times']['train']:.1f}",
            f"{each['times']['label']:.1f}",
            f"{100 * each['accuracy']:.2f}",
            f"{max(each['worker peaks']) / 1e6:.0f}",
        )
        for each in found
    ]
    head = ("rows", "trained on", "train, s", "label, s", "accuracy, %", "peak of a worker, MB")
    return table(head, rows)


def _larger(found: list[dict[str, Any]]) -> str:
    rows = [
        (
            each["mode"],
            f"{each['fit']:.0f}",
            f"{each['labels']:.0f}",
            each["scans"],
            f"{max(each['peaks']) / 1e6:.0f}",
        )
        for each in found
    ]
    return table(("mode", "fit, s", "labels, s", "passes", "peak of a worker, MB"), rows)


def _beside(found: list[dict[str, Any]]) -> str:
    names = {"held": "held in memory", "read": "read anew"}
    rows = [
        (names[each["kind"]], f"{each['work']:.1f}", f"{each['beside']:.1f}")
        for each in found
        if "work" in each
    ]
    return table(("blocks are", "work, s a scan", "beside it, s a scan"), rows)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
