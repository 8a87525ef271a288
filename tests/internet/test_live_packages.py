"""The packages of plans: their repositories have them, the catalog has the keys, and they can be
installed together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.internet.conftest import Note
from tests.internet.places import PLACES, REAL, start_place

INSTALL = Path(__file__).parent / "install_packages.py"
MARKS = {  # role -> the beginnings of the names of packages with its version
    "driver": ("nvidia-driver", "nvidia-kernel", "nvidia-dkms", "nvidia-utils", "kmod-nvidia"),
    "toolkit": ("nvidia-container-toolkit",),
    "exporter": ("datacenter-gpu-manager",),
}
FOLDERS = "-path '/etc/apt/sources.list.d/*' -o -path '/etc/yum.repos.d/*'"
SOURCES = f"find /etc -type f \\( {FOLDERS} \\) -exec cat {{}} +"


@pytest.mark.parametrize("name", PLACES["packages"])
def test_packages(name: str, tmp_path: Path, note: Note) -> None:
    with start_place(PLACES["packages"][name], tmp_path) as place:
        note(place.against)
        part = place.deploy(INSTALL)
        there, sources = place.versions(), place.sh(SOURCES)
    assert part["toolkit"]["after"]
    assert bool(part["exporter"]["after"]) == place.data.get("exporter_enabled", False)
    for role, beginnings in MARKS.items():
        wanted = part[role]["after"]
        found = {name: version for name, version in there.items() if name.startswith(beginnings)}
        assert not wanted or any(wanted in version for version in found.values()), found
    if place.data.get("kubernetes_enabled"):
        assert {"containerd.io", "kubeadm", "kubelet"} <= set(there)
    vendor = "https://nvidia.github.io/" if place.against == REAL else "http://mirror/"
    assert vendor in sources
