"""The processes that gpu_work.sh counts as GPU work, in the /proc of a host made of files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpufleet.host.shell import script_file

SCRIPT = script_file("host/gpu_work")


@pytest.mark.parametrize(("container", "found"), [("", "812"), ("f" * 64, "812"), ("a" * 64, "")])
def test_an_exporter_without_an_id_yet_hides_no_work(
    tmp_path: Path, container: str, found: str
) -> None:
    """docker creates the file for the container's id before it knows the id."""
    process, id_file = tmp_path / "proc/812", tmp_path / "run/gpufleet-dcgm-exporter.cid"
    (process / "fd").mkdir(parents=True)
    (process / "fd/3").symlink_to("/dev/nvidia0")
    (process / "comm").write_text("train\n")
    (process / "cgroup").write_text(f"0::/system.slice/docker-{'a' * 64}.scope\n")
    id_file.parent.mkdir()
    id_file.write_text(container)
    text = (
        SCRIPT.read_text()
        .replace("/proc/", f"{tmp_path}/proc/")
        .replace("/run/", f"{tmp_path}/run/")
    )
    text = text.replace(
        "IFS=/ read -r _ _ pid _", 'read -r path; pid=${path%/fd}; pid=${pid##*/}; [ "$pid" ]'
    )
    words = ["sh", "-c", f"{text}\ngpu_processes"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == found


@pytest.mark.parametrize(
    ("group", "found"),
    [
        ("kubepods.slice/kubepods-pod0a1b_2c3d.slice", "pod 0a1b-2c3d"),
        ("memory/node-a/kubepods/besteffort/pod0a1b-2c3d", "pod 0a1b-2c3d"),
        ("kubepods/besteffort", ""),  # it ended; its folder stays until its object is deleted
        ("system.slice", "pod 0a1b-2c3d"),  # the kubelet keeps no control groups
    ],
)
def test_a_pod_that_ended_is_no_work(tmp_path: Path, group: str, found: str) -> None:
    kubelet = tmp_path / "var/lib/kubelet"
    (kubelet / "pods/0a1b-2c3d").mkdir(parents=True)
    (kubelet / "device-plugins").mkdir()
    entry = '{"PodUID":"0a1b-2c3d","ContainerName":"c","ResourceName":"nvidia.com/gpu"}'
    (kubelet / "device-plugins/kubelet_internal_checkpoint").write_text(entry)
    (tmp_path / "sys/fs/cgroup" / group).mkdir(parents=True)
    text = SCRIPT.read_text()
    for place in ("/proc/", "/run/", "/var/lib/", "/sys/fs/"):
        text = text.replace(place, f"{tmp_path}{place}")
    done = subprocess.run(
        ["sh", "-c", f"{text}\ngpu_work"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == found
