"""A removal reports the files that stay on the host, not those that its plan expected to stay."""

from __future__ import annotations

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.api.operations import run_ops

from gpufleet.driver.files import MODPROBE_FILE
from gpufleet.facts.model import ManagedFile
from gpufleet.node.operations import removal
from gpufleet.node.settings import load_node_settings
from gpufleet.node.unfinished import NOTHING_LEFT
from gpufleet.roles.removal.remove import remove
from gpufleet.run.reporting import RunReport
from tests.roles.answers import framed_lines
from tests.unit.node.removal_plan_setup import host

EDITED = ManagedFile(MODPROBE_FILE, "theirs", sha256="theirs")


def take_away() -> None:
    target = removal.removal_target()
    assert target
    remove(target)


@pytest.mark.parametrize("stays", [True, False])
def test_a_file_that_is_gone_does_not_stay(stays: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, problems = load_node_settings({})
    assert settings, problems
    facts = host(files={**host().files, MODPROBE_FILE: EDITED})
    monkeypatch.setattr(removal, "settings_and_facts", lambda: (settings, facts))
    monkeypatch.setattr(removal, "_left", lambda: NOTHING_LEFT)
    monkeypatch.setattr("gpufleet.host.lock.arm_lock", lambda host, facts: None)
    said = f"changed {MODPROBE_FILE}\n" if stays else ""
    answers = {"gpufleet-remove_files": framed_lines(said), "gpufleet-": framed_lines("")}
    data = {"fake_delay": 0.0, "fake_delay_jitter": 0.0, "fake_responses": answers}
    state = State(Inventory((["@fake/host"], data), {}), Config())
    report = RunReport(state)
    state.add_callback_handler(report)
    connect_all(state)
    add_deploy(state, take_away)
    part = report.hosts["@fake/host"]
    assert "GF561" in [finding.code for finding in part.findings], "the plan expects it"
    state.is_executing = True
    run_ops(state)
    assert not state.failed_hosts
    assert [finding.code for finding in part.findings].count("GF561") == stays
    assert any("backup" in finding.message for finding in part.findings) == stays
