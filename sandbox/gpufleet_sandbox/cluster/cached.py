"""Verify that a program in the cache is unchanged."""

from __future__ import annotations

import hashlib
from pathlib import Path

from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.process import run

SECONDS = 60.0
VERSION_ARGUMENTS = {
    "helm": ("version", "--short"),
    "helm4": ("version", "--short"),
    "kubeadm": ("version", "-o", "short"),
    "kubectl": ("version", "--client"),
}


def is_verified(path: Path, official: str = "") -> bool:
    """True if it has the recorded size and modification time, or else the recorded content.

    `official`: the sha256 of the official binary. Returns False if it was fetched with another one,
    or has no record. Neither changes nor runs anything.
    """
    note = _note(path)
    if not (path.exists() and note.exists()):
        return False
    identity, digest, checked = (*note.read_text().split("\n"), "", "")[:3]
    if official and checked and checked != official:
        return False
    return identity == _identity(path) or digest == _sha256(path)


def mark_verified(path: Path, version: str, official: str = "") -> None:
    """Record a new program after checking that it prints `version`.

    `official`: the sha256 that it was fetched with, "" if it was built. `version`: "" if it prints
    none. SandboxError GF602 if it prints another version.
    """
    arguments = VERSION_ARGUMENTS.get(path.name, ("--version",))
    if version:
        done = run([path, *arguments], timeout=SECONDS)
        if version not in done.stdout + done.stderr:
            raise SandboxError(
                kinds.COMMAND_FAILED(
                    command=f"{path} {' '.join(arguments)}",
                    status=done.returncode,
                    output=f"expected version {version}, found {done.stdout.strip()[:200]!r}",
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
