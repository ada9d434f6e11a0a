"""Draws docs/images/choosing-a-method.png: python docs/images/make_choosing_picture.py."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

TARGET = Path(__file__).with_name("choosing-a-method.png")
BLUE, GREY = "#0072B2", "#57606a"
QUESTIONS = (
    ("Do you know of some pairs of rows that\nthey belong together, or do not?", "odm"),
    ("Do you want to know which\ncolumns separate the clusters?", "planes"),
    ("Are the clusters round, and of\nsimilar size, in the columns?", "kmeans"),
    ("Do they have odd shapes, with\nthin places between them?", "spectral"),
    ("Do you want kernel k-means, to compare\nwith it or because it needs one pass?", "kernel"),
    ("Do you know the kernel, or\nneed a model of few vectors?", "skmmc"),
)
ANSWERS = {
    "odm": "MarginDistributionClustering",
    "planes": "NonparallelPlaneClustering",
    "kmeans": "KMeans",
    "spectral": "SpectralClustering",
    "kernel": (
        "KernelKMeans: one kernel\n"
        "MultipleKernelKMeans: learned weights\n"
        "HierarchicalKernelKMeans: layers"
    ),
    "skmmc": "SparseKernelMMC",
    "mkc": "MultipleKernelClustering\n(the default)",
}
LEFT, RIGHT, STEP = 2.3, 5.85, 1.25


def box(ax: Axes, x: float, y: float, words: str, answer: bool) -> None:
    style = {"boxstyle": "round,pad=0.5", "ec": BLUE if answer else GREY, "lw": 1.3}
    style["fc"] = "#e8f2f9" if answer else "#ffffff"
    font = {"family": "monospace", "fontsize": 9} if answer else {"fontsize": 9.5}
    side = "left" if x == RIGHT else "center"
    ax.text(x, y, words, ha=side, va="center", bbox=style, color="#1d2329", **font)


def arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], words: str) -> None:
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": GREY, "lw": 1.2})
    middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    across = start[1] == end[1]
    place = (middle[0], middle[1] + 0.12) if across else (middle[0] + 0.12, middle[1])
    ax.text(*place, words, color=GREY, fontsize=9, ha="center" if across else "left", va="center")


def main() -> None:
    figure = Figure(figsize=(8.6, 7.0), layout="constrained")
    ax = figure.add_subplot()
    ax.set(xlim=(0, 10), ylim=(-len(QUESTIONS) * STEP - 0.6, 0.6))
    ax.axis("off")
    for k, (question, answer) in enumerate(QUESTIONS):
        y = -k * STEP
        box(ax, LEFT, y, question, False)
        box(ax, RIGHT, y, ANSWERS[answer], True)
        arrow(ax, (4.3, y), (5.55, y), "yes")
        arrow(ax, (LEFT, y - 0.36), (LEFT, y - STEP + 0.36), "no")
    box(ax, LEFT, -len(QUESTIONS) * STEP, ANSWERS["mkc"], True)
    figure.savefig(TARGET, dpi=110, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    main()
