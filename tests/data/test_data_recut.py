"""Rows in other chunks: the same values, and an array of the caller's own."""

from itertools import pairwise

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmkc.data.recut import in_chunks

TABLE = np.arange(33.0).reshape(11, 3)


def parts(total):
    """Sizes that add up, some of them zero."""
    cuts = st.lists(st.integers(0, total), max_size=5).map(sorted)
    return cuts.map(lambda edges: tuple(b - a for a, b in pairwise([0, *edges, total])))


@settings(max_examples=60, deadline=None)
@given(parts(11), parts(11), st.integers(1, 3))
def test_values_stay_whatever_the_chunks(old, new, wide):
    for values, columns in ((TABLE, (wide,)), (TABLE[:, 0], ())):
        out = in_chunks(da.from_array(values, chunks=(old, *columns)), new)
        assert out.chunks == (new, *((size,) for size in values.shape[1:]))
        whole = out.compute(scheduler="sync")
        np.testing.assert_array_equal(whole, values)
        assert whole.dtype == values.dtype
        for place, (start, stop) in enumerate(pairwise([0, *np.cumsum(new)])):
            part = out.blocks[place].compute(scheduler="sync")
            np.testing.assert_array_equal(part, values[start:stop])


@pytest.mark.parametrize("old", [11, 4])
def test_what_is_computed_belongs_to_the_caller(old):
    given = TABLE.copy()
    out = in_chunks(da.from_array(given, chunks=(old, 2)), (11,))
    out.compute(scheduler="sync")[:] = -1.0
    np.testing.assert_array_equal(out.compute(scheduler="sync"), TABLE)
    np.testing.assert_array_equal(given, TABLE)
