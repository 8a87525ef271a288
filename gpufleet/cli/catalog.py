"""`gpufleet catalog`: show the selection for a host and its reasons, and list the catalog."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click
from pydantic import ValidationError
from rich.table import Table

from gpufleet.catalog import view
from gpufleet.cli.lazy import LazyGroup
from gpufleet.cli.output import Function, print_note
from gpufleet.core.console import result_console
from gpufleet.core.distributions import Distribution
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import Finding, Severity
from gpufleet.core.load_settings import problem_of
from gpufleet.core.own_entries import own_entries
from gpufleet.driver.catalog import devices_of, name_devices
from gpufleet.driver.choice import DriverChoice, branches_of
from gpufleet.driver.find import find_distribution, find_gpu
from gpufleet.driver.findings.choice import UNKNOWN_DISTRIBUTION
from gpufleet.driver.resolve import resolve_driver
from gpufleet.driver.settings import DriverSettings
from gpufleet.node.catalog import Catalog, load_catalog
from gpufleet.node.host_checks import CARRIED_OUT_WITH
from gpufleet.packages.findings import UNSUPPORTED_MANAGER
from gpufleet.toolkit.resolve import ToolkitChoice, resolve_toolkit
from gpufleet.toolkit.settings import ToolkitSettings

ANY_KERNEL = "<kernel>-<flavour>"
HEADINGS = {"architectures": "arch"}  # shorter headings, for 80 columns

_distro = click.option(
    "--distro",
    required=True,
    callback=lambda _context, _option, text: find_distribution(load_catalog(), text),
    help="Distribution, by NVIDIA's code or by name: ubuntu2204, rhel9, centos7, …",
)
_arch = click.option(
    "--arch", default="x86_64", show_default=True, help="Architecture, as in `uname -m`."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_repo_url = click.option("--repo-url", help="URL of a mirror of the repository.")
_fingerprint = click.option(
    "--repo-key-fingerprint", help="Fingerprint of the mirror's signing key."
)


def _chosen(option: str, values: list[str], text: str) -> Callable[[Function], Function]:
    """An option with fixed values; the first one is the default."""
    kind = click.Choice(values)
    return click.option(option, type=kind, default=values[0], show_default=True, help=text)


@click.group(
    cls=LazyGroup,
    lazy={
        "autoscaling": "gpufleet.cli.autoscaling:autoscaling",
        "charts": "gpufleet.cli.charts:charts",
        "check": "gpufleet.cli.catalog_check:check",
        "node-problems": "gpufleet.cli.node_problems:node_problems",
    },
)
def catalog() -> None:
    """Query the catalog of drivers, GPUs, distributions and charts.

    It includes the entries in catalog.d/ of the working directory.
    """
    for finding in own_entries():
        print_note(str(finding))


@catalog.command()
@_distro
@_arch
@click.option(
    "--gpu", "gpus", multiple=True, help="GPU, by name or PCI ID (T4, 10de:1eb8); repeatable."
)
@click.option("--kernel", default=ANY_KERNEL, help="Kernel release, as in `uname -r`.")
@click.option("--branch", help="Driver branch, such as 580.")
@click.option("--version", help="Exact driver version.")
@_chosen("--modules", ["auto", "open", "proprietary"], "Kernel modules; auto: by GPU and branch.")
@_chosen("--build", ["dkms", "precompiled"], "Kernel modules built on the host, or precompiled.")
@_chosen("--profile", ["compute", "full"], "compute: without X and GL packages.")
@_chosen("--source", ["nvidia", "distro"], "NVIDIA's repository, or the distribution's packages.")
@click.option("--nvswitch", is_flag=True, help="The host has an NVSwitch.")
@_repo_url
@_fingerprint
@_json
def driver(
    distro: str,
    arch: str,
    gpus: tuple[str, ...],
    kernel: str,
    nvswitch: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Show the driver for a host. Exit status 1 if no driver fits."""
    known = load_catalog()
    place = known.distribution(distro)
    devices = _devices(known, gpus)
    choice = resolve_driver(
        known,
        distribution=place or distro,
        architecture=arch,
        kernel=kernel,
        devices=devices,
        nvswitch=nvswitch,
        settings=_settings(DriverSettings, settings),
    )
    choice = replace(choice, findings=(*choice.findings, *_by_hand(place)))
    if as_json:
        click.echo(json.dumps(view.driver_data(choice), indent=2))
    else:
        boards = name_devices(devices_of(known, devices))
        name = place.title if place else distro
        title = f"{name} with {boards}" if boards else name
        view.show_driver(result_console(), choice, title)
    sys.exit(_status(choice))


