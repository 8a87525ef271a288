"""Parsers of hosts' output. Pure functions that do not depend on expected values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

# Every package of the driver carries the driver's version, whatever its name is.
DRIVER_NAME = re.compile(r"nvidia|^cuda-drivers|^libcuda1$")
DRIVER_VERSION = re.compile(r"^\d{3}\.\d+(\.\d+)?$")
DKMS_LINE = re.compile(
    r"^(?P<name>nvidia[^,/]*)[,/] ?(?P<version>[^,]+), (?P<kernel>[^,]+), .*: (?P<state>\w+)"
)
# an address of 4 or 16 bytes and a port, in /proc/net/tcp and tcp6
PROC_NET_SOCKET = re.compile(r"^([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})$", re.MULTILINE)


class UnreadableLocks(Exception):
    """A list of locked versions is malformed. The text says why."""


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed package. `version`: [epoch:]version-release, from the package manager."""

    name: str
    version: str
    held: bool = False
    whole: bool = True  # False: unpacked or half configured
    architecture: str = ""

    @property
    def upstream(self) -> str:
        """The version without epoch and packaging revision: 580.95.05."""
        return bare_version(self.version).rsplit("-", 1)[0]

    @property
    def is_driver(self) -> bool:
        return bool(DRIVER_NAME.search(self.name) and DRIVER_VERSION.match(self.upstream))


def json_mapping(text: str) -> dict[str, Any]:
    """A JSON object as plain values, or {} if it is invalid."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def toml_values(text: str) -> dict[str, Any]:
    """A TOML text as plain values, or {} if it is invalid."""
    try:
        return dict(tomlkit.parse(text).unwrap())
    except (TOMLKitError, RecursionError):
        return {}


def bare_version(version: str) -> str:
    """A package version without its epoch."""
    return version.split(":", 1)[-1]


def dpkg_packages(text: str) -> dict[str, Installed]:
    """Lines `name TAB version TAB architecture TAB want error status` of dpkg-query."""
    packages = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) != 4 or len(fields[3].split()) != 3:
            continue
        want, error, status = fields[3].split()
        if status in ("not-installed", "config-files"):
            continue
        whole = error == "ok" and status == "installed"
        packages[fields[0]] = Installed(fields[0], fields[1], want == "hold", whole, fields[2])
    return packages


def rpm_packages(text: str, locks: Sequence[str]) -> dict[str, Installed]:
    """Lines `name TAB epoch:version-release TAB architecture` of rpm, and the versionlock list."""
    packages: dict[str, Installed] = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) != 3:
            continue
        name, version, architecture = fields[0], fields[1].replace("(none):", ""), fields[2]
        held = any(is_locked(lock, name, version, architecture) for lock in locks)
        packages[name] = Installed(name, version, held, architecture=architecture)
    return packages


def is_locked(lock: str, name: str, version: str, architecture: str) -> bool:
    """True if a line of the versionlock list locks exactly this version.

    yum writes epoch:name-version-release.arch, dnf name-epoch:version-release.arch.
    """
    epoch, _, rest = version.rpartition(":")
    epoch = epoch or "0"
    forms = (f"{name}-{rest}", f"{name}-{epoch}:{rest}", f"{epoch}:{name}-{rest}")
    return any(fnmatchcase(w, lock) for form in forms for w in (form, f"{form}.{architecture}"))


def lock_lines(text: str) -> list[str]:
    """The entries of a versionlock list. Those of dnf 5's versionlock.toml are converted.

    Raises UnreadableLocks for a versionlock.toml that cannot be read.
    """
    if "[[packages]]" not in text:
        return [
            line.strip()
            for line in text.splitlines()
            if line.strip() and not line.lstrip().startswith(("#", "!"))
        ]
    try:
        return list(_locked(tomlkit.parse(text).unwrap()))
    except (TOMLKitError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise UnreadableLocks(f"versionlock.toml cannot be read: {error!r}") from error


def _locked(lock: dict[str, Any]) -> Iterator[str]:
    """Each package that versionlock.toml locks at one version, in the format of dnf 4."""
    for package in lock.get("packages", []):
        for condition in package.get("conditions", []):
            if condition.get("key") in ("evr", "version") and condition.get("comparator") == "=":
                rest = "" if condition["key"] == "evr" else "-*"
                yield f"{package['name']}-{condition['value']}{rest}"


def parse_units(text: str) -> dict[str, dict[str, str]]:
    """`systemctl show` of several units: unit name -> property -> value."""
    found = {}
    for block in re.split(r"\n\s*\n", text.strip()):
        values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if "Id" in values:
            found[values["Id"]] = values
    return found


def dkms_states(text: str, kernel: str) -> dict[str, str]:
    """`dkms status`: version of an nvidia module -> its state for this kernel."""
    states: dict[str, str] = {}
    for line in text.splitlines():
        if match := DKMS_LINE.match(line):
            if match["kernel"] == kernel:
                states[match["version"]] = match["state"]
        elif added := re.match(r"^nvidia[^,/]*[,/] ?(?P<version>[^,:]+): (?P<state>\w+)", line):
            states.setdefault(added["version"], added["state"])
    return states


def listening_addresses(text: str) -> set[tuple[str, str]]:
    """Addresses in /proc/net/tcp, `0100007F:24B8` -> ("127.0.0.1", "9400"). Skips other text."""
    found = set()
    for host, port in PROC_NET_SOCKET.findall(text):
        groups = [bytes.fromhex(host[at : at + 8])[::-1] for at in range(0, len(host), 8)]
        found.add((str(ip_address(b"".join(groups))), str(int(port, 16))))
    return found


def split_dotted_key(path: str) -> list[str]:
    """The parts of a dotted key. A part with dots in it is quoted, as in TOML."""
    parts = re.findall(r'"([^"]*)"|\'([^\']*)\'|([^."\']+)', path)
    return [a or b or c for a, b, c in parts]


def has_key(tree: Any, parts: list[str]) -> bool:
    """True if a nested mapping has this path. Also finds keys that contain dots."""
    if not parts:
        return True
    if not isinstance(tree, dict):
        return False
    return any(
        ".".join(parts[:count]) in tree and has_key(tree[".".join(parts[:count])], parts[count:])
        for count in range(1, len(parts) + 1)
    )
