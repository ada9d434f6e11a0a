"""Helpers shared by the data tests."""

import dask
import numpy as np
import pytest
import scipy.sparse as sp

from dmkc.data import Lazy, Rows


def _load_all(rows: Rows, block_rows: int) -> np.ndarray:
    """Load every block, check the promises about blocks, and return all rows as one array."""
    blocks = rows.blocks(block_rows)
    starts = list(range(0, rows.n_rows, block_rows))
    assert [block.start for block in blocks] == starts
    assert [block.stop for block in blocks] == [*starts[1:], rows.n_rows]
    lazy = [block.delayed for block in blocks if isinstance(block, Lazy)]
    if lazy:
        assert len(lazy) == len(blocks)
        values = dask.compute(*lazy, scheduler="synchronous")
    else:
        values = [block.load() for block in blocks]
    for block, value in zip(blocks, values, strict=True):
        assert value.shape == (block.stop - block.start, rows.n_columns)
        assert value.dtype == rows.dtype
        if rows.sparse:
            assert isinstance(value, sp.csr_array)
            fresh = sp.csr_array((value.data, value.indices, value.indptr), shape=value.shape)
            assert fresh.has_sorted_indices
            value.check_format(full_check=True)
        else:
            assert type(value) is np.ndarray
            assert value.flags.c_contiguous
    return np.vstack([value.toarray() if rows.sparse else value for value in values])


@pytest.fixture(scope="session")
def load_all():
    return _load_all
