"""Zarr stores of strangers: refused in a sentence before Zarr allocates or waits."""

import json
import os
import tracemalloc

import numpy as np
import pytest
import zarr
from numcodecs import Zstd

from dmkc.data import as_rows, chunks
from dmkc.errors import UserError


@pytest.fixture(params=[2, 3])
def store(request, tmp_path):
    path = tmp_path / "x.zarr"
    X = np.random.default_rng(0).normal(size=(60, 4))
    zarr.create_array(store=path, data=X, chunks=(20, 4), zarr_format=request.param)
    return path


def metadata(path):
    return next(p for p in (path / "zarr.json", path / ".zarray") if p.exists())


def chunk_of(path):
    known = ("zarr.json", ".zarray", ".zattrs")
    return next(p for p in sorted(path.rglob("*")) if p.is_file() and p.name not in known)


def read(path):
    rows = as_rows(str(path))
    return np.concatenate([block.load() for block in rows.blocks(rows.n_rows)])


def refused(path, words):
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=words) as caught:
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def claim(path, shape, chunk=None):
    place = metadata(path)
    stored = json.loads(place.read_text())
    stored["shape"] = shape
    if chunk is not None and "chunks" in stored:
        stored["chunks"] = chunk
    elif chunk is not None:
        stored["chunk_grid"]["configuration"]["chunk_shape"] = chunk
    place.write_text(json.dumps(stored))


@pytest.mark.parametrize("shape", [[10**10, 4], [10**18, 4], [60, 10**9]])
def test_shapes_that_the_files_cannot_fill(store, shape):
    claim(store, shape)
    refused(store, r"says that it has \d+ bytes, but")


def test_chunks_that_the_files_cannot_fill(store):
    claim(store, [10**9, 4], [10**9, 4])
    refused(store, "bytes, but")
    claim(store, [60, 4], [10**9, 4])
    refused(store, "bytes in a chunk, but")
    claim(store, [10**7, 4], [1, 1])
    refused(store, "chunks, but")


def test_what_is_absent_within_bounds_is_the_fill_value(store):
    claim(store, [1000, 4])
    assert not read(store)[60:].any()


def test_chunks_that_unpack_to_far_more(store, monkeypatch):
    monkeypatch.setattr(chunks, "SLACK_BYTES", 1 << 20)
    chunk_of(store).write_bytes(Zstd().encode(np.zeros(1 << 20)))
    refused(store, "unpacks to far more than the 640 bytes")
    chunk_of(store).write_bytes(bytes(1 << 21))
    refused(store, "is too large")


@pytest.mark.parametrize("part", [metadata, chunk_of])
def test_what_is_no_regular_file_is_not_opened(store, part):
    path = part(store)
    path.unlink()
    os.mkfifo(path)
    refused(store, "is not a regular file")
    path.unlink()
    path.symlink_to("/dev/zero")
    refused(store, "is not a regular file")
    path.unlink()
    path.symlink_to(path)
    refused(store, "cannot be opened")


def test_arrays_of_groups_too(tmp_path):
    group = zarr.create_group(store=tmp_path / "g.zarr")
    group.create_array("X", data=np.ones((20, 3)))
    path = tmp_path / "g.zarr" / "X"
    metadata(path).unlink()
    os.mkfifo(path / "zarr.json")
    refused(tmp_path / "g.zarr", "is not a regular file")


def test_attributes_that_are_none(tmp_path):
    zarr.create_array(store=tmp_path / "x", data=np.ones((20, 3)))
    stored = json.loads(metadata(tmp_path / "x").read_text())
    for attributes in (float("nan"), "text", [1]):
        metadata(tmp_path / "x").write_text(json.dumps({**stored, "attributes": attributes}))
        assert read(tmp_path / "x").all()
