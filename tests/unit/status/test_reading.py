"""The view of a host that could not be read."""

from __future__ import annotations

from gpufleet.core.findings.settings import NEAR_MISS
from gpufleet.host.gather import Gathered
from gpufleet.run.findings import UNREACHABLE
from gpufleet.status.operations import _seen


def test_a_host_that_was_not_read_keeps_its_own_groups_and_what_is_wrong_with_its_data() -> None:
    problem = UNREACHABLE(host="gpu-07", cause="timed out")
    missed = NEAR_MISS(key="ssh_usr", place="the inventory", meant="ssh_user")
    groups = ("@ssh", "gpu_nodes", "lab", "gpu_nodes")
    data = {"rack": 7, "ssh_password": "hunter22", "repo": "https://me:pw@host/x", "map": {"a": 1}}
    host = _seen(Gathered("gpu-07", data, None, problem, misspelt=(missed,), groups=groups))
    assert host.data == {"rack": "7", "repo": "https://***@host/x"}, "texts and numbers, no secrets"
    assert (host.groups, host.problem, host.problems) == (("gpu_nodes", "lab"), problem, (missed,))
    assert host.settings is None
