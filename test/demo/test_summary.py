"""The numbers of a run."""

import json

import pytest

from alpamayo_ros.demo.summary import Decision, Summary

DECISIONS = tuple(
    Decision(
        t_s=1.5 + k / 10,
        decision_ms=100.0 + k,
        stages_ms={"vision": 60.0 + k, "flow": 30.0},
        reasons=reasons,
    )
    for k, reasons in enumerate(
        [
            (),
            ("lateral: 7.3 m/s2 over 6 m/s2",),
            ("lateral: 9.0 m/s2 over 6 m/s2", "speed: 70 m/s over 60 m/s"),
            (),
            ("truncated",),
        ]
    )
)


def summary(decisions=DECISIONS, **changes) -> Summary:
    fields = {
        "refused": {"stale": 2},
        "seconds_from_first_window": 10.0,
        "model_id": "demo",
        "device": "cpu",
        "bag": "drive",
        **changes,
    }
    return Summary(decisions, **fields)


def test_plans_are_counted_by_verdict_and_reason():
    counted = summary()
    assert (counted.plans, counted.accepted) == (5, 2)
    assert counted.rejected == {"lateral": 2, "speed": 1, "truncated": 1}


def test_a_reason_given_twice_for_a_plan_counts_once():
    twice = Decision(1.0, 10.0, {}, ("lateral: 7 over 6", "lateral: 8 over 6"))
    assert summary((twice,)).rejected == {"lateral": 1}


def test_latencies_are_quantiles_of_each_stage():
    latency = summary().latency_ms
    assert list(latency) == ["decision", "vision", "flow"]
    # Of 100, 101, 102, 103, 104: p90 lies 0.9 * 4 = 3.6 steps from the first.
    assert vars(latency["decision"]) == pytest.approx({"median": 102, "p90": 103.6, "p99": 103.96})
    assert latency["flow"].p99 == 30.0


@pytest.mark.parametrize(
    ("decision_ms", "expected"), [(20.0, 90.0), (100.0, 90.0), (250.0, 36.0), (2000.0, 4.5)]
)
def test_expected_plans_follow_the_decision_time_down_to_ten_a_second(decision_ms, expected):
    decisions = (Decision(1.0, decision_ms, {}),)
    assert summary(decisions).expected_plans == pytest.approx(expected)


def test_a_run_without_plans_has_a_summary_too(tmp_path):
    document = json.loads(summary(()).write(tmp_path).read_text())
    assert document["plans"] == 0
    assert document["decision_time_median_ms"] is None
    assert document["latency_ms"] == {}
    assert document["expected_plans"] == pytest.approx(90.0)


def test_summary_json_has_its_keys_and_nothing_is_left_beside_it(tmp_path):
    path = summary().write(tmp_path)
    assert [path] == list(tmp_path.iterdir())
    document = json.loads(path.read_text())
    assert list(document) == [
        "plans",
        "accepted",
        "rejected",
        "refused",
        "latency_ms",
        "decision_time_median_ms",
        "seconds_from_first_window",
        "expected_plans",
        "model_id",
        "device",
        "bag",
        "version",
    ]
    assert document["refused"] == {"stale": 2}
    assert document["latency_ms"]["vision"]["median"] == pytest.approx(62.0)
    assert document["decision_time_median_ms"] == pytest.approx(102.0)
