"""gpu_node, then `gpufleet verify`: all checks are green on the other kinds of host."""

from __future__ import annotations

import pytest
from checking import verify
from containers import import_image
from deploying import run_deploy
from driver_state import NEWEST, assert_driver, driver_packages

from tests.hosts.conftest import HostFactory

pytestmark = pytest.mark.hosts


@pytest.mark.extended
def test_the_checks_are_green(bare_host: HostFactory) -> None:
    """containerd alone, no GPU, eight GPUs with NVSwitches; test_toolkit_role has the others."""
    hosts = [bare_host(kind) for kind in ("ubuntu2404", "nogpu", "nvswitch")]
    import_image(hosts[2])
    # nouveau holds the GPU of ubuntu2404 until the host is rebooted
    done = run_deploy("gpu_node", hosts, per_host={"ubuntu2404": {"node_reboot": "if_needed"}})
    assert done.returncode == 0, done.output
    found = verify(hosts)
    failed = {
        f"{name} {check}": result["message"]
        for name, part in found.items()
        for check, result in part["checks"].items()
        if result["outcome"] not in ("passed", "skipped")
    }
    assert failed == {}
    assert set(found) == {"ubuntu2404", "nogpu", "nvswitch"}
    assert found["ubuntu2404"]["passed"] > 15
    assert_driver(hosts[2], NEWEST["580"])
    assert hosts[2].output("systemctl is-active nvidia-fabricmanager") == "active"
    assert "nvidia-fabricmanager" in driver_packages(hosts[2])
    nvswitch = found["nvswitch"]["checks"]
    assert nvswitch["container_sees_gpus[docker]"]["outcome"] == "passed"
    assert nvswitch["fabric_manager"]["outcome"] == "passed"
