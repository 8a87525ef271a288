"""Archives for hosts: a distribution's of packages, and of container images in OCI's format."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpufleet_sandbox import Host
from gpufleet_sandbox.debian import unpacked
from gpufleet_sandbox.paths import cache_dir

PLACE = "/srv/archive"
# a container must not lower the OOM score of its processes
FITTED = 's|^( *)\\[plugins."io.containerd.grpc.v1.cri"\\]$|&\\n\\1  restrict_oom_score_adj = true|'
REPACK = f"""
cd {PLACE}
dpkg-deb -R containerd.deb tree
sed -i -E '{FITTED}' tree/etc/containerd/config.toml
dpkg-deb -Znone -b tree containerd.deb >/dev/null && rm -rf tree
for deb in *.deb; do
    dpkg-deb -f "$deb"
    printf 'Filename: ./%s\\nSize: %s\\nSHA256: %s\\n\\n' "$deb" "$(stat -c %s "$deb")" \\
        "$(sha256sum "$deb" | cut -d' ' -f1)"
done >Packages
echo 'deb [trusted=yes] file:{PLACE} ./' >/etc/apt/sources.list.d/archive.list
"""


def serve_containerd(host: Host) -> None:
    """The distribution's containerd and runc, to be installed by the host's apt."""
    for name in ("containerd", "runc"):
        unpacked(name)
        (deb,) = sorted((cache_dir() / "debian" / "download" / name).glob("*.deb"))
        _send(host, deb, f"{PLACE}/{name}.deb")
    host.run(REPACK, timeout=900)


def _send(host: Host, file: Path, path: str) -> None:
    text = base64.encodebytes(file.read_bytes()).decode()
    host.run(f"mkdir -p {PLACE} && base64 -d >{path}", stdin=text)


def write_images(registry: Path, file: Path) -> list[str]:
    """An archive of all images of a registry of files; returns their names."""
    names, entries, blobs = [], [], {}
    for repository, manifest in _manifests(registry):
        data = manifest.read_bytes()
        name = f"{repository.relative_to(registry)}:{manifest.name}"
        digest = hashlib.sha256(data).hexdigest()
        described: dict[str, Any] = json.loads(data)
        names.append(name)
        entries.append(
            {
                "mediaType": described["mediaType"],
                "digest": f"sha256:{digest}",
                "size": len(data),
                "annotations": {"io.containerd.image.name": name},
            }
        )
        blobs[digest] = manifest
        for part in (described["config"], *described["layers"]):
            blobs[part["digest"].partition(":")[2]] = repository / "blobs" / part["digest"]
    with tarfile.open(file, "w") as tar:
        _add(tar, "oci-layout", {"imageLayoutVersion": "1.0.0"})
        _add(tar, "index.json", {"schemaVersion": 2, "manifests": entries})
        for digest, path in blobs.items():
            tar.add(path, f"blobs/sha256/{digest}")
    return names


def _manifests(registry: Path) -> Iterator[tuple[Path, Path]]:
    """The folder of each repository, and the manifest of each of its tags."""
    for folder in sorted(registry.rglob("manifests")):
        for manifest in sorted(folder.iterdir()):
            if not manifest.name.startswith("sha256:"):
                yield folder.parent, manifest


def _add(tar: tarfile.TarFile, name: str, value: Any) -> None:
    data = json.dumps(value).encode()
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))
