"""A file of gpufleet that a user edited is replaced, and a finding reports that."""

from __future__ import annotations

from dataclasses import replace

from gpufleet.driver.files import MODPROBE_FILE
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.facts.model import ManagedFile, NodeFacts
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_node
from gpufleet.node.settings import load_node_settings
from tests.unit.hosts import record_of

SETTINGS, _ = load_node_settings({})
assert SETTINGS


def reported(facts: NodeFacts) -> list[str]:
    plan = plan_node(SETTINGS, facts, load_catalog(), now=0)
    found = [finding for finding in plan.all_findings if finding.code == "GF513"]
    assert not any(finding.blocks for finding in found)
    return [finding.message.split()[0] for finding in found]


def host(facts: NodeFacts, sha256: str, recorded: dict[str, str]) -> NodeFacts:
    """A host with a file of this checksum that differs from the planned content."""
    there = ManagedFile(MODPROBE_FILE, "options nvidia NVreg_Mine=1\n", sha256=sha256)
    record = record_of(**{**facts.provenance.as_json(), "files": recorded})
    return replace(facts, files={**facts.files, MODPROBE_FILE: there}, provenance=record)


def test_an_edited_file_is_reported(converged: NodeFacts) -> None:
    assert reported(host(converged, "now", {MODPROBE_FILE: "then"})) == [MODPROBE_FILE]


def test_a_file_as_it_was_written_is_not(converged: NodeFacts) -> None:
    """The file differs only because the settings changed."""
    assert reported(host(converged, "then", {MODPROBE_FILE: "then"})) == []


def test_a_file_of_no_record_is_not(converged: NodeFacts) -> None:
    assert reported(host(converged, "now", {})) == []


def test_a_file_that_is_gone_is_not(converged: NodeFacts) -> None:
    gone = host(converged, "now", {MODPROBE_FILE: "then"})
    assert reported(replace(gone, files=converged.files)) == []


def test_a_source_of_packages_counts_too(bare: NodeFacts) -> None:
    plan = plan_node(SETTINGS, bare, load_catalog(), now=0)
    assert plan.of(DRIVER)
    assert plan.of(DRIVER).repository.source
    path = plan.of(DRIVER).repository.source.path
    there = ManagedFile(path, "# mine\n", sha256="now")
    facts = replace(bare, files={path: there}, provenance=record_of(files={path: "then"}))
    assert reported(facts) == [path]
