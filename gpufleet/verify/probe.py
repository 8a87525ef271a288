"""Runs commands on one host, and scripts whose output has sections."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from typing import Any, Protocol

import testinfra.host

from gpufleet.core.limits import ANSWER_LIMIT, OWN_ANSWER, Limit
from gpufleet.core.process import Process
from gpufleet.verify.checks import CheckFailed
from gpufleet.verify.findings.hosts import OUTPUT_LIMIT

# The frame of every script: each section is a command's output and exit status. The mark is new in
# each run, so that no file on the host can contain a line that looks like it.
FRAME = """\
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin; LC_ALL=C; export PATH LC_ALL
limit() { timeout -k 5 20 "$@"; }
section() {
    section_name=$1; shift
    printf '\\n%s begin %s\\n' "$mark" "$section_name"
    "$@" 2>&1
    printf '\\n%s end %s\\n' "$mark" "$?"
}
unit_states() { # UNIT...; systemd keeps the state of a loaded unit until it reads units again
    systemctl show -p Id -p LoadState -p ActiveState -p UnitFileState "$@" |
        while IFS= read -r line; do
            case $line in
                Id=*) unit=${line#Id=} ;;
                UnitFileState=disabled) line=UnitFileState=$(systemctl is-enabled "$unit") ;;
            esac
            printf '%s\\n' "$line"
        done
}
"""


class Unusable(Exception):
    """The checks cannot make the connection that the inventory describes. The text says why."""


class Unreachable(Exception):
    """The host did not answer. The text is ssh's own."""


@dataclass(frozen=True, slots=True)
class Become:
    """How a command becomes root: the programs around every command. `password`: the input for
    sudo, or ""."""

    programs: tuple[tuple[str, ...], ...] = ()
    password: str = field(default="", repr=False)

    def around(self, command: str) -> str:
        """The command line that runs the shell text `command`, with no input from us."""
        command_line = ["sh", "-c", f"exec </dev/null\n{command}"]
        for program in reversed(self.programs):
            inner = [shlex.join(command_line)] if program[0] == "su" else command_line
            command_line = [*program, *inner]
        return shlex.join(command_line)


def parse_become(data: Mapping[str, Any]) -> Become:
    """The programs that the inventory asks for, outermost first, in the order of pyinfra's data
    keys: doas, dzdo, sudo and su. They never prompt at a terminal. Raises Unusable."""
    if data.get("_su_user") and data.get("_su_password"):
        raise Unusable(
            "_su_password is set, and su takes a password at a terminal only: use _sudo, or log in "
            "as root"
        )
    password = str(data.get("_sudo_password") or "") if data.get("_sudo") else ""
    if "\n" in password:
        raise Unusable("_sudo_password has a line break, which sudo takes for its end")
    asking = ("-k", "-S", "-p", "") if password else ("-n",)
    programs: list[tuple[str, ...]] = []
    if data.get("_doas"):
        programs.append(("doas", "-n", *_user(data.get("_doas_user"))))
    if data.get("_dzdo"):
        programs.append(("dzdo", "-H", "-n", *_user(data.get("_dzdo_user"))))
    if data.get("_sudo"):
        programs.append(("sudo", "-H", *asking, *_user(data.get("_sudo_user"))))
    if data.get("_su_user"):
        programs.append(("su", str(data["_su_user"]), "-c"))
    return Become(tuple(programs), password)


def _user(name: Any) -> tuple[str, ...]:
    return ("-u", str(name)) if name else ()


SAME_USER = Become()


@dataclass(frozen=True, slots=True)
class Output:
    """A command's output (in a script's section: both streams) and its exit status."""

    status: int
    text: str

    @property
    def ok(self) -> bool:
        return self.status == 0

    @property
    def lines(self) -> list[str]:
        return [line for line in self.text.splitlines() if line.strip()]

    @property
    def last(self) -> str:
        """The last line, which usually has the error."""
        return self.lines[-1].strip() if self.lines else f"exit status {self.status}"


COMMAND_MISSING = Output(127, "")


