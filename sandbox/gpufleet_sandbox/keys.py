"""SSH keys of a sandbox: one for the user, and one for each host, created before it boots."""

from __future__ import annotations

import shutil
from pathlib import Path

from gpufleet_sandbox.process import run


def make_key(path: Path, comment: str) -> str:
    """Create an ed25519 key without passphrase at `path` if missing; returns its public line."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path])
    return path.with_suffix(".pub").read_text().strip()


def install_keys(scenario: Path, user_key: Path, host_key: Path) -> None:
    """Copy sshd's host key and authorized_keys into the host's scenario folder."""
    target = scenario / host_key.name
    shutil.copy2(host_key, target)
    target.chmod(0o600)
    shutil.copy2(user_key.with_suffix(".pub"), scenario / "authorized_keys")


def known_hosts_line(address: str, public_key: str) -> str:
    kind, key = public_key.split()[:2]
    return f"{address} {kind} {key}\n"
