"""Sparse kernel maximum margin clustering (Wu, Zhang 2011): python pipelines/papers/skmmc.py"""

from __future__ import annotations

from reproduce import Table, main

TABLES = (
    Table("balanced error", "skmmc_table.py", "skmmc-table", ("--sets", "haberman")),
    Table("larger data sets", "skmmc_large.py", "skmmc-large"),
)

if __name__ == "__main__":
    main("Sparse Kernel Maximum Margin Clustering, 2011.", TABLES, ("haberman",))
