"""One table of all methods on all data sets: accuracy and seconds.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/all_methods.py --folder kept \\
        [--sets rings ...] [--methods select ...] [--again] [--page]

Every fit is one JSON line in FOLDER/cells.jsonl, so that a stopped run goes on where it was;
--again repeats the fits of the methods named (such as `--methods select --again` after a change of
the rule).  --page writes the page from what is there.  Sets that are not in the folder of data sets
are left out and named.

A method's own column uses no labels.  "oracle" is the best by the *true labels* of the method's few
settings in all_methods_fits.py, which no user can choose.
"""

from __future__ import annotations

import argparse
import json
import signal
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import all_methods_page
from all_methods_fits import METHODS, warm_up
from all_methods_sets import SETS, found
from dmkc.metrics import accuracy
from peers import quiet

ROWS = 2000
"""Larger sets are sampled, so that the methods whose cost grows with the square can take part."""
LIMIT = 60
"""Seconds after which a fit is stopped."""

Key = tuple[str, str, int]


class TooLong(Exception):
    """A fit that took longer than the limit."""


def stop(*_: Any) -> None:
    raise TooLong


def fitted(method: str, number: int, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Accuracy in % and seconds of one fit, or why there is none."""
    labels_of, settings = METHODS[method]
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    began = time.perf_counter()
    try:
        labels = labels_of(X, int(y.max()) + 1, **settings[number])
        seconds = time.perf_counter() - began
        signal.alarm(0)
        return {"accuracy": 100 * accuracy(y, labels), "seconds": seconds}
    except TooLong:
        return {"failed": f"over {LIMIT} s", "seconds": float(LIMIT)}
    except Exception as problem:
        seconds = time.perf_counter() - began
        return {"failed": f"{type(problem).__name__}: {problem}"[:200], "seconds": seconds}
    finally:
        signal.alarm(0)


def kept(path: Path) -> dict[Key, dict[str, Any]]:
    """The fits of earlier runs; of a fit that was repeated, the last."""
    lines = path.read_text().splitlines() if path.exists() else []
    cells = [json.loads(line) for line in lines if line.strip()]
    return {(c["set"], c["method"], c["setting"]): c for c in cells}


def fill(
    path: Path, rows: dict[str, Any], methods: list[str], cells: dict[Key, dict[str, Any]]
) -> None:
    """Make the fits that are missing, all methods' own settings before any other."""
    first = [(s, m, 0) for s in rows for m in methods]
    rest = [(s, m, i) for s in rows for m in methods for i in range(1, len(METHODS[m][1]))]
    for key in [*first, *rest]:
        name, method, number = key
        if key in cells or (number and cells[name, method, 0]["seconds"] > all_methods_page.SLOW):
            continue
        cells[key] = {"set": name, "method": method, "setting": number}
        cells[key] |= fitted(method, number, *rows[name])
        with path.open("a") as file:
            file.write(json.dumps(cells[key]) + "\n")
        print(json.dumps(cells[key]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", default="all-methods", help="where finished fits are kept")
    parser.add_argument("--rows", type=int, default=ROWS, help="larger sets are sampled to this")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--again", action="store_true", help="repeat finished fits")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    quiet()
    place = Path(options.folder)
    place.mkdir(parents=True, exist_ok=True)
    rows, absent = found(options.sets, options.rows)
    path = place / f"cells-{options.rows}.jsonl"
    cells = kept(path)
    if not options.page:
        warm_up()
        again = {k for k in cells if options.again and k[0] in rows and k[1] in options.methods}
        fill(path, rows, options.methods, {k: c for k, c in cells.items() if k not in again})
    all_methods_page.write_page(kept(path), rows, absent, options.rows)


if __name__ == "__main__":
    main()
