"""Which packages count as gpufleet's own: those that its transactions added, and no others."""

from __future__ import annotations

from gpufleet.facts.model import Package
from gpufleet.facts.record import RoleEntry
from gpufleet.packages.trial import apt_added, read_rpm_trial
from tests.unit.hosts import bare_host, resolved_transaction
from tests.unit.packages.rpm_trial_setup import YUM


def test_what_apt_would_add() -> None:
    lines = [
        "Inst libfoo:i386 (1 Debian:12 [i386]) []",
        "Inst stranger [1.0] (2.0 Debian:12 [amd64])",
        "Inst dkms (3.0 Debian:12 [all])",
        "Conf dkms (3.0 Debian:12 [all])",
        "Remv old [1]",
        "Inst dkms (3.0 Debian:12 [all])",
    ]
    assert apt_added(lines) == ("libfoo", "dkms")


def test_what_yum_would_add() -> None:
    """Includes dependencies and replacements, but not upgrades and downgrades."""
    lines = [
        *YUM[:-3],
        "Installing for dependencies:",
        " gcc    x86_64  4.8  base  16 M",
        "Updating:",
        " stranger    x86_64  2  base  16 M",
        "Installing weak dependencies:",
        " a-very-long-name-that-has-a-line-of-its-own",
        "             x86_64  4.8  base  16 M",
        *YUM[-3:],
    ]
    assert read_rpm_trial(lines).added == (
        "kernel",
        "xorg-x11-server-Xorg",
        "gcc",
        "a-very-long-name-that-has-a-line-of-its-own",
    )


def test_a_second_run_records_what_the_first_moved_along() -> None:
    """A plan does not name Ubuntu's nvidia-driver-580-open, for example, but apt upgrades it."""
    moved = {"a": "2", "meta": "2"}
    facts = bare_host(packages={name: Package(name, "2", "amd64") for name in (*moved, "other")})
    first = resolved_transaction(packages=("a",), install=tuple(moved.items()), facts=facts)
    assert first.versions(first, RoleEntry()) == moved
    assert first.versions(None, RoleEntry(packages=moved)) == moved
