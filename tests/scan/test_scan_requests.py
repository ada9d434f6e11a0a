"""Requests of one kind share a scan, whoever asks; every fit gets the answer to its own."""

from __future__ import annotations

import numpy as np

from dmkc.clusterers.fits import run_together
from dmkc.clusterers.rowset import SampleRows
from dmkc.data import RowRecord
from dmkc.scan.assign import PLAIN, Centroids, CostScan
from dmkc.scan.cuts import Affine, CutRequest
from dmkc.scan.requests import ScanRequest

ROWS = np.random.default_rng(0).normal(size=(300, 4))


def cut(seed: int) -> CutRequest:
    rng = np.random.default_rng(seed)
    models = tuple(Affine(rng.normal(size=4), 0.1) for _ in range(seed + 1))
    return CutRequest(Affine(rng.normal(size=4), 0.0), models)


def cost(seed: int) -> ScanRequest:
    return ScanRequest(CostScan(Centroids(PLAIN, ROWS[None, seed : seed + 3])))


def test_kinds_of_requests_are_answered_by_one_scan_each():
    rows = SampleRows(RowRecord(ROWS), 64)
    found = rows.answer([cost(0), cut(0), cost(7), cut(2)])
    assert rows.n_scans == 2
    for got, seed in [(found[0], 0), (found[2], 7)]:
        for part, alone in zip(got, rows.ask(cost(seed)), strict=True):
            np.testing.assert_array_equal(part, alone)
    for cuts, seed in [(found[1], 0), (found[3], 2)]:
        alone = rows.ask(cut(seed))
        assert len(cuts) == len(alone) == seed + 1
        for a, b in zip(cuts, alone, strict=True):
            assert a.label_hash == b.label_hash and a.masked == b.masked


def test_a_statistic_asked_for_does_not_depend_on_blocks():
    scan = ScanRequest.shared_scan([cost(0), cost(5)], np.dtype(np.float64))
    whole = scan.block(ROWS, 0, 64)
    parts = scan.merge(scan.block(ROWS[:256], 0, 64), scan.block(ROWS[256:], 256, 64))
    for one, other in zip(scan.unpack(whole), scan.unpack(parts), strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_fits_share_scans_until_each_has_come_to_its_end():
    def fit(seed: int, steps: int):
        total = 0.0
        for _ in range(steps):
            total += len((yield cut(seed)))
        return total

    rows = SampleRows(RowRecord(ROWS), 64)
    assert run_together([fit(0, 3), fit(2, 1), fit(1, 0)], rows) == [3.0, 3.0, 0.0]
    assert rows.n_scans == 3
