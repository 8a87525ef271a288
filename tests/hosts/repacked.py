"""Wheels of the packages that are installed here, for an image that is built without a network."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement


def needed(name: str, seen: set[str] | None = None) -> Iterator[Distribution]:
    """The dependencies of a distribution in this environment, without those of its extras."""
    seen = {name} if seen is None else seen
    for text in distribution(name).requires or ():
        wanted = Requirement(text)
        key = re.sub(r"[-_.]+", "-", wanted.name).lower()
        if key in seen or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        seen.add(key)
        yield distribution(wanted.name)
        yield from needed(wanted.name, seen)


def repack(found: Distribution, folder: Path) -> Path:
    """The wheel of an installed distribution, without its scripts: pip makes them again."""
    tags = re.findall(r"^Tag: (\S+)-(\S+)-(\S+)", found.read_text("WHEEL") or "", re.MULTILINE)
    tag = "-".join(".".join(dict.fromkeys(parts)) for parts in zip(*tags, strict=True))
    name = re.sub(r"[-.]+", "_", found.metadata["Name"])
    wheel = folder / f"{name}-{found.version}-{tag}.whl"
    record = io.StringIO()
    lines = csv.writer(record, lineterminator="\n")
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in found.files or ():
            if ".." in path.parts or path.suffix == ".pyc" or path.name == "RECORD":
                continue
            data = Path(str(path.locate())).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            archive.writestr(str(path), data)
            lines.writerow([str(path), f"sha256={digest}", len(data)])
        info = next(path.parts[0] for path in found.files or () if path.name == "METADATA")
        lines.writerow([f"{info}/RECORD", "", ""])
        archive.writestr(f"{info}/RECORD", record.getvalue())
    return wheel
