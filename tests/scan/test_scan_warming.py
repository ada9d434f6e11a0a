"""What workers import, and when: little, and before they are sent anything."""

import sys
import time

import dask.array as da
import numpy as np
import pytest

from dmkc import KMeans, MultipleKernelClustering, SpectralClustering
from dmkc.scan import warming
from dmkc.scan.versions import check_versions

NOT_FOR_WORKERS = (
    *("dask.array", "dask.dataframe", "pandas", "xarray", "zarr"),
    *("sklearn", "clarabel", "cvxpy", "matplotlib", "dmkc.clusterers.base"),
)
X = np.random.default_rng(0).normal(size=(600, 3)) + 6 * (np.arange(600)[:, None] % 2)


def imported(client, names):
    """Which of these modules each worker has imported."""
    # sent by its code: by its name it would be found in this module, with all that this imports
    return client.run(lambda: {name for name in names if name in sys.modules}).values()


def until_prepared(client):
    end = time.monotonic() + 120
    while any(client.run(lambda: len(warming._begun)).values()):
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("chunks", [(600, 3), (100, 3), (70, 2)])
def test_workers_import_nothing_for_a_fit_that_scans_do_not_need(own_process_client, chunks):
    """Of rows that are there already, with labels computed."""
    client = own_process_client
    for method in (KMeans, MultipleKernelClustering, SpectralClustering):
        with client.as_current():
            rows = da.from_array(X, chunks=chunks).persist()
            labels = np.asarray(method(2, random_state=0).fit(rows).labels_)
        np.testing.assert_array_equal(labels, method(2, random_state=0).fit(X).labels_)
    assert list(imported(client, NOT_FOR_WORKERS)) == [set(), set()]


def test_workers_import_what_scans_need_before_they_are_sent_one(own_process_client):
    client, needed = own_process_client, (*warming.NEEDED, "numba", "dmkc.loopcache")
    assert list(imported(client, needed)) == [set(), set()]
    check_versions(client)
    until_prepared(client)
    assert list(imported(client, needed)) == [{*needed}, {*needed}]


def test_a_worker_that_cannot_prepare_itself_works_all_the_same(own_process_client):
    def lose():
        sys.modules["dmkc.loopcache"] = None  # importing it fails

    def find():
        del sys.modules["dmkc.loopcache"]

    client = own_process_client
    client.run(lose)
    check_versions(client)
    until_prepared(client)
    client.run(find)
    found = KMeans(2, random_state=0, client=client).fit(X)
    np.testing.assert_array_equal(found.labels_, KMeans(2, random_state=0).fit(X).labels_)
