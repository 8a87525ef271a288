"""Pins: the versions in them, the hosts that get them, and when they are written."""

from __future__ import annotations

from dataclasses import replace

from gpufleet.driver.files import PREFERENCES_FILE
from gpufleet.facts.model import ManagedFile
from tests.unit.hosts import bare_host, converged_host, plan_for


def test_the_whole_family_is_pinned_to_the_version_of_the_transaction() -> None:
    wanted = plan_for(bare_host()).transaction
    (file,) = wanted.pins("580.178.04")
    assert isinstance(file.content, str)
    assert file.path == PREFERENCES_FILE
    comment, packages, *rest = file.content.splitlines()
    assert comment == "# Written by gpufleet: the driver family stays at one version."
    assert packages.split() == ["Package:", *sorted(wanted.packages)]
    assert rest == ["Pin: version 580.178.04-*", "Pin-Priority: 1001"]


def test_pins_that_differ_are_written_again() -> None:
    host = converged_host("580.159.03")
    assert PREFERENCES_FILE in {file.path for file in plan_for(host).files}
    (file,) = plan_for(host).transaction.pins("580.159.03")
    assert isinstance(file.content, str)
    there = {file.path: ManagedFile(file.path, file.content)}
    assert PREFERENCES_FILE not in {f.path for f in plan_for(replace(host, files=there)).files}


def test_without_hold_there_are_no_pins() -> None:
    assert plan_for(bare_host(), driver_hold=False).transaction.pins("580.178.04") == ()
