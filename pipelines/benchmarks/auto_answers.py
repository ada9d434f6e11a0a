"""What answers about pairs of rows are worth to `dmkc.AutoClustering`.

    DMKC_DATA_DIR=folder python pipelines/benchmarks/auto_answers.py [--kept FOLDER]

The candidates are those of auto.py, kept in the same FOLDER.  A person who knows the classes
answers 0, 5, 10 or 20 questions: about pairs of rows at random, or about those on which likely
candidates disagree.  The best candidate after the answers is measured on the sample that it was
fitted to, with its labels brought in line with the answers and without.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from auto import DESIGN, REAL, SHAPES, file_name, gathered, kept, rand
from common import table, write
from dmkc.clusterers.answered import check_answers, votes
from dmkc.constraints.assign import assigner
from dmkc.selection.judge import PRICE_OF_A_MOVE, Judged, judge
from dmkc.selection.questions import Opinions, Told, best_pairs, rows_to_move
from dmkc.selection.scores import standardised

NUMBERS = (0, 5, 10, 20)
PERSONS = 5
"""Simulated persons a set, of whom the mean is told."""
SHARPNESS = 2.0
"""As in `dmkc.select`: how likely candidates are by their scores when a question is looked for."""
WORSE = 0.01
PRICES = (0.1, 0.2, 0.5, 0.8, 1.5, 1e6)
"""Further prices of a row to move that were tried on the design sets."""
Asked = Callable[[dict[str, Any], Judged, np.ndarray, int], list[Told]]


def at_random(made: dict[str, Any], judged: Judged, labels: np.ndarray, person: int) -> list[Told]:
    """Answers about pairs that nobody has chosen."""
    y, rng = made["y"], np.random.default_rng(person)
    known = np.flatnonzero(y >= 0)
    pairs = (rng.choice(known, 2, replace=False).tolist() for _ in range(NUMBERS[-1]))
    return [(i, j, bool(y[i] == y[j])) for i, j in pairs]


def disputed(made: dict[str, Any], judged: Judged, labels: np.ndarray, person: int) -> list[Told]:
    """Answers about pairs that likely candidates disagree on."""
    y, k, told = made["y"], made["k"], []
    for number in range(NUMBERS[-1]):
        score = replace(judged, moves=rows_to_move(labels, told, k)).score[judged.order]
        weight = np.exp(SHARPNESS * (score - score.max()))
        some = labels[judged.order]
        opinions = Opinions(some, np.full(some.shape, 0.5), weight / weight.sum(), k)
        found = best_pairs(opinions, told, 20, (), [person, number])
        pairs = [(i, j) for i, j in found if y[i] >= 0 and y[j] >= 0]
        if not pairs:
            break
        i, j = pairs[person % len(pairs)]
        told.append((i, j, bool(y[i] == y[j])))
    return told


def in_line(made: dict[str, Any], labels: np.ndarray, told: list[Told]) -> np.ndarray:
    """Labels that keep the answers."""
    pairs, container = check_answers(told, len(labels), made["k"])
    if pairs is None:
        return labels
    gain = votes(standardised(made["X"]), labels, pairs.rows, made["k"])
    found = labels.copy()
    found[pairs.rows] = assigner(pairs, container, made["k"], None).assign(gain, None)
    return found


def measured(made: dict[str, Any], ask: Asked) -> dict[str, dict[int, float]]:
    """Mean adjusted Rand index over persons, by number of answers: of candidates and of labels."""
    judged = judge(made["candidates"], made["X"], made["k"])
    labels = np.array([c.labels for c in judged.candidates])
    index = [rand(made["y"], some) for some in labels]
    ways = ("labels", "chosen", *map(str, PRICES))
    found: dict[str, dict[int, list[float]]] = {way: {n: [] for n in NUMBERS} for way in ways}
    for person in range(PERSONS):
        told = ask(made, judged, labels, person)
        for n in NUMBERS:
            moves = rows_to_move(labels, told[:n], made["k"])
            after = replace(judged, moves=moves)
            best = after.order[0]
            found["chosen"][n].append(index[best])
            found["labels"][n].append(rand(made["y"], in_line(made, labels[best], told[:n])))
            for price in PRICES:
                score = judged.score - price * moves
                other = max(judged.order, key=lambda i, score=score: score[i])
                found[str(price)][n].append(index[other])
    return {
        way: {n: float(np.mean(values)) for n, values in some.items()}
        for way, some in found.items()
    }


def line(data: dict[str, Any], names: list[str], ask: str, way: str) -> list[str]:
    """Means over sets, and how many of them became worse than without answers."""
    none = np.array([data[name][ask][way][0] for name in names])
    cells = [f"{none.mean():.3f}"]
    for n in NUMBERS[1:]:
        now = np.array([data[name][ask][way][n] for name in names])
        cells.append(f"{now.mean():.3f} ({np.sum(now < none - WORSE)}, {np.min(now - none):+.2f})")
    return cells


def page(data: dict[str, Any]) -> list[str]:
    groups = {
        f"{kind}, {part}": [n for n in sets if (n in DESIGN) == (part == "design") and n in data]
        for kind, sets in (("real", REAL), ("shapes", SHAPES))
        for part in ("design", "unseen")
    }
    groups["all"] = list(data)
    header = ("questions", "sets", "number", *(f"{n} answers" for n in NUMBERS))
    ways = {"labels": "labels in line with the answers", "chosen": "the candidate alone"}
    parts = [
        "Mean adjusted Rand index after so many right answers, of "
        f"{PERSONS} simulated persons a set; in brackets how many sets are worse than without "
        f"answers by more than {WORSE:g} on average over the persons, and by how much the worst is."
    ]
    for way, words in ways.items():
        rows = [
            (ask, group, len(names), *line(data, names, ask, way))
            for ask in ASKED
            for group, names in groups.items()
            if names
        ]
        parts.append(f"**{words}**\n\n{table(header, rows)}")
    design = [name for group, names in groups.items() if "design" in group for name in names]
    rows = [
        (ask, f"{float(price):g}", *line(data, design, ask, way))
        for ask in ASKED
        for price, way in sorted([(PRICE_OF_A_MOVE, "chosen"), *((p, str(p)) for p in PRICES)])
    ]
    header = ("questions", "price of a row", *(f"{n} answers" for n in NUMBERS))
    parts.append(
        "What a candidate pays for every row that it would have to move, on the design sets "
        f"({PRICE_OF_A_MOVE:g} is taken; 1e+06 leaves the candidates with the fewest rows to move "
        f"alone):\n\n{table(header, rows)}"
    )
    return parts


ASKED: dict[str, Asked] = {"at random": at_random, "disputed": disputed}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=[*REAL, *SHAPES])
    parser.add_argument("--kept", type=Path, default=Path("auto-kept"), metavar="FOLDER")
    options = parser.parse_args()
    options.kept.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    data: dict[str, Any] = {}
    for name in options.sets:
        path = options.kept / f"{file_name(name)}.pkl"
        made = kept(path, lambda name=name: gathered(name))
        data[name] = {word: measured(made, ask) for word, ask in ASKED.items()}
        print(name, {word: found["labels"] for word, found in data[name].items()}, flush=True)
    command = "DMKC_DATA_DIR=... python pipelines/benchmarks/auto_answers.py"
    write("auto-answers", "Answers about pairs of rows", command, page(data), data)


if __name__ == "__main__":
    main()
