"""Nodes that are not Ready or outside of a selector, and pods that the API server refuses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gpufleet_sandbox.waiting import wait_until
from tests.cluster.pods import SECONDS
from tests.cluster.stacking import Bench, Outcome

pytestmark = pytest.mark.claim(
    "A node that is not Ready does not stop a run; the output names it.",
    level=5,
)

FAILED = "sandbox.gpufleet/not-ready"  # annotation of a simulated node
TAINT = "node.kubernetes.io/not-ready"


def message(done: Outcome, code: str) -> str:
    """The messages of the findings of one code."""
    found = done.report.get("findings", ())
    return " ".join(each["message"] for each in found if each["code"] == code)


@contextmanager
def not_ready(bench: Bench, name: str) -> Iterator[None]:
    """A node that is NotReady and has the taint of it."""
    core = bench.core

    def is_tainted() -> bool:
        return TAINT in {taint.key for taint in core.read_node(name).spec.taints or ()}

    core.patch_node(name, {"metadata": {"annotations": {FAILED: "KubeletNotReady"}}})
    try:
        assert wait_until(is_tainted, SECONDS)
        yield
    finally:
        core.patch_node(name, {"metadata": {"annotations": {FAILED: None}}})
        assert wait_until(lambda: not is_tainted(), SECONDS)


def test_a_node_that_is_not_ready_stops_nothing(current: Bench) -> None:
    """A changed release is not rolled back, and a run without changes ends with 0."""
    assert current.deploy().returncode == 0
    with not_ready(current, "gpu-3"):
        done = current.deploy(monitoring_exporter_memory="2Gi", cluster_timeout=40)
        assert done.returncode == 0, done.output
        assert "gpu-3 (not Ready: " in message(done, "GF817")
        assert "GF848" not in done.codes
        again = current.deploy(monitoring_exporter_memory="2Gi", cluster_timeout=40)
        assert (again.returncode, again.report["changed"]) == (0, 0), again.output
        assert "gpu-3" in message(again, "GF817")


@pytest.mark.extended
@pytest.mark.parametrize("key", ["device_plugin_values", "monitoring_exporter_values"])
def test_a_narrowed_selector_is_no_failure(current: Bench, key: str) -> None:
    current.core.patch_node("gpu-1", {"metadata": {"labels": {"pool": "inference"}}})
    data: dict[str, Any] = {key: {"nodeSelector": {"pool": "inference"}}}
    done = current.deploy(**data, cluster_timeout=60)
    assert done.returncode == 0, done.output
    assert "gpu-2 (it does not have the label pool=inference), gpu-3 (" in message(done, "GF809")


@pytest.mark.claim("A quota that rejects pods is found before any change.", level=5)
@pytest.mark.extended
def test_a_quota_is_found_before_anything_is_changed(current: Bench) -> None:
    core: Any = current.core
    core.create_namespace({"metadata": {"name": "monitoring"}})
    core.create_namespaced_resource_quota(
        "monitoring", {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    )

    def counted() -> bool:
        return bool(core.read_namespaced_resource_quota("none", "monitoring").status.hard)

    assert wait_until(counted, SECONDS)
    done = current.deploy()
    assert done.returncode != 0
    assert "exceeded quota: none" in message(done, "GF819")
    assert current.releases() == {}
