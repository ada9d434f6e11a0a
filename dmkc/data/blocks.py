"""Row blocks: what their values must be, and how they are loaded, on any worker."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from dask.base import clone_key
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from dmkc.errors import UserError, UserTypeError

MOST_NAMES = 10  # columns listed in one message
# A loaded block: a C-contiguous 2-D ndarray, or a csr_array with sorted indices.
Values: TypeAlias = Any


def check_dimensions(n_dimensions: int, shape: Sequence[Any]) -> None:
    """Refuse anything that is not two-dimensional."""
    shown = tuple(shape)
    if n_dimensions == 0:
        raise UserError(
            "Expected 2D array, got scalar array instead: `X` must have rows and columns. "
            "Reshape your data with X.reshape(1, 1) if it is one row of one column."
        )
    if n_dimensions == 1:
        raise UserError(
            f"Expected 2D array, got 1D array instead: `X` has shape {shown}. Reshape your data "
            "with X.reshape(-1, 1) if it has a single column, or X.reshape(1, -1) if it is a "
            "single row."
        )
    if n_dimensions > 2:
        raise UserError(
            f"Found array with dim {n_dimensions}, while dim <= 2 is required: `X` has shape "
            f"{shown}, so flatten each row, for example with X.reshape(len(X), -1)."
        )


def check_shape(shape: Sequence[Any]) -> tuple[int, int]:
    """Refuse a shape that is not (rows, columns) with at least one of each."""
    check_dimensions(len(shape), shape)
    n_rows, n_columns = int(shape[0]), int(shape[1])
    for size, what in ((n_rows, "sample"), (n_columns, "feature")):
        if size == 0:
            raise UserError(
                f"Found array with 0 {what}(s) (shape=({n_rows}, {n_columns})) while a minimum "
                "of 1 is required."
            )
    return n_rows, n_columns


def block_dtype(dtype: Any, where: str = "X") -> np.dtype:
    """Return the dtype loaded blocks have for stored values of this dtype, or refuse it."""
    try:
        plain = np.dtype(dtype)
    except TypeError:
        plain = np.dtype(object)
    if plain.kind == "c":
        raise UserError(
            f"Complex data not supported: {where} has dtype {dtype}; pass the real and imaginary "
            "parts as separate columns."
        )
    if plain.kind in "mM":
        raise UserError(
            f"{where} holds dates or durations (dtype {dtype}); turn them into numbers first, "
            "for example days since a fixed date."
        )
    if plain.kind == "V":
        raise UserError(
            f"{where} is a structured array (dtype {dtype}); turn its fields into columns first "
            "with numpy.lib.recfunctions.structured_to_unstructured."
        )
    if plain.kind not in "biuf":
        raise UserError(
            f"{where} does not hold numbers (dtype {dtype}); convert it to a numeric dtype first, "
            "for example with X.astype(float), and encode text as numbers."
        )
    if plain.kind == "f" and plain.itemsize < 4:
        return np.dtype(np.float32)
    if plain.kind == "f" and plain.itemsize > 8:
        return np.dtype(np.float64)
    return plain.newbyteorder("=")


def frame_dtype(columns: Iterable[Any], dtypes: Iterable[Any]) -> np.dtype:
    """Return the common block dtype of a DataFrame's columns, or name the columns refused."""
    import pandas as pd

    refused: dict[str, list[str]] = {}
    kinds: list[np.dtype] = []
    for column, stored in zip(columns, dtypes, strict=True):
        dtype = stored.subtype if isinstance(stored, pd.SparseDtype) else stored
        kind = getattr(dtype, "kind", "O")
        if isinstance(dtype, pd.CategoricalDtype):
            reason = "category"
        elif kind in "mM" or isinstance(dtype, (pd.PeriodDtype, pd.IntervalDtype)):
            reason = "date"
        elif kind == "c":
            reason = "complex"
        elif kind not in "biuf":
            reason = "text"
        else:
            nullable = not isinstance(dtype, np.dtype)
            kinds.append(np.dtype(np.float64) if nullable else block_dtype(dtype))
            continue
        refused.setdefault(reason, []).append(f"{column!r} ({stored})")
    if "complex" in refused:
        raise UserError(
            f"Complex data not supported: {_listed(refused['complex'])} of `X`; pass the real and "
            "imaginary parts as separate columns."
        )
    if refused:
        raise UserError(" ".join(_refusal(reason, names) for reason, names in refused.items()))
    return np.result_type(*kinds)


