"""Settings of multiple kernel clustering chosen without labels, beside k-means and the best one.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/selection.py [--sets iris ...] [--again]

The choice is `dmkc.select(X, MultipleKernelClustering(...))` with scaling, kernels, C and balance
open; auto.py measures the choice among all methods, which has the same rule.  True labels are used
to measure only.  "oracle" is the best candidate of the pool by the true labels, which no user can
choose.  `selection_sets.py` says which sets the rule was made on.
Finished sets are kept in docs/results/selection.json; --again repeats them.  With --pools the
candidates are kept in a folder, so that another rule is measured in a few minutes.
"""

from __future__ import annotations

import argparse
import json
import pickle
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from common import RESULTS, table, write
from dmkc import MultipleKernelClustering
from dmkc.metrics import accuracy
from dmkc.selection.choose import Selection
from dmkc.selection.run import gather
from selection_sets import DESIGN, OTHER, ROWS, SETS, UNSEEN, prepared

QUESTIONS = 10


def gathered(name: str, X: np.ndarray, m: int, sample_rows: int, folder: Path | None) -> Any:
    """The candidates and the seconds that they took, from the folder where they are kept."""
    kept = None if folder is None else folder / f"{name.replace('/', '_')}.pkl"
    if kept is not None and kept.exists():
        return pickle.loads(kept.read_bytes())
    began = time.perf_counter()
    balance = "auto" if m == 2 else "default"
    left_open = {"scale": "auto", "kernels": "auto", "C": "auto", "balance": balance}
    estimator = MultipleKernelClustering(m, random_state=0, **left_open)
    found = gather(X, estimator, (), sample_rows, None)
    made = {"gathered": found, "seconds": time.perf_counter() - began}
    if kept is not None:
        kept.write_bytes(pickle.dumps(made))
    return made


def measure(name: str, sample_rows: int, folder: Path | None) -> dict[str, Any]:
    X, y = prepared(name)
    m = int(y.max()) + 1
    made = gathered(name, X, m, sample_rows, folder)
    began = time.perf_counter()
    found = Selection.of(made["gathered"])
    seconds = made["seconds"] + time.perf_counter() - began

    def score(candidate: Any) -> float:
        return 100 * accuracy(y, candidate.model.label_pipeline()(X))

    refined = quality(y, found.estimator().fit(X).labels_)
    standard = quality(y, k_means(StandardScaler().fit_transform(X), m))
    plain = max(quality(y, k_means(X, m)), standard)
    asked = found.asking()
    while asked.pair is not None and len(asked.selection.answers) < QUESTIONS:
        i, j = asked.pair
        asked = asked.same() if y[i] == y[j] else asked.different()
    return {
        "rows": len(X),
        "columns": X.shape[1],
        "clusters": m,
        "candidates": len(found.candidates),
        "k-means": plain[0],
        "k-means, index": plain[1],
        "k-means, standardised": standard[0],
        "oracle": max(map(score, found.candidates)),
        "chosen": score(found.best),
        "refined": refined[0],
        "refined, index": refined[1],
        "confidence": found.confidence,
        "alternatives": [score(c) for c in found.alternatives],
        "asked": score(asked.selection.best),
        "seconds": seconds,
    }


def k_means(X: np.ndarray, m: int) -> np.ndarray:
    return KMeans(m, n_init=10, random_state=0).fit_predict(X)


def quality(y: np.ndarray, labels: Any) -> tuple[float, float]:
    """Accuracy by the best matching and adjusted Rand index, both in percent."""
    return 100 * accuracy(y, labels), 100 * adjusted_rand_score(y, labels)


def summary(data: dict[str, Any], names: list[str]) -> tuple[Any, ...]:
    """Means over some sets."""
    known = [data[n] for n in names if n in data]
    plain = ("k-means", "k-means, standardised", "oracle")
    mean = {key: float(np.mean([d[key] for d in known])) for key in plain}
    chosen, refined, asked = (
        float(np.mean([d[key] for d in known])) for key in ("chosen", "refined", "asked")
    )
    offered = float(np.mean([max(d["alternatives"]) for d in known]))
    return (
        len(known),
        *(f"{mean[key]:.1f}" for key in plain),
        f"{chosen:.1f} ({chosen - mean['k-means']:+.1f})",
        f"{refined:.1f} ({refined - mean['k-means']:+.1f})",
        f"{mean['oracle'] - chosen:.1f}",
        f"{mean['oracle'] - offered:.1f}",
        f"{mean['oracle'] - asked:.1f}",
        *(
            f"{np.mean([d[key] for d in known]):.1f}"
            for key in ("k-means, index", "refined, index")
        ),
    )


