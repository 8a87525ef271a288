"""Parses the output of scripts/collect.sh. Pure."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator, Sequence

from gpufleet.core.names import count_noun
from gpufleet.evidence.models import Evidence, EvidenceFile, MissingEvidence

MAX_HOST_BYTES = 64 << 20  # of one host, unpacked; the script's limits are far lower
_GZIP = 16 + zlib.MAX_WBITS
_STATUS = re.compile(r"\nexit (\d+)\n\Z")
_TIMEOUTS = ("124", "137")  # of timeout(1): SIGTERM, SIGKILL


def parse_evidence(lines: Sequence[str]) -> Iterator[Evidence]:
    """The files in the output of a host, and those that it could not read.

    The output may be cut off at any place: then the last file is missing.
    """
    rows = iter(lines)
    left = MAX_HOST_BYTES
    for row in rows:
        word, *fields = row.split("\t")
        if word == "none" and len(fields) == 2:
            yield MissingEvidence(*fields)
        elif word == "item" and len(fields) == 4 and fields[0].isdecimal():
            data = _unpack(next(rows, ""), left)
            left -= len(data or b"")
            yield _parse_item(int(fields[0]), *fields[1:], data=data)


def _unpack(payload: str, most: int) -> bytes | None:
    """The content of base64 and gzip, or None if it is cut off, or longer than `most`."""
    unpacker = zlib.decompressobj(_GZIP)
    try:
        data = unpacker.decompress(base64.b64decode(payload, validate=True), most + 1)
    except (ValueError, zlib.error):
        return None
    return data if unpacker.eof and len(data) <= most else None


def _parse_item(
    most: int, seconds: str, name: str, command: str, *, data: bytes | None
) -> Evidence:
    if data is None:
        return MissingEvidence(name, "its output was cut off on the way, or is too large")
    text = data.decode("utf-8", "replace")
    ended = _STATUS.search(text)
    content = text[: ended.start()] if ended else text
    notes = [f"cut to {count_noun(most, 'byte')}"] if len(data) >= most else []
    if (ended and ended[1] in _TIMEOUTS) or not (ended or notes):
        notes.append(f"not done after {seconds} s")
    elif ended and ended[1] != "0":
        notes.append(f"exit status {ended[1]}")
    if not content.strip():
        return MissingEvidence(name, ", ".join(notes) or "it is empty")
    return EvidenceFile(name, content, command, ", ".join(notes))
