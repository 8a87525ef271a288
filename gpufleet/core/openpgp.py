"""Reads OpenPGP public keys and their fingerprints without gpg.

Format: packets and armor of RFC 4880 (RFC 9580 keeps its version 4). Only the signatures that bind
subkeys are verified, because a fingerprint does not cover subkeys. The package manager verifies all
other signatures and checks if a key has expired or was revoked. This module decides if a key is the
one that the catalog names.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed

UNKNOWN_KEY_ID = "UNKNOWN"
PUBLIC_KEY_TAG = 6
SIGNATURE_TAG = 2
_SUBKEY = 14
_OF_CERTIFICATES = {2, 6, 13, 14, 17}  # signature, key, user id and attribute, subkey
_SUBKEY_BINDING = 0x18
_HASHES: dict[int, hashes.HashAlgorithm] = {
    2: hashes.SHA1(),  # keys of 2014 bind with it; a second preimage is infeasible
    8: hashes.SHA256(),
    9: hashes.SHA384(),
    10: hashes.SHA512(),
    11: hashes.SHA224(),
}
_RSA, _EDDSA = (1, 3), 22
_ED25519 = bytes.fromhex("092b06010401da470f01")  # the length, then the object identifier
_CRC24_START, _CRC24_POLYNOMIAL = 0xB704CE, 0x864CFB


class OpenPgpError(ValueError):
    """The data is not a valid public key. The message says why."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """One primary key with its user ids, subkeys and signatures, and no other key.

    `fingerprint`: 40 hexadecimal digits, upper case; `binary`: the format of an apt keyring.
    """

    fingerprint: str
    binary: bytes

    @property
    def armored(self) -> bytes:
        """The armored key for rpm, with the checksum that rpm of EL 7 needs."""
        lines = base64.encodebytes(self.binary).decode().replace("\n", "")
        rows = [lines[first : first + 64] for first in range(0, len(lines), 64)]
        checksum = base64.b64encode(_crc24(self.binary).to_bytes(3, "big")).decode()
        begin, end = (f"-----{word} PGP PUBLIC KEY BLOCK-----" for word in ("BEGIN", "END"))
        return "\n".join([begin, "", *rows, f"={checksum}", end, ""]).encode()


def parse_certificate(data: bytes) -> Certificate:
    """The only certificate in armored or binary `data`.

    Raises OpenPgpError for anything else: a second primary key of any version, a subkey that the
    primary key did not sign, a packet that no certificate has, a second armor, garbage.
    """
    if data.count(b"-----BEGIN PGP") > 1:
        raise OpenPgpError("more than one armored block")
    binary = dearmor_keys(data)
    packets = list(read_packets(binary))
    strange = {tag for tag, _ in packets} - _OF_CERTIFICATES
    if strange:
        raise OpenPgpError(f"packets that no certificate has: {sorted(strange)}")
    primaries = [body for tag, body in packets if tag == PUBLIC_KEY_TAG]
    if len(primaries) != 1 or packets[0][0] != PUBLIC_KEY_TAG:
        raise OpenPgpError(f"{len(primaries)} primary keys instead of one")
    if len(primaries[0]) < 6 or primaries[0][0] != 4:
        raise OpenPgpError("its primary key is not of version 4")
    _require_bound(packets)
    return Certificate(fingerprint_of_key(primaries[0]), binary)


def _require_bound(packets: Sequence[tuple[int, bytes]]) -> None:
    """Raise OpenPgpError if the primary key (the first packet) did not sign a subkey."""
    primary = packets[0][1]
    for place, (tag, subkey) in enumerate(packets):
        if tag != _SUBKEY:
            continue
        own = takewhile(lambda packet: packet[0] == SIGNATURE_TAG, packets[place + 1 :])
        if not any(_binds(body, primary, subkey) for _, body in own):
            raise OpenPgpError("it has a subkey that its primary key did not sign")


def primary_fingerprints(data: bytes) -> tuple[str, ...]:
    """Fingerprints of the version 4 primary keys in armored or binary `data`.

    Raises OpenPgpError if `data` is neither, or is truncated.
    """
    primaries = (body for tag, body in read_packets(dearmor_keys(data)) if tag == PUBLIC_KEY_TAG)
    return tuple(fingerprint_of_key(body) for body in primaries if len(body) > 5 and body[0] == 4)


@lru_cache(maxsize=64)  # hosts have the same keyrings, and verifying is slow
def keyring_fingerprints(data: bytes) -> tuple[str, ...]:
    """Fingerprints of the keys in a keyring, and UNKNOWN if it holds one key and anything else.

    Returns () for data that cannot be read. A trusted keyring has one key, an expected one.
    """
    with suppress(OpenPgpError):
        return (parse_certificate(data).fingerprint,)
    try:
        found = primary_fingerprints(data)
    except OpenPgpError:
        return ()
    return found if len(found) > 1 else (*found, UNKNOWN_KEY_ID)


def dearmor_keys(data: bytes) -> bytes:
    """The binary form of every armored public key in `data`, or `data` if it is not armored.

    Raises OpenPgpError for an armor that is truncated or damaged.
    """
    if b"-----BEGIN PGP" not in data:
        return data
    _, *blocks = data.split(b"-----BEGIN PGP PUBLIC KEY BLOCK-----")
    if len(blocks) != data.count(b"-----BEGIN PGP"):
        raise OpenPgpError("an armor that is no public key")
    binary = b""
    for block in blocks:
        body, end, _ = block.partition(b"-----END PGP PUBLIC KEY BLOCK-----")
        if not end:
            raise OpenPgpError("the armor has no end: it is cut off")
        lines = [line.strip() for line in body.splitlines()]
        encoded = [line for line in lines if b": " not in line and not line.startswith(b"=")]
        try:
            binary += base64.b64decode(b"".join(encoded), validate=True)
        except ValueError as error:
            raise OpenPgpError(f"the armor is damaged: {error}") from None
    return binary


def _crc24(data: bytes) -> int:
    crc = _CRC24_START
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= _CRC24_POLYNOMIAL | 0x1000000
    return crc


def read_packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and body of every packet. Refuses partial lengths, which keys must not have."""
    position = 0
    while position < len(data):
        header = data[position]
        if not header & 0x80:
            raise OpenPgpError(f"not OpenPGP data (byte {position} is 0x{header:02x})")
        if header & 0x40:
            tag = header & 0x3F
            length, start = read_length(data, position + 1)
        else:
            tag = header >> 2 & 0x0F
            size = 1 << (header & 3)
            start = position + 1 + size
            if size == 8:
                raise OpenPgpError("a packet has no length")
            length = int.from_bytes(data[position + 1 : start], "big")
        position = start + length
        if position > len(data):
            raise OpenPgpError("a packet is cut off")
        yield tag, data[start:position]


