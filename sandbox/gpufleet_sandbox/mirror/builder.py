"""Build the mirror's tree, once per state of its sources."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpufleet.node.catalog import load_catalog
from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.locks import exclusive
from gpufleet_sandbox.machine import build as build_machine
from gpufleet_sandbox.machine import nvidia_smi
from gpufleet_sandbox.mirror.contents import contents
from gpufleet_sandbox.mirror.dcgm import image_program
from gpufleet_sandbox.mirror.gotools import toolkit_programs
from gpufleet_sandbox.mirror.layout import IMAGE_PROGRAM, extra_files, repositories
from gpufleet_sandbox.mirror.repositories import write_all
from gpufleet_sandbox.mirror.signing import KeyRing, key_ring

SERVER = Path(__file__).with_name("serve.py")  # standalone: can be copied to another host


def build(cache: Path, progress: Callable[[str], None]) -> Path:
    """The mirror's tree, `cache`/mirror/tree; rebuilt if its sources have changed.

    In the same folder: `fingerprint` (of the key for NVIDIA's repositories, 40 digits), and
    `archive-key.gpg` and `archive-key.asc`, which hosts of the imitated distributions trust by
    default. Keys are created once and reused by every build.
    Raises SandboxError with the failed command.
    """
    home = cache / "mirror"
    tree = home / "tree"
    with exclusive(home, "build"):
        done = home / "state"
        with ThreadPoolExecutor(1) as pool:
            if not done.exists():  # compile Go programs while packages are fetched
                pool.submit(_programs, cache, progress)
            ring = key_ring(home / "gnupg")
            machine = build_machine(cache)
        sources = _state(machine, ring)
        if not (done.exists() and done.read_text() == f"{sources} {_contents(tree)}"):
            done.unlink(missing_ok=True)
            try:
                _build(cache, machine, ring, home, progress)
            finally:
                ring.close()
            done.write_text(f"{sources} {_contents(tree)}")
    return tree


def _contents(tree: Path) -> str:
    """A hash of the names, sizes and modification times of all files, to detect damage."""
    digest = hashlib.sha256()
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        found = path.stat()
        digest.update(f"{path.relative_to(tree)} {found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _reject_empty_files(tree: Path) -> None:
    """SandboxError GF602 if the tree has an empty file."""
    empty = [str(path) for path in tree.rglob("*") if path.is_file() and not path.stat().st_size]
    if empty:
        output = f"these files are empty: {', '.join(sorted(empty))}"
        raise SandboxError(
            kinds.COMMAND_FAILED(command="building the mirror", status=1, output=output)
        )


def _programs(cache: Path, progress: Callable[[str], None]) -> dict[str, Path]:
    """Version of the container toolkit -> folder with its programs."""
    return {v: toolkit_programs(v, cache, progress) for v in contents()["toolkit"]}


def _build(
    cache: Path, machine: Path, ring: KeyRing, home: Path, progress: Callable[[str], None]
) -> None:
    programs = _programs(cache, progress)
    progress("building the mirror's packages")
    with tempfile.TemporaryDirectory(dir=home, prefix="work-") as name:
        work = Path(name)
        (work / "compiled").mkdir()
        found = repositories(
            work / "compiled",
            nvidia_smi(cache),
            machine / "kernels",
            programs,
            ring.public("vendor", armor=False),
        )
        write_all(found, work / "tree", ring, work / "packages")
        for path, content in extra_files(ring.public("vendor")).items():
            (work / "tree" / path).write_bytes(content)
        target = work / "tree" / IMAGE_PROGRAM
        target.parent.mkdir()
        shutil.copy2(image_program(work / "compiled"), target)
        _reject_empty_files(work / "tree")
        _swap(work / "tree", home / "tree", work / "old")
    (home / "fingerprint").write_text(ring.keys["vendor"].fingerprint + "\n")
    for armor, suffix in ((False, "gpg"), (True, "asc")):
        (home / f"archive-key.{suffix}").write_bytes(ring.public("archive", armor=armor))


def _swap(new: Path, tree: Path, old: Path) -> None:
    """Replace the folders in `tree` with the new ones; `tree` itself may be mounted."""
    tree.mkdir(exist_ok=True)
    old.mkdir()
    for entry in list(tree.iterdir()):
        entry.rename(old / entry.name)
    for entry in list(new.iterdir()):
        entry.rename(tree / entry.name)
    shutil.rmtree(old)


def _state(machine: Path, ring: KeyRing) -> str:
    """A hash of all sources of the tree."""
    digest = hashlib.sha256()
    sources = sorted(p for p in Path(__file__).parent.rglob("*") if p.is_file())
    sources = [p for p in sources if "__pycache__" not in p.parts and p != SERVER]
    for path in sources:
        digest.update(path.name.encode() + path.read_bytes())
    digest.update(load_catalog().packages.model_dump_json().encode())
    digest.update(load_catalog().exporter.model_dump_json().encode())
    for entry in load_catalog().distributions:
        digest.update(repr((entry.code, entry.driver_packages)).encode())
    digest.update(machine.name.encode() + ring.keys["vendor"].fingerprint.encode())
    return digest.hexdigest()
