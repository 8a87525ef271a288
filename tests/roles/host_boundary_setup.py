"""Shared by the tests of host boundary."""

from __future__ import annotations

import base64
from pathlib import Path

CAPTURE = (
    Path(__file__).parents[1] / "unit/facts/captures/ubuntu2204-sandbox.txt"
).read_text("utf-8")  # fmt: skip
MIRROR = {"driver_repo_url": "http://mirror/compute/cuda/repos"}  # as in its source file


def with_contents(path: str, content: str) -> str:
    """The captured facts with other contents of an existing file."""
    head, _, rest = CAPTURE.partition("@@files\n")
    listed, _, encoded = rest.partition("base64 ")
    old, _, tail = encoded.partition("\n")
    everything, before = base64.b64decode(old), 0
    for line in listed.splitlines():
        words = line.split(" ")
        size = int(words[1]) if words[0] == "file" else 0
        if words[0] == "file" and words[-1] == path:
            data = everything[:before] + content.encode() + everything[before + size :]
            listed = listed.replace(line, line.replace(f" {size} ", f" {len(content.encode())} "))
            return f"{head}@@files\n{listed}base64 {base64.b64encode(data).decode()}\n{tail}"
        before += size
    raise LookupError(path)
