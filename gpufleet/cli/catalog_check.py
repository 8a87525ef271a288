"""`gpufleet catalog check`: what the catalog lacks, by the live sources of its facts."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from gpufleet.catalog.check import CatalogCheck, show_catalog_check
from gpufleet.catalog.compare import KnownFacts, compare_all
from gpufleet.catalog.models import (
    CATALOG_SUBJECTS,
    LiveSource,
    Reading,
    Subject,
    Unread,
    load_addresses,
)
from gpufleet.catalog.operations.read import SourceReader
from gpufleet.catalog.operations.write import make_patch
from gpufleet.catalog.sources import list_sources
from gpufleet.cli.detailed import CheckCommand
from gpufleet.cli.output import prepare_output, print_note
from gpufleet.cli.reading import Shown
from gpufleet.core.console import result_console
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.names import count_noun
from gpufleet.core.secrets import register_secret
from gpufleet.core.visible import one_line
from gpufleet.helm.chart_choice import load_charts
from gpufleet.node.catalog import load_catalog
from gpufleet.packages.logins import RepositoryLogin
from gpufleet.run.report_file import FileKind, write_file
from gpufleet.status.support import load_runtimes

PATCH = FileKind("a patch", (b"--- a/",))
WRONG_MIRROR = "--mirror takes a URL of http or https, such as https://mirror.example.com/catalog."


@click.command(
    cls=CheckCommand,
    epilog="Exit status: 0 nothing is missing; 1 a source was not read, or usage error; 2 "
    "something is missing.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(CATALOG_SUBJECTS),
    help="Only this subject; repeatable.",
)
@click.option("--write", "patch", metavar="FILE", help="Write a patch of the data files.")
@click.option(
    "--mirror",
    default="",
    metavar="URL",
    help="Read copies of the sources below URL, in a folder for each host.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(only: tuple[Subject, ...], patch: str | None, mirror: str, as_json: bool) -> None:
    """Compare the catalog with the sources of its facts.

    Reads repositories of drivers and of the container toolkit, repository keys, chart indexes, and
    the releases of Kubernetes and containerd. Prints what the catalog lacks; changes nothing.
    """
    file = prepare_output(patch, "--write", PATCH)
    place, login = split_mirror(mirror)
    charts = load_charts()
    known = KnownFacts(load_catalog(), charts, load_runtimes(), date.today())
    sources = list_sources(known.catalog, charts, load_addresses(), only)
    results = _read(SourceReader(charts, place, login), sources)
    unread = [result for result in results if isinstance(result, Unread)]
    gaps = compare_all(known, [result for result in results if isinstance(result, Reading)])
    found = CatalogCheck(sources, unread, gaps, *(make_patch(gaps) if file else ("", ())))
    if as_json:
        click.echo(json.dumps(found.as_dict(), indent=2))
    else:
        show_catalog_check(result_console(), found)
    if file and not _write(file, found):
        raise SystemExit(ExitStatus.FAILED)
    click.get_current_context().exit(found.status)


def split_mirror(url: str) -> tuple[str, RepositoryLogin | None]:
    """The mirror's address, and the login in it. Raises click.UsageError, which does not quote the
    URL."""
    if not url:
        return "", None
    try:
        parts = urlsplit(url)
        host, _ = parse_url(url).host, parts.port
    except (ValueError, LocationParseError):
        host = None
    if not host or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        raise click.UsageError(WRONG_MIRROR)
    for secret in (parts.password, unquote(parts.password or "")):
        register_secret(secret or "")
    login = None
    if parts.username:
        login = RepositoryLogin(unquote(parts.username), unquote(parts.password or ""))
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl(), login


def _read(reader: SourceReader, sources: Sequence[LiveSource]) -> list[Reading | Unread]:
    """Read every source, with progress on standard error. In the order of `sources`."""
    progress = Shown("source")
    progress.began(len(sources))
    try:
        results = list(reader.read_all(sources, progress.answered))
    finally:
        progress.live.stop()
    order = {source: number for number, source in enumerate(sources)}
    return sorted(results, key=lambda each: order[each.source])


def _write(file: Path, found: CatalogCheck) -> bool:
    if not found.patch:
        print_note(f"Did not write {one_line(str(file))}: no difference can be written as a patch.")
        return True
    if not write_file(file, lambda: found.patch):
        return False
    name = one_line(str(file))
    what = count_noun(len(found.written), "difference")
    apply = f"git apply {one_line(shlex.quote(str(file)))}"
    print_note(f"Wrote {name} with {what}. In a checkout of gpufleet: {apply}")
    return True
