"""Options of pyinfra that `gpufleet upgrade` hands on to each of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from pydantic import TypeAdapter, ValidationError

from gpufleet.cli.pyinfra_options import parse_options
from gpufleet.core.load_settings import problem_of
from gpufleet.core.settings import RoleSettings
from gpufleet.core.visible import one_line
from gpufleet.driver.settings import RequestedBranch, RequestedDriver
from gpufleet.gpu_stack.settings import ROLES
from gpufleet.toolkit.settings import RequestedToolkit
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.upgrade.subjects import Subject, Wanted

# How hosts are reached and operations are run. All others are refused, those of later versions of
# pyinfra too: one that ends a step early, or gives it other hosts or data, makes it another one.
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
PLAN = "A step with {} changes nothing: use --plan."
LIMIT = "A run chooses the hosts of each step: use --limit of gpufleet, before `--`."
ASKS = "A step cannot ask, because steps run side by side: set {} in the inventory."
KEPT = (
    "Other users can read a command line, so passwords are refused: set {} in the inventory, read "
    "from a file or from the environment."
)
REFUSED = {
    "--ssh-password": KEPT.format("ssh_password"),
    "--ssh-key-password": KEPT.format("ssh_key_password"),
    "--dry": PLAN.format("--dry"),
    "--debug-facts": PLAN.format("--debug-facts"),
    "--debug-operations": PLAN.format("--debug-operations"),
    "--limit": LIMIT,
    "--exclude": LIMIT,
    "--group-data": "Put the group data into group_data/ beside the inventory: a run decides by "
    "the data of its hosts, and --group-data reaches single steps.",
    "--fail-percent": "--fail-percent ends a step before all of its hosts are done: "
    "upgrade_max_failed says how many hosts of a run may fail.",
    "--chdir": "Start gpufleet in that folder instead of --chdir.",
    "--json": "Use `gpufleet upgrade status --json`.",
    "--same-sudo-password": ASKS.format("_sudo_password"),
    "--ssh-password-prompt": ASKS.format("ssh_password"),
}
MODELS: tuple[type[RoleSettings], ...] = (*ROLES, UpgradeSettings)
OURS = tuple(sorted({model.prefix for model in MODELS}))  # how keys begin
ADDRESS = "ssh_hostname"  # by which a host is found in its cluster
# Arguments of all operations that data may have: how root's rights are had. Others decide what is
# carried out, as _ignore_errors and _run_once.
RIGHTS = frozenset(
    (
        *("_sudo", "_sudo_user", "_use_sudo_login", "_preserve_sudo_env"),
        *("_su_user", "_use_su_login", "_preserve_su_env", "_su_shell"),
        *("_doas", "_doas_user", "_dzdo", "_dzdo_user", "_shell_executable", "_temp_dir"),
    )
)


def check_options(options: Sequence[str]) -> None:
    """Raises click.UsageError for options that would make a step another one."""
    given = parse_options(options)
    for option in given:
        if option not in ALLOWED:
            why = REFUSED.get(option, f"{option} is not possible with the steps of a run.")
            raise click.UsageError(why)
    keys = (word.partition("=")[0].strip() for word in given.get("--data", ()))
    if problem := next(filter(None, map(_why_not_data, keys)), ""):
        raise click.UsageError(problem)


def _why_not_data(key: str) -> str:
    """Why a key cannot be set by --data; "" if it can."""
    shown = one_line(key)
    if key.startswith(OURS) or key == ADDRESS:
        return (
            f"Set {shown} in the inventory: a run decides by the data of its hosts, and --data "
            "reaches single steps."
        )
    if key.endswith("password"):
        return KEPT.format(shown)
    if key.startswith("_") and key not in RIGHTS:
        return f"{shown} decides which operations of a step are carried out: leave it out."
    return ""


def wanted_of(version: str | None, branch: str | None, *, toolkit: bool, reboot: bool) -> Wanted:
    """Raises click.UsageError for options that exclude each other and for what is no version."""
    if version is not None and branch is not None:
        raise click.UsageError("--to and --branch exclude each other.")
    if toolkit and reboot:
        raise click.UsageError("--toolkit and --reboot exclude each other.")
    if version is not None and reboot:
        raise click.UsageError("--reboot and --to exclude each other.")
    if branch is not None and (toolkit or reboot):
        raise click.UsageError("--branch is of the driver.")
    if branch is not None:
        _check(RequestedBranch, "--branch", branch)
    elif version is not None and toolkit:
        _check(RequestedToolkit, "--to", version)
    elif version is not None:
        _check(RequestedDriver, "--to", version)
        if _problem(RequestedBranch, version.partition(".")[0]):
            raise click.UsageError(
                f"--to {version} is no version of a driver, such as 580.95.05; --toolkit changes "
                "the container toolkit."
            )
    subject: Subject = "toolkit" if toolkit else "reboot" if reboot else "driver"
    return Wanted(subject, version or "", branch or "")


def _check(kind: Any, option: str, value: str) -> None:
    if problem := _problem(kind, value):
        raise click.BadParameter(f"{value!r} {problem}.", param_hint=f"'{option}'")


def _problem(kind: Any, value: str) -> str:
    """What is wrong with a value of this type; "" where nothing is."""
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        return problem_of(error.errors()[0])
    return ""
