"""The report of a host that a run read and then stopped: versions as seen, no steps."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.state import StateStage

from gpufleet.facts.files import RECORD_PATH
from gpufleet.host.boundary import one_host
from gpufleet.host.upgrade_state import STATE_FILE
from gpufleet.node.operations.node import current_node
from gpufleet.node.operations.removal import removal_target
from gpufleet.roles.node import install_roles
from gpufleet.roles.removal.remove import remove
from gpufleet.run.report import RunFacts, report_json
from gpufleet.run.reporting import RunReport
from tests.roles import host_boundary_setup
from tests.roles.answers import facts_of, framed_lines
from tests.roles.host_boundary_setup import CAPTURE, with_contents

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "gpufleet/run/report.schema.json").read_text("utf-8")
)
MOMENT = datetime(2026, 11, 22, tzinfo=timezone.utc)
UNREAD = {"before": None, "after": None}
BUSY = CAPTURE.replace("@@identity\n", "@@identity\nheld\n")
VERSION = "580.178.04"
PACKAGE = "libnvidia-compute-580"
DRIVER = {"version": VERSION, "packages": {PACKAGE: VERSION}, "added": [PACKAGE]}
RECORDED = with_contents(RECORD_PATH, json.dumps({"schema": 1, "driver": DRIVER}))


def install() -> None:
    """The steps of deploys/gpu_node.py."""
    with one_host():
        node = current_node()
        if node and node.has_gpu:
            install_roles(node)


def look() -> None:
    with one_host():
        current_node()


def leave() -> None:
    """The steps of deploys/remove.py."""
    with one_host():
        node = removal_target()
        if node:
            remove(node)


def reported(deploy: Callable[[], None], facts: str, holder: str = "") -> dict[str, Any]:
    """The host's part of the JSON after a run that finds the lock held by `holder`."""
    answers = {
        "uname -nrm": facts_of(facts),
        "gpufleet-unfinished": framed_lines(""),
        "gpufleet-host_holder": framed_lines(holder),
        "gpufleet-lock_holder": framed_lines(""),
    }
    data = {"fake_delay": 0.0, "fake_delay_jitter": 0.0, "fake_responses": answers,
            "node_lock_timeout": 0, "driver_branch": "580"}  # fmt: skip
    state = State(Inventory((["@fake/host"], data), {}), Config())
    report = RunReport(state)
    state.add_callback_handler(report)
    connect_all(state)
    if holder:
        with pytest.raises(PyinfraError, match="No hosts remaining"):
            add_deploy(state, deploy)
    else:
        add_deploy(state, deploy)
    run = RunFacts("inventory.py", (), MOMENT, MOMENT, dry=False, exit_status=1)
    data = json.loads(report_json(report.gather(), run))
    jsonschema.validate(data, SCHEMA)
    found: dict[str, Any] = data["hosts"]["@fake/host"]
    return found


@pytest.mark.parametrize(
    ("deploy", "facts"),
    [(install, BUSY), (leave, RECORDED.replace("@@identity\n", "@@identity\nheld\n"))],
    ids=["gpu_node", "remove"],
)
def test_a_host_whose_lock_is_held_keeps_its_versions(
    deploy: Callable[[], None], facts: str
) -> None:
    found = reported(deploy, facts, holder="bob at desk [2]")
    assert "GF508" in [finding["code"] for finding in found["findings"]]
    assert (found["status"], found["plan"]["steps"]) == ("failed", [])
    assert found["plan"]["versions"]["driver"] == {"before": VERSION, "after": VERSION}
    assert found["driver"] == {"before": VERSION, "after": VERSION}
    assert found["exporter"] == UNREAD


def test_a_removal_without_a_record_has_every_key() -> None:
    empty = with_contents(RECORD_PATH, "")
    found = reported(
        leave, empty.replace(f"file 0 644 root {RECORD_PATH}", f"absent {RECORD_PATH}")
    )
    assert "GF560" in [finding["code"] for finding in found["findings"]]
    assert [found[role] for role in ("driver", "toolkit", "exporter")] == [UNREAD] * 3
    assert found["plan"]["steps"] == []


@pytest.mark.parametrize(("text", "warns"), [("", False), ("{", True)])
def test_a_run_warns_about_an_unfinished_upgrade(
    text: str, warns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = CAPTURE.replace("@@files\n", f"@@files\nfile 0 600 root {STATE_FILE}\n")
    monkeypatch.setattr(host_boundary_setup, "CAPTURE", there)
    found = reported(look, with_contents(STATE_FILE, text), holder="bob")
    assert ("GF738" in [finding["code"] for finding in found["findings"]]) is warns


def test_a_run_is_completed_once_pyinfra_has_run_everything() -> None:
    """The run's stage decides, even if no host was examined and the run therefore is not a
    preview."""
    state = State(Inventory((["@fake/host"], {}), {}), Config())
    report = RunReport(state)
    assert not report.dry
    completed = []
    for stage in StateStage:
        state.current_stage = stage
        completed += [stage] if report.completed else []
    assert completed == [StateStage.Disconnect]