def read_length(data: bytes, position: int) -> tuple[int, int]:
    """Read a length of one, two or five bytes at `position`. Also returns the position after it."""
    first = data[position] if position < len(data) else 0
    if first < 192:
        return first, position + 1
    if first < 224:
        second = data[position + 1] if position + 1 < len(data) else 0
        return (first - 192 << 8) + second + 192, position + 2
    if first == 255:
        return int.from_bytes(data[position + 1 : position + 5], "big"), position + 5
    raise OpenPgpError("a packet has a partial length")


def fingerprint_of_key(body: bytes) -> str:
    """The fingerprint of a key packet's body: 40 hexadecimal digits, upper case."""
    if len(body) > 0xFFFF:
        raise OpenPgpError("a key packet is too long")
    prefix = b"\x99" + len(body).to_bytes(2, "big")
    # The format defines a fingerprint as SHA-1. It is an identifier here, not a protection.
    return hashlib.sha1(prefix + body, usedforsecurity=False).hexdigest().upper()


def _binds(signature: bytes, primary: bytes, subkey: bytes) -> bool:
    """True if `signature` is the primary key's binding of the subkey (RFC 4880, 5.2.4), by RSA or
    Ed25519. False if it is damaged."""
    if len(signature) < 6 or signature[0] != 4 or signature[1] != _SUBKEY_BINDING:
        return False
    chosen = _HASHES.get(signature[3])
    if chosen is None or primary[5] != signature[2] or len(subkey) > 0xFFFF or not subkey:
        return False
    end = 6 + int.from_bytes(signature[4:6], "big")
    unhashed = int.from_bytes(signature[end : end + 2], "big")
    numbers = signature[end + 2 + unhashed + 2 :]  # after the first two bytes of the digest
    keys = (b"\x99" + len(key).to_bytes(2, "big") + key for key in (primary, subkey))
    signed = b"".join(keys) + signature[:end] + b"\x04\xff" + end.to_bytes(4, "big")
    digest = hashlib.new(chosen.name, signed, usedforsecurity=False).digest()
    try:
        if signature[2] in _RSA:
            _verify_rsa(primary[6:], numbers, digest, chosen)
        elif signature[2] == _EDDSA:
            _verify_ed25519(primary[6:], numbers, digest)
        else:
            return False
    except (InvalidSignature, UnsupportedAlgorithm, LookupError, ValueError):
        return False
    return True


def _verify_rsa(key: bytes, numbers: bytes, digest: bytes, chosen: hashes.HashAlgorithm) -> None:
    modulus, exponent = (int.from_bytes(number, "big") for number in _integers(key))
    (signature,) = _integers(numbers)
    public = rsa.RSAPublicNumbers(exponent, modulus).public_key()
    padded = signature.rjust((public.key_size + 7) // 8, b"\0")
    public.verify(padded, digest, padding.PKCS1v15(), Prehashed(chosen))


def _verify_ed25519(key: bytes, numbers: bytes, digest: bytes) -> None:
    (point,) = _integers(key[len(_ED25519) :])
    if not key.startswith(_ED25519) or point[:1] != b"\x40":
        raise ValueError("another curve")
    r, s = (part.rjust(32, b"\0") for part in _integers(numbers))
    ed25519.Ed25519PublicKey.from_public_bytes(point[1:]).verify(r + s, digest)


def _integers(data: bytes) -> list[bytes]:
    """The multiprecision integers in `data`, without their length prefixes."""
    found = []
    while data:
        size = (int.from_bytes(data[:2], "big") + 7) // 8
        if len(data) < 2 + size:
            raise ValueError("an integer is cut off")
        found.append(data[2 : 2 + size])
        data = data[2 + size :]
    return found
