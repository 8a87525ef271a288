"""Reads until when OpenPGP public keys are valid. Signatures are not verified."""

from __future__ import annotations

from datetime import datetime, timezone

from gpufleet.core.openpgp import (
    PUBLIC_KEY_TAG,
    SIGNATURE_TAG,
    dearmor_keys,
    fingerprint_of_key,
    read_length,
    read_packets,
)

_OF_KEY = (0x10, 0x11, 0x12, 0x13, 0x1F)  # types of signatures: of a user ID, and of the key
_CREATED, _VALID, _ISSUER = 2, 9, 16  # types of subpackets


def key_expiries(data: bytes) -> dict[str, datetime | None]:
    """Fingerprint of each version 4 primary key in `data` -> the end of its validity, or None for a
    key without end. The key's own newest signature decides.

    Raises OpenPgpError as `primary_fingerprints` does.
    """
    found: dict[str, datetime | None] = {}
    key, born, newest = "", 0, -1
    for tag, body in read_packets(dearmor_keys(data)):
        if tag == PUBLIC_KEY_TAG:
            key, newest = "", -1
            if len(body) > 5 and body[0] == 4:
                key, born = fingerprint_of_key(body), int.from_bytes(body[1:5], "big")
                found[key] = None
        elif tag == SIGNATURE_TAG and key and len(body) > 6 and body[0] == 4:
            parts = _subpackets(body)
            issuer, signed = parts.get(_ISSUER, b"").hex().upper(), _number(parts, _CREATED)
            if body[1] in _OF_KEY and key.endswith(issuer) and signed > newest:
                newest, valid = signed, _number(parts, _VALID)
                found[key] = datetime.fromtimestamp(born + valid, timezone.utc) if valid else None
    return found


def _number(parts: dict[int, bytes], kind: int) -> int:
    return int.from_bytes(parts.get(kind, b"")[:4], "big")


def _subpackets(signature: bytes) -> dict[int, bytes]:
    """The subpackets of a version 4 signature, by type (RFC 4880, 5.2.3). Of the area that is not
    signed, only the issuer."""
    hashed = signature[6 : 6 + int.from_bytes(signature[4:6], "big")]
    rest = signature[6 + len(hashed) :]
    unhashed = rest[2 : 2 + int.from_bytes(rest[:2], "big")]
    issuer = _area(unhashed).get(_ISSUER, b"")
    return {_ISSUER: issuer, **_area(hashed)}


def _area(area: bytes) -> dict[int, bytes]:
    parts, position = {}, 0
    while position < len(area):
        length, start = read_length(area, position)
        if length and start < len(area):
            parts[area[start] & 0x7F] = area[start + 1 : start + length]
        position = start + length
    return parts