def _by_hand(place: Distribution | None) -> list[Finding]:
    """A warning if gpufleet cannot install the selection, so that the user has to."""
    if place is None or place.manager in CARRIED_OUT_WITH:
        return []
    return [replace(UNSUPPORTED_MANAGER(manager=place.manager), severity=Severity.WARNING)]


@catalog.command()
@_distro
@_arch
@click.option("--version", help="Exact version of the toolkit.")
@_repo_url
@_fingerprint
@_json
def toolkit(distro: str, arch: str, as_json: bool, **settings: Any) -> None:
    """Show the container toolkit for a host. Exit status 1 if there is none."""
    known = load_catalog()
    place = known.distribution(distro)
    choice = resolve_toolkit(
        known,
        distribution=place or distro,
        architecture=arch,
        settings=_settings(ToolkitSettings, settings),
    )
    choice = replace(choice, findings=(*choice.findings, *_by_hand(place)))
    if as_json:
        click.echo(json.dumps(view.toolkit_data(choice), indent=2))
    else:
        view.show_toolkit(result_console(), choice, place.title if place else distro)
    sys.exit(_status(choice))


@catalog.command()
@_json
def distributions(as_json: bool) -> None:
    """List the distributions in the catalog."""
    rows = []
    for entry in load_catalog().distributions:
        archive = entry.archive.branches if entry.archive else ()
        branches = branches_of(entry)
        rows.append(
            {
                "code": entry.code,
                "title": entry.title,
                "also": ", ".join(entry.also),
                "architectures": ", ".join(entry.architectures),
                "branches": f"{branches.first or ''} to {branches.last or 'newest'}",
                "own archive": ", ".join(str(branch.branch) for branch in archive),
                "end of life": str(entry.end_of_life or ""),
                "source": entry.source,
            }
        )
    _list(rows, as_json)


@catalog.command()
@_json
def branches(as_json: bool) -> None:
    """List the driver branches in the catalog."""
    rows = []
    for entry in load_catalog().branches.branches:
        over = str(entry.end_of_life or ("over" if entry.ended else ""))
        rows.append(
            {
                "branch": str(entry.branch),
                "kind": entry.kind,
                "newest": entry.newest,
                "end of life": over,
                "secure from": "none" if entry.insecure else entry.floor,
                "modules": ", ".join(entry.modules),
                "source": entry.source,
            }
        )
    _list(rows, as_json)


def _status(choice: DriverChoice | ToolkitChoice) -> ExitStatus:
    if any(finding.code == UNKNOWN_DISTRIBUTION.code for finding in choice.findings):
        return ExitStatus.USAGE
    return ExitStatus.FAILED if choice.blocked else ExitStatus.CONVERGED


def _list(rows: list[dict[str, str]], as_json: bool) -> None:
    """Print rows as JSON, or as a table without the columns that are too wide."""
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    columns = [key for key in rows[0] if key not in ("also", "source")]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(HEADINGS.get(column, column))
    for row in rows:
        table.add_row(*(row[key] for key in columns))
    result_console().print(table)


def _devices(known: Catalog, gpus: tuple[str, ...]) -> tuple[int, ...]:
    found = [find_gpu(known, text) for text in gpus]
    problems = [entry.problem for entry in found if entry.problem]
    if problems:
        raise click.UsageError(" ".join(problems))
    return tuple(device for entry in found for device in entry.devices)


def _settings(model: type[Any], values: dict[str, Any]) -> Any:
    given = {key: value for key, value in values.items() if value is not None}
    try:
        return model(**given)
    except ValidationError as error:
        wrong = [f"{_option(problem)} {problem_of(problem)}" for problem in error.errors()]
        raise click.UsageError("; ".join(wrong)) from None


def _option(problem: Any) -> str:
    return f"--{str(problem['loc'][0]).replace('_', '-')}"