def _refusal(reason: str, names: list[str]) -> str:
    what, advice = {
        "category": (
            "hold categories",
            "dmkc.TableColumns makes numbers of them, and so does OneHotEncoder",
        ),
        "date": (
            "hold dates, durations or intervals",
            "dmkc.TableColumns makes numbers of them, such as days since a fixed date",
        ),
        "text": (
            "do not hold numbers",
            "dmkc.TableColumns makes numbers of them, or convert them with pandas.to_numeric or "
            "astype(float), or drop them",
        ),
    }[reason]
    if len(names) == 1:
        what = what.replace("hold", "holds").replace("do not holds", "does not hold")
    return f"{_listed(names)} of X {what}; {advice}."


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:MOST_NAMES])
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{'Column' if len(names) == 1 else 'Columns'} {shown}{more}"


def string_names(columns: Iterable[Any]) -> tuple[str, ...] | None:
    """Return the column names when every one is a string, as scikit-learn does."""
    names = tuple(columns)
    if names and all(isinstance(name, str) for name in names):
        return tuple(str(name) for name in names)
    return None


def numbers_from_objects(values: np.ndarray) -> np.ndarray:
    """Return an object array as float64, or name the first cell that is not a number."""
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        for (row, column), value in np.ndenumerate(values):
            try:
                float(np.nan if value is None else value)
            except (TypeError, ValueError) as error:
                refused = UserTypeError if isinstance(error, TypeError) else UserError
                raise refused(
                    f"Row {row}, column {column} of X holds {value!r}, which is not a number "
                    f"({error}); convert or encode this column first."
                ) from None
        raise


class Reader(Protocol):
    """Something that returns the values of any rows it covers."""

    def read(self, start: int, stop: int) -> Values:
        """Return rows [start, stop), counted from the first row of the whole input."""


@dataclass(frozen=True, eq=False)
class Read:
    """Rows [start, stop) that any process can load without a Dask graph.

    The loaded values may be a view of the caller's data, so they must not be written to.
    """

    reader: Reader  # where the rows come from
    start: int  # first row
    stop: int  # one past the last row

    def load(self) -> Values:
        """Return the rows as a C-contiguous ndarray or a csr_array with sorted indices."""
        return self.reader.read(self.start, self.stop)


@dataclass(frozen=True, eq=False)
class Lazy:
    """Rows [start, stop) that a Dask graph computes."""

    delayed: Delayed  # computes to a C-contiguous ndarray or a csr_array with sorted indices
    start: int  # first row
    stop: int  # one past the last row


Block: TypeAlias = Read | Lazy


def of_their_own(blocks: Sequence[Block]) -> list[Block]:
    """The blocks with a task for each chain of tasks, and with keys that nobody else uses.

    Dask makes one task of a chain in one way or another, whenever it is asked to, so that a key of
    the input would mean one task in this scan and another one in the graph of labels or of a fit
    that runs at the same time.  A scheduler that knows both may never finish either.
    """
    graphs = {block.delayed.key: block.delayed.dask for block in blocks if isinstance(block, Lazy)}
    if not graphs:
        return list(blocks)
    from dask.array.optimization import optimize

    name = f"blocks-{uuid.uuid4().hex}"
    tasks = optimize(HighLevelGraph.merge(*graphs.values()), list(graphs))
    names = {key: clone_key(key, name) for key in tasks}
    renamed = {names[key]: task.substitute(names, key=names[key]) for key, task in tasks.items()}
    whole = HighLevelGraph.from_collections(name, renamed, dependencies=())
    return [
        replace(block, delayed=Delayed(names[block.delayed.key], whole, layer=name))
        if isinstance(block, Lazy)
        else block
        for block in blocks
    ]


@dataclass(frozen=True, eq=False)
class HeldArray:
    """Reads from a NumPy array in memory."""

    values: np.ndarray  # the held rows, of any layout
    first: int  # row number of values[0] in the whole input
    dtype: np.dtype  # dtype of what read returns

    def read(self, start: int, stop: int) -> np.ndarray:
        return dense(self.values[start - self.first : stop - self.first], self.dtype)


@dataclass(frozen=True, eq=False)
class HeldFrame:
    """Reads from a pandas DataFrame in memory whose columns have NumPy dtypes."""

    frame: Any  # the held rows, with a plain range as index
    first: int  # row number of the frame's first row in the whole input
    dtype: np.dtype  # dtype of what read returns

    def read(self, start: int, stop: int) -> np.ndarray:
        return frame_values(self.frame.iloc[start - self.first : stop - self.first], self.dtype)


@dataclass(frozen=True, eq=False)
class HeldSparse:
    """Reads from a csr_array in memory."""

    matrix: Any  # the held rows, with sorted indices
    first: int  # row number of the matrix's first row in the whole input

    def read(self, start: int, stop: int) -> Any:
        return csr_rows(self.matrix, start - self.first, stop - self.first)


