"""Findings of a plan that the run itself puts right are not in its report."""

from __future__ import annotations

from gpufleet.driver.conclude import conclude
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.node.settings import load_settings
from tests.unit.hosts import bare_host, plan_for


def test_another_driver_at_the_gpu_is_solved_unless_a_reboot_remains() -> None:
    settings, _ = load_settings({})
    assert settings
    facts = bare_host()
    wanted = settings.of(DRIVER)
    loaded = conclude(wanted, facts, plan_for(facts))
    waiting = conclude(wanted, facts, plan_for(facts), reboot="nouveau is in use")
    assert {"GF520", "GF521", "GF523"} <= set(loaded.solved)
    assert waiting.solved == ()
    assert [finding.code for finding in waiting.findings] == ["GF524"]
    assert not {finding.code for finding in loaded.findings} & set(loaded.solved)
