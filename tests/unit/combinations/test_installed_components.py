"""Which components, and which of their properties, a host's facts show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.combinations.installed import installed_components
from gpufleet.combinations.models import Components, load_combinations
from gpufleet.facts.gpu import Listed
from gpufleet.facts.model import ClusterHost, DkmsModule, Kernel, ModuleOnDisk, Package, Runtime
from tests.unit.hosts import bare_host

pytestmark = pytest.mark.claim(
    "The versions of a host's components come from its packages and facts.", level=1
)

HEADERS = Kernel("6.12.22+deb13-amd64", "x86_64", headers=True)
ADDED = DkmsModule("nvidia", "535.216.03", "", "added")
MODULE = ModuleOnDisk("580.178.04", "Dual MIT/GPL", "/lib/modules/6.12/updates/nvidia.ko.xz")


def found(**changes: Any) -> Components:
    return installed_components(bare_host(**changes), load_combinations())


def test_a_bare_host_has_a_kernel_alone() -> None:
    assert found().versions == {"kernel": "5.15.0-122-generic"}
    assert found().traits == frozenset()


def test_packages_and_runtimes_have_upstream_versions() -> None:
    packages = {
        name: Package(name, version, "amd64")
        for name, version in (
            ("nvidia-container-toolkit-base", "1.18.0-1"),
            ("libnvidia-container1", "1.17.8-1"),
            ("datacenter-gpu-manager", "1:3.3.5"),
            ("kubelet", "1.27.2-1.1"),
        )
    }
    crio = Runtime("crio", "1.31.0", "crio.service", "/etc/crio/crio.conf", running=True)
    assert found(packages=packages, runtimes={"crio": crio}).versions == {
        "kernel": "5.15.0-122-generic",
        "toolkit": "1.18.0",
        "libnvidia-container": "1.17.8",
        "dcgm": "3.3.5",
        "kubelet": "1.27.2",
        "crio": "1.31.0",
    }


def test_sources_without_a_module_are_to_be_built() -> None:
    assert found(kernel=HEADERS, dkms=(ADDED,)).versions["driver-build"] == "535.216.03"


@pytest.mark.parametrize(
    "change",
    [
        {"kernel": replace(HEADERS, headers=False)},  # the cause is another one
        {"module_on_disk": MODULE},  # it was built, or came built
        {"modules": {"nvidia": "535.216.03"}},
        {"dkms": (replace(ADDED, state="installed"),)},
        {"dkms": (replace(ADDED, name="v4l2loopback"),)},
    ],
    ids=["no-headers", "module", "loaded", "installed", "other"],
)
def test_a_driver_that_was_built_is_not_judged_again(change: dict[str, Any]) -> None:
    facts: dict[str, Any] = {"kernel": HEADERS, "dkms": (ADDED,), **change}
    assert "driver-build" not in found(**facts).versions


def test_the_loaded_driver_counts() -> None:
    changes = {"modules": {"nvidia": "570.148.08"}, "module_on_disk": MODULE}
    assert found(**changes).versions["driver"] == "570.148.08"
    assert found(module_on_disk=MODULE).versions["driver"] == "580.178.04"


@pytest.mark.parametrize(
    ("change", "trait"),
    [
        ({"listed": Listed(1, mig_devices=7)}, "mig"),
        ({"cluster_host": ClusterHost("gpu-01")}, "cgroups-v2"),
        ({"module_on_disk": MODULE}, "compressed-module"),
        ({"module_on_disk": replace(MODULE, path="/lib/nvidia-current.ko")}, "nvidia-current"),
        ({"runtimes": {"containerd": "k3s-agent.service"}}, "k3s"),
        ({"runtimes": {"containerd": "rke2-server.service"}}, "rke2"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_traits(change: dict[str, Any], trait: str) -> None:
    units = change.get("runtimes", {})
    runtimes = {
        name: Runtime("containerd", "2.1.5", unit, "", running=True) for name, unit in units.items()
    }
    assert found(**{**change, "runtimes": runtimes}).traits == {trait}


def test_version_one_of_the_control_groups_has_no_trait() -> None:
    assert found(cluster_host=ClusterHost("gpu-01", cgroups=1)).traits == frozenset()
