"""Archives of images are sent to a host and imported into its containerd, one after the other."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
from pyinfra import host, state
from pyinfra.api import FactBase, StringCommand

from gpufleet.facts.files import HOME
from gpufleet.host.asking import answer, framed
from gpufleet.host.operation import Commands, operation
from gpufleet.host.reading import read
from gpufleet.host.shell import LINE, command, explain, script, stop
from gpufleet.kubernetes.archives import ImageArchive, read_archive
from gpufleet.kubernetes.findings import images as found
from gpufleet.kubernetes.images import FOLDER, MIB, Present

PART = 8 * MIB  # bytes of one command: what this machine keeps in memory for a host
SHOWN = 20  # percent between two lines of progress


class PresentImages(FactBase[Present]):
    """The images of Kubernetes' namespace in containerd."""

    def command(self) -> StringCommand:
        return framed(script("kubernetes/images"))

    def process(self, output: Iterable[str]) -> Present:
        words = [line.split() for line in answer(output) or ()]
        images = {word[1]: word[2] for word in words if len(word) == 3}
        return Present(images, {word[1] for word in words if len(word) == 2})


@operation
def provide(archives: Sequence[ImageArchive]) -> Commands:
    """
    Send archives of images to the host and import them, unless containerd has all of their images.

    + archives: those that the host's record does not have
    """
    if not archives:
        host.noop("no archive has images that the host lacks")
        return
    yield command("install", "-d", "-m", "700", HOME, FOLDER)
    present = read(PresentImages)
    for archive in archives:
        if not present.has(archive):
            yield from _send(archive)
    yield command("rm", "-rf", FOLDER)  # an upload of a killed run too


def _send(archive: ImageArchive) -> Commands:
    path = f"{FOLDER}/{archive.digest}.tar"
    yield command("rm", "-f", path)
    sent = 0
    for part in _parts(archive.path):
        yield _append(part, path)
        sent += len(part)
        _show(archive, sent - len(part), sent)
    if sent != archive.size or _changed(archive):
        yield stop(host.name, found.ARCHIVE_CHANGED(archive=archive.path))
    message = explain(host.name, found.IMPORT_FAILED(archive=archive.path))
    yield script("kubernetes/import", message, path, *(name for name, _ in archive.images))


def _changed(archive: ImageArchive) -> bool:
    try:
        return read_archive(archive.path) != archive
    except ValueError:
        return True


def _parts(path: str) -> Iterator[bytes]:
    with Path(path).open("rb") as file:
        while part := file.read(PART):
            yield part


def _append(part: bytes, path: str) -> StringCommand:
    """Through standard input, as files are uploaded: see `upload`."""
    text = base64.b64encode(part).decode()
    lines = [text[start : start + LINE] for start in range(0, len(text), LINE)]
    digest = hashlib.sha256(part).hexdigest()
    return StringCommand(script("kubernetes/append", path, digest), _stdin=lines)


def _show(archive: ImageArchive, before: int, now: int) -> None:
    """A line now and then: a large archive takes minutes."""
    steps = [done * 100 // archive.size // SHOWN for done in (before, now)]
    if state.is_executing and steps[0] != steps[1]:
        name = Path(archive.path).name
        click.echo(f"    [{host.name}] {name}: {now * 100 // archive.size} % sent", err=True)
