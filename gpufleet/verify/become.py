"""How a command becomes root on a host, by pyinfra's data keys: sudo, doas, dzdo and su."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class Unusable(Exception):
    """The checks cannot make the connection that the inventory describes. The text says why."""


@dataclass(frozen=True, slots=True)
class Become:
    """The programs around every command. `password`: the input for sudo, or ""."""

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
    """The programs that the inventory asks for, outermost first, in pyinfra's order. They never
    prompt at a terminal. Raises Unusable."""
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
