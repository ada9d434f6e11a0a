"""Zarr stores and .npy files as inputs."""

import os
import pickle
import uuid
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr

from dmkc.data import as_rows

TABLE = np.arange(40, dtype=np.float32).reshape(10, 4)
RANDOM = np.random.default_rng(0).normal(size=(10, 4))

LAYOUTS = {
    "v2": {"zarr_format": 2, "chunks": (4, 3)},
    "v2-big-endian": {"zarr_format": 2, "chunks": (4, 3), "dtype": ">f4"},
    "v3": {"zarr_format": 3, "chunks": (3, 2)},
    "v3-sharded": {"zarr_format": 3, "chunks": (2, 2), "shards": (4, 4)},
    "v3-plain": {"zarr_format": 3, "chunks": (20, 20), "compressors": None},
}


def create(where, layout="v3", table=TABLE, **more):
    options = {"shape": table.shape, "dtype": table.dtype, **LAYOUTS[layout], **more}
    array = zarr.create_array(where, **options)
    array[:] = table
    return where


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", ["str", "path", "file-url", "memory-url", "opened"])
def test_array_at_the_root(layout, form, tmp_path, load_all):
    local = str(tmp_path / "x.zarr")
    where = f"memory://{uuid.uuid4()}/x" if form == "memory-url" else local
    create(where, layout)
    source = {
        "path": Path(local),
        "file-url": "file://" + local,
        "opened": zarr.open_array(local, mode="r") if form == "opened" else None,
    }.get(form, where)
    rows = as_rows(source)
    assert (rows.dtype, rows.in_memory, rows.container.kind) == (np.float32, False, "zarr")
    for block_rows in (1, 4, 7, 50):
        np.testing.assert_array_equal(load_all(rows, block_rows), TABLE)
    block = pickle.loads(pickle.dumps(rows.blocks(4)[1]))
    np.testing.assert_array_equal(block.load(), TABLE[4:8])


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_named_arrays_of_a_group(zarr_format, tmp_path, load_all):
    path = str(tmp_path / "g")
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    group.create_array("one", data=TABLE)
    group.create_array("line", data=np.arange(10))
    np.testing.assert_array_equal(load_all(as_rows(path), 4), TABLE)
    group.create_group("deep").create_array("two", data=TABLE + 1)
    message = (
        r"has 2 two-dimensional numeric arrays; choose one with variable= .*"
        r"'deep/two' \(10, 4\), 'line' \(10,\), 'one' \(10, 4\)"
    )
    with pytest.raises(ValueError, match=message):
        as_rows(path)
    for rows in (
        as_rows(path, variable="deep/two"),
        as_rows(path + "::deep/two"),
        as_rows(f"file://{path}::deep/two", variable="deep/two"),
        as_rows(zarr.open_group(path), variable="deep/two"),
    ):
        np.testing.assert_array_equal(load_all(rows, 4), TABLE + 1)
    with pytest.raises(ValueError, match=r"has no array 'three'; its arrays are 'deep/two'"):
        as_rows(path, variable="three")
    with pytest.raises(ValueError, match="names the array 'one' but variable='line'"):
        as_rows(path + "::one", variable="line")
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        as_rows(path, variable="line")


def test_a_group_in_a_memory_url(load_all):
    url = f"memory://{uuid.uuid4()}"
    zarr.open_group(url, mode="w").create_array("x", data=TABLE)
    for source in (url, url + "::x"):
        np.testing.assert_array_equal(load_all(as_rows(source), 3), TABLE)


def test_a_local_name_with_colons_is_not_split(tmp_path, load_all):
    create(tmp_path / "a::b")
    np.testing.assert_array_equal(load_all(as_rows(str(tmp_path / "a::b")), 3), TABLE)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("consolidated", [True, False])
@pytest.mark.filterwarnings("ignore:Consolidated metadata", "ignore:The data type")
def test_xarray_store(zarr_format, consolidated, tmp_path, load_all):
    path = str(tmp_path / "ds.zarr")
    coords = {"time": np.arange(10), "band": list("abcd")}
    array = xr.DataArray(RANDOM, dims=("time", "band"), coords=coords, name="image")
    array.chunk(time=4).to_zarr(path, zarr_format=zarr_format, consolidated=consolidated)
    rows = as_rows(path)
    assert rows.container.row_chunks == (4, 4, 2)
    np.testing.assert_array_equal(load_all(rows, 3), RANDOM)
    np.testing.assert_array_equal(load_all(as_rows(path, variable="image"), 3), RANDOM)


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_xarray_opened_without_chunks_stays_lazy(tmp_path, load_all):
    path = str(tmp_path / "ds.zarr")
    xr.DataArray(RANDOM, dims=("time", "band"), name="image").to_zarr(path)
    opened = xr.open_zarr(path, chunks=None)["image"]
    rows = as_rows(opened)
    assert (rows.in_memory, rows.container.lazy) == (False, True)
    assert not opened.variable._in_memory
    np.testing.assert_array_equal(load_all(rows, 3), RANDOM)


@pytest.mark.filterwarnings("ignore:Consolidated metadata", "ignore:saving variable")
def test_packed_xarray_values_are_refused(tmp_path):
    path = str(tmp_path / "ds.zarr")
    array = xr.DataArray(RANDOM, dims=("time", "band"), name="image")
    array.to_zarr(path, encoding={"image": {"dtype": "i2", "scale_factor": 0.1}})
    with pytest.raises(ValueError, match=r"packed values \(scale_factor\); open it with xarray"):
        as_rows(path)


