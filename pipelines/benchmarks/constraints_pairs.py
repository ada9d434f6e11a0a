"""Clusters against the number of pairs, 25 to 400.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/constraints_pairs.py [--draws 5] [--sets ...]

Figure 1 of Zhang, Li and Jin (2022), beyond its 100 pairs, with the adjusted Rand index of rows in
no pair beside the Rand index.
"""

from __future__ import annotations

import argparse
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from common import RESULTS, left_out, one_by_one, table, write
from constraints_data import SETS, in_unit_range, scores
from constraints_table import own_draw
from dmkc.constraints import random_pairs

COUNTS = (25, 50, 100, 200, 400)
CHOSEN = ("semeion 4-9", "ionosphere", "breast", "letter A-B", "pageBlocks", "JapaneseVowels")


def means(found: dict[str, list], index: str) -> list[float]:
    """The mean of an index over the draws, for every number of pairs."""
    return [float(np.mean([draw[index] for draw in found[str(c)]])) for c in COUNTS]


def picture(data: dict[str, dict[str, list]]) -> None:
    """Both indices over the number of pairs."""
    figure, both = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    titles = {"RI": "Rand index, all rows", "ARI free": "adjusted Rand index, rows in no pair"}
    for axes, (index, title) in zip(both, titles.items(), strict=True):
        for name, found in data.items():
            axes.plot(COUNTS, means(found, index), marker="o", markersize=4, label=name)
        axes.set(title=title, xlabel="pairs", xscale="log")
        axes.set_xticks(COUNTS, [str(c) for c in COUNTS])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    both[0].legend(fontsize=8, loc="lower right")
    RESULTS.mkdir(parents=True, exist_ok=True)
    figure.savefig(RESULTS / "constraints-pairs.png", dpi=120)


def measure(name: str, draws: int) -> dict[str, list]:
    """The indices of every draw, by the number of pairs."""
    X, y = SETS[name]()
    X = in_unit_range(X)
    found: dict[str, list] = {}
    for count in COUNTS:
        for draw in range(draws):
            pairs = random_pairs(y, count, random_state=draw)
            labels, _ = own_draw(X, *pairs, draw, {})
            found.setdefault(str(count), []).append(scores(y, labels, *pairs))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--sets", nargs="+", default=list(CHOSEN), choices=list(SETS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    data, absent = one_by_one(
        "constraints-pairs",
        options.sets,
        lambda name: measure(name, options.draws),
        f"{options.draws} draws",
    )
    picture(data)
    parts = ["![indices over pairs](constraints-pairs.png)"]
    for index in ("RI", "ARI free"):
        rows = [
            (name, *(f"{mean:.3f}" for mean in means(found, index))) for name, found in data.items()
        ]
        parts.append(f"**{index}**\n\n" + table(("data", *(f"{c} pairs" for c in COUNTS)), rows))
    parts.append(
        f"Mean of {options.draws} draws, features in [0, 1], defaults. **ARI free**: on rows in no "
        "pair."
    )
    parts += left_out(absent)
    command = "DMKC_DATA_DIR=... python pipelines/benchmarks/constraints_pairs.py"
    command += f" --draws {options.draws}"
    if options.sets != list(CHOSEN):
        command += " --sets " + " ".join(f'"{s}"' for s in options.sets)
    write("constraints-pairs", "Clusters against the number of pairs", command, parts, data)


if __name__ == "__main__":
    main()
