"""A key that NVIDIA has revoked: how it is identified and removed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufleet.facts.model import Keyring, NodeFacts
from gpufleet.node.catalog import load_catalog
from gpufleet.node.host_checks import inspect_host

((REVOKED,),) = (key.fingerprints for key in load_catalog().cuda.revoked)


@pytest.mark.parametrize(
    ("keyring", "command"),
    [
        (
            Keyring("/etc/apt/trusted.gpg.d/cuda.gpg", (REVOKED,)),
            "rm /etc/apt/trusted.gpg.d/cuda.gpg",
        ),
        (
            Keyring("/etc/apt/trusted.gpg", ("0" * 40, REVOKED)),
            "gpg --no-default-keyring --keyring /etc/apt/trusted.gpg --batch --yes --delete-keys "
            + REVOKED,
        ),
        (
            Keyring("gpg-pubkey-7fa2af80-576db785", ("7FA2AF80",)),
            "rpm -e gpg-pubkey-7fa2af80-576db785",
        ),
    ],
)
def test_a_revoked_key_is_removed_where_it_is(
    keyring: Keyring, command: str, bare: NodeFacts
) -> None:
    (found,) = inspect_host(replace(bare, keyrings=(keyring,)), load_catalog(), bare.clock)
    assert (found.code, found.remedy) == ("GF302", f"Remove it on the host: {command}")


def test_another_key_is_not_taken_for_the_revoked_one(bare: NodeFacts) -> None:
    keyrings = (Keyring("/a.gpg", ("A4B469963BF863CC",)), Keyring("/b.gpg", ("UNKNOWN", "80")))
    assert inspect_host(replace(bare, keyrings=keyrings), load_catalog(), bare.clock) == []
