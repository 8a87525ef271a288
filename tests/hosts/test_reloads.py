"""systemd reads its units again only if it must, and never while containers have GPUs.

Simulated GPUs do not leave a container: the tests count how often systemd read its units.
https://github.com/NVIDIA/nvidia-container-toolkit/issues/1227 (2025-08-07) has the loss.
"""

from __future__ import annotations

from typing import Any

import pytest
from containers import WITH_GPUS, import_image, start
from deploying import Outcome, run_deploy

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.claim(
        "systemd does not reload its units while containers use GPUs; a later run does it.",
        level=3,
    ),
]

OVERRIDE = "/etc/systemd/system/nvidia-persistenced.service.d/gpufleet.conf"
CDI_UNITS = "nvidia-cdi-refresh.path nvidia-cdi-refresh.service"
RUNS_WITHOUT = f"""
set -e
rm {OVERRIDE}
systemctl disable -q {CDI_UNITS}
systemctl daemon-reload
systemctl restart nvidia-persistenced
"""
EXPORTER: dict[str, Any] = {"exporter_enabled": True}
OLDER, NEWER = "1.18.2", "1.20.1"  # versions of the toolkit


def reloads(host: Host) -> int:
    """How often systemd has read its units since the boot."""
    lines = host.output("journalctl -b _PID=1 -o cat").splitlines()
    return sum(line.startswith("Reloading") for line in lines)


def deploy(host: Host, **data: Any) -> Outcome:
    done = run_deploy("gpu_node", [host], **EXPORTER, **data)
    assert done.returncode == 0, done.output
    return done


def persistence_is_off(host: Host) -> bool:
    started = host.output("systemctl show -p ExecStart nvidia-persistenced")
    return "--no-persistence-mode" in started


@pytest.fixture(scope="module")
def host(bare_host: HostFactory) -> Host:
    found = bare_host("ubuntu2204")
    deploy(found)
    import_image(found)
    return found


def test_a_converged_run_reloads_nothing(host: Host) -> None:
    before = reloads(host)
    assert before > 0, "the journal has no reloads, also none of the packages' scripts"
    done = deploy(host)
    assert (sum(done.changes().values()), reloads(host)) == (0, before)


def test_changes_wait_for_a_container_that_has_gpus(host: Host) -> None:
    """The container holds no device open. The devices that its runtime passed to it count."""
    host.run(RUNS_WITHOUT)
    start(host, "idle", WITH_GPUS)
    before = reloads(host)
    done = deploy(host, exporter_port=9500)
    assert reloads(host) == before
    assert "GF537" in done.codes(host.name)
    assert host.run(f"test -s {OVERRIDE}", check=False).returncode == 0
    assert persistence_is_off(host)
    assert host.output(f"systemctl is-enabled {CDI_UNITS}").split() == ["enabled", "enabled"]
    assert "9400" in host.output("ss -ltnH")
    again = deploy(host, exporter_port=9500)
    assert (sum(again.changes().values()), reloads(host)) == (0, before), again.output
    assert "GF537" in again.codes(host.name)


def test_package_scripts_reload_nothing_beside_it(host: Host) -> None:
    """The toolkit's package scripts run `systemctl daemon-reload` when the version changes."""
    before = reloads(host)
    deploy(host, exporter_port=9500, toolkit_version=OLDER, toolkit_allow_change=True)
    assert OLDER in host.output("nvidia-ctk --version")
    assert reloads(host) == before
    deploy(host, exporter_port=9500, toolkit_version=NEWER, toolkit_allow_change=True)
    assert reloads(host) == before


def test_the_next_run_without_the_container_finishes(host: Host) -> None:
    host.run("docker rm -f idle")
    before = reloads(host)
    done = deploy(host, exporter_port=9500)
    assert "GF537" not in done.codes(host.name)
    assert not persistence_is_off(host)
    assert "9500" in host.output("ss -ltnH")
    assert before < reloads(host) <= before + 2
    assert sum(deploy(host, exporter_port=9500).changes().values()) == 0
