"""A package archive on a host, of this machine's packages: what a distribution's has."""

from __future__ import annotations

import base64
from pathlib import Path

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
    host.run(REPACK, timeout=300)


def _send(host: Host, file: Path, path: str) -> None:
    text = base64.encodebytes(file.read_bytes()).decode()
    host.run(f"mkdir -p {PLACE} && base64 -d >{path}", stdin=text)
