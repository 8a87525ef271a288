"""units.sh: when systemd reads unit files again, with a fake systemctl and files of runc."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpufleet.host.notices import parse_notices, reload_waits
from gpufleet.host.shell import script_file

SYSTEMCTL = r"""#!/bin/sh
case "$*" in
    *NeedDaemonReload\ changed*) echo NeedDaemonReload=yes ;;
    *NeedDaemonReload*) echo NeedDaemonReload=no ;;
    *'DropInPaths known'*)
        echo DropInPaths=/lib/x.conf {root}/etc/systemd/system/known.service.d/a.conf ;;
    *DropInPaths*) echo DropInPaths= ;;
esac
[ "$1" = show ] || echo "$*" >>{root}/log
"""
HOOK = {"prestart": [{"path": "/usr/bin/nvidia-container-runtime-hook", "args": ["x", "prestart"]}]}
GIVEN = {"process": {"env": ["NVIDIA_VISIBLE_DEVICES=all"]}, "hooks": HOOK}
DEVICES = [{"path": "/dev/nvidia0", "type": "c"}]
BY_CDI = {"process": {"env": []}, "linux": {"devices": DEVICES}}
ANY = {"devices": [{"allow": True, "access": "rwm"}]}
EVERY_DEVICE = {"resources": ANY, "devices": DEVICES}
PRIVILEGED = {"process": {"env": []}, "linux": EVERY_DEVICE}
INJECTED = {"createContainer": [{"path": "/usr/bin/nvidia-ctk", "args": ["nvidia-ctk", "hook"]}]}
TASKS = "run/containerd/io.containerd.runtime.v2.task"


def run(root: Path, code: str) -> subprocess.CompletedProcess[str]:
    fakes = root / "fakes"
    fakes.mkdir(exist_ok=True)
    (fakes / "systemctl").write_text(SYSTEMCTL.format(root=root))
    (fakes / "systemctl").chmod(0o755)
    text = "".join(script_file(f"host/{name}").read_text() for name in ("gpu_work", "units"))
    for place in ("/proc/", "/run/", "/var/lib/", "/sys/fs/"):
        text = text.replace(f" {place}", f" {root}{place}")
    text = text.replace("=/etc/", f"={root}/etc/")
    words = ["sh", "-c", f"PATH={fakes}:$PATH\n{text}\n{code}"]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def bundle(root: Path, path: str, spec: dict[str, Any]) -> None:
    """The bundle of a container for runc, as Go's encoder writes it."""
    file = root / path / "config.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"ociVersion": "1.2.0", **spec}, separators=(",", ":")))


@pytest.mark.parametrize(
    ("path", "spec", "given"),
    [
        (f"{TASKS}/moby/aa", GIVEN, True),
        (f"{TASKS}/k8s.io/aa", BY_CDI, True),
        ("run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/aa", GIVEN, True),
        ("run/docker/containerd/daemon/io.containerd.runtime.v1.linux/moby/aa", GIVEN, True),
        ("run/containers/storage/overlay-containers/aa/userdata", GIVEN, True),
        # an image of CUDA under runc has the variable and no GPU
        (f"{TASKS}/moby/aa", {"process": GIVEN["process"]}, False),
        (f"{TASKS}/moby/aa", {"process": {"env": ["NVIDIA_VISIBLE_DEVICES=void"]}, "hooks": HOOK},
         False),
        (f"{TASKS}/moby/aa", {"process": {"env": ["PATH=/bin"]}, "hooks": HOOK}, False),
        # as kube-proxy, which lists every device of its host
        (f"{TASKS}/k8s.io/aa", PRIVILEGED, False),
        (f"{TASKS}/k8s.io/aa", {**PRIVILEGED, "hooks": INJECTED}, True),
        (f"{TASKS}/moby/aa", {**GIVEN, "linux": EVERY_DEVICE}, True),
    ],
)  # fmt: skip
def test_containers_that_have_gpus(
    tmp_path: Path, path: str, spec: dict[str, Any], given: bool
) -> None:
    bundle(tmp_path, path, spec)
    assert bool(run(tmp_path, "gpu_containers").stdout.strip()) == given


def test_the_exporter_of_gpufleet_is_none_of_them(tmp_path: Path) -> None:
    bundle(tmp_path, f"{TASKS}/moby/{'e' * 64}", GIVEN)
    (tmp_path / "run/gpufleet-dcgm-exporter.cid").write_text("e" * 64)
    assert run(tmp_path, "gpu_containers").stdout == ""


@pytest.mark.parametrize(
    ("units", "busy", "said", "reloads", "status"),
    [
        ("same.service", False, "", 0, 0),
        ("same.service", True, "", 0, 0),
        ("same.service changed.service changed2.service", False, "", 1, 0),
        ("changed.service same.service", True, "reload waits changed.service\n", 0, 1),
    ],
)
def test_a_reload_waits_for_containers(
    tmp_path: Path, units: str, busy: bool, said: str, reloads: int, status: int
) -> None:
    if busy:
        bundle(tmp_path, f"{TASKS}/moby/aa", GIVEN)
    done = run(tmp_path, f"read_units {units}")
    log = tmp_path / "log"
    calls = log.read_text().splitlines() if log.exists() else []
    assert (done.stdout, done.returncode) == (said, status), done.stderr
    assert calls == ["daemon-reload"] * reloads


def test_enabling_a_unit_reloads_nothing(tmp_path: Path) -> None:
    run(tmp_path, "enable_units a.service; disable_units --now b.service")
    calls = (tmp_path / "log").read_text().splitlines()
    assert all("--no-reload" in call for call in calls)
    assert len(calls) == 2


def test_a_report_names_what_waits() -> None:
    lines = ["kept x", "reload waits nvidia-persistenced.service", "reload waits $(rm -rf /)"]
    assert list(parse_notices(lines)) == [reload_waits("nvidia-persistenced")]


@pytest.mark.parametrize(("busy", "offline"), [(True, "1"), (False, "")])
def test_package_scripts_do_not_reach_systemd_beside_containers(
    tmp_path: Path, busy: bool, offline: str
) -> None:
    """The scripts of nvidia-container-toolkit reload systemd on installation and upgrade."""
    if busy:
        bundle(tmp_path, f"{TASKS}/moby/aa", GIVEN)
    done = run(tmp_path, "spare_containers; sh -c 'echo ${SYSTEMD_OFFLINE-}'")
    assert (done.returncode, done.stdout.strip()) == (0, offline)


@pytest.mark.parametrize(("unit", "reloads"), [("known", 0), ("new", 1), ("new.service", 1)])
def test_the_first_drop_in_of_a_unit_is_read(tmp_path: Path, unit: str, reloads: int) -> None:
    """systemd 252 reports NeedDaemonReload=no for such a unit."""
    name = unit.removesuffix(".service")
    folder = tmp_path / f"etc/systemd/system/{name}.service.d"
    folder.mkdir(parents=True)
    (folder / "a.conf").write_text("[Service]\n")
    run(tmp_path, f"read_units {unit}")
    log = tmp_path / "log"
    assert (log.read_text().count("daemon-reload") if log.exists() else 0) == reloads
