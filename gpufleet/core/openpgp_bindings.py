"""Whether a primary OpenPGP key has signed a subkey: RFC 4880, 5.2.4, with RSA, ECDSA and EdDSA."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, encode_dss_signature

_Verifier = Callable[[bytes, bytes, bytes, hashes.HashAlgorithm], None]
_SUBKEY_BINDING = 0x18
_HASHES: dict[int, hashes.HashAlgorithm] = {
    2: hashes.SHA1(),  # keys of 2014 bind with it; a second preimage is out of reach
    8: hashes.SHA256(),
    9: hashes.SHA384(),
    10: hashes.SHA512(),
    11: hashes.SHA224(),
}
_CURVES: dict[bytes, ec.EllipticCurve] = {
    bytes.fromhex("2a8648ce3d030107"): ec.SECP256R1(),
    bytes.fromhex("2b81040022"): ec.SECP384R1(),
    bytes.fromhex("2b81040023"): ec.SECP521R1(),
}
LONGEST_KEY = 0xFFFF  # bytes: a signature counts them in two
_ED25519 = bytes.fromhex("2b06010401da470f01")


def binds(signature: bytes, primary: bytes, subkey: bytes) -> bool:
    """Whether `signature` is the primary key's own binding of the subkey.

    Bodies of packets of version 4. False also for what is damaged or of another algorithm.
    """
    if len(signature) < 6 or signature[0] != 4 or signature[1] != _SUBKEY_BINDING:
        return False
    end = 6 + int.from_bytes(signature[4:6], "big")
    unhashed = int.from_bytes(signature[end : end + 2], "big")
    numbers = signature[end + 2 + unhashed + 2 :]  # after the first two bytes of the digest
    chosen = _HASHES.get(signature[3])
    if not all(6 < len(key) <= LONGEST_KEY for key in (primary, subkey)):
        return False
    if chosen is None or primary[5] != signature[2]:
        return False
    trailer = b"\x04\xff" + end.to_bytes(4, "big")
    signed = _framed(primary) + _framed(subkey) + signature[:end] + trailer
    digest = hashlib.new(chosen.name, signed, usedforsecurity=False).digest()
    try:
        _VERIFIERS[signature[2]](primary[6:], numbers, digest, chosen)
    except (InvalidSignature, UnsupportedAlgorithm, LookupError, ValueError):
        return False
    return True


def _framed(key: bytes) -> bytes:
    return b"\x99" + len(key).to_bytes(2, "big") + key


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


def _pair(data: bytes) -> tuple[bytes, bytes]:
    first, second = _integers(data)
    return first, second


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _rsa(key: bytes, numbers: bytes, digest: bytes, chosen: hashes.HashAlgorithm) -> None:
    modulus, exponent = map(_number, _pair(key))
    (signature,) = _integers(numbers)
    public = rsa.RSAPublicNumbers(exponent, modulus).public_key()
    padded = signature.rjust((public.key_size + 7) // 8, b"\0")
    public.verify(padded, digest, padding.PKCS1v15(), Prehashed(chosen))


def _point(key: bytes) -> tuple[bytes, bytes]:
    """The object identifier of the curve and the point on it."""
    (point,) = _integers(key[1 + key[0] :])
    return key[1 : 1 + key[0]], point


def _ecdsa(key: bytes, numbers: bytes, digest: bytes, chosen: hashes.HashAlgorithm) -> None:
    name, point = _point(key)
    if name not in _CURVES:
        raise ValueError("a curve that is not known here")
    public = ec.EllipticCurvePublicKey.from_encoded_point(_CURVES[name], point)
    r, s = map(_number, _pair(numbers))
    public.verify(encode_dss_signature(r, s), digest, ec.ECDSA(Prehashed(chosen)))


def _eddsa(key: bytes, numbers: bytes, digest: bytes, chosen: hashes.HashAlgorithm) -> None:
    name, point = _point(key)
    if name != _ED25519 or point[:1] != b"\x40":
        raise ValueError("a curve that is not known here")
    r, s = (part.rjust(32, b"\0") for part in _pair(numbers))
    ed25519.Ed25519PublicKey.from_public_bytes(point[1:]).verify(r + s, digest)


_VERIFIERS: dict[int, _Verifier] = {1: _rsa, 3: _rsa, 19: _ecdsa, 22: _eddsa}
