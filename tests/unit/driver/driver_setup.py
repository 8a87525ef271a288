"""Shared by the tests of driver."""

from __future__ import annotations

from dataclasses import replace

from gpufleet.facts.model import (
    Keyring,
    ManagedFile,
    NodeFacts,
)
from gpufleet.host.file_write import FileWrite
from tests.unit.hosts import plan_for, record_of


def managed(facts: NodeFacts, version: str = "580.159.03") -> NodeFacts:
    """A converged host with gpufleet's files and the repository on it."""
    plan = plan_for(facts, driver_version=version)
    wanted = [*plan.wanted_files, *plan.transaction.pins(version)]
    assert plan.repository.source
    files = {file.path: as_managed(file) for file in [*wanted, plan.repository.source]}
    assert plan.repository.repository
    keyring = Keyring(plan.repository.repository.keyring,
                      plan.repository.repository.key_fingerprints)  # fmt: skip
    record = record_of(**{**facts.provenance.as_json(), "files": dict.fromkeys(files, "sha256")})
    return replace(facts, files=files, keyrings=(keyring,), provenance=record)


def as_managed(file: FileWrite) -> ManagedFile:
    assert isinstance(file.content, str)
    return ManagedFile(file.path, file.content)
