"""Whether a program in the cache is what it was when it came there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpufleet.sandbox.errors import SandboxError, kinds
from gpufleet.sandbox.process import run

SECONDS = 60.0
QUESTIONS = {"helm": ("version", "--short"), "helm4": ("version", "--short")}


def is_believed(path: Path, version: str, progress: Callable[[str], None]) -> bool:
    """Whether it has the size and time of change that were noted, or tells its version again.

    One that does neither is removed, and `progress` hears of it. `version` is "" where a program
    does not tell it: then the note alone counts.
    """
    if not path.exists():
        return False
    note = _note(path)
    if note.exists() and note.read_text() == _identity(path):
        return True
    if not version or not _tells(path, version):
        progress(f"{path} is damaged: it is fetched or built again")
        path.unlink()
        return False
    note.write_text(_identity(path))
    return True


def believe(path: Path, version: str) -> None:
    """Note a program that has just come there. SandboxError where it does not tell its version."""
    if version and not _tells(path, version):
        path.unlink()
        raise SandboxError(
            kinds.COMMAND_FAILED(
                command=f"{path} {' '.join(_question(path))}",
                status=1,
                output=f"it does not say that it is version {version}",
            )
        )
    _note(path).write_text(_identity(path))


def _tells(path: Path, version: str) -> bool:
    done = run([path, *_question(path)], check=False, timeout=SECONDS)
    return done.returncode == 0 and version in done.stdout + done.stderr


def _question(path: Path) -> tuple[str, ...]:
    return QUESTIONS.get(path.name, ("--version",))


def _note(path: Path) -> Path:
    return path.with_name(f".{path.name}.believed")


def _identity(path: Path) -> str:
    found = path.stat()
    return f"{found.st_size} {found.st_mtime_ns}\n"
