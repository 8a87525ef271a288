"""Write images into a registry of files.

Source: the OCI image and distribution specifications, https://specs.opencontainers.org/
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TYPES = "application/vnd.oci.image"
MANIFEST = f"{TYPES}.manifest.v1+json"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def write_image(
    registry: Path,
    name: str,
    root: Path,
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    user: str = "",
) -> str:
    """Write an image of one layer, the files of `root`; returns its digest.

    `name`: with registry and tag, as pods name it: registry.k8s.io/pause:3.10.2. Files belong to
    root in the image; `command` is its entrypoint, `user` the one that runs it, as 65534:65534.
    """
    repository, _, tag = name.rpartition(":")
    place = registry / repository
    layer = _layer(root)
    layer_digest = _put(place / "blobs", layer)
    variables = {"PATH": PATH, **(environment or {})}
    config = _json(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {
                "User": user,
                "Entrypoint": list(command),
                "Env": [f"{key}={value}" for key, value in variables.items()],
            },
            "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": _part("config.v1+json", config, _put(place / "blobs", config)),
            "layers": [_part("layer.v1.tar", layer, layer_digest)],
        }
    )
    digest = _put(place / "manifests", manifest)
    (place / "manifests" / tag).write_bytes(manifest)
    return digest


def _layer(root: Path) -> bytes:
    """A tar archive of a folder, the same for the same files."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.iterdir()):
            tar.add(path, path.name, filter=_plain)
    return archive.getvalue()


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def _part(kind: str, data: bytes, digest: str) -> dict[str, Any]:
    return {"mediaType": f"{TYPES}.{kind}", "digest": digest, "size": len(data)}


def _put(folder: Path, data: bytes) -> str:
    """Write data under its digest, which is returned."""
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / digest).write_bytes(data)
    return digest


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
