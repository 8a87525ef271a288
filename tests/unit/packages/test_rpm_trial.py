"""The output of yum and dnf about a transaction: its tables are parsed, its refusals explained."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest

from gpufleet.packages.transaction import PackageTransaction
from gpufleet.packages.trial import read_rpm_trial, rpm_refusal
from tests.unit.hosts import bare_host, resolved_transaction
from tests.unit.packages.rpm_trial_setup import RULE, YUM

# dnf 4.14 on a sandbox host, its prompt on the line of the first rule
DNF = f"""\
> {RULE}
 Package                     Arch     Version               Repository     Size
{RULE}
Installing:
 kmod-nvidia-latest-dkms     x86_64   3:550.163.01-1.el7    cuda          8.4 k
Removing:
 kmod-nvidia-open-dkms       x86_64   3:550.163.01-1.el7    @cuda         7.9 k
Removing dependent packages:
 site-render                 noarch   1-1                   @@System        0

Transaction Summary
{RULE}
Error: Operation aborted.
""".splitlines()
DNF_PROBLEM = """\
> >
 Problem: package site-render-1-1.noarch requires kmod-nvidia-latest-dkms = 3:550.163.01
  - conflicting requests
Nothing to do.
""".splitlines()
YUM_PROBLEM = """\
Error: Package: site-render-1-1.noarch (installed)
           Requires: kmod-nvidia-latest-dkms = 3:550.163.01
""".splitlines()


def wanted(*patterns: str, manager: str = "yum", **changes: Any) -> PackageTransaction:
    known = {
        "version": "550.163.01",
        "install": (("kmod-a", "3:550.163.01-1"),),
        "prerequisites": ("dkms",),
        "remove": ("kmod-b",),
        "facts": bare_host(package_manager=manager),
    }
    return resolved_transaction(patterns=patterns, **(known | changes))


def test_removals_of_dnf_with_what_they_drag_along() -> None:
    trial = read_rpm_trial(DNF)
    assert trial.removed == ("kmod-nvidia-open-dkms", "site-render")
    assert (trial.kernels, trial.unknown, trial.problem) == ((), (), "")


def test_wrapped_names_replacements_and_kernels_of_yum() -> None:
    trial = read_rpm_trial(YUM)
    assert trial.removed == ("xorg-x11-server-old", "nvidia-driver-latest-dkms-NvFBCOpenGL")
    assert trial.kernels == ("kernel",)
    assert trial.problem == ""


@pytest.mark.parametrize(
    ("said", "bytes_"),
    [
        (["Total download size: 352 M", "Installed size: 1.1 G"], 352 * 1024**2),
        (["Total size: 12 M", "Total download size: 8.5 k"], 8704),
        (["> Total size: 352 M", "> Installed size: 1.1 G"], 0),  # the host has all packages
        (["Nothing to do."], None),
    ],
)
def test_what_a_transaction_fetches(said: list[str], bytes_: int | None) -> None:
    assert read_rpm_trial(said).download == bytes_


def test_what_a_transaction_installs_and_moves() -> None:
    assert read_rpm_trial(DNF).moved == ("kmod-nvidia-latest-dkms",)
    assert read_rpm_trial(YUM).moved == ("kernel", "xorg-x11-server-Xorg")


def test_what_goes_besides_the_family_blocks() -> None:
    finding = rpm_refusal(read_rpm_trial(DNF), wanted("kmod-nvidia.*"))
    assert finding is not None
    assert finding.code == "GF314"
    assert "site-render" in finding.message
    assert "kmod-nvidia-open" not in finding.message


def test_another_kernel_blocks() -> None:
    finding = rpm_refusal(read_rpm_trial(YUM), wanted("nvidia.*", "xorg.*"))
    assert finding is not None
    assert "kernel (a new kernel)" in finding.message


@pytest.mark.parametrize("lines", [DNF_PROBLEM, YUM_PROBLEM])
def test_a_conflict_is_reported_as_by_the_package_manager(lines: list[str]) -> None:
    finding = rpm_refusal(read_rpm_trial(lines), wanted())
    assert finding is not None
    assert finding.code == "GF319"
    assert "site-render-1-1.noarch" in finding.message
    assert "550.163.01" in finding.message


@pytest.mark.parametrize(
    "line",
    ["No package dkms available.", "Error: Unable to find a match: dkms",
     "> No match for argument: dkms"],
)  # fmt: skip
def test_a_prerequisite_that_nobody_has(line: str) -> None:
    finding = rpm_refusal(read_rpm_trial([line]), wanted())
    assert finding is not None
    assert finding.code == "GF318"
    assert "dkms" in finding.message


def test_nothing_to_do_is_no_problem() -> None:
    assert rpm_refusal(read_rpm_trial(["> Nothing to do.", "Complete!"]), wanted()) is None


def test_the_command_that_repeats_a_trial_has_its_removals() -> None:
    """Without them yum prints a conflict that the run does not have."""
    install = (("nvidia-driver", "3:580.95.05-1.el8"), ("kmod-nvidia", "3:580.95.05-1.el8"))
    plan = wanted(manager="dnf", install=install, remove=("dkms-nvidia", "kmod-old"))
    finding = rpm_refusal(read_rpm_trial(DNF), plan)
    assert finding
    (command,) = re.findall("`([^`]*)`", finding.remedy)
    fakes = 'dnf() { echo "$*"; cat; }'
    done = subprocess.run(
        ["sh", "-c", f"{fakes}; {command}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "--assumeno --disableplugin=versionlock shell",
        "remove dkms-nvidia kmod-old",
        "install nvidia-driver-580.95.05-1.el8 kmod-nvidia-580.95.05-1.el8 dkms",
        "run",
    ]
