"""Access to a cluster: the administrator's token and kubeconfig."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import yaml

from gpufleet_sandbox.cluster.control_plane import Layout


def write_access(layout: Layout) -> None:
    """Write tokens.csv of the API server and the kubeconfig, readable only by their owner."""
    token = secrets.token_urlsafe(32)
    server = {
        "server": layout.url,
        "certificate-authority": str(layout.folder / "ca.crt"),
    }
    access = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "sandbox",
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "admin"}}],
        "clusters": [{"name": "sandbox", "cluster": server}],
        "users": [{"name": "admin", "user": {"token": token}}],
    }
    write_private(layout.folder / "tokens.csv", f'{token},admin,admin,"system:masters"\n')
    write_private(layout.kubeconfig, yaml.safe_dump(access))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, created with that mode."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
