"""The file of answers about pairs of rows, which `select` writes and `fit` reads."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dmkc.cli.rownames import RowNames
from dmkc.clusterers.answered import Answer, links_of
from dmkc.clusterers.estimator import RowClusterer
from dmkc.constraints.pairs import row_index
from dmkc.data import as_rows
from dmkc.documents import read_bytes
from dmkc.errors import UserError
from dmkc.typing import TableLike
from dmkc.writing import write_text

YES = ("y", "yes", "1", "true", "same")
NO = ("n", "no", "0", "false", "different")
HEAD = ("row", "other_row", "same")
MOST_BYTES = 1 << 24


def add_answers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--answers",
        metavar="FILE",
        help="pairs of rows that do or do not belong together, which the choice heeds and the "
        "labels keep: lines such as 3,17,yes, by the index column or row number (dmkc select --ask "
        "writes them)",
    )


def answers_of(args: argparse.Namespace, names: RowNames, may_be_new: bool = False) -> list[Answer]:
    """The answers in the file that was named; none when it may be new and is."""
    if args.answers is None:
        return []
    path = Path(args.answers).expanduser()
    if not path.exists():
        if may_be_new:
            return []
        raise UserError(f"There is no file {args.answers}; dmkc select --ask makes one.")
    return read_answers(path, names)


def given_answers(
    cls: type[RowClusterer], values: dict[str, Any], answers: list[Answer], X: TableLike
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Answers as a method takes them: what is added to its parameters, and to its fit."""
    if not answers:
        return {}, {}
    if "must_link" in cls.parameters():
        if values["must_link"] is not None or values["cannot_link"] is not None:
            raise UserError("--answers and --must-link or --cannot-link name pairs: give one.")
        links = links_of(_by_index(answers, X))
        return dict(zip(("must_link", "cannot_link"), links, strict=True)), {}
    if not cls.selectable:
        raise UserError("--answers are for --method auto, odm and mkc.")
    return {}, {"answers": answers}


def _by_index(answers: list[Answer], X: TableLike) -> list[Answer]:
    """Answers about rows as links name them: by the index of a frame, where it is of numbers."""
    index = row_index(as_rows(X).container)
    if index is None or index.inferred_type != "integer":
        return answers
    return [(int(index[i]), int(index[j]), same) for i, j, same in answers]


def read_answers(path: str | Path, names: RowNames | None = None) -> list[Answer]:
    """Answers from a CSV file with lines such as `3,17,yes`; a first line of names is skipped.

    Rows are named as people call them; without `names`, by their numbers.
    """
    try:
        text = read_bytes(Path(path), MOST_BYTES).decode("utf-8")
        lines = [line for line in csv.reader(io.StringIO(text, newline="")) if line]
    except (UnicodeDecodeError, csv.Error) as problem:
        raise UserError(f"{path} is not a file of answers ({problem}).") from None
    if lines and [word.strip() for word in lines[0]] == list(HEAD):
        lines = lines[1:]
    return [_read(line, path, names) for line in lines]


def write_answers(
    path: str | Path, answers: Iterable[Answer], names: RowNames | None = None
) -> None:
    """Write answers as `read_answers` reads them; a file that was there stays until it is done."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEAD)
    for i, j, same in answers:
        rows = (i, j) if names is None else names.of((i, j))
        writer.writerow((*rows, "yes" if same else "no"))
    write_text(Path(path), text.getvalue())


def _read(line: Sequence[str], path: str | Path, names: RowNames | None) -> Answer:
    words = [word.strip() for word in line]
    same = words[2].lower() if len(words) == 3 else ""
    if same in YES + NO and (names is not None or all(map(str.isdecimal, words[:2]))):
        i, j = (int(word) if names is None else names.row(word, path) for word in words[:2])
        return i, j, same in YES
    raise UserError(
        f"{path} has a line {','.join(line)!r}; a line holds two rows and yes or no, such as "
        "3,17,yes."
    )
