"""Multiple kernel clustering (Zhao, Kwok, Zhang 2009): python pipelines/papers/mkc.py"""

from __future__ import annotations

from reproduce import Table, main

TABLES = (
    Table("accuracy", "accuracy.py", "accuracy-mkc", ("--sets", "digits17")),
    Table("training on a subset of the rows", "subsets.py", "subsets"),
)

if __name__ == "__main__":
    main("Multiple Kernel Clustering, SDM 2009.", TABLES)
