"""Whether a program in the cache is what it was when it came there."""

from __future__ import annotations

import hashlib
from pathlib import Path

from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.process import run

SECONDS = 60.0
QUESTIONS = {"helm": ("version", "--short"), "helm4": ("version", "--short")}


def is_believed(path: Path, official: str = "") -> bool:
    """Whether it has the size and time of change that were noted, or else the noted content.

    `official`: the sha256 that is known of what is fetched; what was fetched by another one is not
    believed. Changes nothing and runs nothing. A program without a note is not believed.
    """
    note = _note(path)
    if not (path.exists() and note.exists()):
        return False
    identity, digest, checked = (*note.read_text().split("\n"), "", "")[:3]
    if official and checked and checked != official:
        return False
    return identity == _identity(path) or digest == _sha256(path)


def believe(path: Path, version: str, official: str = "") -> None:
    """Note a program that has just come there, which prints `version` when it is asked for it.

    `official`: the sha256 by which it was fetched, "" where it was built. `version`: "" where it
    prints none. SandboxError GF602 where it prints something else.
    """
    question = QUESTIONS.get(path.name, ("--version",))
    if version:
        done = run([path, *question], timeout=SECONDS)
        if version not in done.stdout + done.stderr:
            raise SandboxError(
                kinds.COMMAND_FAILED(
                    command=f"{path} {' '.join(question)}",
                    status=done.returncode,
                    output=f"expected version {version}; it prints {done.stdout.strip()[:200]!r}",
                )
            )
    _note(path).write_text(f"{_identity(path)}\n{_sha256(path)}\n{official}\n")


def _note(path: Path) -> Path:
    return path.with_name(f".{path.name}.believed")


def _identity(path: Path) -> str:
    found = path.stat()
    return f"{found.st_size} {found.st_mtime_ns}"


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
