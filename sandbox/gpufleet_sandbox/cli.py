"""`gpufleet sandbox`: test hosts on this machine. An entry point adds it to gpufleet."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click
from rich.console import Console
from rich.table import Table

from gpufleet.cli.lazy import LazyGroup
from gpufleet_sandbox import GPU_KINDS, Sandbox, SandboxError
from gpufleet_sandbox.faults import FAULTS
from gpufleet_sandbox.progress import show_progress
from gpufleet_sandbox.sandbox import every_sandbox
from gpufleet_sandbox.state import DEFAULT
from gpufleet_sandbox.status import click_error

F = TypeVar("F", bound=Callable[..., Any])


def _progress() -> Callable[[str], None]:
    start = time.monotonic()
    return lambda message: click.echo(f"{time.monotonic() - start:6.1f} s  {message}", err=True)


def _on_sandbox(command: F) -> F:
    """Pass the sandbox of --name to the command; a SandboxError becomes the exit status."""

    @click.option(
        "--name",
        default=DEFAULT,
        envvar="GPUFLEET_SANDBOX",
        show_default=True,
        help="Name of the sandbox; several can be up at once.",
    )
    @wraps(command)
    def wrapped(name: str, **arguments: Any) -> Any:
        try:
            return command(Sandbox(name, progress=_progress()), **arguments)
        except SandboxError as error:
            raise click_error(error) from error

    return cast(F, wrapped)


@click.group(cls=LazyGroup, lazy={"cluster": "gpufleet_sandbox.cluster.cli:cluster"})
def sandbox() -> None:
    """Test hosts and clusters on this machine.

    systemd, packages and SSH are real; kernel and GPUs are simulated.
    """


@sandbox.command()
@click.argument("kinds", nargs=-1, metavar="[HOST]...")
@click.option(
    "--copies", default=1, show_default=True, type=click.IntRange(1, 200), help="Hosts per kind."
)
@click.option(
    "--images",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "real", "imitation"]),
    help="Real images of the distributions, or imitations; auto: real if a registry responds.",
)
@_on_sandbox
def up(box: Sandbox, kinds: tuple[str, ...], copies: int, images: str) -> None:
    """Start hosts and their package mirror: every kind, or those given.

    The first start builds images and packages, which takes minutes.
    """
    box.images = images
    with show_progress() as box.progress:
        box.up(kinds or GPU_KINDS, copies)


@sandbox.command()
@click.option("--all", "everything", is_flag=True, help="Remove all sandboxes and their images.")
@_on_sandbox
def down(box: Sandbox, everything: bool) -> None:
    """Remove the hosts, their network and their state.

    Cached images stay.
    """
    for one in every_sandbox() if everything else [box]:
        click.echo(f"removed {one.down()} hosts of the sandbox {one.name!r}")
    if everything:
        click.echo(f"removed {box.remove_images()} images")


@sandbox.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_on_sandbox
def status(box: Sandbox, as_json: bool) -> None:
    """Show the hosts, and whether they respond."""
    state = box.state
    rows = [
        {
            "name": host.name,
            "kind": host.state.kind,
            "what": host.kind.summary,
            "address": host.address,
            "boot": host.boot_id(),
        }
        for host in box.hosts.values()
    ]
    if as_json:
        about = {"sandbox": box.name, "engine": state.engine, "images": state.images}
        click.echo(json.dumps({**about, "hosts": rows}, indent=1))
        return
    table = Table(title=f"sandbox {box.name}: {state.engine}, images: {state.images}")
    for column in ("host", "description", "address", "responds"):
        table.add_column(column)
    for row in rows:
        table.add_row(row["name"], row["what"], row["address"], "yes" if row["boot"] else "no")
    Console().print(table)


@sandbox.command(context_settings={"ignore_unknown_options": True})
@click.argument("host")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@_on_sandbox
def ssh(box: Sandbox, host: str, command: tuple[str, ...]) -> None:
    """Open a shell on a host, or run a command there."""
    words = box.host(host).ssh_command(*command)
    os.execvp(words[0], words)


@sandbox.command()
@click.argument("host")
@_on_sandbox
def reboot(box: Sandbox, host: str) -> None:
    """Reboot a host and wait until it responds."""
    box.host(host).reboot()
    click.echo(f"rebooted {host}, boot ID {box.host(host).boot_id()}")


@sandbox.command()
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...")
@_on_sandbox
def reset(box: Sandbox, hosts: tuple[str, ...]) -> None:
    """Reset hosts to the bare image, with the same addresses and keys."""
    for host in [box.host(name) for name in hosts]:
        host.reset()
        click.echo(f"reset {host.name}")


@sandbox.command()
@click.option("--list", "list_faults", is_flag=True, help="List all faults.")
@click.argument("host", required=False)
@click.argument("fault_name", required=False, metavar="[NAME]")
@click.argument("switch", required=False, type=click.Choice(["on", "off"]))
@_on_sandbox
def fault(
    box: Sandbox, list_faults: bool, host: str | None, fault_name: str | None, switch: str | None
) -> None:
    """Switch a fault of a host or of the mirror on or off."""
    if list_faults:
        for known in sorted(FAULTS, key=lambda known: (known.where, known.name)):
            click.echo(f"{known.where:7} {known.name:18} {known.summary}")
        return
    if not (host and fault_name and switch):
        raise click.UsageError("Specify HOST NAME on|off, or --list.")
    box.host(host).set_fault(fault_name, switch == "on")
    click.echo(f"{fault_name} is {switch} for {host}")
