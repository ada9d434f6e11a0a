"""Records: bit for bit, and nothing but plain values."""

from __future__ import annotations

import contextlib
import os
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dmkc import Gaussian, Linear
from dmkc.resume.journal import (
    MAGIC,
    NAME,
    CheckpointError,
    DamagedRecord,
    Journal,
    NotRecordable,
    digest,
    from_bytes,
    to_bytes,
)
from dmkc.scan.cuts import Affine
from dmkc.scan.survey import Survey

NUMBERS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just(np.int64(3))
)
ARRAYS = arrays.arrays(
    st.sampled_from([np.float32, np.float64, np.int32, np.uint64, np.bool_]),
    arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
VALUES = st.recursive(
    st.one_of(NUMBERS, ARRAYS),
    lambda inside: st.one_of(
        st.lists(inside, max_size=3),
        st.lists(inside, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inside, max_size=3),
    ),
    max_leaves=8,
)


def assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, np.ndarray | np.generic):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    elif isinstance(a, tuple | list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, float):
        assert np.float64(a).tobytes() == np.float64(b).tobytes() or (a != a and b != b)
    else:
        assert a == b


@given(VALUES)
def test_values_come_back_bit_for_bit(value):
    assert_same(from_bytes(to_bytes(value)), value)


def test_order_in_memory_is_kept():
    for array in (np.ones((3, 4), order="F"), np.ones((3, 4))):
        back = from_bytes(to_bytes(array))
        assert back.flags.f_contiguous == array.flags.f_contiguous


def test_dataclasses_of_the_package_and_sparse_rows_come_back():
    sample = sp.csr_array(np.eye(3))
    ones = np.ones(3)
    survey = Survey(3.0, ones, ones, ones, ones, np.zeros(2), ((1, 2),), sample, ones)
    back = from_bytes(to_bytes({"answer": survey}))["answer"]
    assert isinstance(back, Survey) and back.first_bad == ((1, 2),)
    assert (back.sample != sample).nnz == 0 and isinstance(back.sample, sp.csr_array)


@pytest.mark.parametrize("value", [object(), {1: 2}, np.array([object()]), {3}, os.stat("/")])
def test_other_values_are_refused(value):
    with pytest.raises(NotRecordable):
        to_bytes(value)


def test_a_record_can_name_no_class_of_others():
    stored = to_bytes(Affine(np.zeros(1), 0.0))
    assert from_bytes(stored).b == 0.0
    for module, name in (("os", "system"), ("dmkc.cli.app", "main"), ("subprocess", "Popen")):
        evil = stored.replace(b"dmkc.scan.cuts", module.encode()).replace(b"Affine", name.encode())
        size = len(evil) - len(stored)
        evil = (int.from_bytes(stored[:8], "little") + size).to_bytes(8, "little") + evil[8:]
        with pytest.raises(DamagedRecord):
            from_bytes(evil)
    with pytest.raises(DamagedRecord):
        from_bytes(pickle.dumps(1))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_damaged(data):
    with contextlib.suppress(DamagedRecord):
        from_bytes(data)


def test_digests_tell_questions_apart():
    one = Affine(np.arange(3.0), 1.0)
    assert digest(one) == digest(Affine(np.arange(3.0), 1.0))
    others = [
        Affine(np.arange(3.0), np.nextafter(1.0, 2.0)),
        Affine(np.arange(3.0, dtype=np.float32), 1.0),
        Affine(np.array([0.0, 1.0, 2.5]), 1.0),
        (np.arange(3.0), 1.0),
    ]
    others += [Gaussian(0.5), Gaussian(0.6), Linear(), [Linear()], 1, 1.0, True, "1", None, b"1"]
    others += [lambda a, b: a @ b.T, lambda a, b: a + b.T]
    found = {digest(value) for value in [one, *others]}
    assert len(found) == 1 + len(others)


@pytest.fixture
def journal(tmp_path):
    opened = Journal(tmp_path, 0.0)
    yield opened
    opened.close()


def records(path):
    opened = Journal(path, 0.0)
    found = [opened.read() for _ in range(len(opened))]
    opened.close()
    return found


def test_a_journal_torn_anywhere_gives_whole_records(tmp_path, monkeypatch):
    """Cut at every byte: what is read is what had been written whole, and writing goes on."""
    first = tmp_path / "first"
    first.mkdir()
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # hundreds of files
    opened, values, ends = Journal(first, 0.0), [], [len(MAGIC)]
    for number in range(3):
        values.append({"number": number, "array": np.arange(number, dtype=np.int8)})
        opened.append(to_bytes(values[-1]))
        ends.append((first / NAME).stat().st_size)
    opened.close()
    whole = (first / NAME).read_bytes()
    for cut in range(len(whole) + 1):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / NAME).write_bytes(whole[:cut])
        expected = max(sum(end <= cut for end in ends) - 1, 0)
        again = Journal(folder, 0.0)
        assert len(again) == expected
        for value in values[:expected]:
            assert_same(again.read(), value)
        again.append(to_bytes("next"))
        again.close()
        found = records(folder)
        assert found[-1] == "next" and len(found) == expected + 1


def test_a_changed_byte_is_never_read(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    opened = Journal(tmp_path, 0.0)
    for number in range(3):
        opened.append(to_bytes({"number": number}))
    opened.close()
    whole = bytearray((tmp_path / NAME).read_bytes())
    for at in range(len(MAGIC), len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1
        (tmp_path / NAME).write_bytes(changed)
        found = [record["number"] for record in records(tmp_path)]
        assert found == list(range(len(found))) and len(found) < 3


def test_another_file_is_not_overwritten(tmp_path):
    (tmp_path / NAME).write_text("my notes\n")
    with pytest.raises(CheckpointError, match="not a journal"):
        Journal(tmp_path, 0.0)
    assert (tmp_path / NAME).read_text() == "my notes\n"


def test_one_process_at_a_time(tmp_path, journal):
    with pytest.raises(CheckpointError, match="Another process"):
        Journal(tmp_path, 0.0)


def test_the_rest_can_be_forgotten(tmp_path, journal):
    for number in range(5):
        journal.append(to_bytes(number))
    journal.close()
    again = Journal(tmp_path, 0.0)
    assert [again.read(), again.read(), again.read()] == [0, 1, 2]
    again.forget_rest()
    assert not again.replaying
    again.append(to_bytes(20))
    again.close()
    assert records(tmp_path) == [0, 1, 20]
    journal._handle = os.open(os.devnull, os.O_RDONLY)  # closed above; the fixture closes again


def test_a_full_disk_ends_checkpoints_and_not_the_fit(tmp_path, journal, monkeypatch, caplog):
    journal.append(to_bytes(1))

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("dmkc.resume.journal._write_all", full)
        journal.append(to_bytes(2))
    journal.append(to_bytes(3))
    assert "No more checkpoints" in caplog.text
    assert len(journal) == 1
