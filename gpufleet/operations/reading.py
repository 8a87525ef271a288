"""What operations read from a host while they run: versions, keys, what a transaction would do."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from pyinfra.api import FactBase, StringCommand

from gpufleet.operations.shell import command, script
from gpufleet.plan.packages import Available, parse_available
from gpufleet.plan.rpm_trial import Trial, read_trial


class AvailableVersions(FactBase[Available]):
    """Versions that the host's repositories have, by package name."""

    default = dict

    def command(self, manager: str, names: tuple[str, ...]) -> StringCommand:
        return script("available", manager, *names)

    def process(self, output: Iterable[str]) -> Available:
        return parse_available(output)


class NotKept(str):
    """Why the host could not keep what it fetched."""


class Fetched(FactBase[bytes | str]):
    """The bytes at a URL, fetched by the host; a str is the reason why it could not be."""

    @staticmethod
    def default() -> str:
        return "the host gave no answer"

    def command(self, url: str) -> StringCommand:
        return script("fetch", url)

    def process(self, output: Iterable[str]) -> bytes | str:
        lines = list(output)
        if lines and lines[0].startswith("error "):
            return lines[0].removeprefix("error ").strip()
        if lines and lines[0].startswith("full "):
            return NotKept(lines[0].removeprefix("full ").strip())
        if lines == ["empty"]:
            return b""
        try:
            return base64.b64decode("".join(lines), validate=True)
        except binascii.Error as error:
            return f"what arrived is not base64: {error}"


class Simulation(FactBase[list[str]]):
    """The lines that `apt-get -s` prints for a transaction."""

    default = list

    def command(self, words: tuple[str, ...]) -> StringCommand:
        return StringCommand("LC_ALL=C", command(words[0], "-s", *words[1:]), "2>&1;", "exit", "0")

    def process(self, output: Iterable[str]) -> list[str]:
        return list(output)


class RpmTrial(FactBase[Trial]):
    """What a transaction of yum or dnf would do; `words` as scripts/rpm_transaction.sh wants."""

    @staticmethod
    def default() -> Trial:
        return read_trial([])

    def command(self, manager: str, words: tuple[str, ...]) -> StringCommand:
        return script("rpm_transaction", manager, "try", "", *words)

    def process(self, output: Iterable[str]) -> Trial:
        return read_trial(output)


class AddedPackages(FactBase[list[str]]):
    """Packages that were not there when the transaction began."""

    default = list

    def command(self, file: str) -> StringCommand:
        return script("packages_added", file)

    def process(self, output: Iterable[str]) -> list[str]:
        return [line.strip() for line in output if line.strip()]


class RecordOnHost(FactBase[bytes]):
    """The bytes of the host's record as it is now; none where there is no record."""

    @staticmethod
    def default() -> bytes:
        return b""

    def command(self, path: str) -> StringCommand:
        return script("read_record", path)

    def process(self, output: Iterable[str]) -> bytes:
        return base64.b64decode("".join(output))


class LockHolder(FactBase[str]):
    """The process that holds the package manager's lock, as `name (pid)`; "" when it is free."""

    default = str

    def command(self) -> StringCommand:
        return script("lock_holder")

    def process(self, output: Iterable[str]) -> str:
        return "".join(output).strip()
