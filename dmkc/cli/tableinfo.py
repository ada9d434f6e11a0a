"""What a table holds, and what a fit would make of every column."""

from __future__ import annotations

import os
from typing import Any

from dmkc.cli.reading import TABLES, files_of, kind_of
from dmkc.cli.recipes import TableOptions, decided, read_held
from dmkc.cli.tables import table_kind
from dmkc.showing import printable
from dmkc.tables.columns import summaries

HEAD = ("column", "kind", "missing", "distinct", "what a fit does with it")


def is_table_file(path: str) -> bool:
    """Whether a path holds a table; files of text count where their name says so."""
    if "://" not in path and not os.path.exists(path) and files_of(path) == [path]:
        return False
    return kind_of(path) in TABLES


def describe_table(path: str, options: TableOptions) -> dict[str, Any]:
    """Every column with its kind, its missing and distinct values and what would be done."""
    held = read_held(path, table_kind(path), options)
    found = summaries(held.frame)
    columns = {}
    made = {column.name: column for column in decided(held, options, known=found).columns}
    for name, summary in found.items():
        column = made.get(name)
        reason = "names the rows" if name == held.index else "as asked"
        columns[str(name)] = {
            "kind": summary.sort if column is None else column.kind,
            "missing": summary.missing,
            "distinct": summary.distinct,
            "use": f"left out: {reason}" if column is None else column.told(),
        }
    rows = next(iter(found.values())).rows if found else 0
    return {"table": path, "rows": rows, "columns": columns}


def print_table(found: dict[str, Any]) -> None:
    """The columns of a table, one a line."""
    print(f"{printable(found['table'])}: {found['rows']} rows, {len(found['columns'])} columns")
    print()
    lines = [list(HEAD)]
    for name, about in found["columns"].items():
        lines.append([printable(name), *(str(value) for value in about.values())])
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    for line in lines:
        cells = [
            text.rjust(width) if number in (2, 3) else text.ljust(width)
            for number, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
    gaps = [name for name, about in found["columns"].items() if about["missing"]]
    used = [name for name in gaps if not found["columns"][name]["use"].startswith("left out")]
    if used:
        print()
        print(
            f"Missing values in {', '.join(map(printable, used))}: a fit refuses them unless told"
        )
        print("--drop-missing or --impute-missing.")
