"""Whether the Prometheus and the Alertmanager of our release count as working."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.verify.monitoring import monitoring_problems

OFF = {"monitoring_values": {"prometheus": {"enabled": False}}}


def item(name: str, *conditions: tuple[str, str, str]) -> dict[str, Any]:
    listed = [dict(zip(("type", "status", "message"), each, strict=True)) for each in conditions]
    return {"metadata": {"name": name}, "status": {"conditions": listed}}


WORKS = item("main", ("Reconciled", "True", ""), ("Available", "True", ""))


@pytest.mark.parametrize(
    ("prometheuses", "alertmanagers", "data", "wrong"),
    [
        ([WORKS], [WORKS], {}, []),
        ([WORKS], [], {}, []),
        ([], [], {}, ["no Prometheus"]),
        ([], [], OFF, []),
        ([item("main", ("Available", "False", "pending claim"))], [], {},
         ["prometheus main: Available is False (pending claim)"]),
        ([WORKS], [item("am", ("Reconciled", "False", "undefined receiver"))], {},
         ["alertmanager am: Reconciled is False (undefined receiver)"]),
        ([{"metadata": {"name": "old"}}], [], {}, []),  # before v0.57: no conditions
    ],
)  # fmt: skip
def test_what_does_not_work(
    prometheuses: list[Any], alertmanagers: list[Any], data: dict[str, Any], wrong: list[str]
) -> None:
    found = {"prometheus": prometheuses, "alertmanager": alertmanagers}
    assert monitoring_problems(found, data) == wrong
