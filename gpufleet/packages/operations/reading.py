"""What operations read from a host while they run: versions, keys, what a transaction would do."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any, TypeVar, cast

from pyinfra import host, state
from pyinfra.api import FactBase, StringCommand

from gpufleet.core.limits import KEY
from gpufleet.facts.model import RUN_LOCK
from gpufleet.host.asking import answer, arguments, framed
from gpufleet.host.boundary import Stopped, step
from gpufleet.host.shell import command, script
from gpufleet.host.sudo import run
from gpufleet.host.trouble import refusal
from gpufleet.packages.rpm_trial import Trial, read_trial
from gpufleet.packages.transaction import Available, parse_available

T = TypeVar("T")


def read(fact: type[FactBase[T]], *args: Any) -> T:
    """What a fact below finds on the host of this operation, or of this deploy.

    Raises Stopped where the host gives no answer: pyinfra would go on with the fact's default.
    """
    asked = fact()
    ok, output = run(
        host,
        cast(StringCommand, asked.command(*args)),
        print_output=state.print_fact_output,
        print_input=state.print_fact_input,
        **arguments(host),
    )
    if not ok:
        raise Stopped(refusal(host, output.stderr_lines, step(state, host)))
    return asked.process(output.stdout_lines)


class AvailableVersions(FactBase[Available]):
    """Versions that the host's repositories have, by package name."""

    default = dict

    def command(self, manager: str, names: tuple[str, ...]) -> StringCommand:
        return framed(script("packages/available", manager, *names))

    def process(self, output: Iterable[str]) -> Available:
        return parse_available(answer(output) or ())


class NotKept(str):
    """Why the host could not keep what it fetched."""


class Fetched(FactBase[bytes | str]):
    """The bytes of a key at a URL, fetched by the host; a str is why it could not be.

    `login`: file on the host with the login, of netrc's form; it is gone afterwards.
    """

    @staticmethod
    def default() -> str:
        return "the host gave no answer"

    def command(self, url: str, login: str = "") -> StringCommand:
        return framed(script("packages/fetch", url, login, str(KEY.bytes), str(KEY.seconds)))

    def process(self, output: Iterable[str]) -> bytes | str:
        lines = answer(output)
        if lines is None:
            return self.default()
        if lines and lines[0].startswith("error "):
            return lines[0].removeprefix("error ").strip()
        if lines and lines[0].startswith("full "):
            return NotKept(lines[0].removeprefix("full ").strip())
        if lines == ["empty"]:
            return b""
        if lines in (["large"], ["slow"]):
            return KEY.too_large if lines == ["large"] else KEY.too_slow
        try:
            return base64.b64decode("".join(lines), validate=True)
        except binascii.Error as error:
            return f"what arrived is not base64: {error}"


class Simulation(FactBase[list[str]]):
    """The lines that `apt-get -s` prints for a transaction."""

    default = list

    def command(self, words: tuple[str, ...]) -> StringCommand:
        simulated = command(words[0], "-s", *words[1:])
        return framed(StringCommand("LC_ALL=C", simulated, "2>&1;", "exit", "0"))

    def process(self, output: Iterable[str]) -> list[str]:
        return answer(output) or []


class RpmTrial(FactBase[Trial]):
    """What a transaction of yum or dnf would do; `words` as scripts/rpm_transaction.sh wants."""

    @staticmethod
    def default() -> Trial:
        return read_trial([])

    def command(self, manager: str, words: tuple[str, ...]) -> StringCommand:
        return framed(script("packages/rpm_transaction", "", "", manager, "try", "", *words))

    def process(self, output: Iterable[str]) -> Trial:
        return read_trial(answer(output) or [])


class AddedPackages(FactBase[list[str]]):
    """Packages that transactions of gpufleet brought, which were not there before them."""

    default = list

    def command(self, file: str) -> StringCommand:
        return framed(script("packages/packages_added", file))

    def process(self, output: Iterable[str]) -> list[str]:
        return [line.strip() for line in answer(output) or () if line.strip()]


class LockHolder(FactBase[str]):
    """The process that holds the package manager's lock, as `name (pid)`; "" when it is free."""

    default = str

    def command(self) -> StringCommand:
        return framed(script("packages/lock_holder"))

    def process(self, output: Iterable[str]) -> str:
        return "".join(answer(output) or ()).strip()


class HostHolder(FactBase[str]):
    """The run of gpufleet that is at work on the host, as it says itself; "" where none is."""

    default = str

    def command(self) -> StringCommand:
        return framed(script("host/host_holder", RUN_LOCK))

    def process(self, output: Iterable[str]) -> str:
        return "".join(answer(output) or ()).strip()
