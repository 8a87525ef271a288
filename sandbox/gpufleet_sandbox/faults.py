"""Faults on demand. Each has `on(host)` and `off(host)`, which are idempotent."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gpufleet_sandbox.addresses import gateway
from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.kinds import MIRROR, HostKind
from gpufleet_sandbox.mirror.signing import key_ring
from gpufleet_sandbox.paths import cache_dir
from gpufleet_sandbox.process import checked

if TYPE_CHECKING:
    from gpufleet_sandbox.host import Host

KEY_FILES = r"(\.pub|/gpgkey)$"  # in the mirror's tree
SCRIPTS = Path(__file__).parent / "fault_scripts"
# runc fails to freeze a host that is starting processes, and leaves retries to its caller:
# https://github.com/opencontainers/runc/pull/4388
BUSY, FREEZES = "unable to freeze", 20


class Fault(Protocol):
    """Something that can go wrong. `where`: host, apt, rpm, gpu, efi or mirror."""

    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def where(self) -> str: ...
    def on(self, host: Host) -> None: ...
    def off(self, host: Host) -> None: ...


@dataclass(frozen=True, slots=True)
class ScriptFault:
    """A fault that the functions of fault_scripts/<name>.sh switch on and off on the host."""

    where: str
    name: str
    summary: str

    def on(self, host: Host) -> None:
        self._run(host, "on")

    def off(self, host: Host) -> None:
        self._run(host, "off")

    def _run(self, host: Host, function: str) -> None:
        values = {"NEXT_KERNEL": host.kind.next_kernel, "GATEWAY": gateway(host.subnet)}
        variables = "".join(f"{key}={value}\n" for key, value in values.items())
        script = (SCRIPTS / f"{self.name}.sh").read_text()
        host.run(f"set -eu\n{variables}{script}\n{function}\n")


@dataclass(frozen=True, slots=True)
class Frozen:
    """The machine hangs: its kernel accepts connections and nothing responds."""

    where: str = "host"
    name: str = "frozen"
    summary: str = "the host hangs: it accepts connections and does not respond"

    def on(self, host: Host) -> None:
        words = ("pause", host.state.container)
        for left in reversed(range(FREEZES)):
            if host.is_paused:
                return
            done = host.engine(*words, check=False)
            if not left or BUSY not in done.stderr:
                checked(words, done)

    def off(self, host: Host) -> None:
        if host.is_paused:
            host.engine("unpause", host.state.container)


@dataclass(frozen=True, slots=True)
class Served:
    """The mirror serves wrong files; `detail`: entry of serve.py's faults file."""

    name: str
    summary: str
    detail: Mapping[str, object]
    where: str = MIRROR

    def on(self, host: Host) -> None:
        (host.scenario / "faults.json").write_text(json.dumps(dict(self.detail)))

    def off(self, host: Host) -> None:
        (host.scenario / "faults.json").unlink(missing_ok=True)


def _armored(binary: bytes) -> bytes:
    begin, end = (f"-----{word} PGP PUBLIC KEY BLOCK-----\n" for word in ("BEGIN", "END"))
    return begin.encode() + b"\n" + base64.encodebytes(binary) + end.encode()


@dataclass(frozen=True, slots=True)
class RogueKey:
    """The files with the vendor's key also contain another key, which signs the repositories.

    `order`: names of keys from signing.py; each inner tuple is one armored block.
    """

    name: str
    summary: str
    order: tuple[tuple[str, ...], ...]
    where: str = MIRROR

    def on(self, host: Host) -> None:
        ring = key_ring(cache_dir() / "mirror" / "gnupg")
        blocks = [b"".join(ring.public(n, armor=False) for n in names) for names in self.order]
        (host.scenario / "rogue-key").write_bytes(b"".join(map(_armored, blocks)))
        keys = {"mode": "other-file", "path": KEY_FILES, "file": "rogue-key"}
        (host.scenario / "faults.json").write_text(json.dumps([keys, {"mode": "wrong-signature"}]))

    def off(self, host: Host) -> None:
        for name in ("faults.json", "rogue-key"):
            (host.scenario / name).unlink(missing_ok=True)


FAULTS: tuple[Fault, ...] = (
    ScriptFault("apt", "apt-lock", "another process holds apt's locks"),
    ScriptFault("rpm", "yum-lock", "another process holds yum's locks"),
    ScriptFault("host", "disk-full", "/var has no space left"),
    ScriptFault("host", "boot-full", "/boot has no space left"),
    ScriptFault("apt", "dpkg-interrupted", "dpkg was interrupted, a package is not configured"),
    ScriptFault("gpu", "dkms-failure", "building the driver's modules fails"),
    ScriptFault("host", "missing-headers", "the archive has no kernel headers"),
    ScriptFault("gpu", "nouveau", "nouveau is loaded and in use by the console"),
    ScriptFault("gpu", "gpu-busy", "a process uses GPU 0"),
    ScriptFault("gpu", "mig-busy", "a process uses the first MIG instance of GPU 0"),
    ScriptFault("gpu", "mig-pending", "GPUs cannot be reset: an A100's MIG mode stays pending"),
    ScriptFault("gpu", "power-limit", "GPUs refuse a new power limit, and nvidia-smi ends with 0"),
    ScriptFault("gpu", "module-busy", "the module nvidia is in use, but not by a process"),
    ScriptFault("efi", "secure-boot", "Secure Boot is on: unsigned modules are refused"),
    ScriptFault("gpu", "gpu-lost", "the first GPU has fallen off the bus"),
    ScriptFault("gpu", "gpu-xid", "XID 79 of the first GPU, in a cluster's metrics and the log"),
    ScriptFault("gpu", "gpu-load", "every GPU is 95 % busy, in a cluster's metrics"),
    ScriptFault("host", "unreachable", "the host's network is down"),
    Frozen(),
    ScriptFault("host", "slow-reboot", "the next boots take 20 seconds longer"),
    ScriptFault("host", "new-kernel", "the next boot is into a newer kernel"),
    ScriptFault("host", "clock-skew", "the clock is a day behind"),
    ScriptFault(MIRROR, "down", "the mirror does not respond"),
    Served("404", "every file of the mirror is missing", {"mode": "404"}),
    Served("slow", "each response takes 5 seconds longer", {"mode": "slow", "delay": 5}),
    Served("wrong-signature", "signed by an unknown key", {"mode": "wrong-signature"}),
    Served("expired-key", "signed by an expired key", {"mode": "expired-key"}),
    RogueKey("rogue-key-after", "an unknown key after the right one", (("vendor",), ("other",))),
    RogueKey("rogue-key-first", "an unknown key before the right one", (("other",), ("vendor",))),
    RogueKey("rogue-key-inside", "an unknown key in the same armor", (("vendor", "other"),)),
)


def _places(kind: HostKind) -> set[str]:
    """The values of `where` that fit a kind of host."""
    if kind.name == MIRROR:
        return {MIRROR}
    places = {"host", "rpm" if kind.is_rpm else "apt"}
    if any(device.is_nvidia for device in kind.devices):
        places.add("gpu")
    return places | {"efi"} if kind.efi else places


def available(kind: HostKind) -> dict[str, Fault]:
    """The faults available for a kind of host, by name."""
    return {fault.name: fault for fault in FAULTS if fault.where in _places(kind)}


def find(name: str, host: Host) -> Fault:
    """The fault `name` for this host; GF605 without one."""
    known = available(host.kind)
    if name not in known:
        raise SandboxError(
            kinds.UNKNOWN_FAULT(fault=name, host=host.name, known=", ".join(sorted(known)))
        )
    return known[name]
