"""A blocker of any role stops the host before the first change of the first role."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.api.exceptions import PyinfraError

from gpufleet.run.reporting import RunReport
from tests.roles.answers import facts_of
from tests.roles.blocked_beforehand_setup import deploy
from tests.roles.host_boundary_setup import CAPTURE, MIRROR, with_contents

BROKEN_JSON = with_contents("/etc/docker/daemon.json", '{"log-driver": "json-file",}')
# Facts and data of a host whose driver requires a change -> the blocker of another role.
IN_THE_WAY: dict[str, tuple[str, dict[str, Any], str]] = {
    "docker's configuration": (BROKEN_JSON, {}, "GF401"),
    "an exporter of an unknown version": (
        CAPTURE, {"exporter_enabled": True, "exporter_version": "9.9.9"}, "GF585"),
}  # fmt: skip


def blockers(facts: str, data: dict[str, Any]) -> list[str]:
    """The codes of the blockers of a host with these facts. No operation must start."""
    answers = {"uname -nrm": facts_of(facts)}
    common = {"fake_delay": 0.0, "fake_delay_jitter": 0.0, "fake_responses": answers}
    state = State(Inventory((["@fake/host"], {**common, **MIRROR, **data}), {}), Config())
    report = RunReport(state)
    state.add_callback_handler(report)
    connect_all(state)
    with pytest.raises(PyinfraError, match="No hosts remaining"):
        add_deploy(state, deploy)
    (host,) = state.inventory
    (part,) = report.gather()
    assert (part.status, part.changed) == ("failed", 0)
    assert not state.ops[host]
    return [finding.code for finding in part.findings if finding.blocks]


@pytest.mark.claim("A blocker of any role stops its host before any change.", level=2)
@pytest.mark.parametrize("what", IN_THE_WAY)
def test_no_operation_is_begun(what: str) -> None:
    facts, data, code = IN_THE_WAY[what]
    assert blockers(facts, data) == [code]


def test_a_preflight_of_the_repository_stops_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "checks").mkdir()
    text = "def preflight_freeze(host):\n    return f'{host.name} is frozen'\n"
    (tmp_path / "checks" / "preflight_freeze.py").write_text(text)
    assert blockers(CAPTURE, {}) == ["GF514"]
