"""gpu_node, then `gpufleet verify`: all checks are green on the other kinds of host."""

from __future__ import annotations

import pytest
from checking import verify
from conftest import HostFactory
from containers import import_image
from deploying import run_deploy

pytestmark = pytest.mark.hosts


def test_the_checks_are_green(bare_host: HostFactory) -> None:
    """containerd alone, no GPU, eight GPUs with NVSwitches; test_toolkit_role has the others."""
    hosts = [bare_host(kind) for kind in ("ubuntu2404", "nogpu", "nvswitch")]
    import_image(hosts[2])
    done = run_deploy("gpu_node", hosts)
    assert done.returncode == 0, done.output
    found = verify(hosts)
    assert {name: part["failed"] for name, part in found.items()} == {
        "ubuntu2404": 0, "nogpu": 0, "nvswitch": 0,
    }  # fmt: skip
    assert found["ubuntu2404"]["passed"] > 15
    assert found["nogpu"]["passed"] >= 0
    nvswitch = found["nvswitch"]["checks"]
    assert nvswitch["container_sees_gpus[docker]"]["outcome"] == "passed"
    assert nvswitch["fabric_manager"]["outcome"] == "passed"
