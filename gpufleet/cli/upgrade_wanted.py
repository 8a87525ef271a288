"""What a run is to change its hosts to, as the command line of `gpufleet upgrade start` says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click
from pydantic import TypeAdapter, ValidationError

from gpufleet.core.load_settings import problem_of
from gpufleet.driver.settings import RequestedBranch, RequestedDriver
from gpufleet.toolkit.settings import RequestedToolkit
from gpufleet.upgrade.subjects import Subject


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run is to change its hosts to; "" is what the inventory says."""

    subject: Subject = "driver"
    version: str = ""
    branch: str = ""


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
