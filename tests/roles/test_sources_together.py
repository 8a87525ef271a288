"""A new source is tried together with all others; apt's own words say why it cannot read them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpufleet.facts.model import Kernel, OsRelease, PciDevice
from gpufleet.host.shell import SHARED_FUNCTIONS, script_file
from gpufleet.packages.operations.reading import AvailableVersions, Unreadable
from gpufleet.packages.operations.transaction import resolve_and_download
from tests.roles.answers import framed_lines
from tests.unit.hosts import bare_host, converged_host, plan_for

TORN = """\
E: Conflicting values set for option Signed-By regarding source https://mirror/deb/ /: /k.gpg !=
E: The list of sources could not be read.
"""
TOGETHER = 'case "$*" in *indextargets*) cat "$0.said" >&2; test ! -s "$0.said"; exit ;; esac'


def run(folder: Path, name: str, *arguments: str, **programs: str) -> Any:
    """A script with these programs, which print the text of a file NAME.said."""
    for program, text in programs.items():
        path = folder / program.replace("_", "-")
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    shared = [part for part, users in SHARED_FUNCTIONS.items() if name in users]
    source = "".join(script_file(part).read_text() for part in ("host/prelude", *shared, name))
    source = source.replace("PATH=/usr/local/sbin", f"PATH={folder}:/usr/local/sbin", 1)
    return subprocess.run(
        ["sh", "-c", source, "x", *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("said", [TORN, ""])
def test_a_source_that_spoils_the_others_is_taken_back(tmp_path: Path, said: str) -> None:
    source, kept = tmp_path / "new.list", tmp_path / "kept"
    source.write_text("deb https://mirror/deb/ /\n")
    (tmp_path / "apt-get.said").write_text(said)
    words = ("1048576", "20", "apt", "alone", "together", "", str(kept), str(source))
    done = run(tmp_path, "packages/try_repository", *words, apt_get=f"{TOGETHER}\nexit 0")
    assert source.exists() is (said == "")
    assert done.returncode == (1 if said else 0)
    assert done.stderr.splitlines()[:1] == (["together"] if said else [])
    assert all(f"  | {line}" in done.stderr for line in said.splitlines())


def test_why_nothing_is_available_is_what_apt_says(tmp_path: Path) -> None:
    (tmp_path / "apt-get.said").write_text(TORN)
    done = run(tmp_path, "packages/available", "apt", "", "nvidia-utils-580", apt_get=TOGETHER)
    found = AvailableVersions().process(framed_lines(done.stdout).splitlines())
    assert isinstance(found, Unreadable)
    assert "Conflicting values set for option Signed-By" in found


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("Error: No matching Packages to list", ""),
        ("Error: Failed to download metadata for repo 'baseos'", "for repo 'baseos'"),
        ("failure: repodata/repomd.xml from base: [Errno 256] No more mirrors", "from base"),
    ],
)
def test_why_nothing_is_available_is_what_yum_says(tmp_path: Path, said: str, reason: str) -> None:
    program = f'echo "{said}" >&2; exit 1'
    done = run(tmp_path, "packages/available", "yum", "", "nvidia-open", yum=program)
    found = AvailableVersions().process(framed_lines(done.stdout).splitlines())
    assert isinstance(found, Unreadable) is bool(reason)
    assert reason in str(found)


def test_it_stops_the_host_with_its_own_code(carry_out: Callable[..., Any]) -> None:
    job = plan_for(converged_host(), driver_version="580.178.04").transaction
    answers = {"gpufleet-available": framed_lines(f"error {TORN.splitlines()[0]}")}
    host = carry_out(lambda: resolve_and_download("Resolve", job), answers)
    assert "GF331" in host.commands[-1]
    assert "Conflicting values" in host.commands[-1]
    assert "available: none" not in host.commands[-1]


EXCLUDING = """case " $* " in
*" --disableexcludes=all "*)
    echo 'Available Packages'
    echo 'kernel-devel.x86_64 5.14.0-570.el9 base' ;;
