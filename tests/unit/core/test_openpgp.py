"""OpenPGP keys read without gpg, with gpg as the judge."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufleet.core.openpgp import (
    UNKNOWN_KEY_ID,
    OpenPgpError,
    dearmor_keys,
    keyring_fingerprints,
    parse_certificate,
    primary_fingerprints,
    read_packets,
)

Gpg = Callable[..., bytes]


@pytest.fixture(scope="module")
def gpg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gpg]:
    # A short path: the agent's socket lies in the folder, and its name has a limit.
    home = tmp_path_factory.mktemp("gpg")
    home.chmod(0o700)

    def run(*arguments: str) -> bytes:
        command = ["gpg", "--batch", "--quiet", "--passphrase", "", *arguments]
        environment = {**os.environ, "GNUPGHOME": str(home)}
        return subprocess.run(command, env=environment, capture_output=True, check=True).stdout

    run("--quick-gen-key", "one <one@example.com>", "ed25519", "sign", "never")
    run("--quick-gen-key", "two <two@example.com>", "rsa2048", "sign", "2d")
    yield run
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=True)
    shutil.rmtree(home)


def listed(gpg: Gpg) -> set[str]:
    """Fingerprints of the primary keys, as gpg says."""
    lines = [line.split(":") for line in gpg("--with-colons", "--list-keys").decode().splitlines()]
    return {following[9] for fields, following in pairwise(lines) if fields[0] == "pub"}


@pytest.mark.parametrize("armor", [[], ["--armor"]], ids=["binary", "armored"])
def test_fingerprints_are_gpgs(gpg: Gpg, armor: list[str]) -> None:
    data = gpg(*armor, "--export")
    assert set(primary_fingerprints(data)) == listed(gpg)


def test_dearmor_gives_the_binary_form(gpg: Gpg) -> None:
    binary, armored = gpg("--export"), gpg("--armor", "--export")
    assert dearmor_keys(armored) == binary
    assert dearmor_keys(binary) == binary
    assert dearmor_keys(b"Some text before\n" + armored.replace(b"\n", b"\r\n")) == binary


def test_two_armored_blocks(gpg: Gpg) -> None:
    both = b"".join(gpg("--armor", "--export", name) for name in ("one", "two"))
    assert set(primary_fingerprints(both)) == listed(gpg)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[: len(data) // 2], "cut off"),
        (lambda data: data.replace(b"\n=", b"\n=AAAA\nx", 1), "damaged"),
        (lambda data: data.replace(b"\n\n", b"\n\nA", 1), "damaged|not OpenPGP data"),
        (lambda data: b"<html>not found</html>", "not OpenPGP data"),
        (lambda data: data.replace(b"PUBLIC KEY BLOCK", b"MESSAGE"), "no public key"),
    ],
)
def test_damage_is_reported(gpg: Gpg, damage: Callable[[bytes], bytes], message: str) -> None:
    with pytest.raises(OpenPgpError, match=message):
        primary_fingerprints(damage(gpg("--armor", "--export")))


@given(st.binary(max_size=200))
def test_any_bytes_give_keys_or_an_error(data: bytes) -> None:
    try:
        found = primary_fingerprints(data)
    except OpenPgpError:
        return
    assert all(len(fingerprint) == 40 for fingerprint in found)


ONE, TWO = "=one <one@example.com>", "=two <two@example.com>"  # = selects the whole name


def packet(tag: int, body: bytes) -> bytes:
    return bytes([0xC0 | tag, 0xFF]) + len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize("armor", [[], ["--armor"]], ids=["binary", "armored"])
def test_a_certificate_is_one_key_in_both_forms(gpg: Gpg, armor: list[str], tmp_path: Path) -> None:
    (fingerprint,) = primary_fingerprints(gpg("--export", ONE))
    found = parse_certificate(gpg(*armor, "--export", ONE))
    assert found.fingerprint == fingerprint
    assert primary_fingerprints(found.binary) == (fingerprint,)
    assert dearmor_keys(found.armored) == found.binary, "its checksum is right"
    assert keyring_fingerprints(found.binary) == (fingerprint,)


# data that a mirror could add to the right key, and the number of keys in that keyring
BESIDE = {
    "another key": (lambda one, two: one + two, 2),
    "another key before it": (lambda one, two: two + one, 2),
    "a key of version 3": (lambda one, two: one + packet(6, b"\x03" + two[10:60]), 2),
    "a key of version 6": (lambda one, two: one + packet(6, b"\x06" + two[10:60]), 2),
    "a packet for private use": (lambda one, two: one + packet(60, b"x"), 2),
    "garbage": (lambda one, two: one + b"garbage", 0),
    "an end that is missing": (lambda one, two: one[:-5], 0),
}


@pytest.mark.parametrize("what", BESIDE)
def test_a_key_with_anything_beside_it_is_no_certificate(gpg: Gpg, what: str) -> None:
    """The right key and a rogue one used to become the keyring together."""
    make, seen = BESIDE[what]
    data = make(gpg("--export", ONE), gpg("--export", TWO))
    with pytest.raises(OpenPgpError) as refused:
        parse_certificate(data)
    assert "\n" not in str(refused.value), "no stack trace"
    found = keyring_fingerprints(data)
    assert len(found) == seen, found
    assert len(set(found) - {UNKNOWN_KEY_ID}) != 1 or UNKNOWN_KEY_ID in found


def certificate_with_subkey(gpg: Gpg, name: str, algorithm: str) -> bytes:
    """A new certificate: primary key, user id and its signature, subkey and its signature."""
    gpg("--quick-gen-key", f"{name} <{name}@example.com>", algorithm, "sign", "never")
    chosen = f"={name} <{name}@example.com>"
    (fingerprint,) = primary_fingerprints(gpg("--export", chosen))
    gpg("--quick-add-key", fingerprint, "ed25519", "sign", "never")
    return gpg("--export", chosen)


@pytest.mark.parametrize("algorithm", ["rsa2048", "ed25519"])
def test_a_subkey_counts_only_with_its_primary_keys_signature(gpg: Gpg, algorithm: str) -> None:
    data = certificate_with_subkey(gpg, algorithm, algorithm)
    assert parse_certificate(data).binary == data
    primary, user, of_user, (tag, subkey), of_subkey = packets = list(read_packets(data))
    assert [tag for tag, _ in packets] == [6, 13, 2, 14, 2]
    changed = bytearray(of_subkey[1])
    changed[-1] ^= 1
    rogue = next(body for _, body in read_packets(gpg("--export", TWO)))
    for unbound in (
        [primary, user, of_user, (tag, subkey)],
        [primary, user, of_user, (tag, subkey), of_user],
        [primary, user, of_user, (tag, subkey), (2, bytes(changed))],
        [primary, user, of_user, (tag, rogue), of_subkey],
        [*packets, (tag, rogue)],
        [primary, (tag, rogue), user, of_user, (tag, subkey), of_subkey],
        [*packets, (tag, b"\x06" + subkey[1:])],
        [*packets, (tag, b"")],
        [*packets, (tag, bytes(70_000)), of_subkey],
    ):
        written = b"".join(packet(tag, body) for tag, body in unbound)
        with pytest.raises(OpenPgpError, match="did not sign"):
            parse_certificate(written)
        assert UNKNOWN_KEY_ID in keyring_fingerprints(written)


def test_another_certificates_subkey_does_not_pass_with_its_own_signature(gpg: Gpg) -> None:
    rogue = list(read_packets(certificate_with_subkey(gpg, "rogue", "rsa2048")))
    moved = b"".join(packet(tag, body) for tag, body in rogue[3:])
    with pytest.raises(OpenPgpError, match="did not sign"):
        parse_certificate(gpg("--export", ONE) + moved)


def test_a_subkey_of_another_algorithm_is_refused(gpg: Gpg) -> None:
    with pytest.raises(OpenPgpError, match="did not sign"):
        parse_certificate(certificate_with_subkey(gpg, "nistp256", "nistp256"))


def test_two_armored_keys_are_no_certificate(gpg: Gpg) -> None:
    both = b"".join(gpg("--armor", "--export", name) for name in (ONE, TWO))
    with pytest.raises(OpenPgpError, match="more than one"):
        parse_certificate(both)
    assert len(keyring_fingerprints(both)) == 2


@pytest.mark.parametrize("data", [b"", b"<html>", b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\xff\n"])
def test_what_is_no_key_has_no_fingerprints(data: bytes) -> None:
    with pytest.raises(OpenPgpError):
        parse_certificate(data)
    assert keyring_fingerprints(data) == () or UNKNOWN_KEY_ID in keyring_fingerprints(data)


@pytest.mark.parametrize(
    "data",
    [
        b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n\xffAAA\n-----END PGP PUBLIC KEY BLOCK-----\n",
        packet(6, b"\x04" + bytes(69999)),
    ],
    ids=["not ASCII", "packet of 70,000 bytes"],
)
def test_a_hostile_key_is_refused_and_raises_nothing_else(data: bytes) -> None:
    """Any exception but OpenPgpError would end the run of every host."""
    with pytest.raises(OpenPgpError):
        parse_certificate(data)
    assert keyring_fingerprints(data) == ()
