"""Several tables about the same rows, side by side: each is a view, a run of adjacent columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import dask
import numpy as np
import scipy.sparse as sp

from dmkc.data.blocks import Block, Lazy, Read, Reader, csr, dense
from dmkc.data.rows import PandasContainer, Rows, XarrayContainer, array_rows, sparse_rows
from dmkc.errors import UserError, UserTypeError


@dataclass(frozen=True, eq=False)
class Joined:
    """Puts the values of all views of some rows side by side."""

    dtype: np.dtype  # dtype of the result
    sparse: bool  # whether the result is a csr_array

    def __call__(self, *parts: Any) -> Any:
        if self.sparse:
            return csr(sp.hstack([sp.csr_array(part) for part in parts], format="csr"), self.dtype)
        return dense(np.concatenate(parts, axis=1), self.dtype)


@dataclass(frozen=True, eq=False)
class JoinedReader:
    """Reads the same rows of several inputs."""

    readers: tuple[Reader, ...]
    join: Joined

    def read(self, start: int, stop: int) -> Any:
        return self.join(*(reader.read(start, stop) for reader in self.readers))


@dataclass(frozen=True, eq=False)
class JoinedSource:
    """Cuts several inputs at the same rows."""

    parts: tuple[Rows, ...]
    join: Joined

    def blocks(self, block_rows: int) -> list[Block]:
        join = dask.delayed(self.join, pure=False)
        out: list[Block] = []
        for same in zip(*(part.blocks(block_rows) for part in self.parts), strict=True):
            start, stop = same[0].start, same[0].stop
            if any(isinstance(block, Lazy) for block in same):
                values = [
                    block.delayed if isinstance(block, Lazy) else dask.delayed(block.load)()
                    for block in same
                ]
                out.append(Lazy(join(*values), start, stop))
            else:
                readers = tuple(block.reader for block in same if isinstance(block, Read))
                out.append(Read(JoinedReader(readers, self.join), start, stop))
        return out


def joined_rows(parts: Mapping[str, Rows]) -> Rows:
    """The rows of several views as one input with as many columns as all of them."""
    _check_aligned(parts)
    every = list(parts.values())
    edges = [0, *accumulate(rows.n_columns for rows in every)]
    views = {name: (edges[i], edges[i + 1]) for i, name in enumerate(parts)}
    names = _column_names(parts)
    join = Joined(np.result_type(*(rows.dtype for rows in every)), any(r.sparse for r in every))
    container = next((r.container for r in every if r.container.lazy), every[0].container)
    if all(rows.in_memory and not rows.container.lazy for rows in every):
        values = JoinedSource(tuple(every), join).blocks(every[0].n_rows)[0]
        assert isinstance(values, Read)
        make = sparse_rows if join.sparse else array_rows
        return replace(make(values.load(), container, names), views=views)
    cells = sum(rows.n_columns for rows in every)
    return Rows(
        n_rows=every[0].n_rows,
        n_columns=edges[-1],
        dtype=join.dtype,
        sparse=join.sparse,
        density=sum(r.density * r.n_columns for r in every) / cells if join.sparse else 1.0,
        column_names=names,
        container=container,
        source=JoinedSource(tuple(every), join),
        views=views,
    )


def in_order_of(X: Mapping[str, Any], views: Mapping[str, Any]) -> dict[str, Any]:
    """New views in the order of those of a fit."""
    missing = [name for name in views if name not in X]
    if missing:
        raise UserError(
            f"`X` has no view {missing[0]!r}, which the fit had; its views are {', '.join(views)}."
        )
    unknown = [name for name in X if name not in views]
    if unknown:
        raise UserError(
            f"`X` has a view {unknown[0]!r}, which the fit did not have; its views are "
            f"{', '.join(views)}."
        )
    return {name: X[name] for name in views}


def are_tables(X: Sequence[Any]) -> bool:
    """Whether these are tables and not rows."""
    return len(X) > 0 and all(getattr(item, "ndim", 0) == 2 or sp.issparse(item) for item in X)


def named(X: Sequence[Any]) -> dict[str, Any]:
    """A list of tables with names."""
    return {f"view{number}": item for number, item in enumerate(X)}


def _check_aligned(parts: Mapping[str, Rows]) -> None:
    """Refuse views whose rows are not the same, as far as can be seen."""
    if not parts:
        raise UserError("`X` holds no view: give at least one table by its name.")
    wrong = [name for name in parts if not isinstance(name, str) or not name]
    if wrong:
        raise UserTypeError(f"The views of `X` must have names, but one is called {wrong[0]!r}.")
    first, *others = parts
    for name in others:
        if parts[name].n_rows != parts[first].n_rows:
            raise UserError(
                f"The views of `X` do not line up: {first!r} has {parts[first].n_rows} rows and "
                f"{name!r} has {parts[name].n_rows}."
            )
    labelled = {name: index for name, rows in parts.items() if (index := _index(rows)) is not None}
    for name, index in labelled.items():
        begin = next(iter(labelled))
        if not index.equals(labelled[begin]):
            raise UserError(
                f"The views of `X` do not line up: {begin!r} and {name!r} have different row "
                "labels."
            )


def _index(rows: Rows) -> Any:
    """The row labels of a view in memory, where it has any."""
    container = rows.container
    if isinstance(container, PandasContainer):
        return container.index
    if isinstance(container, XarrayContainer):
        return container.coordinates.indexes.get(container.row_dimension)
    return None


def _column_names(parts: Mapping[str, Rows]) -> tuple[str, ...]:
    """The columns' own names where no two are the same, else behind the name of their view."""
    own = [
        (view, str(name), rows.column_names is not None)
        for view, rows in parts.items()
        for name in rows.column_names or range(rows.n_columns)
    ]
    plain = [name for _, name, has_name in own if has_name]
    unique = len(set(plain)) == len(plain)
    return tuple(name if has_name and unique else f"{view}.{name}" for view, name, has_name in own)
