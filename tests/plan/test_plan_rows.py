"""Some of the rows as an input of their own."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from sklearn.base import clone

from dmkc import KMeans, MultipleKernelClustering
from dmkc.data import as_rows
from dmkc.planning.pilot import pilot_sample, run_rows, some_rows
from dmkc.scan.engine import ThreadEngine
from dmkc.scan.grid import Grid
from dmkc.scan.survey import sample_positions

N = 50_000
VALUES = np.column_stack([np.arange(N), np.arange(N) % 7]).astype(np.float64)


def as_zarr(folder):
    array = zarr.create_array(folder / "x.zarr", shape=VALUES.shape, chunks=(10_000, 2), dtype="f8")
    array[:] = VALUES
    return str(folder / "x.zarr")


FORMS = {
    "numpy": lambda folder: VALUES,
    "frame": lambda folder: pd.DataFrame(VALUES, columns=["a", "b"], index=np.arange(N) + 7),
    "sparse": lambda folder: sp.csr_array(VALUES),
    "dask": lambda folder: da.from_array(VALUES, chunks=(9_000, 2)),
    "zarr": as_zarr,
}


def loaded(block):
    values = block.delayed.compute() if hasattr(block, "delayed") else block.load()
    return values.toarray() if sp.issparse(values) else values


@pytest.mark.parametrize("form", FORMS)
def test_blocks_are_whole_runs_of_the_input(form, tmp_path):
    rows = as_rows(FORMS[form](tmp_path))
    some = some_rows(rows, 16_384, threads=1, turn=0)
    assert some.n_rows == 16_384
    values = []
    for i, block in enumerate(some.blocks(2048)):
        assert (block.start, block.stop) == (2048 * i, 2048 * (i + 1))
        values.append(loaded(block))
    found = np.concatenate(values)[:, 0].reshape(-1, 4096)
    assert np.array_equal(found - found[:, :1], np.tile(np.arange(4096.0), (4, 1)))
    assert np.all(np.diff(found[:, 0]) > 4096), "the runs are spread over the input"
    labels = some.container.row_labels(np.array([0, 16_383]))
    first = 7 if form == "frame" else 0
    assert labels == [str(int(found[0, 0]) + first), str(int(found[-1, -1]) + first)]


@pytest.mark.parametrize("form", FORMS)
def test_the_sample_of_all_rows_follows(form, tmp_path):
    rows, engine = as_rows(FORMS[form](tmp_path)), ThreadEngine()
    sample = pilot_sample(rows, engine, 3000, seed=5)
    assert np.array_equal(sample.positions, sample_positions(N, 3000, 5))
    some = some_rows(rows, 16_384, threads=1, turn=0, sample=sample)
    values = np.concatenate([loaded(block) for block in some.blocks(2048)])
    assert len(values) == some.n_rows
    assert np.array_equal(values[some.sampled, 0], sample.positions)
    labels = some.container.row_labels(np.array([5, some.sampled[7]]))
    first = 7 if form == "frame" else 0
    assert labels == [str(int(values[i, 0]) + first) for i in (5, some.sampled[7])]


def test_a_fit_of_some_rows_begins_from_that_sample():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    model = MultipleKernelClustering(rank=15, sample_rows=1000, random_state=3)
    rows = as_rows(X)
    sample = pilot_sample(rows, ThreadEngine(), 1000, seed=3)
    some = some_rows(rows, 8192, threads=1, turn=1, sample=sample)
    whole, part = (clone(model).fit(x) for x in (X, some))
    scaled = [m.model_.features.plan.scaling for m in (whole, part)]
    marks = [
        m.model_.features.plan.fitted[-1].landmarks / s.factor + s.shift
        for m, s in zip((whole, part), scaled, strict=True)
    ]
    assert marks[0] == pytest.approx(marks[1], abs=1e-5)


def test_turns_take_other_rows():
    rows = as_rows(VALUES)
    first, second = (some_rows(rows, 16_384, threads=1, turn=turn) for turn in (0, 1))
    there = [{loaded(b)[0, 0] for b in some.blocks(4096)} for some in (first, second)]
    assert not there[0] & there[1]


def test_few_rows_are_all_taken():
    rows = as_rows(VALUES)
    assert some_rows(rows, N, threads=1, turn=0) is rows


@pytest.mark.parametrize("threads", [1, 3, 8])
@pytest.mark.parametrize("width", [1, 300, 40_000])
def test_every_block_of_a_fit_fits_into_a_run(threads, width):
    for n in (5_000, 65_536, 1_000_000):
        grid = Grid.plan(n, width, 48 << 20, threads)
        assert run_rows(n, threads) % grid.block_rows == 0


def test_some_rows_can_be_fitted():
    some = some_rows(as_rows(VALUES), 16_384, threads=1, turn=0)
    values = np.concatenate([loaded(b) for b in some.blocks(4096)])
    found, expected = (KMeans(3, random_state=0).fit(X) for X in (some, values))
    assert np.array_equal(found.labels_, expected.labels_)
