"""The output of a host for the script of evidence, and the content of an archive."""

from __future__ import annotations

import base64
import gzip
import tarfile
from pathlib import Path

from gpufleet.host.asking import OUTPUT_MARK


def item(name: str, text: str | bytes, *, most: int = 1000, status: str = "\nexit 0\n") -> str:
    """The two lines of an item. `status`: the end of its output, "" if it was cut."""
    data = text.encode() if isinstance(text, str) else text
    payload = base64.b64encode(gzip.compress(data + status.encode())).decode()
    return f"item\t{most}\t20\t{name}\tcommand of {name}\n{payload}"


def printed(*items: str, complete: bool = True) -> list[str]:
    """The output of a host's command."""
    end = ["", OUTPUT_MARK] if complete else []
    return [
        "login banner",
        OUTPUT_MARK,
        *(line for each in items for line in each.split("\n")),
        *end,
    ]


def unpacked(archive: Path) -> dict[str, str]:
    """The files of an archive, by path below its only folder."""
    with tarfile.open(archive) as tar:
        content = {each.name: tar.extractfile(each) for each in tar}
        texts = {name: file.read().decode() for name, file in content.items() if file}
    assert all(name.startswith("case/") for name in texts)
    return {name.removeprefix("case/"): text for name, text in texts.items()}
