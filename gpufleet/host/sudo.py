"""Commands with sudo: the password goes through standard input, never through an argument.

pyinfra itself runs `env PYINFRA_SUDO_PASSWORD=… sudo …`. Every user of the host can read that for a
moment, or for as long as the command runs if the login shell forks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyinfra.api import Host, QuoteString, StringCommand
from pyinfra.connectors.util import (
    SUDO_ASKPASS_ENV_VAR,
    CommandOutput,
    _ensure_sudo_askpass_set_for_host,
    make_unix_command,
)

# Debian's PAM gives SSH sessions the locale of the host. pyinfra asks for a password, and gpufleet
# explains a refusal, by sudo's English messages.
IN_ENGLISH = "env LC_ALL=C"
_PROMPTED = "prompted_sudo_password"  # where pyinfra stores a typed password, by connection
# Arguments for the connector that are not part of the command line.
_CONTROL = ("_success_exit_codes", "_timeout", "_get_pty", "_stdin")


def run_on_host(
    host: Host,
    command: StringCommand,
    *,
    print_output: bool = False,
    print_input: bool = False,
    **how: Any,
) -> tuple[bool, CommandOutput]:
    """Run a command on a host through its connector. `how`: pyinfra's arguments for the connector.

    If sudo needs a password that is not set, pyinfra prompts for it; the command then runs again.
    """
    shown = {"print_output": print_output, "print_input": print_input}
    if not how.get("_sudo"):
        return host.run_shell_command(command, **shown, **how)
    password = _password(host, how)
    ready, rest = _by_sudo(host, command, how, password)
    ok, output = host.run_shell_command(ready, **shown, **rest)
    typed = _password(host, how)
    if not ok and typed != password:
        ready, rest = _by_sudo(host, command, how, typed)
        ok, output = host.run_shell_command(ready, **shown, **rest)
    return ok, output


def _password(host: Host, how: Mapping[str, Any]) -> str:
    return str(how.get("_sudo_password") or host.connector_data.get(_PROMPTED) or "")


def _by_sudo(
    host: Host, command: StringCommand, how: Mapping[str, Any], password: str
) -> tuple[StringCommand, dict[str, Any]]:
    """The command with sudo in front, and the remaining arguments for the connector."""
    rest = {key: value for key, value in how.items() if key in _CONTROL}
    if not password:
        all_of_it = {key: value for key, value in how.items() if key not in _CONTROL}
        plain = make_unix_command(command, **all_of_it)
        return StringCommand(IN_ENGLISH, plain), {**rest, "_shell_executable": None}
    inside = {
        key: value for key, value in how.items() if key not in _CONTROL and "_sudo" not in key
    }
    askpass = _ensure_sudo_askpass_set_for_host(host, temp_dir=how.get("_temp_dir"))
    # sudo may pass on its environment (-E, env_reset off), which has the password
    clean = ["env", "-u", SUDO_ASKPASS_ENV_VAR, "-u", "SUDO_ASKPASS"]
    arguments = [*_options(how), *clean, make_unix_command(command, **inside)]
    rest["_stdin"] = [password, *(how.get("_stdin") or ())]
    rest.pop("_get_pty", None)  # a terminal would echo the password
    return StringCommand(
        f"IFS= read -r {SUDO_ASKPASS_ENV_VAR} &&",
        StringCommand("export SUDO_ASKPASS=", QuoteString(askpass), _separator=""),
        f"{SUDO_ASKPASS_ENV_VAR} &&",
        StringCommand("exec", IN_ENGLISH, "sudo -H -A -k", *arguments),
    ), rest


def _options(how: Mapping[str, Any]) -> list[Any]:
    user = how.get("_sudo_user")
    return [
        *(["-i"] if how.get("_use_sudo_login") else []),
        *(["-E"] if how.get("_preserve_sudo_env") else []),
        *(["-u", QuoteString(user)] if user else []),
    ]
