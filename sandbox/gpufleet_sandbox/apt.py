"""Packages of this machine's own distribution, from this machine's own apt sources.

The sources are read from apt's configuration at run time: whatever mirror the machine uses is
used here too, and no address is written down anywhere else than in the private apt folder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.process import run

# Where the distribution keeps NVIDIA's software, which is not free.
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
    """The distribution's archive as this machine reaches it."""

    distribution: str  # debian, ubuntu
    suite: str  # bookworm
    archives: tuple[tuple[str, str], ...]  # (URI, suite), security and updates included

    def lines(self, components: Sequence[str]) -> list[str]:
        """sources.list lines with these components, trusted by the distribution's own keyring."""
        keyring = KEYRINGS[self.distribution]
        return [
            f"deb [signed-by={keyring}] {uri} {suite} {' '.join(components)}"
            for uri, suite in self.archives
        ]


@cache
def machine_sources() -> AptSources:
    """This machine's sources of its own distribution; third-party ones are left out."""
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
    """An apt with folders of its own: nothing of the machine's package state is touched."""

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
        """Fetch the package lists, non-free components included."""
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
