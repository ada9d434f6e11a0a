"""Answers for the rows of a lazy input."""

from __future__ import annotations

from typing import Any

import dask.array as da

from dmkc.data.recut import gathered


class Answers(da.Array):
    """A Dask array in every respect; where it is computed, a worker need not import `dask.array`.

    Dask puts the chunks together on a worker, and what does it would be a function of `dask.array`.
    """

    __slots__ = ()

    def __dask_postcompute__(self) -> Any:
        return gathered, ()
