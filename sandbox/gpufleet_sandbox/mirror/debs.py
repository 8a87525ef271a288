"""Write deb packages with dpkg-deb."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from gpufleet_sandbox.mirror.model import File, Package
from gpufleet_sandbox.process import run

# The timestamp in every package: builds are reproducible, so that a rebuilt mirror matches the
# indexes on running hosts.
EPOCH = "1704067200"
MAINTAINER = "gpufleet sandbox <sandbox@localhost>"
NOTE = " Imitation for the gpufleet sandbox: names and relations are real, the content is not."


def write(package: Package, folder: Path) -> Path:
    """Build `package` into `folder`. Returns the deb."""
    target = folder / package.filename
    with tempfile.TemporaryDirectory(prefix="deb-") as name:
        root = Path(name)
        root.chmod(0o755)
        stage(package, root)
        control = root / "DEBIAN"
        control.mkdir()
        (control / "control").write_text(control_text(package))
        conffiles = [path for path, file in package.files.items() if file.config]
        if conffiles:
            (control / "conffiles").write_text("".join(f"{path}\n" for path in sorted(conffiles)))
        for script, text in package.scripts.items():
            path = control / script
            path.write_text(text)
            path.chmod(0o644 if script == "triggers" else 0o755)
        options = ["--root-owner-group", "-Zgzip", "-z1"]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
        run(["dpkg-deb", *options, "-b", root, target], env=environment)
    return target


def control_text(package: Package) -> str:
    """The control file: fields, relations and description."""
    lines = [
        f"Package: {package.name}",
        f"Version: {package.version}",
        f"Architecture: {package.architecture}",
        "Section: multiverse/devel",
        "Priority: optional",
        f"Maintainer: {MAINTAINER}",
    ]
    lines += [f"{name}: {', '.join(words)}" for name, words in package.relations.items() if words]
    return "\n".join([*lines, f"Description: {package.summary}", NOTE]) + "\n"


def stage(package: Package, root: Path) -> None:
    """Write the package's files and links under `root`."""
    for path, file in package.files.items():
        _place(root / path.lstrip("/"), file)
    for path, target in package.links.items():
        link = root / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)


def _place(target: Path, file: File) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(file.content, Path):
        shutil.copyfile(file.content, target)
    elif isinstance(file.content, bytes):
        target.write_bytes(file.content)
    else:
        target.write_text(file.content)
    target.chmod(file.mode)
