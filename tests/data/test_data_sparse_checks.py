"""Sparse matrices whose indices lie: one sentence, before anything looks them up."""

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from dmkc import KMeans
from dmkc.data import as_rows
from dmkc.data.blocks import checked_sparse
from dmkc.errors import UserError


def matrix(kind="csr"):
    some = sp.random_array((60, 8), density=0.4, rng=np.random.default_rng(0), format="csr")
    return some.asformat(kind)


def put(name, place, value):
    """A change of one index."""

    def change(X):
        getattr(X, name)[place] = value
        return X

    return change


def replaced(name, make):
    def change(X):
        setattr(X, name, make(getattr(X, name)))
        return X

    return change


DAMAGED = {
    "column beyond": lambda: put("indices", 5, 10**8)(matrix()),
    "column below": lambda: put("indices", 5, -3)(matrix()),
    "wild row": lambda: put("indptr", 7, 2**30)(matrix()),
    "last row": lambda: put("indptr", -1, 2**30)(matrix()),
    "falling rows": lambda: put("indptr", 7, 0)(matrix()),
    "first row": lambda: put("indptr", 0, 3)(matrix()),
    "few rows": lambda: replaced("indptr", lambda a: a[:-2])(matrix()),
    "few columns": lambda: replaced("indices", lambda a: a[:-2])(matrix()),
    "fractions": lambda: replaced("indices", lambda a: a + 0.5)(matrix()),
    "csc": lambda: put("indices", 5, 10**8)(matrix("csc")),
    "bsr": lambda: put("indices", 0, 10**6)(matrix("bsr")),
    "coo row": lambda: put("row", 5, 10**8)(matrix("coo")),
    "coo column": lambda: put("col", 5, -1)(matrix("coo")),
    "lil": lambda: replaced("rows", _with_far_column)(matrix("lil")),
}


def _with_far_column(rows):
    rows[0] = [10**6]
    return rows


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_matrix_is_refused_in_a_sentence(name):
    X = DAMAGED[name]()
    if name == "lil":
        X.data[0] = [1.0]
    with pytest.raises(UserError, match=r"sparse matrix.*damaged") as caught:
        as_rows(X)
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_whole_matrices_pass_and_stay_as_they_are(kind):
    X = matrix(kind)
    before = X.toarray()
    rows = as_rows(X)
    (block,) = rows.blocks(rows.n_rows)
    np.testing.assert_array_equal(block.load().toarray(), before)
    np.testing.assert_array_equal(X.toarray(), before)


def test_a_matrix_with_room_to_spare_is_neither_refused_nor_trimmed():
    X = matrix()
    X.indices, X.data = np.append(X.indices, [99, 99]), np.append(X.data, [1.0, 1.0])
    assert checked_sparse(X).nnz == X.nnz
    assert len(X.indices) == X.nnz + 2


@pytest.mark.parametrize("name", ["column beyond", "wild row", "coo row"])
@pytest.mark.parametrize("chunk", [0, 1])
def test_chunks_of_a_lazy_array_are_checked_in_the_task_that_reads_them(name, chunk):
    chunks = [matrix(), matrix()]
    chunks[chunk] = DAMAGED[name]()
    lazy = [
        da.from_delayed(dask.delayed(part), (60, 8), dtype=float, meta=sp.csr_array((0, 0)))
        for part in chunks
    ]
    with pytest.raises(UserError, match="damaged"):
        KMeans(2, random_state=0).fit(da.concatenate(lazy))


def test_a_sparse_chunk_of_an_array_that_seems_dense_is_checked():
    part = dask.delayed(DAMAGED["column beyond"]())
    lazy = da.from_delayed(part, (60, 8), dtype=float, meta=np.empty((0, 0)))
    (block,) = as_rows(lazy).blocks(60)
    with pytest.raises(UserError, match="damaged"):
        block.delayed.compute()


def test_predict_and_views_look_too():
    model = KMeans(2, random_state=0).fit(matrix())
    for X in (DAMAGED["column beyond"](), {"a": DAMAGED["column beyond"]()}):
        with pytest.raises(UserError, match="damaged"):
            model.predict(X)
