"""Nonparallel planes with feature selection (Fang, Liu 2020): python pipelines/papers/planes.py"""

from __future__ import annotations

from reproduce import Table, main

DIGITS = ("digits38", "digits17", "digits27", "digits89")
FILES = {"ionosphere": "ionosphere", "letterAB": "letter", "satellite": "satellite"}
FILES |= {"ringnorm": "ringnorm"}
WIDE = ("sonar", "leukemia_golub", "prostate_ge")
TABLES = (
    Table(
        "clustering error",
        "planes_accuracy.py",
        "planes-accuracy",
        ("--sets", "ionosphere"),
        FILES,
        (*DIGITS, *FILES),
    ),
    Table(
        "selected columns",
        "planes_selection.py",
        "planes-selection",
        needs={name: name for name in WIDE},
    ),
)

if __name__ == "__main__":
    main(
        "Iterative Tighter Nonparallel Hyperplane Support Vector Clustering, 2020.",
        TABLES,
        ("ionosphere",),
    )
