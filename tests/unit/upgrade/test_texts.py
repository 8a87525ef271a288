"""Texts of findings, keys and pages about upgrades are right for every kind of run."""

from __future__ import annotations

import re

import pytest

from gpufleet.core.findings import Kind
from gpufleet.host.upgrade_settings import UpgradeSettings
from gpufleet.upgrade.findings import hosts, nodes, runs
from tests.unit.documentation.documents import ROOT

KINDS = [each for module in (hosts, nodes, runs) for each in vars(module).values()
         if isinstance(each, Kind)]  # fmt: skip
OF_PACKAGES = (hosts.NOT_KEPT, hosts.NOTHING_KEPT, hosts.NOT_RESTORED)


@pytest.mark.parametrize("kind", OF_PACKAGES, ids=lambda kind: kind.code)
def test_packages_are_of_what_the_run_changes(kind: Kind) -> None:
    """These findings occur in runs that change the toolkit, too."""
    assert "driver" not in kind.message
    assert ("toolkit_" in kind.remedy) == ("driver_" in kind.remedy)


def test_keys_are_named_as_users_set_them() -> None:
    fields = UpgradeSettings.model_fields
    for name, field in fields.items():
        named = re.findall(r"`([a-z_]+)`", field.description or "")
        assert not set(named) & (set(fields) - {"drain"}), name


def test_the_tutorial_shows_what_a_terminal_shows() -> None:
    text = (ROOT / "docs/tutorial/upgrade.md").read_text("utf-8")
    assert "\x1b" not in text
    assert "[1m" not in text
    assert not re.search(r"\b1 (?:failed )?(?:hosts|GPU pods)\b", text)
