"""Constrained clustering beside the published figures of margin-distribution clustering.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/constraints_table.py \
        [--draws 10] [--peers PYTHON] [--limit SECONDS] [--sets NAME ...]

Table 2 of Zhang, Li and Jin (2022): 100 random pairs, features in [0, 1].  Draws that the result
file already holds are not made again, so that a run can be stopped and extended.  `--peers` is the
Python of an environment with active-semi-supervised-clustering.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from common import RESULTS, left_out, table, write
from constraints_data import INDICES, PUBLISHED, SETS, in_unit_range, scores, summary
from dmkc import MarginDistributionClustering
from dmkc.constraints import check_labeling, random_pairs

NAME = "constraints"
PAIRS = 100
OWN = {
    "dmkc": {},
    "dmkc, three kernels": {"kernels": ["linear", "polynomial", "gaussian:0.5"]},
}
PEERS = {"COPKMeans": "COPKMeans", "PCKMeans": "PCKMeans", "MPCKMeans": "MPCKMeans"}
EXPLAINED = """
{pairs} random pairs, features in [0, 1], mean ± standard deviation of {draws} draws, the same for
all methods; one configuration for all sets, no labels used but those in the pairs. **ARI free**: on
rows in no pair (leukemia has a handful, so there it says little). **smaller**: share of the second
largest cluster. **one cluster**: what all rows in one cluster score. **dmkc**: the defaults (one
Gaussian kernel). Peers: active-semi-supervised-clustering 0.0.1; a peer's draws that ended in an
error of its own are left out and counted. **seconds** are not measured alone and only give an
order of magnitude. **published**: Zhang, Li and Jin (2022), table 2;
parameters chosen by cross-validation, 30 draws. Data sets of that table that are not here: dbworld,
fruitfly, pizzaCutter, pieChart, pc4, hivaAgnostic.
""".strip()
Store = dict[str, dict[str, dict[str, Any]]]


def own_draw(X: np.ndarray, must: np.ndarray, cannot: np.ndarray, draw: int, params: dict) -> tuple:
    began = time.perf_counter()
    model = MarginDistributionClustering(
        must_link=must, cannot_link=cannot, scale="minmax", random_state=draw, **params
    ).fit(X)
    if len(check_labeling(model.labels_, must, cannot)):
        raise AssertionError("A constraint was violated.")
    return model.labels_, time.perf_counter() - began


def run_set(name: str, draws: int, peers: str | None, limit: int, done: dict[str, Any]) -> None:
    """Fill in what is missing of one data set."""
    X, y = SETS[name]()
    X = in_unit_range(X)
    pairs = [random_pairs(y, PAIRS, random_state=draw) for draw in range(draws)]
    done.setdefault("about", {"rows": len(X), "columns": X.shape[1]})

    def add(method: str, draw: int, labels: np.ndarray, seconds: float) -> None:
        row = {**scores(y, labels, *pairs[draw]), "seconds": seconds}
        done.setdefault(method, {})[str(draw)] = row

    for draw in range(draws):
        for method, params in OWN.items():
            if str(draw) not in done.get(method, {}):
                add(method, draw, *own_draw(X, *pairs[draw], draw, params))
        if str(draw) not in done.get("k-means", {}):
            began = time.perf_counter()
            labels = KMeans(2, n_init=10, random_state=draw).fit(X).labels_
            add("k-means", draw, labels, time.perf_counter() - began)
        if str(draw) not in done.get("one cluster", {}):
            add("one cluster", draw, np.zeros(len(y), int), 0.0)
    if peers is not None:
        for method in PEERS:
            before = done.setdefault(method, {})
            missing = [d for d in range(draws) if str(d) not in before]
            if missing and "too long" not in before:
                found = peer_draws(peers, X, pairs, missing, PEERS[method], limit)
                for draw, (labels, seconds, said) in found.items():
                    if labels is not None:
                        add(method, draw, labels, seconds)
                    elif said.startswith("over"):
                        before["too long"] = said
                    else:
                        before[str(draw)] = {"failed": said}


def peer_draws(
    python: str, X: np.ndarray, pairs: list, draws: list[int], name: str, limit: int
) -> dict[int, tuple]:
    """A peer's labels of some draws."""
    with tempfile.TemporaryDirectory() as folder:
        job, out = Path(folder) / "job.npz", Path(folder) / "out.npz"
        lists = {
            f"{kind}_{d}": pairs[d][k] for d in draws for k, kind in enumerate(("must", "cannot"))
        }
        np.savez(job, X=X, names=[name], draws=draws, **lists)
        script = Path(__file__).with_name("constraints_peers.py")
        subprocess.run([python, str(script), str(job), str(out), "--limit", str(limit)], check=True)
        found = np.load(out, allow_pickle=False)
        answers = {}
        for d in draws:
            key = f"{name}_{d}"
            if f"{key}_said" in found:
                said, seconds = str(found[f"{key}_said"]), float(found[f"{key}_seconds"])
                labels = found[f"{key}_labels"] if said == "fitted" else None
                answers[d] = labels, seconds, said
    return answers


def lines(data: Store, draws: int) -> list[tuple]:
    rows = []
    for name, done in data.items():
        about = done["about"]
        shown = f"**{name}** ({about['rows']:,} x {about['columns']:,})"
        if name in PUBLISHED:
            printed = [f"{v:.3f}" for v in PUBLISHED[name]]
            rows.append((shown, "published", *printed, "", "", "", ""))
        for method in ("one cluster", "k-means", *PEERS, *OWN):
            found = done.get(method, {})
            every = [v for k, v in found.items() if k.isdigit() and int(k) < draws]
            fitted = [v for v in every if "failed" not in v]
            notes = sorted({v["failed"] for v in every if "failed" in v})
            notes += [found["too long"]] if "too long" in found else []
            if len(fitted) < draws:
                notes = [f"{len(fitted)} of {draws} draws", *notes]
            if fitted:
                seconds = f"{np.median([v['seconds'] for v in fitted]):.2f}"
                cells = [*summary(fitted), seconds]
            elif found:
                cells = [""] * 7
            else:
                continue
            rows.append((shown, method + (f" ({'; '.join(notes)})" if notes else ""), *cells))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--peers", help="Python that has active-semi-supervised-clustering")
    parser.add_argument("--limit", type=int, default=60, help="seconds for one fit of a peer")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    stored = RESULTS / f"{NAME}.json"
    data: Store = json.loads(stored.read_text())["data"] if stored.exists() else {}
    absent = []
    for name in options.sets:
        done = data.get(name, {})
        try:
            run_set(name, options.draws, options.peers, options.limit, done)
        except FileNotFoundError as problem:
            absent.append(name)
            print(f"{name} is left out: {problem}", flush=True)
            continue
        data[name] = done
        report({k: data[k] for k in SETS if k in data}, options.draws, absent)
    if len(absent) == len(options.sets):
        raise SystemExit("None of the data sets is there: set DMKC_DATA_DIR to their folder.")


def report(data: Store, draws: int, absent: list[str]) -> None:
    text = table(("data", "method", *INDICES, "seconds"), lines(data, draws))
    text += "\n\n" + EXPLAINED.format(pairs=PAIRS, draws=draws)
    command = f"DMKC_DATA_DIR=... python pipelines/benchmarks/constraints_table.py --draws {draws}"
    parts = [text, *left_out(absent)]
    write(NAME, "Clustering with 100 random pairs", command + " --peers ...", parts, data)


if __name__ == "__main__":
    main()
