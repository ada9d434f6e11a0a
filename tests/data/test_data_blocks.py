"""Every kind of input gives the same row blocks, whatever its chunks were."""

import logging
import pickle
from itertools import pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from dmkc.data import Read, as_rows

TABLE = np.random.default_rng(0).normal(size=(23, 4)).astype(np.float32)
TABLE[TABLE < -0.5] = 0.0
NAMES = ("a", "b", "c", "d")


def frame() -> pd.DataFrame:
    return pd.DataFrame(TABLE, columns=list(NAMES), index=[f"row{i:02}" for i in range(23)])


def on_disk(tmp_path) -> str:
    zarr.save_array(str(tmp_path / "x.zarr"), TABLE)
    return str(tmp_path / "x.zarr")


def npy(tmp_path):
    np.save(tmp_path / "x.npy", np.asfortranarray(TABLE))
    return tmp_path / "x.npy"


def sparse_chunks(cls, rows=(5, 0, 1, 17), columns=(4,)) -> da.Array:
    return da.from_array(TABLE, chunks=(rows, columns)).map_blocks(cls)


INPUTS = {
    "numpy": lambda tmp: TABLE,
    "fortran": lambda tmp: np.asfortranarray(TABLE),
    "strided": lambda tmp: np.repeat(np.repeat(TABLE, 2, axis=0), 3, axis=1)[::2, ::3],
    "big-endian": lambda tmp: TABLE.astype(">f4"),
    "masked": lambda tmp: np.ma.masked_array(TABLE),
    "pandas": lambda tmp: frame(),
    "pandas-sparse": lambda tmp: frame().astype(pd.SparseDtype(np.float32, 0)),
    "csr_matrix": lambda tmp: sp.csr_matrix(TABLE),
    "coo_array": lambda tmp: sp.coo_array(TABLE),
    "dok_array": lambda tmp: sp.dok_array(TABLE),
    "dask": lambda tmp: da.from_array(TABLE, chunks=(7, 3)),
    "dask-sparse": lambda tmp: sparse_chunks(sp.csr_matrix),
    "dask-sparse-columns": lambda tmp: sparse_chunks(sp.coo_array, columns=(1, 0, 3)),
    "dask-dataframe": lambda tmp: dd.from_pandas(frame(), npartitions=3),
    "xarray": lambda tmp: xr.DataArray(TABLE, dims=("row", "col"), coords={"col": list(NAMES)}),
    "xarray-dask": lambda tmp: xr.DataArray(da.from_array(TABLE, chunks=(6, 2))),
    "zarr-path": on_disk,
    "zarr-array": lambda tmp: zarr.open_array(on_disk(tmp)),
    "zarr-memory": lambda tmp: zarr.array(TABLE, chunks=(5, 3)),
    "npy": npy,
}
SPARSE = {"pandas-sparse", "csr_matrix", "coo_array", "dok_array", "dask-sparse"} | {
    "dask-sparse-columns"
}
NAMED = {"pandas", "pandas-sparse", "dask-dataframe", "xarray"}
NOT_IN_MEMORY = {key for key in INPUTS if key.startswith("dask")} | {
    "xarray-dask",
    "zarr-path",
    "zarr-array",
    "npy",
}


@pytest.mark.parametrize("kind", INPUTS)
def test_values_survive(kind, tmp_path, load_all):
    rows = as_rows(INPUTS[kind](tmp_path))
    assert (rows.n_rows, rows.n_columns, rows.dtype) == (23, 4, np.dtype(np.float32))
    assert rows.sparse == (kind in SPARSE)
    assert rows.column_names == (NAMES if kind in NAMED else None)
    assert rows.in_memory == (kind not in NOT_IN_MEMORY)
    for block_rows in (1, 5, 22, 23, 100):
        np.testing.assert_array_equal(load_all(rows, block_rows), TABLE)


@pytest.mark.parametrize("kind", INPUTS)
def test_read_blocks_survive_pickling(kind, tmp_path):
    for block in as_rows(INPUTS[kind](tmp_path)).blocks(10):
        if not isinstance(block, Read):
            assert kind in NOT_IN_MEMORY
            continue
        value = pickle.loads(pickle.dumps(block)).load()
        value = value.toarray() if sp.issparse(value) else value
        np.testing.assert_array_equal(value, TABLE[block.start : block.stop])


@st.composite
def chunking(draw, total: int) -> tuple[int, ...]:
    """Any way of cutting total into chunks, with empty ones and single rows."""
    cuts = sorted(draw(st.lists(st.integers(0, total), max_size=9)))
    edges = [0, *cuts, total]
    return tuple(high - low for low, high in pairwise(edges))


@settings(max_examples=40, deadline=None)
@given(rows=chunking(23), columns=chunking(4), block_rows=st.integers(1, 30))
def test_any_chunks_of_a_dask_array(load_all, rows, columns, block_rows):
    source = da.from_array(TABLE, chunks=(rows, columns))
    np.testing.assert_array_equal(load_all(as_rows(source), block_rows), TABLE)


@settings(max_examples=25, deadline=None)
@given(rows=chunking(23), columns=chunking(4), block_rows=st.integers(1, 30))
def test_any_chunks_of_a_sparse_dask_array(load_all, rows, columns, block_rows):
    source = sparse_chunks(sp.csr_array, rows, columns)
    np.testing.assert_array_equal(load_all(as_rows(source), block_rows), TABLE)


@settings(max_examples=15, deadline=None)
@given(rows=chunking(23), block_rows=st.integers(1, 30))
def test_any_partitions_of_a_dask_dataframe(load_all, rows, block_rows):
    edges = np.cumsum([0, *rows])
    parts = [TABLE[low:high] for low, high in pairwise(edges)]
    meta = pd.DataFrame(TABLE[:0], columns=list(NAMES))
    source = dd.from_map(lambda part: pd.DataFrame(part, columns=list(NAMES)), parts, meta=meta)
    found = as_rows(source)
    assert found.container.row_chunks == rows
    np.testing.assert_array_equal(load_all(found, block_rows), TABLE)