class Probe(Protocol):
    """The only access to a host. Tests replace it with a fake."""

    def run(self, command: str) -> Output: ...

    def script(self, name: str, *arguments: str) -> dict[str, Output]: ...


class HostProbe:
    """A probe that uses a testinfra host."""

    def __init__(
        self, host: testinfra.host.Host, become: Become = SAME_USER, name: str = "@local"
    ) -> None:
        self._host = host
        self._become = become
        self._name = name
        self._limit(host.backend, ANSWER_LIMIT)

    def _limit(self, backend: Any, limit: Limit) -> None:
        """Make a testinfra backend run its commands within a limit and pass sudo's password. Above
        the limit they raise CheckFailed (GF704)."""
        typed = f"{self._become.password}\n" if self._become.password else ""

        def run_local(command: str, *arguments: str) -> Any:
            text = backend.quote(command, *arguments)
            done = Process(
                ["sh", "-c", text], given=typed.encode(), timeout=limit.seconds, most=limit.bytes
            ).wait()
            if done.why:
                raise CheckFailed(self._name, OUTPUT_LIMIT(None, why=done.why))
            # Bytes: for text, testinfra would run python on the host to find its encoding.
            output, errors = (
                each.encode("utf-8", "replace") for each in (done.stdout, done.stderr)
            )
            return backend.result(done.code, backend.encode(text), output, errors)

        backend.run_local = run_local

    def run(self, command: str) -> Output:
        """Run a shell command. Raises Unreachable, and CheckFailed (GF704)."""
        try:
            done = self._host.run(self._become.around(command))
        except RuntimeError as error:  # testinfra's error if ssh itself failed (255)
            result = error.args[0] if error.args else None
            text = getattr(result, "stderr_bytes", b"").decode("utf-8", "replace").strip()
            raise Unreachable(ssh_reason(text) or str(error)) from error
        output = done.stdout_bytes + done.stderr_bytes
        return Output(done.rc, output.decode("utf-8", "replace"))

    @cached_property
    def host(self) -> testinfra.host.Host:
        """testinfra's host over the same connection. Its commands become root as in `run`."""
        backend = copy(self._host.backend)

        def get_command(command: str, *arguments: str) -> str:
            return self._become.around(backend.quote(command, *arguments))

        self._limit(backend, OWN_ANSWER)
        backend.get_command = get_command  # type: ignore[method-assign]
        return testinfra.host.Host(backend)

    def script(self, name: str, *arguments: str) -> dict[str, Output]:
        """Run a script of this package. Returns section name -> output.

        Raises Unreachable, and CheckFailed (GF704).
        """
        mark = f"@@{secrets.token_hex(8)}"
        body = resources.files("gpufleet.verify").joinpath(name).read_text()
        quoted = " ".join(shlex.quote(argument) for argument in arguments)
        output = self.run(f"mark={mark}; set -- {quoted}\n{FRAME}{body}")
        sections = parse_sections(output.text, mark)
        if not sections:
            raise Unreachable(f"no answer from the shell: {output.last}")
        return sections


def ssh_reason(text: str) -> str:
    """ssh's error on one line. Of its 14 lines about a changed host key, two are kept."""
    lines = text.splitlines()
    of_key = [line for line in lines if line.startswith(("Offending ", "Host key verification"))]
    return " / ".join(of_key if len(of_key) > 1 else lines)


def parse_sections(text: str, mark: str) -> dict[str, Output]:
    """Parse the sections that FRAME printed around each command. Reads each line once, because a
    host can print any number of section starts."""
    line = re.compile(
        rf"^{mark} (?:begin (?P<name>.*)\n|end (?P<status>[0-9]{{1,3}})$)", re.MULTILINE
    )
    sections: dict[str, Output] = {}
    begun: re.Match[str] | None = None
    for match in line.finditer(text):
        if match["status"] is None:
            begun = begun or match
        elif begun and match.start() > begun.end():
            output = text[begun.end() : match.start() - 1]
            sections[begun["name"]] = Output(int(match["status"]), output)
            begun = None
    return sections