*) echo 'Error: No matching Packages to list' >&2; exit 1 ;;
esac"""


@pytest.mark.parametrize(("excluded", "found"), [("", {}), ("yes", {"kernel-devel": 1})])
def test_what_yum_excludes_is_seen_when_asked_for(
    tmp_path: Path, excluded: str, found: dict[str, int]
) -> None:
    done = run(tmp_path, "packages/available", "dnf", excluded, "kernel-devel", yum=EXCLUDING)
    lines = framed_lines(done.stdout).splitlines()
    versions = AvailableVersions().process(lines)
    assert not isinstance(versions, Unreadable)
    assert {name: len(found) for name, found in versions.items()} == found


NOTE = """NOTE: Skipping kernel installation since no kernel module package could be found
WARNING: kernel exclude error local variable referenced before assignment
"""


def test_notes_of_plugins_are_no_packages(tmp_path: Path) -> None:
    """dnf-plugin-nvidia prints them, also with -q."""
    (tmp_path / "said").write_text(
        f"{NOTE}Installed Packages\nlibnvidia-ml.x86_64 3:580.95.05-1.el9 @cuda\n"
        "Available Packages\nlibnvidia-ml.x86_64 3:580.105.08-1.el9 cuda\n"
    )
    program = f"cat {tmp_path}/said"
    done = run(tmp_path, "packages/available", "dnf", "", "libnvidia-ml", yum=program)
    found = AvailableVersions().process(framed_lines(done.stdout).splitlines())
    assert found == {"libnvidia-ml": ("3:580.105.08-1.el9", "3:580.95.05-1.el9")}
    for answer in ("kernel-devel-5.14.0-570.el9.x86_64\n", ""):
        (tmp_path / "said").write_text(f"{NOTE}{answer}")
        done = run(tmp_path, "packages/kernel_devel", "5.14.0-570.el9.x86_64", dnf=program)
        assert done.stdout == answer


def test_headers_that_yum_excludes_are_no_missing_headers(carry_out: Callable[..., Any]) -> None:
    el7 = OsRelease("centos", "7", ("rhel", "fedora"), "", "CentOS Linux 7")
    kernel = Kernel("3.10.0-1160.119.1.el7.x86_64", "x86_64", headers=False)
    t4 = PciDevice("0000:17:00.0", 0x1EB8, 0x030200)
    facts = bare_host(os=el7, kernel=kernel, package_manager="yum", pci=(t4,))
    job = plan_for(facts).transaction
    name = f"kernel-devel-{kernel.release}"
    versions = "\n".join(f"{package} 3:550.163.01-1.el7" for package in job.packages)
    answers = {
        "gpufleet-available": framed_lines(versions),
        "gpufleet-rpm_transaction": framed_lines(f"No package {name} available."),
    }
    host = carry_out(lambda: resolve_and_download("Resolve", job), answers)
    assert "GF332" in host.commands[-1]
    assert "GF323" not in host.commands[-1]


def test_headers_have_the_name_that_dnf_knows(carry_out: Callable[..., Any]) -> None:
    """Amazon Linux 2023's first 6.12 kernels had theirs in kernel-devel."""
    amazon = OsRelease("amzn", "2023", ("fedora",), "", "Amazon Linux 2023")
    kernel = Kernel("6.12.20-23.97.amzn2023.x86_64", "x86_64", headers=False)
    t4 = PciDevice("0000:17:00.0", 0x1EB8, 0x030200)
    facts = bare_host(os=amazon, kernel=kernel, package_manager="dnf", pci=(t4,))
    job = plan_for(facts).transaction
    versions = "\n".join(f"{package} 3:580.178.04-1.amzn2023" for package in job.packages)
    ours, theirs = (f"{name}-{kernel.release}" for name in ("kernel6.12-devel", "kernel-devel"))
    answers = {
        "gpufleet-available": framed_lines(versions),
        re.compile(f"rpm_transaction.* try .*{re.escape(ours)}", re.DOTALL): framed_lines(
            f"No match for argument: {ours}"
        ),
        "gpufleet-kernel_devel": framed_lines(theirs),
    }
    host = carry_out(lambda: resolve_and_download("Resolve", job), answers)
    assert "gpufleet-rpm_transaction" in host.commands[-1]
    assert f" {theirs}" in host.commands[-1]
    assert ours not in host.commands[-1]
