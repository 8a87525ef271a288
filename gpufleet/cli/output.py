"""Options for the output of commands, and for files that they write in addition."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from gpufleet.core.inventory import EXCLUDED
from gpufleet.core.live import QUIET
from gpufleet.core.metrics import metrics_refusal, write_metrics
from gpufleet.core.secrets import SUDO_PASSWORD
from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import one_line
from gpufleet.run.report_file import FileKind, prepare_file, print_lost

Function = TypeVar("Function", bound=Callable[..., object])
LIMIT_HELP = (
    "Only this host or group; wildcards allowed; repeatable, or several with commas between."
)
EXCLUDE_HELP = "All but this host or group, as with --limit."
QUIET_HELP = "Print no progress, no infos; nothing at all if nothing changes, fails or warns."
VERBOSE = "gpufleet.verbose"  # key in a context's meta


def prepare_output(
    path: str | None, option: str, kind: FileKind, *, keep: bool = False
) -> Path | None:
    """The file that an option names, as `prepare_file` returns it, or None. Raises click.UsageError
    if the file must not be replaced."""
    if not path:
        return None
    try:
        return prepare_file(path, option, kind, keep=keep)
    except Stopped as stopped:
        raise click.UsageError(str(stopped)) from stopped


def metrics_option(
    prefix: str, help_text: str, name: str = "--metrics"
) -> Callable[[Function], Function]:
    """--metrics FILE, as a path. Raises click.UsageError for a file that must not be replaced."""

    def callback(context: click.Context, option: click.Parameter, given: str | None) -> Path | None:
        if given and (why := metrics_refusal(Path(given), prefix)):
            text = f"Cannot write {name} {one_line(given)}: {one_line(why)}."
            raise click.UsageError(text, context)
        return Path(given) if given else None

    return click.option(name, metavar="FILE", callback=callback, help=help_text)


def store_metrics(path: Path | None, text: Callable[[], str], prefix: str) -> bool:
    """Write the metrics if requested. On failure, print the reason (GF002) and return False."""
    try:
        if path:
            write_metrics(path, text(), prefix)
    except OSError as error:
        print_lost(path, error)
        return False
    return True


def limit_option(command: Function) -> Function:
    """--ask-sudo-password; --limit and --exclude, combined into one list of words for
    `choose_hosts`."""

    @wraps(command)
    def inner(*given: Any, limit: tuple[str, ...], exclude: tuple[str, ...], **how: Any) -> Any:
        words = [word for each in limit for word in each.split(",")]
        words += [f"{EXCLUDED}{word}" for each in exclude for word in each.split(",")]
        return command(*given, limit=tuple(words), **how)

    for option, text in (("--exclude", EXCLUDE_HELP), ("--limit", LIMIT_HELP)):
        inner = click.option(option, multiple=True, metavar="HOST|GROUP", help=text)(inner)
    ask = click.option(
        "--ask-sudo-password",
        is_flag=True,
        expose_value=False,
        callback=_ask_sudo_password,
        help="Ask once for the sudo password of all hosts.",
    )
    return cast(Function, ask(inner))


def _ask_sudo_password(context: click.Context, option: click.Parameter, given: bool) -> None:
    """The run's processes get the password through their environment, which other users cannot
    read."""
    if not given:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(
            "--ask-sudo-password needs a terminal, and standard input is none. Set the variable "
            f"{SUDO_PASSWORD}, or _sudo_password in the inventory, from a vault.",
            context,
        )
    os.environ[SUDO_PASSWORD] = click.prompt("sudo password", hide_input=True, err=True)


def print_note(line: str) -> None:
    """Print a line of progress. A command continues even if standard error is closed."""
    with suppress(OSError):
        click.echo(line, err=True)


def _inherited(variable: str, *names: str, **how: Any) -> Callable[[Function], Function]:
    """An option that sets an environment variable to the name of a file, or to "1" for a flag.
    Processes that the command starts inherit it."""

    def callback(context: click.Context, option: click.Parameter, given: str | bool | None) -> None:
        if given:
            os.environ[variable] = given if isinstance(given, str) else "1"

    return click.option(*names, expose_value=False, callback=callback, **how)


def output_options(command: Function) -> Function:
    """--quiet and --no-color."""
    quiet = _inherited(QUIET, "-q", "--quiet", is_flag=True, help=QUIET_HELP)
    no_color = _inherited("NO_COLOR", "--no-color", is_flag=True, help="Print no colors.")
    return quiet(no_color(command))


def report_options(command: Function) -> Function:
    """--json and --junit of a run. Its process gets the files through its environment."""
    about = "Write the results of hosts and clusters as JUnit XML."
    junit = _inherited("GPUFLEET_JUNIT", "--junit", metavar="FILE", help=about)
    report = _inherited(
        "GPUFLEET_REPORT", "--json", metavar="FILE", help="Write the report as JSON."
    )
    return report(junit(command))


def verbose_option(command: Function) -> Function:
    """--verbose; see with_verbose."""
    return click.option(
        "-v",
        "--verbose",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=lambda context, option, given: context.meta.update({VERBOSE: given}),
        help="Print pyinfra's own lines, one for each host and operation.",
    )(command)


def with_verbose(
    context: click.Context, argument: click.Parameter, options: tuple[str, ...]
) -> tuple[str, ...]:
    """pyinfra's options, with -v if --verbose was given. A callback of their argument."""
    return (*(["-v"] if context.meta.get(VERBOSE) else []), *options)