def test_relative_paths_are_made_absolute(tmp_path, monkeypatch):
    create(str(tmp_path / "x.zarr"))
    monkeypatch.chdir(tmp_path)
    block = as_rows("x.zarr").blocks(4)[0]
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(block.load(), TABLE[:4])


def test_only_the_rows_asked_for_are_read(tmp_path):
    path = create(str(tmp_path / "x.zarr"), table=RANDOM, chunks=(2, 4))
    for row in (0, 1, 4):
        (tmp_path / "x.zarr" / "c" / str(row) / "0").write_bytes(b"broken")
    blocks = as_rows(path).blocks(4)
    np.testing.assert_array_equal(blocks[1].load(), RANDOM[4:8])
    with pytest.raises(ValueError, match="Rows 0 to 3 of"):
        blocks[0].load()


@pytest.mark.parametrize("layout", ["v2", "v3", "v3-sharded", "v3-plain"])
def test_a_truncated_chunk_names_the_store_and_the_rows(layout, tmp_path):
    path = create(str(tmp_path / "x.zarr"), layout, RANDOM)
    chunk = next(
        Path(folder, name)
        for folder, _, names in os.walk(path)
        for name in names
        if os.path.relpath(os.path.join(folder, name), path) in ("0.0", "c/0/0")
    )
    chunk.write_bytes(chunk.read_bytes()[:-9])
    with pytest.raises(ValueError, match=rf"Rows 0 to 1 of the Zarr store '{path}' could not"):
        as_rows(path).blocks(2)[0].load()


def test_a_missing_path(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is nothing at '.*nowhere'; give the path"):
        as_rows(str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="no Zarr array or group at 'memory://nowhere'"):
        as_rows("memory://nowhere")


def test_things_that_are_not_zarr_stores(tmp_path):
    with pytest.raises(ValueError, match="is not a Zarr store, because it holds no array"):
        as_rows(tmp_path)
    (tmp_path / "table.csv").write_text("1,2")
    with pytest.raises(ValueError, match="is a file, not a Zarr store"):
        as_rows(tmp_path / "table.csv")
    with pytest.raises(TypeError, match="given as bytes"):
        as_rows(os.scandir(os.fsencode(tmp_path)).__next__())


@pytest.mark.parametrize(("layout", "name"), [("v2", ".zarray"), ("v3", "zarr.json")])
@pytest.mark.parametrize("kept", [0, 40])
def test_truncated_metadata(layout, name, kept, tmp_path):
    path = create(str(tmp_path / "x.zarr"), layout)
    file = tmp_path / "x.zarr" / name
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ValueError, match=rf"metadata of the Zarr store '{path}' could not be read"):
        as_rows(path)


def test_truncated_metadata_inside_a_group(tmp_path):
    zarr.open_group(str(tmp_path / "g"), mode="w").create_array("x", data=TABLE)
    (tmp_path / "g" / "x" / "zarr.json").write_text("{")
    with pytest.raises(ValueError, match=r"arrays of the Zarr group .* could not be listed"):
        as_rows(tmp_path / "g")


def test_a_group_without_arrays(tmp_path):
    zarr.open_group(str(tmp_path / "g"), mode="w")
    with pytest.raises(ValueError, match=r"has 0 two-dimensional .* Its arrays are \(none\)"):
        as_rows(tmp_path / "g")


@pytest.mark.filterwarnings("ignore:The data type")
def test_a_store_of_text(tmp_path):
    zarr.create_array(str(tmp_path / "x"), data=np.array([["a", "b"]], dtype="<U4"))
    with pytest.raises(ValueError, match=r"The Zarr store .* does not hold numbers"):
        as_rows(tmp_path / "x")


def test_a_store_written_anew(tmp_path, load_all):
    path = create(str(tmp_path / "x.zarr"))
    stale = as_rows(path).blocks(4)[2]
    np.testing.assert_array_equal(stale.load(), TABLE[8:])
    create(path, table=RANDOM[:6], overwrite=True)
    np.testing.assert_array_equal(load_all(as_rows(path), 4), RANDOM[:6])
    fresh = pickle.loads(pickle.dumps(stale))
    from dmkc.data.store import _opened

    _opened.cache_clear()
    with pytest.raises(ValueError, match="has been written anew with another layout"):
        fresh.load()


def test_npy(tmp_path, load_all):
    path = tmp_path / "x.npy"
    np.save(path, TABLE)
    rows = as_rows(path)
    assert (rows.in_memory, rows.container.kind, rows.container.lazy) == (False, "npy", False)
    np.testing.assert_array_equal(load_all(rows, 3), TABLE)
    assert len(pickle.dumps(rows.blocks(3)[0])) < 700
    os.remove(path)
    np.save(path, RANDOM[:6])
    np.testing.assert_array_equal(load_all(as_rows(path), 4), RANDOM[:6])
    with pytest.raises(ValueError, match=r"had shape \(10, 4\) when it was checked and now"):
        rows.blocks(3)[0].load()


def test_npy_errors(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, TABLE)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ValueError, match=r"could not be memory-mapped as a \.npy file"):
        as_rows(path)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"could not be memory-mapped as a \.npy file"):
        as_rows(path)
    with pytest.raises(ValueError, match=r"remote \.npy file"):
        as_rows("memory://bucket/x.npy")
    np.save(path, np.arange(3))
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        as_rows(path)