def test_numpy_blocks_are_views():
    blocks = as_rows(TABLE).blocks(10)
    assert all(np.shares_memory(block.load(), TABLE) for block in blocks)


@pytest.mark.parametrize("kind", ["array", "fortran", "memmap", "frame", "nullable", "sparse"])
def test_a_pickled_block_carries_only_its_own_rows(kind, tmp_path):
    table = np.random.default_rng(1).normal(size=(20_000, 5))
    np.save(tmp_path / "t.npy", table)
    index = [f"a rather long row name {i}" for i in range(len(table))]
    source = {
        "array": lambda: table,
        "fortran": lambda: np.asfortranarray(table),
        "memmap": lambda: np.load(tmp_path / "t.npy", mmap_mode="r"),
        "frame": lambda: pd.DataFrame(table, index=index).assign(extra=1),
        "nullable": lambda: pd.DataFrame(table, index=index).astype("Float64"),
        "sparse": lambda: sp.csr_array(table),
    }[kind]()
    block = as_rows(source).blocks(100)[3]
    own = 100 * 5 * 8
    assert own <= len(pickle.dumps(block)) < 3 * own
    value = pickle.loads(pickle.dumps(block)).load()
    value = value.toarray() if kind == "sparse" else value
    np.testing.assert_array_equal(value[:, :5], table[300:400])


def test_a_pickled_zarr_block_carries_no_rows(tmp_path):
    path = str(tmp_path / "x.zarr")
    zarr.save_array(path, np.zeros((10_000, 5)))
    block = as_rows(path).blocks(5_000)[0]
    block.load()
    assert len(pickle.dumps(block)) < 1_500


def test_unsorted_sparse_rows_are_sorted_in_a_copy(load_all):
    matrix = sp.csr_array(([1.0, 2.0, 3.0, 4.0], [2, 0, 1, 1], [0, 2, 4]), shape=(2, 3))
    rows = as_rows(matrix)
    np.testing.assert_array_equal(load_all(rows, 1), [[2, 0, 1], [0, 7, 0]])
    assert matrix.indices.tolist() == [2, 0, 1, 1]
    assert rows.density == pytest.approx(3 / 6)


def test_sparse_with_wide_indices(load_all):
    matrix = sp.csr_array(TABLE)
    matrix.indices, matrix.indptr = matrix.indices.astype("i8"), matrix.indptr.astype("i8")
    np.testing.assert_array_equal(load_all(as_rows(matrix), 7), TABLE)


def test_density_of_lazy_sparse_rows_comes_from_the_first_rows():
    assert as_rows(sparse_chunks(sp.csr_array)).density == np.count_nonzero(TABLE[:5]) / 20


@pytest.mark.parametrize("cls", [np.asarray, sp.csr_matrix])
def test_unknown_chunks_are_computed_on_a_copy(cls, caplog, load_all):
    source = da.from_array(TABLE, chunks=((6, 17), 4)).map_blocks(cls)
    source._chunks = ((np.nan, np.nan), (4,))
    with caplog.at_level(logging.INFO, logger="dmkc"):
        rows = as_rows(source)
    assert "unknown chunk sizes" in caplog.text
    assert np.isnan(source.chunks[0]).all()
    assert rows.container.row_chunks == (6, 17)
    np.testing.assert_array_equal(load_all(rows, 10), TABLE)


def test_unknown_chunks_after_a_filter(load_all):
    source = da.from_array(TABLE, chunks=(4, 2))
    kept = source[source[:, 0] > 0]
    np.testing.assert_array_equal(load_all(as_rows(kept), 3), TABLE[TABLE[:, 0] > 0])


def test_checks_and_blocks_of_a_dask_array_compute_nothing():
    def fail(block):
        raise AssertionError("computed")

    source = da.from_array(TABLE, chunks=(4, 2)).map_blocks(fail, dtype="f4", meta=TABLE[:0])
    assert len(as_rows(source).blocks(5)) == 5


def test_a_block_needs_only_the_chunks_it_overlaps():
    seen = []

    def note(block, block_info=None):
        seen.append(block_info[0]["chunk-location"][0])
        return block

    source = da.from_array(TABLE, chunks=(5, 2)).map_blocks(note, dtype="f4", meta=TABLE[:0])
    block = as_rows(source).blocks(7)[1]
    np.testing.assert_array_equal(dask.compute(block.delayed, scheduler="sync")[0], TABLE[7:14])
    assert set(seen) == {1, 2}


@pytest.mark.parametrize("block_rows", [0, -3, 2.5, True, None])
def test_block_rows_must_be_a_positive_whole_number(block_rows):
    with pytest.raises((TypeError, ValueError), match="block_rows must be"):
        as_rows(TABLE).blocks(block_rows)


def test_block_rows_may_be_a_numpy_integer():
    assert len(as_rows(TABLE).blocks(np.int64(10))) == 3


def test_parquet_in_several_files(tmp_path):
    """Dask joins such files when only the index is read, which must not move rows."""
    frame = pd.DataFrame({f"c{i}": np.arange(100.0) * (i + 1) for i in range(40)})
    dd.from_pandas(frame, npartitions=4).to_parquet(tmp_path / "rows.parquet")
    rows = as_rows(dd.read_parquet(tmp_path / "rows.parquet"))
    blocks = dask.compute(*[b.delayed for b in rows.blocks(33)])
    np.testing.assert_array_equal(np.concatenate(blocks), frame.to_numpy())
