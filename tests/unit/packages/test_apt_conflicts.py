"""Sources that apt rejects together are found before the run. This machine's apt is the judge."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gpufleet.facts.model import ManagedFile, OsRelease
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_node
from gpufleet.node.settings import load_node_settings
from gpufleet.packages.apt_sources import APT_SOURCES_PREFIX, conflicting_sources, read_entries
from tests.unit.hosts import bare_host, plan_for

KEY = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"
OURS = f"deb [signed-by={KEY}] https://repo.example/deb/amd64/ /\n"
ROCKY = OsRelease("rocky", "9.4", ("rhel",), "", "Rocky Linux 9.4")
OURS_AT, LAST = f"{APT_SOURCES_PREFIX}.d/m-ours.list", f"{APT_SOURCES_PREFIX}.d/z-last.list"
ONE_LINE = [
    "deb https://repo.example/deb/$(ARCH) /",
    f"deb [signed-by={KEY}] https://repo.example/deb/$(ARCH) /",
    f"deb [ arch=amd64 signed-by={KEY} ] https://repo.example/deb/amd64 / # comment",
    "deb-src https://repo.example/deb/amd64/ /",
    f"deb-src [signed-by={KEY}] https://repo.example/deb/$(ARCH)/ /",
    "deb [signed-by=/etc/apt/keyrings/other.gpg] https://repo.example/deb/amd64/ /",
    f"deb [signed-by={KEY},/etc/apt/keyrings/other.gpg] https://repo.example/deb/amd64/ /",
    f"deb [trusted=yes signed-by={KEY}] https://repo.example/deb/amd64/ /",
    f"deb [signed-by={KEY} trusted=no] https://repo.example/deb/amd64/ /",
    f"deb [signed-by={KEY} check-valid-until=no] https://repo.example/deb/amd64/ /",
    f"deb [signed-by={KEY} allow-insecure=yes] https://repo.example/deb/amd64/ /",
    f"deb [signed-by={KEY} by-hash=no pdiffs=no lang=none] https://repo.example/deb/amd64/ /",
    "deb [arch=arm64] https://repo.example/deb/amd64/ /",
    "deb https://repo.example/deb/amd64/ ./",
    "deb https://repo.example/deb/arm64/ /",
    "deb https://repo.example/deb/ amd64 main",
    "# deb https://repo.example/deb/amd64/ /",
]
STANZAS = [
    "Types: deb\nURIs: https://repo.example/deb/$(ARCH)/\nSuites: /\n",
    f"Types: deb\nURIs: https://repo.example/deb/$(ARCH)/\nSuites: /\nSigned-By: {KEY}\n",
    "Types: deb\nURIs: https://repo.example/deb/$(ARCH)/\nSuites: /\nEnabled: no\n",
    "Types: deb-src\nURIs: https://a.example/ https://repo.example/deb/amd64\nSuites: /\n",
    "Types: deb\nURIs: https://repo.example/deb/amd64/\nSuites: /\n"
    f"Signed-By: {KEY}\nTrusted: yes\n",
    f"types: deb\nuris: https://repo.example/deb/amd64/\nsuites: /\nsigned-by: {KEY}\n",
]
CASES = [(LAST, f"{line}\n") for line in ONE_LINE]
CASES += [(f"{APT_SOURCES_PREFIX}.d/z+last.list", f"{ONE_LINE[0]}\n")]  # a name that apt ignores
CASES += [(f"{APT_SOURCES_PREFIX}.d/z-last.sources", stanza) for stanza in STANZAS]
CASES += [(path.replace("/z", "/a"), text) for path, text in CASES]  # read before ours


def found(files: dict[str, str]) -> dict[str, list[str]]:
    managed = {path: ManagedFile(path, text) for path, text in files.items()}
    return conflicting_sources(read_entries(managed), "x86_64")


@pytest.mark.skipif(not shutil.which("apt-get"), reason="this machine has no apt")
@pytest.mark.parametrize(("path", "text"), CASES)
def test_it_is_what_apt_says(tmp_path: Path, path: str, text: str) -> None:
    for name, content in ((OURS_AT, OURS), (path, text)):
        (tmp_path / Path(name).name).write_text(content)
    options = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": str(tmp_path),
        "Dir::State::lists": str(tmp_path / "none"),
        "APT::Architecture": "amd64",
    }
    words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    done = subprocess.run(
        ["apt-get", *words, "indextargets"], capture_output=True, text=True, check=False
    )
    assert bool(found({OURS_AT: OURS, path: text})) is (done.returncode != 0), done.stderr


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nvidia.list", "deb https://repo.example/libnvidia-container/stable/deb/$(ARCH) /\n"),
        ("nvidia.sources",
         "Types: deb\nURIs: https://repo.example/libnvidia-container/stable/deb/$(ARCH)/\n"
         "Suites: /\nSigned-By: /etc/apt/keyrings/toolkit.gpg\n"),
        ("nvidia.list",
         f"deb [trusted=yes signed-by={KEY}] "
         "https://repo.example/libnvidia-container/stable/deb/amd64/ /\n"),
    ],
)  # fmt: skip
def test_another_source_of_the_toolkit_blocks_the_plan(name: str, text: str) -> None:
    path = f"/etc/apt/sources.list.d/{name}"
    facts = bare_host(files={path: ManagedFile(path, text)})
    settings, problems = load_node_settings(
        {"toolkit_repo_url": "https://repo.example/libnvidia-container"}
    )
    assert settings, problems
    (finding,) = plan_node(settings, facts, load_catalog(), facts.clock).blockers
    assert finding.code == "GF301"
    assert path in finding.message


def test_sources_of_others_that_apt_rejects_are_found_as_well() -> None:
    """A run would fail when it first queries apt."""
    url = "http://user:word@deb.example/x"
    lines = f"deb {url} y main\ndeb [trusted=yes] {url} y z\n"
    facts = bare_host(files={LAST: ManagedFile(LAST, lines)})
    (finding,) = [f for f in plan_for(facts).findings if f.blocks]
    assert finding.code == "GF301"
    assert LAST in finding.message
    assert "word" not in finding.message


def test_what_a_release_upgrade_leaves_does_not_block() -> None:
    """If lines without a key precede stanzas with one, apt uses the key for both."""
    url = "http://archive.ubuntu.com/ubuntu"
    stanza = f"Types: deb\nURIs: {url}/\nSuites: jammy\nComponents: main\nSigned-By: /k.gpg\n"
    texts = {
        APT_SOURCES_PREFIX: f"deb {url} jammy main\n",
        f"{APT_SOURCES_PREFIX}.d/ubuntu.sources": stanza,
    }
    facts = bare_host(files={path: ManagedFile(path, text) for path, text in texts.items()})
    assert not [finding for finding in plan_for(facts).findings if finding.blocks]


def test_a_section_of_another_repo_file_blocks() -> None:
    """yum and dnf read one of two files with the same section."""
    facts = replace(bare_host(), os=ROCKY, package_manager="dnf")
    repository = plan_for(facts).repository.repository
    assert repository
    text = f"[{repository.name}]\nname=old\nbaseurl={repository.url}\ngpgcheck=0\n"
    old = ManagedFile("/etc/yum.repos.d/cuda.repo", text)
    found = plan_for(replace(facts, files={old.path: old})).findings
    (finding,) = [finding for finding in found if finding.blocks]
    assert finding.code == "GF301"
    assert old.path in finding.message
    assert "apt" not in finding.message
    off = replace(old, content=f"{text}enabled=0\n")
    assert not [f for f in plan_for(replace(facts, files={old.path: off})).findings if f.blocks]
    same = {repository.file: replace(old, path=repository.file)}
    assert not [f for f in plan_for(replace(facts, files=same)).findings if f.blocks]


def test_how_a_host_reaches_a_repository_stays(tmp_path: Path) -> None:
    """NVIDIA's own .repo file has the same path as gpufleet's. A proxy in it is the user's."""
    facts = replace(bare_host(), os=ROCKY, package_manager="dnf")
    repository = plan_for(facts).repository.repository
    assert repository
    users = "proxy=http://proxy.example:3128\nproxy_password=word\nexclude=cuda-*\n  nvidia-gds*\n"
    more = "priority=10\nskip_if_unavailable=1\nmetadata_expire=6h"
    text = f"[{repository.name}]\nbaseurl=https://old.example/\ngpgcheck=0\n{more}\n{users}"
    plan = plan_for(replace(facts, files={repository.file: ManagedFile(repository.file, text)}))
    source = plan.repository.source
    assert source
    written = str(source.content)
    assert (written.count("gpgcheck=1"), "old.example" in written) == (1, False)
    for line in (*more.splitlines(), *users.splitlines()):
        assert line in written
    assert source.mode == 0o600
    there = ManagedFile(repository.file, written, 0o600)
    again = plan_for(replace(facts, files={repository.file: there})).repository.source
    assert again
    assert again.content == written