@dataclass(frozen=True, eq=False)
class ReaderSource:
    """Cuts an input that one small reader can fetch any rows of."""

    reader: Reader  # shared by all blocks
    n_rows: int  # number of rows

    def blocks(self, block_rows: int) -> list[Block]:
        return [Read(self.reader, start, stop) for start, stop in bounds(self.n_rows, block_rows)]


def bounds(n_rows: int, block_rows: int) -> list[tuple[int, int]]:
    """Return the [start, stop) of every block of block_rows rows; the last may be shorter."""
    if isinstance(block_rows, bool) or not isinstance(block_rows, (int, np.integer)):
        raise TypeError(
            f"block_rows must be a whole number of rows, but it is {block_rows!r} "
            f"({type(block_rows).__name__})."
        )
    if block_rows < 1:
        raise ValueError(f"block_rows must be at least 1, but it is {block_rows}.")
    step = int(block_rows)
    return [(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def dense(block: Any, dtype: np.dtype) -> np.ndarray:
    """Return block as a C-contiguous ndarray of the dtype, as a view when it already is one."""
    if sp.issparse(block):
        block = checked_sparse(block).toarray()
    if isinstance(block, np.ma.MaskedArray):
        # Masked means missing, and missing is NaN everywhere else.
        block = np.ma.filled(block.astype(dtype), np.nan) if dtype.kind == "f" else block.data
    return np.ascontiguousarray(block, dtype=dtype)


def frame_values(frame: Any, dtype: np.dtype) -> np.ndarray:
    """Return the values of a pandas DataFrame with missing values as NaN."""
    if any(not isinstance(kind, np.dtype) for kind in frame.dtypes):
        return np.ascontiguousarray(frame.to_numpy(dtype=dtype, na_value=np.nan))
    return np.ascontiguousarray(frame.to_numpy(dtype=dtype))


def checked_sparse(matrix: Any) -> Any:
    """Return a sparse matrix whose numbers of rows and columns are within its shape, or refuse it.

    SciPy and the compiled loops look these numbers up without a check of their own.  The values are
    shared and the matrix that was given stays as it is, which SciPy's own check would trim.
    """
    compressed = {"csr": sp.csr_array, "csc": sp.csc_array, "bsr": sp.bsr_array}.get(matrix.format)
    try:
        if matrix.format == "coo":
            _check_whole_numbers(matrix.row, matrix.col)
            return sp.coo_array((matrix.data, (matrix.row, matrix.col)), shape=matrix.shape)
        if compressed is None:
            return matrix
        _check_whole_numbers(matrix.indices, matrix.indptr)
        parts = (matrix.data, matrix.indices, matrix.indptr)
        checked = compressed(parts, shape=matrix.shape)
        checked.check_format(full_check=True)
    except (ValueError, IndexError, TypeError) as problem:
        raise UserError(
            f"`X` is a sparse matrix of shape {matrix.shape} that is damaged ({problem}); make it "
            "anew, for example with scipy.sparse.coo_array."
        ) from None
    return checked


def _check_whole_numbers(*arrays: np.ndarray) -> None:
    for array in arrays:
        if array.dtype.kind not in "iu":
            raise ValueError(f"its index arrays have the type {array.dtype}")


def csr(block: Any, dtype: np.dtype) -> Any:
    """Return block as a csr_array of the dtype with sorted indices and no repeated entries.

    Every sparse input passes here, and every sparse block that a task has read.
    """
    if not sp.issparse(block) and hasattr(block, "tocsr"):
        block = block.tocsr()
    matrix = checked_sparse(block) if sp.issparse(block) else block
    if not isinstance(matrix, sp.csr_array):
        matrix = checked_sparse(sp.csr_array(matrix))
    if matrix.dtype != dtype:
        matrix = matrix.astype(dtype)
    if not matrix.has_canonical_format:
        # csr_array may share its buffers with the caller's matrix, which must stay as it is.
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def csr_rows(matrix: Any, start: int, stop: int) -> Any:
    """Return rows [start, stop) of a csr_array without copying its values."""
    if start == 0 and stop == matrix.shape[0]:
        return matrix
    low, high = matrix.indptr[start], matrix.indptr[stop]
    parts = (
        matrix.data[low:high],
        matrix.indices[low:high],
        matrix.indptr[start : stop + 1] - low,
    )
    rows = sp.csr_array(parts, shape=(stop - start, matrix.shape[1]), copy=False)
    rows.has_sorted_indices = True
    rows.has_canonical_format = True
    return rows
