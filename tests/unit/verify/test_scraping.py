"""Exporters that Prometheus does not scrape: the check waits for new ones."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.kube.prometheus import up_by_target
from gpufleet.verify.monitoring import absent_pods, are_new, scraped_twice

NOW = datetime(2026, 11, 25, 12, tzinfo=timezone.utc)


def pod(name: str, seconds: int | None) -> Any:
    """A pod that became Ready `seconds` ago, or does not state when if `seconds` is None."""
    since = None if seconds is None else NOW - timedelta(seconds=seconds)
    ready = SimpleNamespace(type="Ready", last_transition_time=since)
    status = SimpleNamespace(conditions=[ready])
    return SimpleNamespace(metadata=SimpleNamespace(name=name), status=status)


def test_targets_are_those_of_the_exporter() -> None:
    series = [
        {"metric": {"job": "dcgm-exporter", "pod": "a", "instance": "i"}, "value": [0, "1"]},
        {"metric": {"job": "dcgm-exporter", "instance": "10.0.0.1:9400"}, "value": [0, "0"]},
        {"metric": {"job": "kubelet", "instance": "10.0.0.1:10250"}, "value": [0, "1"]},
    ]
    up = up_by_target(series, "dcgm-exporter")
    assert up == {"a": "1", "10.0.0.1:9400": "0"}
    assert [each.metadata.name for each in absent_pods(up, [pod("a", 5), pod("b", 5)])] == ["b"]


@pytest.mark.parametrize(
    ("ages", "new"),
    [
        ((5,), True),
        ((None,), True),
        ((5, 170), True),
        ((190,), False),
        ((5, 190), False),
        ((), True),
    ],
)
def test_pods_are_waited_for_while_all_are_new(ages: tuple[int | None, ...], new: bool) -> None:
    assert are_new([pod(str(age), age) for age in ages], NOW) is new


def test_jobs_that_scrape_one_gpu() -> None:
    """NVIDIA's guide adds a job gpu-metrics although the chart has a ServiceMonitor."""
    found = [
        {"metric": {"UUID": uuid, "job": job, "pod": pod}}
        for uuid, job, pod in [
            ("GPU-1", "dcgm-exporter", "a"), ("GPU-1", "gpu-metrics", "a"),
            ("GPU-2", "dcgm-exporter", "b"), ("GPU-2", "dcgm-exporter", "b2"),
            ("GPU-3", "gpu-metrics", "c"), ("GPU-3", "dcgm-exporter", "c"),
        ]
    ]  # fmt: skip
    assert scraped_twice(found) == ["dcgm-exporter, gpu-metrics"]
    assert scraped_twice(found[2:4]) == []
