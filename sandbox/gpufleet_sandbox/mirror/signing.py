"""The mirror's throw-away keys: created once, without passphrase, in a separate folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from gpufleet_sandbox.process import run

# The expired subkey's period of validity, and a time within it. The primary key never expires.
BORN, SIGNED, EXPIRES = "20240101T000000!", "20240201T000000!", "2024-03-01"

NAMES = {
    "vendor": "gpufleet sandbox vendor <vendor@localhost>",
    "archive": "gpufleet sandbox archive <archive@localhost>",
    "kubernetes": "gpufleet sandbox kubernetes <kubernetes@localhost>",
    "other": "gpufleet sandbox stranger <stranger@localhost>",
}


@dataclass(frozen=True, slots=True)
class Key:
    """One signing key. `signer`: gpg's option `-u`, `when`: gpg's faked time, "" for now."""

    fingerprint: str  # 40 digits, upper case; of the primary key
    signer: str
    when: str = ""


@dataclass(frozen=True, slots=True)
class KeyRing:
    """A GnuPG home with the keys of `NAMES`, and `expired`: an expired subkey of vendor."""

    home: Path
    keys: Mapping[str, Key]

    def public(self, name: str, *, armor: bool = True) -> bytes:
        """The public key, as text (a `.pub` or `.asc` file) or binary (a keyring for apt)."""
        words = ["--armor"] if armor else []
        with TemporaryDirectory(dir=self.home) as folder:  # threads call this concurrently
            target = Path(folder, "key")
            _gpg(self.home, *words, "-o", target, "--export", self.keys[name].fingerprint)
            return target.read_bytes()

    def sign(self, name: str, file: Path, output: Path, *, clear: bool = False) -> None:
        """Sign `file` into `output`: inline (`clear`, InRelease) or detached and armored."""
        key = self.keys[name]
        how = ["--clearsign"] if clear else ["--armor", "--detach-sign"]
        when = ["--faked-system-time", key.when] if key.when else []
        _gpg(self.home, *when, "--yes", "-u", key.signer, "-o", output, *how, file)

    def sign_rpms(self, name: str, packages: list[Path]) -> None:
        """Add signatures to rpm files, in place."""
        key = self.keys[name]
        # Always the same time, for reproducible bytes (see debs.EPOCH).
        extra = f"--batch --faked-system-time {SIGNED}"
        defines = {
            "__gpg": shutil.which("gpg") or "gpg",
            "_gpg_name": key.signer,
            "_gpg_path": str(self.home),
            "_gpg_sign_cmd_extra_args": extra,
        }
        words = [word for pair in defines.items() for word in ("--define", " ".join(pair))]
        run(["rpmsign", *words, "--addsign", *packages], env=self._environment())

    def close(self) -> None:
        """Stop the gpg-agent of this home; the next signature starts a new one."""
        run(["gpgconf", "--homedir", self.home, "--kill", "gpg-agent"])

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "GNUPGHOME": str(self.home)}


def key_ring(home: Path) -> KeyRing:
    """The key ring in `home`, created by the first call; every build reuses its keys."""
    if not (home / "ready").exists():
        home.mkdir(parents=True, exist_ok=True)
        home.chmod(0o700)
        for name, identity in NAMES.items():
            _make(home, name, identity)
        (home / "ready").touch()
    keys = {}
    for name, identity in NAMES.items():
        if not _fingerprints(home, identity):  # a home that is older than this name
            _make(home, name, identity)
        primary, *subkeys = _fingerprints(home, identity)
        keys[name] = Key(primary, f"{primary}!")
        if subkeys:
            keys["expired"] = Key(primary, f"{subkeys[0]}!", SIGNED)
    return KeyRing(home, keys)


def _make(home: Path, name: str, identity: str) -> None:
    faked = ["--faked-system-time", BORN]
    make = ["--passphrase", "", "--quick-generate-key", identity, "rsa2048", "sign", "never"]
    _gpg(home, *faked, *make)
    if name == "vendor":
        primary = _fingerprints(home, identity)[0]
        _gpg(home, *faked, "--passphrase", "", "--quick-add-key", primary, "rsa2048", "sign",
             EXPIRES)  # fmt: skip


def _fingerprints(home: Path, identity: str) -> list[str]:
    """The primary key's fingerprint, then those of its subkeys; none without such a key."""
    words: list[str | Path] = [
        "gpg",
        "--homedir",
        home,
        "--batch",
        "--with-colons",
        "--list-keys",
        f"={identity}",
    ]
    listed = run(words, check=False).stdout
    return [line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr:")]


def _gpg(home: Path, *words: str | Path) -> str:
    return run(["gpg", "--homedir", home, "--batch", "--pinentry-mode", "loopback", *words]).stdout
