"""The conclusion of a run: the findings that it solved and the files that it records."""

from __future__ import annotations

import pytest

from gpufleet.driver.files import PREFERENCES_FILE
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.driver.role import conclude_driver
from gpufleet.node.settings import load_node_settings
from tests.unit.hosts import bare_host, converged_host, plan_for


def test_another_driver_at_the_gpu_is_solved_unless_a_reboot_remains() -> None:
    settings, _ = load_node_settings({})
    assert settings
    facts = bare_host()
    wanted = settings.of(DRIVER)
    loaded = conclude_driver(wanted, facts, plan_for(facts))
    waiting = conclude_driver(wanted, facts, plan_for(facts), reboot="nouveau is in use")
    assert {"GF520", "GF521", "GF523"} <= set(loaded.solved)
    assert not {"GF520", "GF523"} & set(waiting.solved)
    assert {"GF521", "GF150"} < set(waiting.solved), "the headers are there; GF524 has the reason"
    assert [finding.code for finding in waiting.findings] == ["GF524"]
    assert not {finding.code for finding in loaded.findings} & set(loaded.solved)


@pytest.mark.parametrize("hold", [True, False])
def test_pins_are_recorded_with_the_hold(hold: bool) -> None:
    """The removal deletes the files that the record has."""
    settings, _ = load_node_settings({"driver_hold": hold})
    assert settings
    facts = converged_host()
    recorded = conclude_driver(settings.of(DRIVER), facts, plan_for(facts, driver_hold=hold)).files
    assert (PREFERENCES_FILE in recorded) is hold
