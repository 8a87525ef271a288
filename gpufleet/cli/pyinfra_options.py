"""The options of pyinfra that may follow `--`, and gpufleet's options that become such options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import click

# pyinfra's command cannot parse them here: it makes gevent replace parts of the standard library.
PERMISSION_FLAGS = (
    *("-v", "--dry", "--diff", "-y --yes", "--no-wait", "--serial", "--json"),
    *("--sudo", "--same-sudo-password", "--use-sudo-password", "--use-sudo-login", "--dzdo"),
    *("--ssh-password-prompt", "--debug", "--debug-all", "--debug-facts", "--debug-operations"),
)
TEXTS = (
    *("--limit", "--exclude", "--data", "--group-data", "--config", "--chdir"),
    *("--sudo-user", "--su-user", "--dzdo-user", "--shell-executable", "--ssh-user --user"),
    *("--ssh-key --key", "--ssh-key-password --key-password", "--ssh-password --password"),
)
NUMBERS = ("--fail-percent", "--parallel", "--retry", "--retry-delay", "--ssh-port --port")

WORKERS_OPTION = click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="Split the hosts into parts; run N parts in parallel.",
)
SCHEDULER = click.option(
    "--scheduler",
    default="",
    metavar="ADDRESS",
    help="Run the parts on the Dask cluster at ADDRESS.",
)

_PYINFRA = click.Command(
    "pyinfra",
    params=[
        *(click.Option(names.split(), count=True) for names in PERMISSION_FLAGS),
        *(click.Option(names.split(), multiple=True) for names in TEXTS),
        *(click.Option(names.split(), multiple=True, type=int) for names in NUMBERS),
    ],
    add_help_option=False,
)


def parse_options(options: Sequence[str]) -> dict[str, Any]:
    """The given options by their longest name: the count of a flag, or the values of another
    option. Raises click.UsageError for an option that pyinfra does not accept for a run."""
    found = _PYINFRA.make_context("pyinfra", list(options)).params
    names = {option.name: max(option.opts, key=len) for option in _PYINFRA.params}
    return {names[name]: value for name, value in found.items() if value}


PERMISSIONS = ("driver_allow_change", "toolkit_allow_change")
CHANGE = "Change an installed {what} to what INVENTORY selects, on all hosts at once."


def permission_options(function: Callable[..., None]) -> Callable[..., None]:
    """Options that reach pyinfra as data and permit changes of the driver or toolkit."""

    @wraps(function)
    def inner(options: tuple[str, ...], **how: Any) -> None:
        allowed = [key for key in PERMISSIONS if how.pop(key)]
        data = [word for key in allowed for word in ("--data", f"{key}=True")]
        function(options=(*options, *data), **how)

    for key in reversed(PERMISSIONS):
        what = key.partition("_")[0]
        text = CHANGE.format(what=what if what == "driver" else f"container {what}")
        inner = click.option(f"--allow-{what}-change", key, is_flag=True, help=text)(inner)
    return inner
