"""Parses packages, holds and the state of the package manager."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpufleet.core.entries import PackageManager, Style
from gpufleet.core.openpgp import keyring_fingerprints
from gpufleet.facts.distribution import manager_of
from gpufleet.facts.model import Keyring, ManagedFile, OsRelease, Package, Service

_GONE = ("not-installed", "config-files")
_PERIODIC = re.compile(
    r'^\s*(?:APT::Periodic::)?(Unattended-Upgrade|Enable)\s+"?(\w+)"?\s*;', re.MULTILINE
)
# the files that apt reads (apt.conf(5)): not 20auto-upgrades.ucf-dist, nor 20auto-upgrades.bak
_APT_CONF = re.compile(r"/etc/apt/apt\.conf\.d/([\w-]+|[\w.-]+\.conf)", re.ASCII)
_APPLY = re.compile(r"^\s*apply_updates\s*=\s*(?i:yes|true|1|on)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PackageState:
    """The parsed `packages` section."""

    manager: PackageManager | None
    packages: dict[str, Package]
    held: frozenset[str]
    broken: str


def _rows(lines: Sequence[str]) -> tuple[str, str, set[str], list[list[str]]]:
    """The kind of database, its journal, the tools, and the four columns of each package."""
    form, journal = "", ""
    tools: set[str] = set()
    rows: list[list[str]] = []
    for line in filter(str.strip, lines):
        columns = line.split("\t")
        word, _, rest = line.partition(" ")
        if len(columns) == 4:
            rows.append(columns)
        elif word == "format":
            form = rest.strip()
        elif word == "tool":
            tools.add(rest)
        elif word == "journal":
            journal = rest
        else:
            raise ValueError(f"unexpected line {line!r}")
    return form, journal, tools, rows


def parse_packages(lines: Sequence[str], os: OsRelease) -> PackageState:
    """Packages by name; a foreign architecture as `name:arch`, a further version as `name-version`.

    Packages with only configuration files left count as absent.
    """
    form, journal, tools, rows = _rows(lines)
    native = next((row[1] for row in rows if row[0] in ("dpkg", "rpm")), "")
    packages: dict[str, Package] = {}
    held, unfinished = set(), []
    for name, architecture, version, status in rows:
        want, _, state = status.partition(" ")
        if want == "hold":
            held.add(name)
        if state.split(" ")[-1] in _GONE:
            continue
        if state != "ok installed":
            unfinished.append(f"{name} is {state.split(' ')[-1]}")
        version = version.removeprefix("0:") if form == "rpm" else version
        foreign = form == "dpkg" and architecture not in (native, "all")
        key = f"{name}:{architecture}" if foreign else name
        if key in packages:
            key = f"{name}-{version}"
        shown = "installed" if state == "ok installed" else state
        packages[key] = Package(name, version, architecture, shown)
    if journal:
        unfinished.append(
            "an interrupted run of dpkg" if form == "dpkg" else "an unfinished transaction of yum"
        )
    packaging: Style = "deb" if form == "dpkg" else "rpm"
    manager = manager_of(os, packaging, tools)
    return PackageState(manager, packages, frozenset(held), ", ".join(unfinished))


def parse_versionlocks(files: Mapping[str, ManagedFile]) -> frozenset[str]:
    """The lines of the version lock lists of yum and dnf."""
    return frozenset(
        line.strip()
        for path, file in files.items()
        if path.endswith("/versionlock.list")
        for line in (file.content or "").splitlines()
        if line.strip() and not line.strip().startswith("#")
    )


def parse_trust(lines: Sequence[str]) -> tuple[Keyring, ...]:
    """The gpg-pubkey packages of an rpm system: a name, then the key in ASCII armor."""
    blocks: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith("@key "):
            blocks.append((line[5:].strip(), []))
        elif blocks:
            blocks[-1][1].append(line)
    found = []
    for name, armor in blocks:
        short = re.findall(r"^gpg-pubkey-([0-9a-f]{8})-", name)
        known = _fingerprints("\n".join(armor).encode())
        found.append(Keyring(name, known or tuple(map(str.upper, short))))
    return tuple(found)


def _fingerprints(data: bytes) -> tuple[str, ...]:
    return keyring_fingerprints(data) if data.strip() else ()


def parse_keyring(path: str, data: bytes) -> Keyring:
    """A keyring file, without fingerprints if its content is not a keyring."""
    return Keyring(path, _fingerprints(data))


def parse_lock(lines: Iterable[str]) -> str:
    """`apt-get (process 812)`, or "" if no process holds the package manager's lock."""
    for line in filter(str.strip, lines):
        pid, _, command = line.strip().partition(" ")
        return f"{command or 'a process'} (process {int(pid)})"
    return ""


def upgrades_unattended(
    state: PackageState, files: Mapping[str, ManagedFile], services: Mapping[str, Service]
) -> bool:
    """True if the host upgrades packages automatically."""
    if state.manager == "apt":
        unit = "apt-daily-upgrade.timer"
        timer = services.get(unit)
        off = timer and timer.load != "not-found" and not _enabled(services, unit)
        values = {"Unattended-Upgrade": "0", "Enable": "1"}
        for path, file in sorted(files.items()):
            if _APT_CONF.fullmatch(path):
                values.update(_PERIODIC.findall(file.content or ""))
        return "unattended-upgrades" in state.packages and not off and "0" not in values.values()
    if _enabled(services, "dnf-automatic-install.timer"):
        return True
    pairs = (
        ("dnf-automatic.timer", "/etc/dnf/automatic.conf"),
        ("yum-cron.service", "/etc/yum/yum-cron.conf"),
    )
    texts = {unit: (files[path].content or "") if path in files else "" for unit, path in pairs}
    applies = {unit: _APPLY.search(text) for unit, text in texts.items()}
    return any(_enabled(services, unit) and match for unit, match in applies.items())


def _enabled(services: Mapping[str, Service], unit: str) -> bool:
    service = services.get(unit)
    return service is not None and (service.enabled == "enabled" or service.active == "active")
