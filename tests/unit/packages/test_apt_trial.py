"""The output of apt-get -s: transactions that are refused, and those that apt cannot carry out."""

from __future__ import annotations

import pytest

from gpufleet.packages.trial import apt_refusal
from tests.unit.hosts import resolved_transaction

HEADERS = "linux-headers-5.15.0-122-generic"
WANTED = resolved_transaction(
    version="580.1",
    install=(("nvidia-utils-580", "580.1-1"),),
    prerequisites=(HEADERS, "dkms"),
    remove=("libold",),
    patterns=("nvidia-.*",),
)
COMMAND = "apt-get -s install nvidia-utils-580"


def code(*lines: str) -> str | None:
    found = apt_refusal(lines, WANTED, COMMAND)
    return found.code if found else None


@pytest.mark.parametrize(
    "line",
    [
        f"E: Unable to locate package {HEADERS}",
        f"E: Package '{HEADERS}' has no installation candidate",
    ],
)
def test_headers_that_no_repository_has(line: str) -> None:
    found = apt_refusal(["Reading package lists...", line], WANTED, COMMAND)
    assert found is not None
    assert found.code == "GF323"
    assert HEADERS in found.message
    assert "newest kernel" in found.remedy


def test_other_prerequisites_have_another_remedy() -> None:
    found = apt_refusal(["E: Unable to locate package dkms"], WANTED, COMMAND)
    assert found is not None
    assert found.code == "GF318"
    assert "kernel" not in found.remedy


def test_dependencies_that_cannot_be_met_are_repeated() -> None:
    lines = [
        "The following packages have unmet dependencies:",
        " nvidia-utils-580 : Depends: libc6 (>= 2.99) but 2.36 is to be installed",
        "E: Unable to correct problems, you have held broken packages.",
    ]
    found = apt_refusal(lines, WANTED, COMMAND)
    assert found is not None
    assert found.code == "GF319"
    assert "libc6 (>= 2.99)" in found.message
    assert "held broken packages" in found.message


def test_more_than_was_planned_is_refused_first() -> None:
    assert code("Remv libfoo [1]", f"E: Unable to locate package {HEADERS}") == "GF314"


def test_what_was_planned_is_carried_out() -> None:
    planned = ["Inst nvidia-utils-580 (580.1-1 repo)", "Remv nvidia-utils-550 [550.1]"]
    assert code(*planned, "Remv libold [1]") is None


def test_a_new_kernel_is_more_than_planned() -> None:
    assert code("Inst linux-image-6.8.0-50-generic (6.8 Ubuntu [amd64])") == "GF314"
