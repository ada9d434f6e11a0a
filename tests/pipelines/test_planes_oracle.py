"""The oracle grid of nonparallel planes: its starts, its maps, and what a state file keeps."""

import json
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "pipelines" / "benchmarks"


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_starts_by_other_methods_are_different_labelings_of_two_clusters():
    from planes_starts import by_other_methods

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=120)
    starts = by_other_methods(rng.normal(size=(120, 3)) + 1.5 * y[:, None])
    assert 1 < len(starts) <= 16
    sides = {tuple(start.labels != start.labels[0]) for start in starts}
    assert len(sides) == len(starts)
    assert all(np.unique(start.labels).tolist() == [0, 1] for start in starts)


def test_maps_and_the_state(tmp_path):
    import planes_oracle

    narrow, wide = planes_oracle.maps(50, False), planes_oracle.maps(50, True)
    assert [title for title in wide if title not in narrow] == [
        f"{scale} columns{planes_oracle.WIDER}" for scale in planes_oracle.SCALES
    ]
    assert len(planes_oracle.maps(3, True)) == planes_oracle.MOST_MAPS
    state = tmp_path / "state.json"
    kept = {"error": 3.0, "how": "k-means", "from the truth": 1.0, "points": 4}
    state.write_text(json.dumps({"made": {"minmax columns": kept}}))

    def never():
        raise AssertionError("No start is needed where the state reaches the goal.")

    X, y = np.zeros((4, 50)), np.arange(4) % 2
    found = planes_oracle.oracle("made", X, y, 3.5, state, more=never)
    assert found["error"] == 3.0 and found["maps"] == f"1 of {len(wide)}"
    found = planes_oracle.oracle("made", X, y, 0.5, state, 0, never)
    assert found["points"] == 4
