"""`gpufleet bundle`: what the hosts of an inventory need, as a folder for a closed network."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from gpufleet.bundle.compare import compare_bundles, damage_of, lacking_findings
from gpufleet.bundle.models import BundleManifest
from gpufleet.bundle.operations.folder import (
    begin_bundle,
    finish_bundle,
    manifest_digest,
    read_bundle,
    read_digests,
    write_delta,
)
from gpufleet.bundle.operations.hosts import collect_packages
from gpufleet.bundle.operations.serve import bundle_server
from gpufleet.bundle.text import delta_json, delta_lines, key_lines, summary_json, summary_line
from gpufleet.cli.deploy import (
    INVENTORY_ARGUMENT,
    deploy_file,
    pyinfra_arguments,
    pyinfra_command,
    targets_of,
)
from gpufleet.cli.output import limit_option, output_options, print_note
from gpufleet.core.console import print_finding, result_console
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import Finding
from gpufleet.core.visible import one_line

CREATE_EPILOG = (
    "Exit status: 0 the bundle has what hosts install; 1 a host was blocked or is unreachable, and "
    "there is no manifest; 2 usage error; 4 --limit matches nothing; 130 interrupted."
)
VERIFY_EPILOG = "Exit status: 0 every file is as in the manifest; 1 a file differs; 2 no bundle."
FOLDER = click.Path(path_type=Path)
_folder = click.argument("folder", metavar="DIR", type=FOLDER)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def bundle() -> None:
    """Collect what hosts install, for a network without internet access."""


@bundle.command(epilog=CREATE_EPILOG)
@INVENTORY_ARGUMENT
@limit_option
@click.option("--output", "folder", required=True, metavar="DIR", type=FOLDER, help="The bundle.")
@_json
@output_options
def create(inventory: str, limit: tuple[str, ...], folder: Path, as_json: bool) -> None:
    """Download what apply installs on the hosts of INVENTORY.

    The hosts download packages with their own package manager, and stay unchanged. After an
    interruption, run the same command again: it keeps complete files.
    """
    chosen = targets_of(inventory, limit)
    begin_bundle(folder)
    if not all(target.is_cluster for target in chosen):
        words = pyinfra_arguments(inventory, [deploy_file("bundle")], limit, ())
        status, stops = collect_packages([*pyinfra_command(), *words], folder)
        for finding, names in stops.items():
            print_finding(result_console(), finding, names)
        if status:
            print_note("No manifest was written: the bundle is incomplete.")
            sys.exit(status)
    made = finish_bundle(folder)
    _show(folder, made, lacking_findings(made), as_json)


@bundle.command(epilog=VERIFY_EPILOG)
@_folder
@_json
def verify(folder: Path, as_json: bool) -> None:
    """Compare every file of a bundle with its manifest."""
    made = read_bundle(folder)
    damage = damage_of(made, read_digests(folder))
    _show(folder, made, [*damage, *lacking_findings(made)], as_json)
    sys.exit(ExitStatus.FAILED if damage else ExitStatus.CONVERGED)


@bundle.command(epilog="Exit status: 0 the difference is shown; 2 no bundle, or usage error.")
@click.argument("old", type=FOLDER)
@click.argument("new", type=FOLDER)
@click.option("--output", "archive", metavar="FILE", type=FOLDER, help="Write a tar archive.")
@_json
def diff(old: Path, new: Path, archive: Path | None, as_json: bool) -> None:
    """Show the files that NEW has and OLD lacks.

    The archive has these files and the manifest of NEW: unpack it in OLD, and delete the files that
    are shown with a minus.
    """
    delta = compare_bundles(read_bundle(old), read_bundle(new))
    if archive:
        write_delta(new, delta, archive)
    click.echo(delta_json(delta) if as_json else "\n".join(delta_lines(delta)))


@bundle.command()
@_folder
@click.option("--bind", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, help="Port to listen on; 0: a free one.")
def serve(folder: Path, bind: str, port: int) -> None:
    """Serve a bundle over HTTP, read only, and print the keys that use it."""
    made = read_bundle(folder)
    try:
        server = bundle_server(folder, made, bind, port)
    except (OSError, OverflowError) as error:
        raise click.UsageError(f"Cannot listen on {one_line(bind)}:{port}: {error}.") from error
    url = f"http://{bind}:{server.server_port}"
    click.echo("\n".join(key_lines(made, url)))
    print_note(f"Serving {one_line(str(folder))} at {url}. Ctrl+C ends it.")
    server.serve_forever()


def _show(folder: Path, made: BundleManifest, found: Sequence[Finding], as_json: bool) -> None:
    digest = manifest_digest(folder)
    for each in () if as_json else found:
        print_finding(result_console(), each)
    click.echo(summary_json(made, digest, found) if as_json else summary_line(made, digest))
