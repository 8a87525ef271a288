"""The command line of `gpufleet upgrade`: commands, the target, and options for pyinfra."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any

import click
from pydantic import TypeAdapter, ValidationError

from gpufleet.cli.pyinfra_options import parse_options
from gpufleet.core.load_settings import problem_of
from gpufleet.core.visible import one_line
from gpufleet.driver.settings import RequestedBranch, RequestedDriver
from gpufleet.gpu_stack.settings import ROLES
from gpufleet.host.upgrade_settings import Subject
from gpufleet.toolkit.settings import RequestedToolkit
from gpufleet.upgrade.subjects import OTHER_SUBJECTS, WantedChange

COMMAND_SIMILARITY = 0.75  # similarity of a misspelt command
EXCLUDE_REFUSED = (
    *(("--to", "--branch"), ("--branch", "--toolkit"), ("--reboot", "--sharing")),
    *product(("--to", "--branch", "--toolkit"), ("--reboot", "--sharing")),
)
# Options about connections and how operations run. Any other option is refused, also a new one of
# pyinfra: one that ends a step early, or changes its hosts or data, changes the step.
ALLOWED = frozenset(
    (
        *("--ssh-user", "--ssh-port", "--ssh-key"),
        *("--sudo", "--sudo-user", "--use-sudo-password", "--use-sudo-login", "--su-user"),
        *("--dzdo", "--dzdo-user", "--shell-executable"),
        *("--parallel", "--no-wait", "--serial", "--retry", "--retry-delay"),
        *("-v", "--debug", "--debug-all", "--diff", "--yes"),
        *("--config", "--data"),
    )
)
PASSWORDS = "set the password in the inventory, read from a file or from the environment"
INSTEAD = {
    **dict.fromkeys(("--dry", "--debug-facts", "--debug-operations"), "use --plan"),
    **dict.fromkeys(("--limit", "--exclude"), "use it before `--`"),
    **dict.fromkeys(("--ssh-password", "--ssh-key-password"), PASSWORDS),
    "--ssh-password-prompt": PASSWORDS,
    "--same-sudo-password": "use --ask-sudo-password before `--`",
    "--group-data": "put the data into group_data/ beside the inventory",
    "--fail-percent": "set upgrade_max_failed",
    "--chdir": "start gpufleet in that folder",
    "--json": "use `gpufleet upgrade status --json`",
}
KEY_PREFIXES = tuple(sorted({model.prefix for model in ROLES}))  # prefixes of keys
# Arguments of all operations that data may set: how to become root. The rest decides which steps
# run, for example _ignore_errors and _run_once.
RIGHTS = frozenset(
    (
        *("_sudo", "_sudo_user", "_use_sudo_login", "_preserve_sudo_env"),
        *("_su_user", "_use_su_login", "_preserve_su_env", "_su_shell"),
        *("_doas", "_doas_user", "_dzdo", "_dzdo_user", "_shell_executable", "_temp_dir"),
    )
)


class UpgradeGroup(click.Group):
    """`upgrade INVENTORY` is `upgrade start INVENTORY`: its help shows the options of both."""

    default = "start"

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.commands[self.default].format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.commands[self.default].format_epilog(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Raises click.UsageError for a misspelt command."""
        if args and args[0] not in (*self.commands, "--help"):
            close = get_close_matches(args[0], self.commands, n=1, cutoff=COMMAND_SIMILARITY)
            if close and not Path(args[0]).exists():
                raise click.UsageError(f"No such command {args[0]!r}. Did you mean {close[0]!r}?")
            args = [self.default, *args]
        return super().parse_args(ctx, args)


def wanted_of(
    version: str | None, branch: str | None, *, downgrade: bool, **subjects: bool
) -> WantedChange:
    """Raises click.UsageError for options that exclude one another and for malformed versions."""
    given = {"--to": version is not None, "--branch": branch is not None}
    given |= {f"--{subject}": subjects[subject] for subject in OTHER_SUBJECTS}
    for one, other in EXCLUDE_REFUSED:
        if given[one] and given[other]:
            raise click.UsageError(f"{one} and {other} exclude each other.")
    toolkit = subjects["toolkit"]
    kind: Any = RequestedToolkit if toolkit else RequestedDriver
    for option, wanted, value in (("--to", kind, version), ("--branch", RequestedBranch, branch)):
        if value is not None and (problem := _problem(wanted, value)):
            raise click.BadParameter(f"{value!r} {problem}.", param_hint=f"'{option}'")
    if version and not toolkit and _problem(RequestedBranch, version.partition(".")[0]):
        raise click.UsageError(
            f"--to {version} is no version of a driver, such as 580.95.05; --toolkit changes the "
            "container toolkit."
        )
    subject: Subject = next((each for each in OTHER_SUBJECTS if subjects[each]), "driver")
    return WantedChange(subject, version or "", branch or "", downgrade)


def _problem(kind: Any, value: str) -> str | None:
    """Why a text is not a value of this type, or None."""
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        return problem_of(error.errors()[0])
    return None


def check_options(options: Sequence[str]) -> None:
    """Raises click.UsageError for pyinfra options that would turn a step into a different one."""
    given = parse_options(options)
    for option in given:
        if option not in ALLOWED:
            instead = INSTEAD.get(option, "leave it out")
            raise click.UsageError(f"{option} cannot be used with the steps of a run: {instead}.")
    for word in given.get("--data", ()):
        key = word.partition("=")[0].strip()
        if key.startswith(KEY_PREFIXES) or key == "ssh_hostname":  # identifies the host's node
            why = "a run decides by the data of its hosts: set it in the inventory"
        elif key.endswith("password"):
            why = f"other users can read a command line: {PASSWORDS}"
        elif key.startswith("_") and key not in RIGHTS:
            why = "it decides which operations of a step are carried out"
        else:
            continue
        raise click.UsageError(f"--data cannot set {one_line(key)}: {why}.")
