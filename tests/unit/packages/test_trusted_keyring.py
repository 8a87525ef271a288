"""An existing keyring is accepted only if the expected key is its only one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufleet.core.openpgp import UNKNOWN_KEY_ID
from gpufleet.facts.model import Keyring
from tests.unit.driver.driver_setup import managed
from tests.unit.hosts import converged_host, plan_for

ROGUE = "B" * 40


@pytest.mark.parametrize("beside", [(ROGUE,), (UNKNOWN_KEY_ID,), (ROGUE, UNKNOWN_KEY_ID)])
def test_a_key_beside_ours_is_not_converged(beside: tuple[str, ...]) -> None:
    facts = managed(converged_host())
    assert plan_for(facts).repository.needed is False
    rogue = tuple(Keyring(found.path, (*found.fingerprints, *beside)) for found in facts.keyrings)
    plan = plan_for(replace(facts, keyrings=rogue)).repository
    assert plan.needed is True
    (found,) = plan.findings
    assert (found.code, found.blocks) == ("GF324", True)
    for shown in (*facts.keyrings[0].fingerprints, *beside):
        assert shown in found.message


def test_where_rpm_trusts_a_foreign_key_is_said() -> None:
    """rpm stores each key of an imported file separately, and trusts it for every repository."""
    facts = managed(converged_host())
    (ours,) = facts.keyrings
    keyrings = (
        Keyring(ours.path, (*ours.fingerprints, ROGUE)),
        Keyring("gpg-pubkey-0000000a-1", ours.fingerprints),
        Keyring("gpg-pubkey-0000000b-1", (ROGUE,)),
        Keyring("gpg-pubkey-0000000c-1", ("C" * 40,)),
    )
    (found,) = plan_for(replace(facts, keyrings=keyrings)).repository.findings
    assert f"trusted in {ours.path} and gpg-pubkey-0000000b-1." in found.message
    assert f"(rm {ours.path}; rpm -e gpg-pubkey-0000000b-1)" in found.remedy


@pytest.mark.parametrize("found", [(), (ROGUE,), (UNKNOWN_KEY_ID,)])
def test_another_key_or_none_is_not_converged(found: tuple[str, ...]) -> None:
    facts = managed(converged_host())
    other = tuple(Keyring(one.path, found) for one in facts.keyrings)
    plan = plan_for(replace(facts, keyrings=other)).repository
    assert plan.needed is True
    assert [finding.code for finding in plan.findings] == (["GF325"] if found else [])
