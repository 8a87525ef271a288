"""Scripts that start and await nodes, with fake programs of Kubernetes."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from gpufleet.host.shell import script_command

NOT_READY = """#!/bin/sh
printf "%s\\n" "$1" >>{folder}/asked
sleep 1
case "$*" in
    *'get pods -A'*) printf '\\nimage a is not found\\n\\nimage a is not found\\n' ;;
    *'get node'*) printf 'False the network is not ready' ;;
esac
"""
SANDBOX = "#!/bin/sh\necho 'CreatePodSandbox for pod failed: no pause image'\necho other\n"
KUBEADM = "#!/bin/sh\necho 'error: the kubelet is not healthy' >&2\nexit 1\n"
STALE_NODE = """#!/bin/sh
echo "$1" >>{folder}/asked
[ "$1" = join ] || exit 0
[ "$(grep -c join {folder}/asked)" -lt {tries} ] || exit 0
echo 'error: a Node with name "a" and status "Ready" already exists in the cluster.' >&2
exit 1
"""
JOURNAL = """#!/bin/sh
echo 'E0101 kubelet.go:1] StartContainer failed'
echo 'E0102 run.go:72] "command failed" err="no such cgroup driver"'
"""


def run(folder: Path, command: str, **programs: str) -> subprocess.CompletedProcess[str]:
    for name, text in programs.items():
        (folder / name).write_text(text.format(folder=folder))
        (folder / name).chmod(0o755)
    command = command.replace("\nPATH=", f"\nPATH={folder}:", 1)
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)


def test_waiting_for_a_node_ends_in_time_and_says_what_its_pods_wait_for(tmp_path: Path) -> None:
    """However long each answer takes: a control plane that is away keeps kubectl waiting."""
    done = tmp_path / "ready"
    command = script_command("kubernetes/ready", "GF949 late", "3", "kube-flannel", str(done))
    began = time.monotonic()
    found = run(tmp_path, command.get_raw_value(), kubectl=NOT_READY, journalctl=SANDBOX)
    assert 2 < time.monotonic() - began < 20
    assert found.returncode == 1
    assert found.stderr.splitlines() == [
        "GF949 late", "  | False the network is not ready", "  | image a is not found",
        "  | CreatePodSandbox for pod failed: no pause image",
    ]  # fmt: skip
    asked = (tmp_path / "asked").read_text().splitlines()
    assert all(line == "--request-timeout=10s" for line in asked)
    assert not done.exists()


@pytest.mark.parametrize(("status", "said"), [(0, "StartContainer"), (3, "no such cgroup driver")])
def test_why_a_kubelet_does_not_start_is_said(tmp_path: Path, status: int, said: str) -> None:
    """A kubelet that runs logs much that is not the cause."""
    config = tmp_path / "join.yaml"
    config.write_text("token: abc")
    words = (str(tmp_path / "begun"), str(tmp_path / "joined"), "join", str(config), "")
    command = script_command("kubernetes/kubeadm", "GF946 failed", *words)
    unit = f'#!/bin/sh\n[ "$1" != is-active ] || exit {status}\n'
    found = run(
        tmp_path, command.get_raw_value(), kubeadm=KUBEADM, journalctl=JOURNAL, systemctl=unit
    )
    assert found.returncode == 1
    assert "the kubelet is not healthy" in found.stderr
    assert said in found.stderr
    assert ((tmp_path / "begun").exists(), (tmp_path / "joined").exists()) == (True, False)
    assert not config.exists()


def test_a_full_disk_is_no_failure_without_a_word(tmp_path: Path) -> None:
    config = tmp_path / "join.yaml"
    config.touch()
    words = (str(tmp_path / "gone" / "begun"), str(tmp_path / "joined"), "join", str(config), "")
    command = script_command("kubernetes/kubeadm", "GF946 failed", *words)
    found = run(tmp_path, command.get_raw_value(), kubeadm=KUBEADM, systemctl="#!/bin/sh\n")
    assert found.stderr.startswith("GF946 failed\n  | ")
    assert "begun" in found.stderr
    assert not config.exists()


@pytest.mark.parametrize(("tries", "status"), [(3, 0), (99, 1)])
def test_a_node_of_an_earlier_attempt_is_waited_for(
    tmp_path: Path, tries: int, status: int
) -> None:
    """Until the cluster misses its kubelet, or for two minutes; each try begins after a reset."""
    words = (str(tmp_path / "begun"), str(tmp_path / "joined"), "join", "join.yaml", "")
    command = script_command("kubernetes/kubeadm", "GF946 failed", *words)
    stale = STALE_NODE.replace("{tries}", str(tries))
    quiet = "#!/bin/sh\n"
    found = run(
        tmp_path, command.get_raw_value(), kubeadm=stale, systemctl=quiet, sleep=quiet,
        journalctl=quiet,
    )  # fmt: skip
    assert found.returncode == status, found.stderr
    asked = (tmp_path / "asked").read_text().split()
    assert asked == ["join", *["reset", "join"] * (min(tries, 24) - 1)]
    assert (tmp_path / "joined").exists() == (status == 0)
    assert ("already exists" in found.stderr) == (status == 1)
