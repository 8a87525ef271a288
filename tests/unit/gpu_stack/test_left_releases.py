"""Releases of gpufleet that are no longer in the inventory are named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.kube.facts import HelmRelease, ReleaseRef
from gpufleet.kube.helm_releases import ADOPTED_LABEL
from tests.unit.gpu_stack.gpu_clusters import FACTS, OURS, named, stack

EXPORTER = named("dcgm-exporter", "monitoring", OURS)


def left(*releases: HelmRelease, **data: Any) -> list[str]:
    plan = stack(replace(FACTS, releases=releases), **data)
    return [found.remedy for found in plan.findings if found.code == "GF971"]


def test_a_component_that_was_turned_off_is_named_with_its_command() -> None:
    (remedy,) = left(EXPORTER, monitoring_exporter=False)
    assert "`helm uninstall dcgm-exporter -n monitoring`" in remedy
    assert left(EXPORTER) == []


@pytest.mark.parametrize(
    "release",
    [
        named("dcgm-exporter", "monitoring", {}),
        named("dcgm-exporter", "monitoring", {**OURS, ADOPTED_LABEL: "true"}),
        named("dcgm-exporter", "elsewhere", OURS),
        replace(EXPORTER, status="uninstalled"),
    ],
    ids=["of others", "taken over", "in another namespace", "uninstalled"],
)
def test_what_gpufleet_did_not_install_there_is_not_named(release: HelmRelease) -> None:
    assert left(release, monitoring_exporter=False) == []


def test_what_a_blocker_names_is_not_named_twice() -> None:
    plugin = named("nvidia-device-plugin", "kube-system", OURS)
    plan = stack(replace(FACTS, releases=(plugin,)), cluster_stack="gpu-operator")
    assert [found.code for found in plan.findings if plugin.name in found.message + found.remedy]
    assert left(plugin, cluster_stack="gpu-operator") == []


def test_a_release_in_a_namespace_that_the_inventory_left_blocks_a_second_one() -> None:
    """monitoring_namespace was changed: helm cannot move a release."""
    old = ReleaseRef("monitoring", "dcgm-exporter")
    facts = replace(FACTS, own_releases=(old,))
    assert "GF813" not in {found.code for found in stack(facts).findings}
    (found,) = (
        each for each in stack(facts, monitoring_namespace="mon").findings if each.code == "GF813"
    )
    assert "monitoring/dcgm-exporter" in found.message
    assert "monitoring_namespace = 'monitoring'" in found.remedy
    assert "`helm uninstall dcgm-exporter -n monitoring`" in found.remedy


def test_a_second_release_of_gpufleet_is_named_if_the_cluster_has_both() -> None:
    both = tuple(ReleaseRef(space, "dcgm-exporter") for space in ("mon", "monitoring"))
    plan = stack(replace(FACTS, own_releases=both), monitoring_namespace="mon")
    assert [each.code for each in plan.findings if "-n monitoring`" in each.remedy] == ["GF971"]
