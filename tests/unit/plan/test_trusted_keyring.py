"""A keyring that a host has already counts only where it holds the expected key alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufleet.facts.model import Keyring
from gpufleet.openpgp import UNKNOWN
from tests.unit.plan.hosts import converged_host, plan_for
from tests.unit.plan.test_driver import managed

ROGUE = "B" * 40


@pytest.mark.parametrize("beside", [(ROGUE,), (UNKNOWN,), (ROGUE, UNKNOWN)])
def test_a_key_beside_ours_is_not_converged(beside: tuple[str, ...]) -> None:
    facts = managed(converged_host())
    assert plan_for(facts).repository.needed is False
    rogue = tuple(Keyring(found.path, (*found.fingerprints, *beside)) for found in facts.keyrings)
    assert plan_for(replace(facts, keyrings=rogue)).repository.needed is True


@pytest.mark.parametrize("found", [(), (ROGUE,), (UNKNOWN,)])
def test_another_key_or_none_is_not_converged(found: tuple[str, ...]) -> None:
    facts = managed(converged_host())
    other = tuple(Keyring(one.path, found) for one in facts.keyrings)
    assert plan_for(replace(facts, keyrings=other)).repository.needed is True
