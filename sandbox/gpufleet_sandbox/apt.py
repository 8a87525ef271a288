"""Packages of this machine's distribution, from this machine's apt sources.

The sources are read from apt's configuration at run time, so the mirror that this machine uses
applies here too. Its address is stored only in the private apt folder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.process import run

# The components with NVIDIA's software, which is non-free.
NON_FREE = {
    "debian": ("main", "contrib", "non-free", "non-free-firmware"),
    "ubuntu": ("main", "universe", "restricted", "multiverse"),
}
MAIN = {"debian": ("main",), "ubuntu": ("main", "universe")}
KEYRINGS = {
    "debian": "/usr/share/keyrings/debian-archive-keyring.gpg",
    "ubuntu": "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
}


@dataclass(frozen=True, slots=True)
class AptSources:
    """The distribution's archive, by this machine's sources."""

    distribution: str  # debian, ubuntu
    suite: str  # bookworm
    archives: tuple[tuple[str, str], ...]  # (URI, suite), security and updates included

    def lines(self, components: Sequence[str]) -> list[str]:
        """sources.list lines with these components, signed by the distribution's keyring."""
        keyring = KEYRINGS[self.distribution]
        return [
            f"deb [signed-by={keyring}] {uri} {suite} {' '.join(components)}"
            for uri, suite in self.archives
        ]


@cache
def machine_sources() -> AptSources:
    """This machine's sources of its distribution, without third-party sources."""
    os_release = Path("/etc/os-release").read_text()
    values = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', os_release, re.MULTILINE))
    distribution, suite = values.get("ID", ""), values.get("VERSION_CODENAME", "")
    listed = run(
        ["apt-get", "indextargets", "--format", "$(CREATED_BY)|$(REPO_URI)|$(RELEASE)"], check=False
    ).stdout
    archives = []
    for line in sorted(set(listed.splitlines())):
        kind, uri, release = line.split("|")
        if kind == "Packages" and release.split("-")[0] == suite:
            archives.append((uri, release))
    if distribution not in NON_FREE or not archives:
        raise SandboxError(
            kinds.NO_PACKAGE(
                packages="of Debian",
                reason=f"this machine runs {distribution or 'an unknown system'}",
                component="main",
            )
        )
    return AptSources(distribution, suite, tuple(archives))


@dataclass(frozen=True, slots=True)
class PrivateApt:
    """An apt with separate folders: it does not touch the machine's package state."""

    folder: Path
    sources: AptSources

    def _options(self) -> list[str]:
        pairs = {
            "Dir::Etc::sourcelist": self.folder / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State": self.folder / "state",
            "Dir::State::status": self.folder / "status",
            "Dir::Cache": self.folder / "cache",
            "APT::Sandbox::User": "root",
        }
        return [word for key, value in pairs.items() for word in ("-o", f"{key}={value}")]

    def update(self) -> None:
        """Fetch the package lists, including non-free components."""
        for name in ("state/lists/partial", "cache/archives/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        lines = self.sources.lines(NON_FREE[self.sources.distribution])
        (self.folder / "sources.list").write_text("\n".join(lines) + "\n")
        run(["apt-get", *self._options(), "-q", "update"], timeout=300)

    def fetch(self, names: Sequence[str]) -> Path:
        """Download the first of `names` that exists and unpack it; returns the unpacked root."""
        reason = ""
        for name in names:
            download = self.folder / "download" / name
            download.mkdir(parents=True, exist_ok=True)
            done = run(
                ["apt-get", *self._options(), "-q", "download", name],
                check=False,
                timeout=300,
                cwd=download,
            )
            reason = done.stderr.strip()
            if done.returncode == 0:
                root = self.folder / "root" / name
                root.mkdir(parents=True, exist_ok=True)
                for package in sorted(download.glob("*.deb")):
                    run(["dpkg-deb", "-x", package, root])
                return root
        component = NON_FREE[self.sources.distribution][2]
        raise SandboxError(
            kinds.NO_PACKAGE(packages=", ".join(names), reason=reason, component=component)
        )
