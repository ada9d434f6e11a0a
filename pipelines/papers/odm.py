"""Margin distribution with pairs (Zhang, Li, Jin 2022): python pipelines/papers/odm.py"""

from __future__ import annotations

from reproduce import Table, main

TABLES = (
    Table(
        "100 random pairs",
        "constraints_table.py",
        "constraints",
        ("--sets", "leukemia", "--draws", "1"),
    ),
    Table("25 to 400 pairs", "constraints_pairs.py", "constraints-pairs"),
)

if __name__ == "__main__":
    main(
        "Optimal margin distribution machine for semi-supervised clustering, 2022.",
        TABLES,
        ("leukemia_golub",),
    )