def text_of(data: dict[str, Any]) -> list[str]:
    header = ("sets", "number", "k-means", "k-means, standardised", "oracle", "chosen")
    header += ("refined on all rows",)
    header += ("regret", "regret of the best alternative", f"regret after {QUESTIONS} answers")
    header += ("Rand index of k-means", "Rand index, refined")
    groups = {"design": DESIGN, "other": OTHER, "unseen": list(UNSEEN), "all": list(SETS)}
    groups["two clusters"] = [n for n in data if data[n]["clusters"] == 2]
    groups["several clusters"] = [n for n in data if data[n]["clusters"] > 2]
    means = [(name, *summary(data, g)) for name, g in groups.items() if any(n in data for n in g)]
    rows = [
        (
            name + (" (design)" if name in DESIGN else " (unseen)" if name in UNSEEN else ""),
            f"{d['rows']:,} x {d['columns']:,}, {d['clusters']}",
            d["candidates"],
            *(f"{d[key]:.1f}" for key in ("k-means", "oracle", "chosen", "refined")),
            f"{d['confidence']:.2f}",
            ", ".join(f"{a:.1f}" for a in d["alternatives"]),
            f"{d['asked']:.1f}",
            f"{d['seconds']:.0f}",
        )
        for name, d in data.items()
    ]
    unseen = "**unseen**: sets that no rule was ever tried on. "
    unseen = unseen if any(n in UNSEEN for n in data) else ""
    sure = [n for n in data if data[n]["confidence"] >= 0.8]
    worst = ", ".join(f"{n} {data[n]['refined'] - data[n]['k-means']:+.1f}" for n in sure)
    columns = ("data", "rows x columns, clusters", "candidates", "k-means", "oracle", "chosen")
    columns += ("refined", "confidence", "alternatives", f"after {QUESTIONS} answers", "seconds")
    return [
        "Accuracy in % by best matching, means over sets; regret is what the oracle has more.\n\n"
        + table(header, means),
        f"Confidence of at least 0.8 ({len(sure)} sets), refined less k-means: {worst}.",
        table(columns, rows),
        "**k-means**: scikit-learn, n_init=10, the better (by the true labels) of raw and "
        "standardised columns, which no user can choose either. **oracle**: the best candidate by "
        "the true labels. **chosen**: the best of `dmkc.select`. **design**: every other set by "
        "name; the rule, that of [auto.md](auto.md), was made on these, for candidates of all "
        "methods. **other**: the rest of those sets, whose means an older rule had been compared "
        f"on. {unseen}**Rand index**: "
        "adjusted for chance, in %; accuracy rewards a cluster that takes nearly all rows where "
        "one class does (page blocks, japanese vowels, wilt), the index does not. Sets of more "
        f"than {ROWS:,} rows are sampled to that. **seconds**: of `dmkc.select`, on cores that "
        "were shared with other programs; read them as an order of magnitude.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--again", action="store_true", help="repeat finished sets")
    parser.add_argument("--sample-rows", type=int, default=1000)
    parser.add_argument("--pools", type=Path, metavar="FOLDER", help="where candidates are kept")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    stored = RESULTS / "selection.json"
    data = json.loads(stored.read_text())["data"] if stored.exists() else {}
    command = "DMKC_DATA_DIR=... python pipelines/benchmarks/selection.py"
    command += f" --sample-rows {options.sample_rows}"
    command += "" if options.pools is None else " --pools ..."
    if options.pools is not None:
        options.pools.mkdir(parents=True, exist_ok=True)
    todo = [name for name in options.sets if options.again or name not in data]
    data = {name: found for name, found in data.items() if name not in todo}
    for name in todo:
        data[name] = measure(name, options.sample_rows, options.pools)
        data = {n: data[n] for n in SETS if n in data}
        write("selection", "Choosing without labels", command, text_of(data), data)
    if not todo:
        write("selection", "Choosing without labels", command, text_of(data), data)


if __name__ == "__main__":
    main()
