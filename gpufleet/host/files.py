"""Writes files on hosts with one upload, moves each into place in one step, and keeps a copy."""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import Sequence
from datetime import datetime, timezone

import click
from pyinfra import host, state

from gpufleet.core.masks import file_difference
from gpufleet.core.visible import one_line
from gpufleet.facts.files import BACKUPS, HOME, INCOMING
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.shell import quote_command, script_command, upload_command


def put_files(files: Sequence[FileWrite]) -> Commands:
    """Commands that put `files` in place: one upload and two commands for any number of files."""
    mark = run_stamp()
    archive = f"{INCOMING}/{mark}.tar"
    yield quote_command("install", "-d", "-m", "700", HOME, INCOMING, BACKUPS)
    yield upload_command(_archive(files), archive)
    paths = [file.path for file in files]
    yield script_command("host/put_files", archive, f"{BACKUPS}/{mark}", *paths)


def run_stamp() -> str:
    """A unique name for files that this run leaves on a host."""
    return f"{datetime.now(timezone.utc):%Y%m%dT%H%M%S.%fZ}-{os.getpid()}"


def _archive(files: Sequence[FileWrite]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for file in files:
            entry = tarfile.TarInfo(file.path.lstrip("/"))
            entry.size, entry.mode, entry.mtime = len(file.data), file.mode, int(time.time())
            tar.addfile(entry, io.BytesIO(file.data))
    return buffer.getvalue()


def show_diff(facts: NodeFacts, files: Sequence[FileWrite]) -> None:
    """Print the changes of text files, without secrets, if --diff is set."""
    if not state.config.DIFF:
        return
    for file in files:
        before = facts.texts.get(file.path, "")
        after = file.content if isinstance(file.content, str) else ""
        for line in file_difference(file.path, before, after, secret=not file.mode & 0o077):
            click.echo(f"    [{one_line(host.name)}] {line}", err=True)


@host_operation
def write_files(facts: NodeFacts, files: Sequence[FileWrite]) -> Commands:
    """
    Put files in place that differ on the host.

    + facts: facts of the host, for the differences that --diff shows
    + files: the files that differ; an empty list changes nothing
    """
    if not files:
        host.noop("all files are as they should be")
        return
    show_diff(facts, files)
    yield from put_files(files)
