"""The state of a host names the known-bad combinations that it has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufleet.combinations.findings import KNOWN_BAD
from gpufleet.facts.gpu import Listed
from gpufleet.facts.model import NodeFacts, Package
from gpufleet.node.catalog import load_catalog
from gpufleet.status.detail import host_details
from tests.unit.status.fleets import NOW, fleet, healthy, row, seen

pytestmark = pytest.mark.claim(
    "The status of a fleet flags known-bad combinations of versions.", level=1
)


def bad_host() -> NodeFacts:
    return replace(healthy("570.148.08"), listed=Listed(1, mig_devices=2), kubelet=True)


def test_a_combination_is_a_flag_of_the_host() -> None:
    codes = {note.finding.code: note.flag for note in row(bad_host()).notes}
    assert codes[KNOWN_BAD.code] == "version"
    assert KNOWN_BAD.code not in {note.finding.code for note in row(healthy("570.148.08")).notes}


def test_doctor_lists_it_once() -> None:
    host = seen("gpu-07", bad_host(), driver_version="570.148.08")
    found = host_details([host], fleet(host), load_catalog(), NOW)[0].findings
    assert [each.code for each in found].count(KNOWN_BAD.code) == 1


def test_an_info_is_not_a_flag() -> None:
    package = Package("nvidia-container-toolkit", "1.18.0-1", "amd64")
    facts = healthy()
    facts = replace(facts, packages={**facts.packages, package.name: package})
    texts = [note.finding.message for note in row(facts).notes]
    assert not [text for text in texts if "toolkit-1.18.0-ldcache" in text]
    assert [text for text in texts if "toolkit-1.18.1-none" in text]
