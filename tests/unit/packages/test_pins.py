"""Pins: which versions apt is kept at, on which hosts, and when they are written."""

from __future__ import annotations

from dataclasses import replace

from gpufleet.driver.files import PREFERENCES_FILE
from gpufleet.driver.job import driver_job
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.facts.model import ManagedFile, NodeFacts
from gpufleet.node.settings import load_settings
from gpufleet.packages.job import Job
from tests.unit.hosts import bare_host, plan_for


def job(facts: NodeFacts, **data: object) -> Job:
    settings, _ = load_settings(data)
    assert settings
    return driver_job(settings.of(DRIVER), facts, plan_for(facts, **data), 300)


def test_the_whole_family_is_pinned_to_the_version_of_the_transaction() -> None:
    wanted = job(bare_host())
    (file,) = wanted.pins("580.178.04")
    assert isinstance(file.content, str)
    assert file.path == PREFERENCES_FILE
    comment, packages, *rest = file.content.splitlines()
    assert comment == "# Written by gpufleet: the driver family stays at one version."
    assert packages.split() == ["Package:", *sorted(wanted.family.packages)]
    assert rest == ["Pin: version 580.178.04-*", "Pin-Priority: 1001"]


def test_pins_are_written_where_they_differ() -> None:
    bare = bare_host()
    (file,) = job(bare).pins("580.178.04")
    assert isinstance(file.content, str)
    there = {**bare.files, file.path: ManagedFile(file.path, file.content)}
    again = job(replace(bare, files=there))
    assert again.pins("580.178.04") == ()
    assert [found.path for found in again.pins("580.159.03")] == [file.path]


def test_without_hold_there_are_no_pins() -> None:
    assert job(bare_host(), driver_hold=False).pins("580.178.04") == ()
