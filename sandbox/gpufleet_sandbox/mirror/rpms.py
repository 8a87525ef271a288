"""Write rpm packages with rpmbuild."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from gpufleet_sandbox.mirror.debs import EPOCH, stage
from gpufleet_sandbox.mirror.model import Package
from gpufleet_sandbox.process import run

NOTE = "Imitation for the gpufleet sandbox: names and relations are real, the content is not."


def write(package: Package, folder: Path) -> Path:
    """Build `package` into `folder`. Returns the rpm."""
    with tempfile.TemporaryDirectory(prefix="rpm-") as name:
        top = Path(name)
        stage(package, top / "files")
        spec = top / "package.spec"
        spec.write_text(spec_text(package, top / "files"))
        options = ["-bb", "--quiet", "--define", f"_topdir {top}", "--target", package.architecture]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
        run(["rpmbuild", *options, spec], env=environment)
        built = top / "RPMS" / package.architecture / package.filename
        return Path(shutil.move(built, folder / package.filename))


def spec_text(package: Package, staged: Path) -> str:
    """A spec that copies the staged files; rpm generates no dependencies."""
    version, release = package.version.rpartition(":")[2].rsplit("-", 1)
    lines = [
        "%global debug_package %{nil}",
        "%global __os_install_post %{nil}",
        "%global _build_id_links none",
        "%global use_source_date_epoch_as_buildtime 1",
        "%global clamp_mtime_to_source_date_epoch 1",
        "%global _buildhost sandbox",
        "%global _binary_payload w1.gzdio",  # rpm 4.11 of EL 7 cannot read zstd
        f"Name: {package.name}",
        f"Version: {version}",
        f"Release: {release}",
        f"Summary: {package.summary}",
        "License: Apache-2.0",
        "AutoReqProv: no",
        *([f"Epoch: {package.epoch}"] if package.epoch else []),
    ]
    for tag, words in package.relations.items():
        lines += [f"{tag}: {word}" for word in words]
    lines += ["%description", NOTE, "%install", "mkdir -p %{buildroot}"]
    if package.files or package.links:
        lines.append(f"cp -a {staged}/. %{{buildroot}}/")
    for script, text in package.scripts.items():
        lines += [f"%{script}", text.replace("%", "%%")]
    lines.append("%files")
    for path, file in package.files.items():
        config = "%config(noreplace) " if file.config else ""
        lines.append(f"{config}%attr({file.mode:04o},root,root) {path}")
    lines += [f"%attr(-,root,root) {path}" for path in package.links]
    return "\n".join(lines) + "\n"
