"""`gpufleet bundle`: packages, charts and images as a folder for a closed network."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from gpufleet.bundle import compare
from gpufleet.bundle.models import BundleManifest
from gpufleet.bundle.operations import folder as folders
from gpufleet.bundle.operations.create import collect_from_clusters, collect_packages
from gpufleet.bundle.operations.push import PushTarget, push_bundle
from gpufleet.bundle.operations.serve import bundle_server
from gpufleet.cli.deploy import (
    INVENTORY_ARGUMENT,
    choose_targets,
    deploy_file,
    pyinfra_arguments,
    pyinfra_command,
)
from gpufleet.cli.detailed import CheckCommand
from gpufleet.cli.output import limit_option, output_options, print_note
from gpufleet.core.console import print_finding, result_console
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import Finding
from gpufleet.core.visible import one_line

CREATE_EPILOG = (
    "Exit status: 0 the bundle is written; 1 a host or cluster was blocked or is unreachable, and "
    "there is no manifest, or usage error; 4 --limit matches nothing; 130 interrupted."
)
FOLDER = click.Path(path_type=Path)
_folder = click.argument("folder", metavar="DIR", type=FOLDER)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def bundle() -> None:
    """Collect packages, charts and images for a closed network."""


@bundle.command(cls=CheckCommand, epilog=CREATE_EPILOG)
@INVENTORY_ARGUMENT
@limit_option
@click.option("--output", "folder", required=True, metavar="DIR", type=FOLDER, help="The bundle.")
@_json
@output_options
def create(inventory: str, limit: tuple[str, ...], folder: Path, as_json: bool) -> None:
    """Download what `gpufleet apply INVENTORY` would install.

    Hosts download packages by their package manager and stay unchanged; this machine downloads
    charts and images. After an interruption, run the command again: it keeps complete files.
    """
    targets, chosen = choose_targets(inventory, limit)
    with folders.writing_bundle(folder):
        parts, stops = collect_from_clusters(targets, chosen, folder)
        status = 0
        if not all(target.is_cluster for target in chosen):
            words = pyinfra_arguments(inventory, [deploy_file("bundle")], limit, ())
            status, more = collect_packages([*pyinfra_command(), *words], folder)
            stops |= more
        for finding, names in stops.items():
            print_finding(result_console(), finding, names)
        if status or stops:
            print_note("No manifest was written: the bundle is incomplete.")
            sys.exit(status or ExitStatus.FAILED)
        made = folders.finish_bundle(folder, parts)
    _show(made, [*compare.lacking_findings(made), *folders.expiring_lists(folder, made)], as_json)


@bundle.command(cls=CheckCommand, epilog="Exit status: 0 no file differs; 1 one does, or no bundle")
@_folder
@_json
def verify(folder: Path, as_json: bool) -> None:
    """Compare every file of a bundle with its manifest."""
    made = folders.read_bundle(folder)
    damage = [*compare.find_damage(made, folders.read_digests(folder))]
    more = [*compare.lacking_findings(made), *folders.expiring_lists(folder, made)]
    _show(made, [*damage, *more], as_json)
    sys.exit(ExitStatus.FAILED if damage else ExitStatus.CONVERGED)


@bundle.command(cls=CheckCommand, epilog="Exit status: 0 the difference is shown; 1 no bundle.")
@click.argument("old", type=FOLDER)
@click.argument("new", type=FOLDER)
@click.option("--output", "archive", metavar="FILE", type=FOLDER, help="Write a tar archive.")
@_json
def diff(old: Path, new: Path, archive: Path | None, as_json: bool) -> None:
    """Show the files that NEW has and OLD lacks.

    The archive has these files and the manifest of NEW. Unpack it in OLD, and delete the files
    shown with a minus.
    """
    delta = compare.compare_bundles(folders.read_bundle(old), folders.read_bundle(new))
    if archive:
        folders.write_delta(new, delta, archive)
    click.echo(compare.delta_json(delta) if as_json else "\n".join(compare.delta_lines(delta)))


@bundle.command()
@_folder
@click.option("--bind", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, help="Port to listen on; 0: a free one.")
def serve(folder: Path, bind: str, port: int) -> None:
    """Serve a bundle over HTTP, read only, and print the keys that use it."""
    made = folders.read_bundle(folder)
    try:
        server = bundle_server(folder, made, bind, port)
    except (OSError, OverflowError) as error:
        raise click.UsageError(f"Cannot listen on {one_line(bind)}:{port}: {error}.") from error
    url = f"http://{bind}:{server.server_port}"
    for line in compare.key_lines(made, url, folder.absolute()):
        click.echo(line)
    print_note(f"Serving {one_line(str(folder))} at {url}. Ctrl+C ends it.")
    server.serve_forever()


@bundle.command(
    cls=CheckCommand,
    epilog="Exit status: 0 everything is pushed; 1 something is not, or no bundle.",
)
@_folder
@click.argument("registry", metavar="HOST[:PORT][/FOLDER]")
@click.option("--plain-http", is_flag=True, help="The registry has no TLS.")
def push(folder: Path, registry: str, plain_http: bool) -> None:
    """Copy images and charts to a registry.

    Prints the keys of the inventory that use it.
    """
    made, target = folders.read_bundle(folder), PushTarget(registry, plain_http)
    good = True
    for file, problem in push_bundle(folder, made, target):
        print_finding(result_console(), problem) if problem else print_note(
            f"Pushed {one_line(file.name)}"
        )
        good = good and not problem
    for line in target.key_lines(made):
        click.echo(line)
    sys.exit(ExitStatus.CONVERGED if good else ExitStatus.FAILED)


def _show(made: BundleManifest, found: Sequence[Finding], as_json: bool) -> None:
    for each in () if as_json else found:
        print_finding(result_console(), each)
    click.echo(compare.summary_json(made, found) if as_json else compare.summary_line(made))
