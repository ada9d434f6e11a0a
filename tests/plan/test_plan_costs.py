"""From measured calls to a forecast."""

import pytest

from dmkc.planning.pilot import Pilot, at_size, forecast
from dmkc.planning.plan import duration, walltime
from dmkc.scan.meter import Call


def test_a_call_and_a_row_have_their_price():
    assert at_size([1e4, 4e4], [0.03, 0.06], 1e6) == pytest.approx(0.02 + 1e-6 * 1e6)


def test_no_price_is_negative():
    falling = at_size([1e4, 4e4], [0.05, 0.04], 1e7)
    assert 0.04 <= falling <= 0.05
    steep = at_size([1e4, 4e4], [0.001, 0.04], 4e5)
    assert steep == pytest.approx(0.4, rel=0.1)


def test_one_size_is_its_own_price():
    assert at_size([5e4, 5e4], [0.2, 0.4], 5e4) == pytest.approx(0.3)


def pilot(rows, scans, a_scan, outside, held=0, cold=0.0):
    calls = [Call("columns", False, False, rows, 2 * a_scan + cold, held)]
    calls += [Call("cuts", True, False, rows, a_scan, 0) for _ in range(scans)]
    seconds = outside + cold + (2 + scans) * a_scan
    return Pilot(rows, seconds, tuple(calls), scans, True)


def test_the_forecast_of_pilots():
    pilots = [
        pilot(1000, 8, 0.1, 1.0, 8000, cold=30.0),  # it compiles, and so says nothing of time
        pilot(1000, 10, 0.1, 1.0, 8000),
        pilot(4000, 12, 0.4, 1.0, 32_000),
    ]
    found = forecast(pilots, 100_000, None)
    steps = {step.name: step for step in found.steps}
    assert steps["cuts"].count == 10 and steps["cuts"].seconds == pytest.approx(10.0)
    assert steps["columns"].count == 1 and steps["columns"].seconds == pytest.approx(20.0)
    assert steps["columns"].held == pytest.approx(800_000)
    assert found.outside == pytest.approx(1.0)
    assert found.totals == pytest.approx((101.0, 121.0, 141.0))


def test_calls_on_a_training_subset_grow_with_it_alone():
    def trained(rows, train):
        calls = (
            Call("take", True, False, rows, 1e-6 * rows, 0),
            Call("cuts", True, True, train, 1e-4 * train, 0),
        )
        return Pilot(rows, sum(c.seconds for c in calls), calls, 2, True)

    found = forecast([trained(1000, 500), trained(1000, 500), trained(4000, 2000)], 10**6, 5000)
    assert {step.on: step.seconds for step in found.steps} == pytest.approx(
        {"all rows": 1.0, "training rows": 0.5}
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "00:05:00"), (1, "00:10:00"), (200, "00:10:00"), (3600, "01:35:00"), (4e5, "166:45:00")],
)
def test_walltimes_leave_a_margin(seconds, text):
    assert walltime(seconds) == text
    hours, minutes, rest = map(int, text.split(":"))
    assert 3600 * hours + 60 * minutes + rest >= 1.5 * seconds + 300


def test_durations_are_for_people():
    texts = [duration(s) for s in (0.0123, 3.456, 119, 600, 9000)]
    assert texts == ["12.3 ms", "3.46 s", "119 s", "10 min", "2 h 30 min"]
