"""The choice without labels (`dmkc.select`) beside k-means and the best candidate.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/selection.py [--sets iris ...] [--again]

True labels are used to measure only.  "oracle" is the best candidate of the pool by the true
labels, which no user can choose.  The rule was made on every other set by name (DESIGN), with the
means of the rest (OTHER) in view; the UNSEEN sets were added after it was fixed.  Finished sets
are kept in docs/results/selection.json; --again repeats them.
With --pools the candidates are kept in a folder, so that another rule is measured in a minute.
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
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from accuracy import digits, folder, k_means, mnist
from common import RESULTS, table, write
from dmkc import MultipleKernelClustering
from dmkc.datasets import make_moons, make_rings
from dmkc.metrics import accuracy
from dmkc.selection.choose import Selection
from dmkc.selection.run import gather

ROWS = 1500
"""Larger sets are sampled: the choice is made on a sample anyway."""
QUESTIONS = 10

SEEN: dict[str, Any] = {
    "a9a": lambda: folder("a9a"),
    "australian": lambda: folder("australian"),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "breast wisconsin": lambda: folder("breast_wisconsin_original"),
    "digits17": lambda: digits(1, 7),
    "digits27": lambda: digits(2, 7),
    "digits38": lambda: digits(3, 8),
    "digits89": lambda: digits(8, 9),
    "haberman": lambda: folder("haberman"),
    "heart": lambda: folder("heart_statlog"),
    "house votes": lambda: folder("housevotes84"),
    "ionosphere": lambda: folder("ionosphere"),
    "japanese vowels": lambda: folder("japanese_vowels"),
    "kr-vs-kp": lambda: folder("kr_vs_kp"),
    "letterAB": lambda: folder("letter", "A", "B"),
    "letterUV": lambda: folder("letter", "U", "V"),
    "leukemia": lambda: folder("leukemia_golub"),
    "mnist17": lambda: mnist(1, 7),
    "mnist38": lambda: mnist(3, 8),
    "mnist49": lambda: mnist(4, 9),
    "moons": lambda: make_moons(800, noise=0.12),
    "musk": lambda: folder("musk_clean1"),
    "prostate": lambda: folder("prostate_ge"),
    "ringnorm": lambda: folder("ringnorm"),
    "rings": lambda: make_rings(800, noise=0.08),
    "satellite, 2": lambda: folder("satellite", "red soil", "cotton crop"),
    "semeion35": lambda: folder("semeion", "3", "5"),
    "sonar": lambda: folder("sonar"),
    "spectf": lambda: folder("spectf"),
    "svmguide1": lambda: folder("svmguide1"),
    "vehicle, bus/van": lambda: folder("vehicle", "bus", "van"),
    "waveform12": lambda: folder("waveform40", "1", "2"),
    "wilt": lambda: folder("wilt"),
    "digits": lambda: digits(*range(10)),
    "digits0689": lambda: digits(0, 6, 8, 9),
    "digits1279": lambda: digits(1, 2, 7, 9),
    "iris": lambda: load_iris(return_X_y=True),
    "letterABCD": lambda: folder("letter", *"ABCD"),
    "mnist": lambda: mnist(*range(10)),
    "mnist01234": lambda: mnist(0, 1, 2, 3, 4),
    "satellite": lambda: folder("satellite"),
    "semeion": lambda: folder("semeion"),
    "vehicle": lambda: folder("vehicle"),
    "waveform": lambda: folder("waveform40"),
    "wine": lambda: load_wine(return_X_y=True),
    "ar10p": lambda: folder("ar10p"),
    "covertype": lambda: folder("covertype"),
    "digits35": lambda: digits(3, 5),
    "digits49": lambda: digits(4, 9),
    "digits345": lambda: digits(3, 4, 5),
    "letterCG": lambda: folder("letter", "C", "G"),
    "letterIJ": lambda: folder("letter", "I", "J"),
    "mnist27": lambda: mnist(2, 7),
    "mnist56": lambda: mnist(5, 6),
    "page blocks": lambda: folder("page_blocks"),
    "semeion17": lambda: folder("semeion", "1", "7"),
    "waveform01": lambda: folder("waveform40", "0", "1"),
    "yale faces, 10": lambda: _first_classes(folder("yaleb_32x32"), 10),
}
DESIGN, OTHER = sorted(SEEN)[::2], sorted(SEEN)[1::2]
UNSEEN: dict[str, Any] = {
    "digits18": lambda: digits(1, 8),
    "digits58": lambda: digits(5, 8),
    "digits2356": lambda: digits(2, 3, 5, 6),
    "letterEF": lambda: folder("letter", "E", "F"),
    "letterOQ": lambda: folder("letter", "O", "Q"),
    "letterMNW": lambda: folder("letter", *"MNW"),
    "mnist35": lambda: mnist(3, 5),
    "mnist79": lambda: mnist(7, 9),
    "satellite, soils": lambda: folder("satellite", "grey soil", "damp grey soil"),
    "semeion49": lambda: folder("semeion", "4", "9"),
    "vehicle, opel/saab": lambda: folder("vehicle", "opel", "saab"),
    "waveform02": lambda: folder("waveform40", "0", "2"),
}
"""Sets that no rule was tried on before this one was fixed."""
SETS = SEEN | UNSEEN


def _first_classes(data: tuple[np.ndarray, np.ndarray], m: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = data
    return X[y < m], y[y < m]


def prepared(name: str) -> tuple[np.ndarray, np.ndarray]:
    X, y = SETS[name]()
    if len(X) > ROWS:
        some = np.sort(np.random.default_rng(0).choice(len(X), ROWS, replace=False))
        X, y = X[some], y[some]
    return np.asarray(X, dtype=np.float64), np.unique(y, return_inverse=True)[1]


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

    final = found.estimator().fit(X)
    asked = found.asking()
    while asked.pair is not None and len(asked.selection.answers) < QUESTIONS:
        i, j = asked.pair
        asked = asked.same() if y[i] == y[j] else asked.different()
    return {
        "rows": len(X),
        "columns": X.shape[1],
        "clusters": m,
        "candidates": len(found.candidates),
        "k-means": k_means(X, y, m)[0],
        "k-means, standardised": 100 * accuracy(y, standardised_k_means(X, m)),
        "oracle": max(map(score, found.candidates)),
        "chosen": score(found.best),
        "refined": 100 * accuracy(y, final.labels_),
        "confidence": found.confidence,
        "alternatives": [score(c) for c in found.alternatives],
        "asked": score(asked.selection.best),
        "seconds": seconds,
    }


def standardised_k_means(X: np.ndarray, m: int) -> np.ndarray:
    return KMeans(m, n_init=10, random_state=0).fit_predict(StandardScaler().fit_transform(X))


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
    )


def text_of(data: dict[str, Any]) -> list[str]:
    header = ("sets", "number", "k-means", "k-means, standardised", "oracle", "chosen")
    header += ("refined on all rows",)
    header += ("regret", "regret of the best alternative", f"regret after {QUESTIONS} answers")
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
    unseen = "**unseen**: sets that no variant was tried on; the rule was fixed before. "
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
        "the true labels. **chosen**: `dmkc.select(X).best`. **design**: every other set by name; "
        "the rule was made on these. **other**: the rest; their means were in view when variants "
        f"of the rule were compared, so that they are no clean test. {unseen}Sets of more than "
        f"{ROWS:,} rows are sampled to that. **seconds**: of `dmkc.select`, on cores that were "
        "shared with other programs; read them as an order of magnitude.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--again", action="store_true", help="repeat finished sets")
    parser.add_argument("--sample-rows", type=int, default=400)
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
    for name in todo:
        data[name] = measure(name, options.sample_rows, options.pools)
        data = {n: data[n] for n in SETS if n in data}
        write("selection", "Choosing without labels", command, text_of(data), data)
    if not todo:
        write("selection", "Choosing without labels", command, text_of(data), data)


if __name__ == "__main__":
    main()
