"""Hierarchical multiple kernel k-means (Wang, Du, Zhou 2023): python pipelines/papers/hmkkm.py"""

from __future__ import annotations

from reproduce import Table, main

TABLES = (
    Table(
        "accuracy, NMI and Rand index",
        "kmeans_accuracy.py",
        "kmeans-accuracy",
        ("--sets", "australian", "--points", "2"),
    ),
)

if __name__ == "__main__":
    main("Hierarchical Multiple Kernel K-Means, 2023.", TABLES, ("australian",))
