"""What to do next: commands with the names of the files at hand, or lines of Python."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from dmkc.report.subject import Subject
from dmkc.showing import printable

READING = ("--variable", "--delimiter", "--index-column", "--missing", "--column-dtype", "--view")
"""Options with a value that say how a file is read,"""
CHOOSING = ("--columns", "--exclude", "--include", "--kinds")
"""and what is made of its columns."""
HEADER, GAPS = ("--header", "--no-header"), ("--drop-missing", "--impute-missing")
DROPPED = ("--out", "--clusters", "--answers", "--truth", "--resume")
"""Options of a fit that another fit is given anew, or needs no more."""
PLAIN = ("--force", "--quiet", "--verbose", "--no-report", "--append")
NEARLY_ALL, LITTLE = 0.7, 0.1
"""What one column tells that alone makes clusters, and at most another."""
USELESS, FEW = 0.01, 6
"""Columns that tell less are worth leaving out; so many are named."""


@dataclass(frozen=True)
class Command:
    """The command line whose results a report shows.

    Examples
    --------
    >>> from dmkc.report import Command
    >>> command = Command(["fit", "rows.csv", "--out", "run"], "rows.csv", "run")
    >>> command.folder
    'run'
    """

    words: Sequence[str]
    """From "fit" on."""
    input: str | None
    """None: the input is views."""
    folder: str
    """Where the results are."""


@dataclass(frozen=True)
class Step:
    """Something to do next."""

    title: str
    code: str


def next_steps(subject: Subject, command: Command | None, shuffled: Sequence[float]) -> list[Step]:
    """Predict, refine, try another number, ask."""
    if command is None:
        return _in_python(subject)
    useless = [
        column.name
        for column, tells, moves in zip(subject.columns, subject.tells, shuffled, strict=False)
        if tells < USELESS and moves == 0 and _can_be_listed(column.name)
    ][:FEW]
    alone = made_by_one(subject, shuffled)
    if subject.estimator._recipe() is None:  # columns of arrays have no names
        useless, alone = [], None
    elif alone is not None and not _can_be_listed(alone):
        alone = None
    return _in_a_shell(subject, command, useless, alone)


def _can_be_listed(name: str) -> bool:
    """Whether a column can be named on the command line as it is shown here."""
    return bool(name) and not set(name) & set(",…\\") and name == name.strip()


def made_by_one(subject: Subject, shuffled: Sequence[float]) -> str | None:
    """The column that alone makes the clusters, where there are others that do nothing."""
    tells = [*subject.tells, 0.0]
    if len(subject.columns) < 2 or len(shuffled) < 2 or tells[0] < NEARLY_ALL:
        return None
    others = tells[1] < LITTLE and max(shuffled[1:]) < LITTLE < shuffled[0]
    return subject.columns[0].name if others else None


@dataclass(frozen=True)
class _Given:
    """What a command line said."""

    every: list[str]
    """All that another fit is told too,"""
    table: list[str]
    """of this what is about the input,"""
    reading: list[str]
    """and what a model does not know by itself."""


def _in_a_shell(
    subject: Subject, command: Command, useless: list[str], alone: str | None
) -> list[Step]:
    said = _split(list(command.words)[1:], command.input)
    source = [] if command.input is None else [command.input]
    folder, k = command.folder.rstrip("/"), subject.n_clusters

    def fit(*words: str, out: str) -> str:
        return _line("dmkc", "fit", *source, *words, "--out", f"{folder}-{out}")

    predicted = ("--out", f"{folder}-predicted.csv")
    found = [
        Step(
            "Predict: labels of new rows, in files of the same columns",
            _line("dmkc", "predict", folder, *source, *said.reading, *predicted),
        )
    ]
    if alone is not None and "--columns" not in said.every:
        title = f"Refine: without {alone}, which alone makes these clusters"
        found.append(Step(title, fit(*_without(said.every, [alone]), out="without")))
    elif useless and "--columns" not in said.every:
        title = "Refine: without columns that tell nothing of these clusters"
        found.append(Step(title, fit(*_without(said.every, useless), out="fewer-columns")))
    same = ["--clusters", str(k), *_seed(said.every), *said.table]
    chosen = subject.estimator._fitted("method_")
    if chosen is not None and k > 1:
        title = (
            f"Refine: the chosen method alone; dmkc fit --help --method {chosen} says what it can "
            "be told"
        )
        found.append(Step(title, fit("--method", chosen, *same, out=chosen)))
    more = (*said.every, "--clusters", str(k + 1))
    found.append(
        Step(f"Try {k + 1} clusters, and compare the two reports", fit(*more, out=str(k + 1)))
    )
    if k > 1:
        answers = ("--answers", f"{folder}-answers.csv")
        ask = _line("dmkc", "select", *source, *same, "--ask", "10", *answers)
        title = "Ask: answer ten questions about pairs of rows, and use the answers"
        found.append(Step(title, f"{ask}\n{fit(*same, *answers, out='asked')}"))
    name = printable(PurePath(folder) / "model.zarr")
    found.append(Step("Go on in Python", f"import dmkc\n\nmodel = dmkc.load({name!r})"))
    return found


def _in_python(subject: Subject) -> list[Step]:
    k, model = subject.n_clusters, subject.model
    name = "n_clusters"
    if subject.is_pipeline:
        name = f"{model.steps[-1][0]}__n_clusters"
    found = [
        Step("Predict: labels of new rows of the same columns", "labels = model.predict(X)"),
        Step(
            f"Try {k + 1} clusters, and compare the two reports",
            "from sklearn.base import clone\n\n"
            f"other = clone(model).set_params({name}={k + 1}).fit(X)",
        ),
    ]
    if not subject.is_pipeline:
        save = 'import dmkc\n\nmodel.save("model.zarr")\nmodel = dmkc.load("model.zarr")'
        found.insert(1, Step("Keep the model in a file", save))
    if k > 1:
        rows = "X" if not subject.is_pipeline else "model[:-1].transform(X)"
        found.append(
            Step(
                "Ask: answer questions about pairs of rows in a notebook, and use the answers",
                f"import dmkc\n\nmethods = dmkc.AutoClustering({k}, random_state=0)\n"
                f"asking = dmkc.select({rows}, methods).asking()\n"
                "asking  # then asking.same() or asking.different()\n"
                f"asked = asking.selection.estimator().fit({rows})",
            )
        )
    return found


def _split(words: list[str], source: str | None) -> _Given:
    """Sort the words of a command line; the input stands in front of them again."""
    said = _Given([], [], [])
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        name, sign, _ = word.partition("=")
        if word == source:
            source = None
            continue
        takes = name in (*READING, *CHOOSING, *DROPPED) and not sign
        group = [word, *([waiting.pop(0)] if takes and waiting else [])]
        if name in DROPPED or word in PLAIN:
            continue
        said.every.extend(group)
        if name in (*READING, *CHOOSING, *HEADER, *GAPS):
            said.table.extend(group)
        if name in (*READING, *HEADER):
            said.reading.extend(group)
    return said


def _without(given: list[str], names: list[str]) -> list[str]:
    """The same options, with more columns left out."""
    found = list(given)
    if "--exclude" in found[:-1]:
        place = found.index("--exclude") + 1
        found[place] = ",".join([found[place], *names])
        return found
    return [*found, "--exclude", ",".join(names)]


def _seed(given: list[str]) -> list[str]:
    """The seed of a fit, as it was given."""
    for i, word in enumerate(given):
        if word == "--seed":
            return given[i : i + 2]
        if word.startswith("--seed="):
            return [word]
    return ["--seed", "0"]


def _line(*words: Any) -> str:
    return printable(shlex.join(str(word) for word in words))
