"""What findings, keys and pages of an upgrade say can be done as it is written."""

from __future__ import annotations

import re

import pytest

from gpufleet.core.findings import Kind
from gpufleet.upgrade.findings import hosts, nodes, runs
from gpufleet.upgrade.nodes import FAILED, MARK, SCALE_DOWN, TAINT, UNMANAGED
from gpufleet.upgrade.settings import UpgradeSettings
from tests.unit.documentation.documents import ROOT

KINDS = [each for module in (hosts, nodes, runs) for each in vars(module).values()
         if isinstance(each, Kind)]  # fmt: skip
COMMAND = re.compile(r"gpufleet upgrade (?:resume|abort|pause|rollback|status)(?P<more>[^`,;.]*)")
OF_PACKAGES = (
    hosts.NOT_KEPT, hosts.NOTHING_KEPT, hosts.KEPT_DAMAGED, hosts.NOT_RESTORED,
    hosts.NO_ROOM,
)  # fmt: skip


def test_a_remedy_names_its_run() -> None:
    """The newest run may be another one."""
    found = [(kind.code, each) for kind in KINDS for each in COMMAND.finditer(kind.remedy)]
    assert len(found) >= 10
    named = ("--run {run}", "--run RUN")
    words = [(code, each["more"].removesuffix(" --cluster-gone")) for code, each in found]
    assert [code for code, more in words if more.strip() not in named] == []


@pytest.mark.parametrize("kind", OF_PACKAGES, ids=lambda kind: kind.code)
def test_packages_are_of_what_the_run_changes(kind: Kind) -> None:
    """Of the toolkit, too."""
    assert "driver" not in kind.message
    assert ("toolkit_" in kind.remedy) == ("driver_" in kind.remedy)


def test_keys_are_named_as_users_set_them() -> None:
    fields = UpgradeSettings.model_fields
    for name, field in fields.items():
        named = re.findall(r"`([a-z_]+)`", field.description or "")
        assert not set(named) & (set(fields) - {"drain"}), name


def test_a_node_is_returned_by_hand_as_the_page_says() -> None:
    """Nothing of a run is left on it."""
    text = (ROOT / "docs/how-to/upgrade.md").read_text("utf-8")
    section = text.partition("## A host that was left behind\n")[2].partition("\n## ")[0]
    lines = [line.split() for line in section.splitlines() if line.startswith("    kubectl")]
    removed = {
        kind: {word[:-1] for line in lines if line[1] == kind for word in line if word[-1] == "-"}
        for kind in ("annotate", "label", "taint")
    }
    assert removed["annotate"] == {MARK, FAILED, SCALE_DOWN}
    assert (removed["label"], removed["taint"]) == ({UNMANAGED}, {TAINT})
    assert ["kubectl", "uncordon", "NODE"] in lines


def test_the_tutorial_shows_what_a_terminal_shows() -> None:
    text = (ROOT / "docs/tutorial/upgrade.md").read_text("utf-8")
    assert "\x1b" not in text
    assert "[1m" not in text
    assert not re.search(r"\b1 (?:failed )?(?:hosts|GPU pods)\b", text)
