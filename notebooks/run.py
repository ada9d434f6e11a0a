"""Run the notebooks and write their outputs into them: python notebooks/run.py [NAME ...]."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
SECONDS = 300
"""What a single cell may take."""


def names() -> list[str]:
    """The notebooks of this folder, without their ending."""
    return sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def executed(name: str) -> nbformat.NotebookNode:
    """The notebook with fresh outputs; an error in a cell is raised."""
    book = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    NotebookClient(
        book,
        timeout=SECONDS,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(FOLDER)}},
    ).execute()
    book.metadata["language_info"] = {"name": "python"}  # without the versions of this machine
    return book


def main(chosen: list[str]) -> None:
    unknown = sorted(set(chosen) - set(names()))
    if unknown:
        sys.exit(f"There is no notebook {', '.join(unknown)}; there are {', '.join(names())}.")
    for name in chosen or names():
        nbformat.write(executed(name), FOLDER / f"{name}.ipynb")
        print(f"{name}: done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
