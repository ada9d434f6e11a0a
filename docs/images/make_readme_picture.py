"""Draws k-means-and-dmkc.png: the same rows clustered by k-means and by dmkc."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dmkc import MultipleKernelClustering
from dmkc.datasets import make_rings
from dmkc.plot import COLOURS
from dmkc.report.facts import k_means_labels

TARGET = Path(__file__).with_name("k-means-and-dmkc.png")


def draw(ax: Axes, rows: np.ndarray, labels: np.ndarray, title: str) -> None:
    for cluster in (0, 1):
        here = labels == cluster
        ax.scatter(*rows[here].T, s=5, lw=0, alpha=0.7, color=COLOURS[cluster])
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold")
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_color("#d0d0d0")


def main() -> None:
    rows, _ = make_rings(3000, noise=0.07, factor=0.3, seed=0)
    found = MultipleKernelClustering(random_state=0).fit_predict(rows)
    figure = Figure(figsize=(7.2, 3.88), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw(left, rows, k_means_labels(rows, 2), "k-means")
    draw(right, rows, found, "dmkc")
    figure.savefig(TARGET, dpi=130, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    main()
