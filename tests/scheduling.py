"""Which worker runs which file: hosts and control planes are started once for as many as possible.

Two workers begin with the tests on hosts, two with those on clusters, and the fifth with the rest,
which uses the CPU while hosts and clusters start. A worker without tests of its kind takes any
other. Long files come first; while programs of clusters are being built, clusters come last. The
two workers of clusters end when only clusters of hosts are left.
"""

from __future__ import annotations

import os
from typing import Any

from xdist.scheduler import LoadFileScheduling

HOSTS, CLUSTER = "tests/hosts/", "tests/cluster/"
KINDS = (HOSTS, CLUSTER, HOSTS, CLUSTER, "tests/unit/")  # first tests of each worker
OF_HOSTS = (  # clusters of hosts, of `make test-all`: more than three at once make two cores crawl
    "tests/hosts/test_kubeadm.py",
    "tests/hosts/test_upgrade_node_faults.py",
    "tests/hosts/test_kubeadm_faults.py",
    "tests/hosts/test_upgrade_nodes.py",
    "tests/hosts/test_control_planes.py",
    "tests/hosts/test_upgrade_faults.py",
    "tests/hosts/test_real_stack.py",
    "tests/hosts/test_bundle_cluster.py",
    "tests/hosts/test_shared_cluster.py",
)
LONG = (  # of a minute and more, the longest of each kind first
    "tests/cluster/test_gpu_stack.py",
    "tests/cluster/test_real_node.py",
    "tests/cluster/test_scrape.py",
    "tests/cluster/test_releases.py",
    "tests/cluster/test_cluster_removal.py",
    "tests/cluster/test_gpu_stack_faults.py",
    *OF_HOSTS,
    "tests/hosts/test_toolkit_role.py",
    "tests/hosts/test_driver_install.py",
    "tests/hosts/test_removal.py",
    "tests/hosts/test_exporter.py",
    "tests/hosts/test_el7.py",
    "tests/hosts/test_checks.py",
    "tests/hosts/test_driver_repository.py",
    "tests/hosts/test_driver_package_manager.py",
    "tests/hosts/test_upgrade.py",
    "tests/hosts/test_sandbox.py",
    "tests/hosts/test_driver_modules.py",
    "tests/hosts/test_exporter_refused.py",
    "tests/hosts/test_wheel.py",
    "tests/hosts/test_green.py",
    "tests/hosts/test_driver_killed.py",
    "tests/monitoring/test_dashboards.py",
    "tests/monitoring/test_dashboard_values.py",
)
BUILDING = "GPUFLEET_TEST_BUILDING"  # set where programs of clusters were missing at the start


class ByKind(LoadFileScheduling):  # type: ignore[misc]  # xdist is not typed here
    """Whole files, those of a worker's kind first."""

    def _reschedule(self, node: Any) -> None:
        if self.workqueue and ends(list(self.workqueue), kind(node)):
            node.shutdown()  # after the tests that it has
        super()._reschedule(node)

    def _assign_work_unit(self, node: Any) -> None:
        own = kind(node)
        building = bool(os.environ.get(BUILDING))
        best = min(self.workqueue, key=lambda scope: preference(scope, own, building))
        self.workqueue.move_to_end(best, last=False)
        super()._assign_work_unit(node)


def kind(node: Any) -> str:
    """The folder whose tests this worker prefers."""
    return KINDS[int(str(node.gateway.id).removeprefix("gw")) % len(KINDS)]


def ends(left: list[str], own: str) -> bool:
    """Whether a worker that prefers the folder `own` takes none of the files that are left."""
    return own == CLUSTER and set(left) <= set(OF_HOSTS)


def preference(file: str, own: str, building: bool) -> tuple[bool, bool, bool, int]:
    """The lower, the sooner a worker takes a file; `own`: the folder that it prefers."""
    others = own != HOSTS and file in OF_HOSTS  # of the two that begin with hosts
    late = building and file.startswith(CLUSTER)
    place = LONG.index(file) if file in LONG else len(LONG)
    return others, late, not file.startswith(own), place
