"""Sends image archives to a host and imports them into its containerd, one after the other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
from pyinfra import host, state
from pyinfra.api import FactBase, StringCommand

from gpufleet.core.limits import MIB
from gpufleet.core.visible import one_line
from gpufleet.facts.files import HOME
from gpufleet.host.asking import frame_command, framed_answer
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.reading import read_fact
from gpufleet.host.shell import (
    as_lines,
    explain_finding,
    quote_command,
    script_command,
    stop_command,
)
from gpufleet.kubernetes.archives import ImageArchive, read_archive
from gpufleet.kubernetes.findings import joining as found
from gpufleet.kubernetes.images import IMAGES_FOLDER, Present

UPLOAD_PART_BYTES = 8 * MIB  # of one command, which this machine keeps in memory for each host
PROGRESS_PERCENT = 20  # percent between two lines of progress


class PresentImages(FactBase[Present]):
    """The images of Kubernetes' namespace in containerd."""

    def command(self) -> StringCommand:
        return frame_command(script_command("kubernetes/images"))

    def process(self, output: Iterable[str]) -> Present:
        words = [line.split() for line in framed_answer(output) or ()]
        images = {word[1]: word[2] for word in words if len(word) == 3}
        return Present(images, {word[1] for word in words if len(word) == 2})


@host_operation
def import_images(archives: Sequence[ImageArchive]) -> Commands:
    """
    Send archives of images to the host and import them, unless containerd has all of their images.

    + archives: those that the host's record does not have
    """
    if not archives:
        host.noop("no archive has images that the host lacks")
        return
    yield quote_command("install", "-d", "-m", "700", HOME, IMAGES_FOLDER)
    present = read_fact(PresentImages)
    for archive in archives:
        if not present.has(archive):
            yield from _send(archive)
    yield quote_command("rm", "-rf", IMAGES_FOLDER)  # an upload of a killed run too


def _send(archive: ImageArchive) -> Commands:
    """Send an archive, part by part, to a file that root alone can read, and import it."""
    path = f"{IMAGES_FOLDER}/{archive.digest}.tar"
    size, sent = Path(archive.path).stat().st_size, 0
    yield quote_command("rm", "-f", path)
    for part in _parts(archive.path):
        yield _append(part, path)
        sent += len(part)
        _show(archive.path, size, sent - len(part), sent)
    try:
        changed = read_archive(archive.path) != archive
    except ValueError:
        changed = True
    if changed:
        yield stop_command(host.name, found.ARCHIVE_CHANGED(archive=archive.path))
    message = explain_finding(host.name, found.IMPORT_FAILED(archive=archive.path))
    yield script_command("kubernetes/import", message, path, *(name for name, _ in archive.images))


def _parts(path: str) -> Iterator[bytes]:
    with Path(path).open("rb") as file:
        while part := file.read(UPLOAD_PART_BYTES):
            yield part


def _append(part: bytes, path: str) -> StringCommand:
    """Through standard input, as files are uploaded: see `upload`."""
    append = script_command("kubernetes/append", path, hashlib.sha256(part).hexdigest())
    return StringCommand(append, _stdin=as_lines(part))


def _show(local: str, size: int, before: int, now: int) -> None:
    """A line now and then: a large file takes minutes."""
    steps = [done * 100 // size // PROGRESS_PERCENT for done in (before, now)]
    if state.is_executing and steps[0] != steps[1]:
        begin = one_line(f"    [{host.name}] {Path(local).name}")
        click.echo(f"{begin}: {now * 100 // size} % sent", err=True)
