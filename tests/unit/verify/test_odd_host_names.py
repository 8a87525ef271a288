"""Host names with line breaks: such an inventory is refused, and every output escapes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyinfra.api import Inventory
from pyinfra.context import ctx_inventory, ctx_state
from rich.console import Console

from gpufleet.core.findings.settings import MISSPELT_GROUP
from gpufleet.core.inventory import refuse_unprintable_names
from gpufleet.core.stopped import Stopped
from gpufleet.host import gather as gathering
from gpufleet.host.gather import gather_facts
from gpufleet.host.shell import explain_finding
from gpufleet.run.report import HostReport
from gpufleet.run.report_table import show_report
from gpufleet.run.step_results import own_line
from gpufleet.verify.checks import CheckFailed
from gpufleet.verify.inventory import load_targets
from gpufleet.verify.report import CheckResult, Report

FORGED = "gpu-1\n2 hosts: 0 changed"
ESCAPED = "gpu-1\\n2 hosts: 0 changed"


@pytest.fixture
def inventory(tmp_path: Path) -> str:
    path = tmp_path / "inventory.py"
    path.write_text(f"gpu_nodes = ['gpu-0', {FORGED!r}]\n")
    return str(path)


def test_an_inventory_with_such_a_name_is_refused(
    inventory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = Inventory(([FORGED], {}), {})
    monkeypatch.setattr(gathering, "_load", lambda *about: loaded)
    with pytest.raises(Stopped) as refused:
        load_targets(inventory)
    with ctx_state.use(None), ctx_inventory.use(None), pytest.raises(Stopped) as also:
        gather_facts(inventory)
    for error in (refused.value, also.value):
        assert str(error).startswith("GF701 ")
        assert repr(FORGED) in str(error).replace("\\\\", "\\")
        assert FORGED not in str(error)


@pytest.mark.parametrize("name", ["gpu-01.example.com", "@local", "gpü", "2001:db8::1", "a b"])
def test_other_names_are_not(name: str) -> None:
    assert refuse_unprintable_names([name]) is None
    assert refuse_unprintable_names([]) is None
    assert "'\\x1b[2J'" in refuse_unprintable_names([name, "\x1b[2J"])


@pytest.mark.parametrize("kind", ["node", "cluster"])
def test_the_report_of_a_run_has_no_line_of_such_a_name(kind: str) -> None:
    console = Console(width=200)
    with console.capture() as captured:
        show_report(console, [HostReport(FORGED, kind=kind, errors=["no space"], status="failed")])
    assert FORGED not in captured.get()
    assert not [line for line in captured.get().splitlines() if line.startswith("2 hosts")]


def test_the_report_of_checks_has_none() -> None:
    report = Report()
    report.add(FORGED, "test_x", CheckResult("failed", "GF701", "no"))
    report.add(FORGED, "test_y", CheckResult("skipped", None, "no"))
    lines = report.table().splitlines()
    assert not [line for line in lines if line.strip().startswith("2 hosts")]
    failed = CheckFailed(FORGED, MISSPELT_GROUP(name="x"))
    assert str(failed).startswith(f"{failed.finding.code} {ESCAPED}: ")


def test_an_explanation_has_none_and_is_known_again() -> None:
    text = explain_finding(FORGED, MISSPELT_GROUP(name="x"))
    assert text.split(" ", 1)[1].startswith(f"{ESCAPED}: ")
    assert own_line(FORGED).match(text)
