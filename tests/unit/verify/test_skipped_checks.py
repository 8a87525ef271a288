"""Checks that skip what the inventory, the toolkit or another component decides."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.verify.cluster import CheckedCluster
from gpufleet.verify.inventory import Target
from tests.post_deploy.test_cluster import need_monitoring
from tests.post_deploy.test_runtimes import REFUSED
from tests.post_deploy.test_toolkit import OF_GPUS

KEY = "accept-nvidia-visible-devices-envvar-when-unprivileged"


@pytest.mark.parametrize(
    ("data", "skips"),
    [({}, False), ({"monitoring_enabled": True}, False), ({"monitoring_enabled": False}, True),
     ({"monitoring_prometheus": "existing"}, False), ({"monitoring_prometheus": "none"}, True)],
)  # fmt: skip
def test_scraping_is_checked_unless_the_inventory_switches_it_off(
    data: dict[str, Any], skips: bool
) -> None:
    cluster = CheckedCluster(Target("@local", ("gpu_cluster",), data))
    if skips:
        with pytest.raises(pytest.skip.Exception):
            need_monitoring(cluster)
    else:
        need_monitoring(cluster)


@pytest.mark.parametrize(
    ("text", "ours"),
    [("cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n", True), ('{"kind":"nvidia.com/gpu"}', True),
     ('{"kind":"k8s.device-plugin.nvidia.com/gpu"}', False), ("kind: vendor.com/gpu\n", False)],
)  # fmt: skip
def test_only_specs_of_the_gpus_themselves_are_compared(text: str, ours: bool) -> None:
    assert bool(OF_GPUS.search(text)) is ours


@pytest.mark.parametrize(
    ("text", "refused"),
    [(f"{KEY} = false\n", True), (f"#{KEY} = false\n", False), (f"{KEY} = true\n", False)],
)
def test_a_toolkit_that_refuses_unprivileged_containers_is_seen(text: str, refused: bool) -> None:
    assert bool(REFUSED.search(f"disable-require = false\n{text}")) is refused
