"""--diff: the changes of configuration files are printed before anything is changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy

from gpufleet.host.boundary import one_host
from gpufleet.node.operations.preview import preview_host
from gpufleet.run.reporting import RunReport
from tests.roles.answers import facts_of, framed_lines
from tests.roles.blocked_beforehand_setup import deploy
from tests.roles.host_boundary_setup import MIRROR, with_contents

DAEMON = '{"log-driver": "json-file", "registry-token": "hunter2hunter2"}'
FACTS = with_contents("/etc/docker/daemon.json", DAEMON)


def previewed() -> None:
    """The steps of deploys/preflight.py."""
    with one_host():
        preview_host(lambda _: None)


@pytest.mark.parametrize("run", [previewed, deploy], ids=["plan", "apply, before the question"])
@pytest.mark.parametrize("diff", [True, False])
def test_differences_are_shown_before_the_run(
    run: Callable[[], None], diff: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {"uname -nrm": facts_of(FACTS), "gpufleet-lock_holder": framed_lines("")}
    data = {"fake_delay": 0.0, "fake_delay_jitter": 0.0, "fake_responses": answers,
            "exporter_enabled": True, "exporter_mode": "docker", **MIRROR}  # fmt: skip
    state = State(Inventory((["@fake/host"], data), {}), Config(DIFF=diff), check_for_changes=True)
    state.add_callback_handler(RunReport(state))
    connect_all(state)
    add_deploy(state, run)  # no operation is carried out
    shown = capsys.readouterr().err
    assert ("+runtimes.nvidia.path: nvidia-container-runtime" in shown) is diff
    assert ("/etc/docker/daemon.json (wanted)" in shown) is diff
    assert "hunter2" not in shown
    for path in ("/etc/modprobe.d", "/etc/systemd/system/gpufleet-dcgm-exporter.service"):
        assert (f"--- {path}" in shown) is diff
