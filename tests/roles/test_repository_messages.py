"""Messages about a key or a repository match the problem."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpufleet.core.findings import KNOWN_KINDS
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.shell import script_file
from gpufleet.packages.operations import repository
from gpufleet.packages.operations.reading import Fetched, NotStored
from gpufleet.packages.operations.transaction import resolve_and_download
from gpufleet.packages.repository import RepositoryPlan
from tests.roles.answers import framed_lines
from tests.unit.hosts import bare_host, converged_host, plan_for

pytestmark = pytest.mark.claim(
    "Messages about keys, empty downloads and full disks name the cause.",
    level=2,
)

PATH = "PATH=/usr/local/sbin"


def run(name: str, *arguments: str, programs: Path | None = None, **variables: str) -> Any:
    """packages/scripts/NAME.sh in a shell that finds `programs` first."""
    parts = ("host/prelude", "packages/sources", f"packages/{name}")
    source = "".join(script_file(part).read_text() for part in parts)
    source = source.replace("/usr/lib/apt/apt-helper", "/nowhere")
    if programs:
        source = source.replace(PATH, f"PATH={programs}:/usr/local/sbin", 1)
    return subprocess.run(
        ["sh", "-c", source, name, *arguments],
        env=variables, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip


def fetched(url: str, **options: Any) -> bytes | str:
    done = run("fetch", "apt", url, "", "1048576", "30", **options)
    assert done.returncode == 0, done.stderr
    return Fetched().process(framed_lines(done.stdout).splitlines())


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_download_that_is_there(tmp_path: Path) -> None:
    program(tmp_path, "curl", 'while [ "$1" != -o ]; do shift; done; printf key >"$2"')
    assert fetched("https://mirror/key", programs=tmp_path) == b"key"


def test_an_empty_download_is_empty(tmp_path: Path) -> None:
    program(tmp_path, "curl", "exit 0")
    assert fetched("https://mirror/key", programs=tmp_path) == b""


def test_an_unreachable_mirror_is_unreachable(tmp_path: Path) -> None:
    program(tmp_path, "curl", 'echo "curl: (7) Failed to connect" >&2; exit 7')
    problem = fetched("https://mirror/key", programs=tmp_path)
    assert isinstance(problem, str)
    assert not isinstance(problem, NotStored)
    assert "Failed to connect" in problem


def test_a_full_or_missing_temporary_folder_is_no_matter_of_the_network(tmp_path: Path) -> None:
    nowhere = fetched("https://mirror/key", TMPDIR=str(tmp_path / "none"))
    assert isinstance(nowhere, NotStored)
    program(
        tmp_path, "curl", 'echo "curl: (23) Failure writing output to destination" >&2; exit 23'
    )
    full = fetched("https://mirror/key", programs=tmp_path)
    assert isinstance(full, NotStored)
    assert "Failure writing" in full


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("empty", "GF311"),
        ("full mktemp: No space left on device", "GF329"),
        ("error curl: (7) Failed to connect", "GF311"),
        (base64.b64encode(b"no key").decode(), "GF310"),
    ],
)
def test_each_has_its_finding(carry_out: Callable[..., Any], answer: str, code: str) -> None:
    plan = plan_for(bare_host()).repository
    answers = {"gpufleet-fetch": framed_lines(answer)}
    host = carry_out(lambda: repository.trust_repository("Trust", plan, "driver", 5), answers)
    assert code in host.commands[-1]


@pytest.mark.parametrize(
    ("manager", "said", "message"),
    [
        ("apt", "W: GPG error: https://mirror InRelease: NO_PUBKEY A4B46996", "swapped"),
        ("apt", "E: Failed to fetch https://mirror/InRelease  404", "message"),
        ("rpm", "repomd.xml signature could not be verified for cuda", "swapped"),
        ("rpm", "Cannot download repomd.xml", "message"),
    ],
)
def test_a_changed_key_and_an_unreadable_repository_have_different_codes(
    tmp_path: Path, manager: str, said: str, message: str
) -> None:
    for name in ("apt-get", "yum"):
        program(tmp_path, name, f'case "$*" in *clean*) exit 0 ;; esac; echo "{said}"; exit 100')
    done = run(
        f"refresh_{manager}", "1048576", "20", "message", "swapped", "cuda", programs=tmp_path
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [message, f"  | {said}"]


@pytest.mark.parametrize(
    "said",
    [
        "W: https://mirror/InRelease: Policy will reject signature within a year, see --audit",
        "W: https://mirror/InRelease: Signature by key A4B46996 uses weak algorithm (rsa1024)",
        "W: https://mirror/InRelease: Signature by key A4B46996 uses weak digest algorithm (SHA1)",
        "W: Target Packages (Packages) is configured multiple times in a.list:1 and b.list:1",
    ],
)
@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("refresh_apt", ("message", "swapped", "cuda")),
        ("try_repository", ("apt", "message", "spoilt", "cuda", "/none", "/none/list")),
    ],
)
def test_a_warning_about_a_repository_that_apt_reads_is_no_failure(
    tmp_path: Path, script: str, words: tuple[str, ...], said: str
) -> None:
    """owntracks/recorder#551: apt of Debian 13 warns a year before it rejects a signature."""
    program(tmp_path, "apt-get", f'case "$*" in *indextargets*) exit 0 ;; esac; echo "{said}"')
    done = run(script, "1048576", "20", *words, programs=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("exec sleep 60", "it was not done after 1 s, the longest wait for a repository"),
        (
            "exec 2>&1; exec head -c 4000000 /dev/zero >$0.written",
            "it sends more than 1 MiB, the limit for a file of a repository",
        ),
    ],
)
@pytest.mark.parametrize(
    ("manager", "words"),
    [
        ("apt", ("refresh_apt", "message", "swapped", "cuda")),
        ("yum", ("refresh_rpm", "message", "swapped", "cuda")),
        ("apt", ("try_repository", "apt", "message", "spoilt", "cuda", "/none", "/none/list")),
        ("yum", ("try_repository", "yum", "message", "spoilt", "cuda", "/none", "/none/repo")),
    ],
)
def test_a_repository_is_read_to_a_limit(
    tmp_path: Path, manager: str, words: tuple[str, ...], does: str, reason: str
) -> None:
    for name in ("apt-get", "yum"):
        program(tmp_path, name, f'case "$*" in *clean*) exit 0 ;; esac; {does}')
    done = run(words[0], "1048576", "1", *words[1:], programs=tmp_path)
    assert done.returncode == 1
    first, *rest = done.stderr.splitlines()
    assert (first, rest[-1]) == ("message", f"  | {reason}")
    assert sum(path.stat().st_size for path in tmp_path.glob("*.written")) <= 1048576


