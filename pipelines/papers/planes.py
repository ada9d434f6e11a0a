"""Nonparallel planes with feature selection (Fang, Liu 2020): python pipelines/papers/planes.py"""

from __future__ import annotations

from reproduce import Table, main

TABLES = (
    Table("clustering error", "planes_accuracy.py", "planes-accuracy", ("--sets", "ionosphere")),
    Table("selected columns", "planes_selection.py", "planes-selection"),
)

if __name__ == "__main__":
    main(
        "Iterative Tighter Nonparallel Hyperplane Support Vector Clustering, 2020.",
        TABLES,
        ("ionosphere",),
    )
