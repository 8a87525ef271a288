"""OpenPGP public keys: their fingerprints, read without gpg.

RFC 4880 (and RFC 9580, which keeps its version 4 format): packets and armor.
Of the signatures, those that bind subkeys are verified, for a fingerprint says nothing of subkeys;
all others are the package manager's work, and so is whether a key has expired or was revoked by
its owner. What is read here decides whether a key is the one that the catalog names.
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

UNKNOWN = "UNKNOWN"
_PUBLIC_KEY = 6
_SIGNATURE = 2
_SUBKEY = 14
_OF_CERTIFICATES = {2, 6, 13, 14, 17}  # signatures, keys, user ids and attributes, subkeys
_SUBKEY_BINDING = 0x18
_HASHES: dict[int, hashes.HashAlgorithm] = {
    2: hashes.SHA1(),  # keys of 2014 bind with it; a second preimage is out of reach
    8: hashes.SHA256(),
    9: hashes.SHA384(),
    10: hashes.SHA512(),
    11: hashes.SHA224(),
}
_RSA, _EDDSA = (1, 3), 22
_ED25519 = bytes.fromhex("092b06010401da470f01")  # its object identifier, after the length
_CRC24_START, _CRC24_POLYNOMIAL = 0xB704CE, 0x864CFB


class OpenPgpError(ValueError):
    """The data is not a valid public key; the message says why."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """One primary key with what belongs to it, and no other key.

    `fingerprint`: 40 hexadecimal digits, upper case; `binary`: as an apt keyring holds it.
    """

    fingerprint: str
    binary: bytes

    @property
    def armored(self) -> bytes:
        """As rpm imports it: with the checksum that rpm of EL 7 asks for."""
        lines = base64.encodebytes(self.binary).decode().replace("\n", "")
        rows = [lines[first : first + 64] for first in range(0, len(lines), 64)]
        checksum = base64.b64encode(_crc24(self.binary).to_bytes(3, "big")).decode()
        begin, end = (f"-----{word} PGP PUBLIC KEY BLOCK-----" for word in ("BEGIN", "END"))
        return "\n".join([begin, "", *rows, f"={checksum}", end, ""]).encode()


def certificate(data: bytes) -> Certificate:
    """The one certificate that armored or binary `data` consists of.

    OpenPgpError for anything else: a second primary key of whatever version, a subkey that the
    primary key did not sign, a packet that no certificate has, a second armor, garbage.
    """
    if data.count(b"-----BEGIN PGP") > 1:
        raise OpenPgpError("more than one armored block")
    binary = dearmor(data)
    packets = list(_packets(binary))
    strange = {tag for tag, _ in packets} - _OF_CERTIFICATES
    if strange:
        raise OpenPgpError(f"packets that no certificate has: {sorted(strange)}")
    primaries = [body for tag, body in packets if tag == _PUBLIC_KEY]
    if len(primaries) != 1 or packets[0][0] != _PUBLIC_KEY:
        raise OpenPgpError(f"{len(primaries)} primary keys instead of one")
    if len(primaries[0]) < 6 or primaries[0][0] != 4:
        raise OpenPgpError("its primary key is not of version 4")
    _require_bound(packets)
    return Certificate(_fingerprint(primaries[0]), binary)


def _require_bound(packets: Sequence[tuple[int, bytes]]) -> None:
    """OpenPgpError where a subkey has no binding signature of the first packet's key."""
    primary = packets[0][1]
    for place, (tag, subkey) in enumerate(packets):
        if tag != _SUBKEY:
            continue
        own = takewhile(lambda packet: packet[0] == _SIGNATURE, packets[place + 1 :])
        if not any(_binds(body, primary, subkey) for _, body in own):
            raise OpenPgpError("it has a subkey that its primary key did not sign")


def fingerprints(data: bytes) -> tuple[str, ...]:
    """Fingerprints of the version 4 primary keys in armored or binary `data`.

    Raises OpenPgpError when `data` is neither, or cut off.
    """
    primaries = (body for tag, body in _packets(dearmor(data)) if tag == _PUBLIC_KEY)
    return tuple(_fingerprint(body) for body in primaries if len(body) > 5 and body[0] == 4)


@lru_cache(maxsize=64)  # hosts have the same keyrings, and a signature takes long
def keyring_fingerprints(data: bytes) -> tuple[str, ...]:
    """Fingerprints of the keys in a keyring; UNKNOWN among them where it holds anything else.

    () for data that is no keyring. A keyring that is to be trusted has exactly one, an expected.
    """
    with suppress(OpenPgpError):
        return (certificate(data).fingerprint,)
    try:
        found = fingerprints(data)
    except OpenPgpError:
        return ()
    return found if len(found) > 1 else (*found, UNKNOWN)


def dearmor(data: bytes) -> bytes:
    """The binary form of `data`: every armored public key in it, or `data` if it has none.

    Raises OpenPgpError for an armor that is cut off or damaged.
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


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and body of every packet. Partial lengths, which keys may not have, are refused."""
    position = 0
    while position < len(data):
        header = data[position]
        if not header & 0x80:
            raise OpenPgpError(f"not OpenPGP data (byte {position} is 0x{header:02x})")
        if header & 0x40:
            tag = header & 0x3F
            length, start = _length(data, position + 1)
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


def _length(data: bytes, position: int) -> tuple[int, int]:
    """A length of one, two or five bytes at `position`, and the position after it."""
    first = data[position] if position < len(data) else 0
    if first < 192:
        return first, position + 1
    if first < 224:
        second = data[position + 1] if position + 1 < len(data) else 0
        return (first - 192 << 8) + second + 192, position + 2
    if first == 255:
        return int.from_bytes(data[position + 1 : position + 5], "big"), position + 5
    raise OpenPgpError("a packet has a partial length")


def _fingerprint(body: bytes) -> str:
    """Of the body of a key's packet: 40 hexadecimal digits, upper case."""
    if len(body) > 0xFFFF:
        raise OpenPgpError("a key packet is too long")
    prefix = b"\x99" + len(body).to_bytes(2, "big")
    # SHA-1 is what the format says a fingerprint is; it protects nothing by itself here.
    return hashlib.sha1(prefix + body, usedforsecurity=False).hexdigest().upper()


def _binds(signature: bytes, primary: bytes, subkey: bytes) -> bool:
    """Whether `signature` is the primary key's own binding of the subkey (RFC 4880, 5.2.4), with
    RSA or Ed25519. False also for what is damaged."""
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
    """The multiprecision integers in `data`, without their lengths."""
    found = []
    while data:
        size = (int.from_bytes(data[:2], "big") + 7) // 8
        if len(data) < 2 + size:
            raise ValueError("an integer is cut off")
        found.append(data[2 : 2 + size])
        data = data[2 + size :]
    return found
