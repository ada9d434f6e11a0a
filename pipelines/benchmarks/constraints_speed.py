"""Time of constrained clustering against the numbers of rows and of pairs.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/constraints_speed.py \
        [--rows 100000 1000000 4000000] [--pairs 100 10000 1000000] [--peers PYTHON --limit SECONDS]

Generated rows (ringnorm, 20 columns).  `--peers` adds MPCKMeans on letter (U against the rest,
20,000 rows) for comparison.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np

from common import table, write
from constraints_data import SETS, in_unit_range, scores
from constraints_table import own_draw, peer_draws
from dmkc import MarginDistributionClustering
from dmkc.constraints import check_labeling, random_pairs
from dmkc.datasets import make_ringnorm
from dmkc.metrics import adjusted_rand_index


def timed(X: Any, y: np.ndarray, n_pairs: int) -> dict[str, Any]:
    must, cannot = random_pairs(y, n_pairs, random_state=0)
    began = time.perf_counter()
    model = MarginDistributionClustering(must_link=must, cannot_link=cannot, random_state=0).fit(X)
    seconds = time.perf_counter() - began
    labels = np.asarray(model.labels_)
    return {
        "rows": len(y),
        "pairs": n_pairs,
        "constrained rows": len(model.constrained_rows_),
        "seconds": seconds,
        "scans": model.n_scans_,
        "violated": len(check_labeling(labels, must, cannot)),
        "ARI": adjusted_rand_index(y, labels),
    }


def beside_peer(python: str, limit: int) -> list[dict[str, Any]]:
    X, y = SETS["letter U"]()
    X = in_unit_range(X)
    pairs = random_pairs(y, 100, random_state=0)
    own_draw(X, *pairs, 0, {})  # compiled before it is timed
    labels, seconds = own_draw(X, *pairs, 0, {})
    found = [{"method": "dmkc", "seconds": seconds, **scores(y, labels, *pairs), "said": ""}]
    labels, seconds, said = peer_draws(python, X, [pairs], [0], "MPCKMeans", limit)[0]
    row: dict[str, Any] = {"method": "MPCKMeans", "seconds": seconds, "said": said}
    return [*found, row if labels is None else {**row, **scores(y, labels, *pairs)}]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", type=int, default=[100_000, 1_000_000, 4_000_000])
    parser.add_argument("--pairs", nargs="+", type=int, default=[100, 10_000, 1_000_000])
    parser.add_argument("--peers", help="Python that has active-semi-supervised-clustering")
    parser.add_argument("--limit", type=int, default=300, help="seconds for the peer")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    small = make_ringnorm(20_000, seed=1)
    timed(np.asarray(small[0]), np.asarray(small[1]), 50)  # compiled before it is timed
    found = []
    for n in options.rows:
        X, y = (np.asarray(part) for part in make_ringnorm(n, seed=0))
        counts = options.pairs if n == max(options.rows) else options.pairs[:1]
        for count in counts:
            found.append(timed(X, y, count))
            print(found[-1], flush=True)
    shown = ("rows", "pairs", "constrained rows", "seconds", "scans", "violated", "ARI")
    rows = [
        [f"{r[k]:.2f}" if isinstance(r[k], float) else f"{r[k]:,}" for k in shown] for r in found
    ]
    parts = ["Rows in memory, 20 float32 columns, rank 100.\n\n" + table(shown, rows)]
    data: dict[str, Any] = {"generated": found}
    if options.peers:
        data["letter U"] = beside_peer(options.peers, options.limit)
        peer_rows = [
            (
                r["method"],
                f"{r['seconds']:.1f}",
                f"{r['ARI']:.3f}" if "ARI" in r else "",
                "" if r["said"] in ("", "fitted") else r["said"],
            )
            for r in data["letter U"]
        ]
        heading = "letter, U against the rest, 20,000 rows x 16, 100 pairs\n\n"
        parts.append(heading + table(("method", "seconds", "ARI", "note"), peer_rows))
    words = [
        "--rows",
        *map(str, options.rows),
        "--pairs",
        *map(str, options.pairs),
        *(["--peers ...", f"--limit {options.limit}"] if options.peers else []),
    ]
    command = "DMKC_DATA_DIR=... python pipelines/benchmarks/constraints_speed.py "
    title = "Time of clustering with constraints"
    write("constraints-speed", title, command + " ".join(words), parts, data)


if __name__ == "__main__":
    main()
