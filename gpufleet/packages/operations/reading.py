"""Package manager queries for operations: versions, keys, simulated transactions."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from pyinfra.api import FactBase, StringCommand

from gpufleet.core.limits import KEY_LIMIT
from gpufleet.host.asking import frame_command, framed_answer
from gpufleet.host.shell import quote_command, script_command
from gpufleet.packages.transaction import Available
from gpufleet.packages.trial import RpmTrial, read_rpm_trial


class Unreadable(str):
    """The reason why the package manager cannot read its repositories."""


class AvailableVersions(FactBase[Available | Unreadable]):
    """Versions in the host's repositories, by package name.

    `excluded`: include versions that yum and dnf are configured to exclude.
    """

    def command(
        self, manager: str, names: tuple[str, ...], excluded: bool = False
    ) -> StringCommand:
        how = (manager, "yes" if excluded else "")
        return frame_command(script_command("packages/available", *how, *names))

    def process(self, output: Iterable[str]) -> Available | Unreadable:
        lines = framed_answer(output) or []
        if lines and lines[0].startswith("error "):
            return Unreadable(lines[0].removeprefix("error ").strip())
        found: dict[str, list[str]] = {}
        for line in lines:
            name, _, version = line.partition(" ")
            if version:
                found.setdefault(name, []).append(version)
        return {name: tuple(versions) for name, versions in found.items()}


class NotStored(str):
    """The reason why the host could not store a download."""


class Fetched(FactBase[bytes | str]):
    """The bytes of a key, fetched by the host as its package manager would, or, as text, why that
    failed.

    `login`: netrc file on the host, which is removed afterwards. `source`: .repo file on the host,
    which may set a proxy.
    """

    def command(self, manager: str, url: str, login: str = "", source: str = "") -> StringCommand:
        limits = str(KEY_LIMIT.bytes), str(KEY_LIMIT.seconds)
        return frame_command(script_command("packages/fetch", manager, url, login, *limits, source))

    def process(self, output: Iterable[str]) -> bytes | str:
        lines = framed_answer(output)
        if lines is None:
            return "the host did not respond"
        if lines and lines[0].startswith("error "):
            return lines[0].removeprefix("error ").strip()
        if lines and lines[0].startswith("full "):
            return NotStored(lines[0].removeprefix("full ").strip())
        if lines == ["empty"]:
            return b""
        if lines in (["large"], ["slow"]):
            return KEY_LIMIT.too_large if lines == ["large"] else KEY_LIMIT.too_slow
        try:
            return base64.b64decode("".join(lines), validate=True)
        except binascii.Error as error:
            return f"the response is not base64: {error}"


class Simulation(FactBase[list[str]]):
    """The lines that `apt-get -s` prints for a transaction."""

    def command(self, words: tuple[str, ...]) -> StringCommand:
        simulated = quote_command(words[0], "-s", *words[1:])
        return frame_command(StringCommand("LC_ALL=C", simulated, "2>&1;", "exit", "0"))

    def process(self, output: Iterable[str]) -> list[str]:
        return framed_answer(output) or []


class RpmSimulation(FactBase[RpmTrial]):
    """The effects of a yum or dnf transaction. `words`: see scripts/rpm_transaction.sh."""

    def command(self, manager: str, words: tuple[str, ...]) -> StringCommand:
        how = ("", "", manager, "try", "")
        return frame_command(script_command("packages/rpm_transaction", *how, *words))

    def process(self, output: Iterable[str]) -> RpmTrial:
        return read_rpm_trial(framed_answer(output) or [])


class KernelDevel(FactBase[str]):
    """dnf's name of the rpm package with the headers of a kernel, or ""."""

    def command(self, release: str) -> StringCommand:
        return frame_command(script_command("packages/kernel_devel", release))

    def process(self, output: Iterable[str]) -> str:
        return "".join(framed_answer(output) or ()).strip()


class AddedPackages(FactBase[list[str]]):
    """Packages that gpufleet's transactions installed and that were absent before."""

    def command(self, file: str) -> StringCommand:
        return frame_command(script_command("packages/packages_added", file))

    def process(self, output: Iterable[str]) -> list[str]:
        return [line.strip() for line in framed_answer(output) or () if line.strip()]


class LockHolder(FactBase[str]):
    """The process that holds the package manager's lock, as `name (pid)`, or ""."""

    def command(self) -> StringCommand:
        return frame_command(script_command("packages/lock_holder"))

    def process(self, output: Iterable[str]) -> str:
        return "".join(framed_answer(output) or ()).strip()
