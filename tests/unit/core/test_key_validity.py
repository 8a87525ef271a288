"""The end of a key's validity, with gpg as the judge."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator

import pytest

from gpufleet.core.key_validity import key_expiries

Gpg = Callable[..., bytes]


@pytest.fixture(scope="module")
def gpg() -> Iterator[Gpg]:
    with tempfile.TemporaryDirectory(dir="/tmp") as home:  # a socket's path must be short

        def run(*words: str) -> bytes:
            command = ["gpg", "--homedir", home, "--batch", "--quiet", "--passphrase", "", *words]
            return subprocess.run(command, check=True, capture_output=True).stdout

        for name, kind, valid in (
            ("never", "ed25519", "never"),
            ("days", "ed25519", "60d"),
            ("rsa", "rsa2048", "2y"),
            ("longer", "ed25519", "5d"),
        ):
            run("--quick-generate-key", f"{name} <{name}@example.com>", kind, "sign", valid)
        run("--quick-add-uid", "longer", "second <second@example.com>")
        run("--quick-set-expire", fingerprint(run, "longer"), "90d")
        run("--default-key", fingerprint(run, "days"), "--quick-sign-key", fingerprint(run, "rsa"))
        yield run
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)


def listed(gpg: Gpg, name: str) -> dict[str, int]:
    """Fingerprint -> seconds of the end, 0 for none, as gpg says."""
    lines = gpg("--with-colons", "--list-keys", name).decode().splitlines()
    keys = [line.split(":") for line in lines]
    return {
        keys[number + 1][9]: int(fields[6] or 0)
        for number, fields in enumerate(keys)
        if fields[0] == "pub"
    }


def fingerprint(gpg: Gpg, name: str) -> str:
    return next(iter(listed(gpg, name)))


@pytest.mark.parametrize("name", ["never", "days", "rsa", "longer", "@example.com"])
def test_the_end_is_gpgs(name: str, gpg: Gpg) -> None:
    found = key_expiries(gpg("--armor", "--export", name))
    ends = {key: int(end.timestamp()) if end else 0 for key, end in found.items()}
    assert ends == listed(gpg, name)


def test_a_damaged_signature_is_no_error(gpg: Gpg) -> None:
    data = gpg("--export", "days")
    (key,) = key_expiries(data)
    for place in range(100, len(data)):
        damaged = data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]
        try:
            found = key_expiries(damaged)
        except ValueError:  # OpenPgpError is one
            continue
        assert key in found or found is not None
