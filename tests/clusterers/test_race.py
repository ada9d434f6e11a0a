"""Starts race on a sample; the best of them, or all, go on with all rows, in shared scans."""

from __future__ import annotations

import numpy as np
import pytest

from dmkc.clusterers.fits import FitEnd, Learned, Named, Stage, race
from dmkc.clusterers.rowset import SampleRows
from dmkc.data import RowRecord
from dmkc.scan.assign import PLAIN, CentroidRequest

SAMPLE = SampleRows(RowRecord(np.arange(6.0).reshape(6, 1)), 64)
ROWS = SampleRows(RowRecord(np.arange(12.0).reshape(12, 1) ** 2), 64)
STARTS = [Named("low", 0.0), Named("middle", 2.5), Named("high", 9.0)]


def stage(rows: SampleRows, steps: int) -> Stage:
    """Means of the rows nearest to a centroid that has a fixed rival, so many times over."""

    def begin(name: str, centre: float):
        for _ in range(steps):
            found = yield CentroidRequest(PLAIN, np.array([[centre], [20.0]]))
            centre = float(found.sums[0, 0] / max(found.weights[0], 1.0))
        return centre

    return Stage(SampleRows(rows.record, 64), begin)


def least_is_highest(centre):
    return -centre


@pytest.mark.parametrize(("refine", "carried_on"), [("best", 1), ("all", 3)])
def test_which_starts_are_carried_on_to_all_rows(refine, carried_on):
    begun = []
    then = stage(ROWS, 2)

    def counted(name, centre):
        begun.append(name)
        return then.begin(name, centre)

    first = stage(SAMPLE, 3)
    found = race(STARTS, first, Stage(then.rows, counted), least_is_highest, refine)
    assert len(begun) == carried_on and found.name in begun
    assert first.rows.n_scans == 3 and then.rows.n_scans == 2  # whatever the number of starts


def test_without_other_rows_the_best_end_of_the_sample_is_kept():
    first = stage(SAMPLE, 1)
    ends = stage(SAMPLE, 1).run(STARTS)
    found = race(STARTS, first, None, least_is_highest)
    assert found == max(ends, key=lambda end: end.value)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("after", [True, False])
def test_a_fit_that_had_converged_stays_so_when_it_goes_on(before, after):
    def ended(converged, n_iter):
        return FitEnd(
            shares=np.ones(1), n_iter=n_iter, converged=converged, reason="labels settled"
        )

    def begin(name, fit):
        yield CentroidRequest(PLAIN, np.zeros((1, 1)))
        return ended(after, fit.n_iter + 1)

    learned = Learned(ended(before, 4), "k-means", None).continued(Stage(ROWS, begin))
    assert learned.start == "k-means" and learned.fit.n_iter == 5
    assert learned.fit.converged is (before or after)
