"""Nyström landmarks against pre-images at equal cost of a prediction.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/skmmc_bases.py

The cost of labelling a row is the number of vectors it is compared with.  For every number of
pre-images that the sparse basis ends with, a Nyström map of as many landmarks is fitted as well;
three seeds, which draw the landmarks and the places where pre-images begin.
"""

from __future__ import annotations

import time
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from common import RESULTS, table, write
from dmkc import SparseKernelMMC
from skmmc_sets import balanced_error, rows_of

SETS = ("heart", "ionosphere", "votes", "clean1", "breast", "australian", "satellite", "waveform")
SEEDS = (0, 1, 2)
PER_CUT = (1, 2, 4)


def fit(X: np.ndarray, **params: object) -> tuple[SparseKernelMMC, float]:
    began = time.perf_counter()
    model = SparseKernelMMC(scale="standard", **params).fit(X)  # type: ignore[arg-type]
    return model, time.perf_counter() - began


def measure(name: str) -> dict[str, dict[str, float]]:
    X, y = rows_of(name)
    found = {}
    for per_cut in PER_CUT:
        rows = []
        for seed in SEEDS:
            sparse, slow = fit(X, basis="sparse", vectors_per_cut=per_cut, random_state=seed)
            plain, quick = fit(X, rank=sparse.n_vectors_, random_state=seed)
            centres, _ = fit(X, rank=sparse.n_vectors_, landmarks="kmeans", random_state=seed)
            models = (sparse, plain, centres)
            errors = [balanced_error(y, model.labels_) for model in models]
            rows.append([sparse.n_vectors_, *errors, slow, quick])
        keys = ("vectors", "sparse", "uniform", "kmeans", "sparse, s", "uniform, s")
        found[str(per_cut)] = dict(zip(keys, np.mean(rows, axis=0).tolist(), strict=True))
    full = [balanced_error(y, fit(X, random_state=s)[0].labels_) for s in SEEDS]
    found["rank 200"] = {"uniform": float(np.mean(full))}
    return found


def picture(data: dict[str, dict[str, dict[str, float]]]) -> None:
    fig, axes = plt.subplots(2, 4, figsize=(12, 5))
    for ax, (name, found) in zip(axes.flat, data.items(), strict=True):
        points = [found[str(k)] for k in PER_CUT]
        for key, marker in (("sparse", "o"), ("uniform", "s"), ("kmeans", "^")):
            ax.plot(
                [p["vectors"] for p in points], [p[key] for p in points], marker, ls="-", label=key
            )
        ax.axhline(found["rank 200"]["uniform"], color="grey", lw=1, ls=":")
        ax.set_title(name)
        ax.set_ylim(bottom=0)
    axes[0, 0].legend()
    fig.supxlabel("vectors a row is compared with")
    fig.supylabel("balanced error, %")
    fig.tight_layout()
    fig.savefig(RESULTS / "skmmc-bases.png", dpi=110)


def main() -> None:
    warnings.simplefilter("ignore")
    data = {}
    for name in SETS:
        data[name] = measure(name)
        print(name, data[name], flush=True)
    lines, totals = [], []
    for name, found in data.items():
        for per_cut in PER_CUT:
            p = found[str(per_cut)]
            totals.append([p["sparse"], p["uniform"], p["kmeans"], p["sparse, s"], p["uniform, s"]])
            cells = [f"{p[k]:.1f}" for k in ("vectors", "sparse", "uniform", "kmeans")]
            whole = f"{found['rank 200']['uniform']:.1f}"
            seconds = [f"{p[k]:.2f}" for k in ("sparse, s", "uniform, s")]
            lines.append([name, per_cut, *cells, whole, *seconds])
    sparse, uniform, kmeans, slow, quick = np.mean(totals, axis=0)
    whole = np.mean([f["rank 200"]["uniform"] for f in data.values()])
    summary = (
        f"Mean balanced error at equal numbers of vectors: pre-images {sparse:.1f} %, uniform "
        f"landmarks {uniform:.1f} %, k-means landmarks {kmeans:.1f} %; 200 uniform landmarks "
        f"{whole:.1f} %. A fit with pre-images took {slow:.2f} s, with as many landmarks "
        f"{quick:.2f} s. Means of {len(SEEDS)} seeds; the dotted line is 200 uniform landmarks."
    )
    header = ["set", "vectors per cut", "vectors", "pre-images", "uniform", "k-means"]
    header += ["uniform, 200", "pre-images, s", "uniform, s"]
    parts = [summary, "![error over vectors](skmmc-bases.png)", table(header, lines)]
    RESULTS.mkdir(parents=True, exist_ok=True)
    picture(data)
    command = "python pipelines/benchmarks/skmmc_bases.py"
    write("skmmc-bases", "SKMMC: Nyström landmarks or pre-images", command, parts, data)


if __name__ == "__main__":
    main()