@pytest.mark.parametrize(
    "words",
    [
        ("refresh_rpm", "message", "swapped", "cuda"),
        ("try_repository", "yum", "message", "spoilt", "cuda", "/none", "/none/repo"),
    ],
)
def test_a_repository_that_yum_may_skip_must_answer_here(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    """rpm-software-management/dnf5#2064: with skip_if_unavailable, dnf 4 ends with 0."""
    strict = "*'--setopt=*.skip_if_unavailable=False'*) echo no baseurl; exit 1 ;;"
    skips = 'echo "Ignoring repositories: cuda"'
    program(tmp_path, "yum", f'case "$*" in *clean*) exit 0 ;; {strict} esac; {skips}')
    done = run(words[0], "1048576", "20", *words[1:], programs=tmp_path)
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, "message")


@host_operation
def refresh(plan: RepositoryPlan) -> Commands:
    """
    Refresh the package lists.

    + plan: of one repository
    """
    yield from repository.refresh_lists(plan, "apt")


def test_a_refresh_reports_a_changed_key_with_its_own_code(carry_out: Callable[..., Any]) -> None:
    plan = replace(plan_for(converged_host("580.159.03")).repository, needed=False)
    (command,) = carry_out(lambda: refresh("Refresh", plan)).commands
    assert "GF310" in command
    assert "driver_repo_key_fingerprint" in command


def test_what_was_read_when_it_was_trusted_is_not_read_again(
    carry_out: Callable[..., Any],
) -> None:
    plan = replace(plan_for(converged_host("580.159.03")).repository, needed=True)
    (command,) = carry_out(lambda: refresh("Refresh", plan)).commands
    assert "apt-get update" in command, "the distribution's own lists are refreshed"
    assert "/etc/apt/sources.list.d" not in command


@pytest.mark.parametrize("prepared", [False, True])
def test_lists_of_a_prepared_host_are_not_read_again(
    carry_out: Callable[..., Any], prepared: bool
) -> None:
    facts = converged_host("580.159.03")
    job = plan_for(facts, driver_version="580.178.04").transaction
    done = carry_out(lambda: resolve_and_download("Resolve", job, prepared)).commands
    assert any("apt-get update" in command for command in done) is not prepared


@pytest.mark.parametrize("code", ["GF319", "GF322"])
def test_a_full_disk_has_its_remedy(code: str) -> None:
    assert "If the disk is full, free space" in KNOWN_KINDS[code].remedy
