"""The facts command on GPU processes and on the locks of package managers."""

from __future__ import annotations

import fcntl

import pytest
from fakehost import FakeHost

from gpufleet.facts.model import NodeFacts
from gpufleet.facts.parse import parse_node_facts
from gpufleet.facts.sections import FactsError

pytestmark = pytest.mark.claim(
    "The holder of a lock is found by the kernel's list of locks: other files and other "
    "locks are not mistaken for it.",
    level=1,
)


def facts(host: FakeHost, shell: tuple[str, ...], *paths: str) -> NodeFacts:
    return parse_node_facts(host.gather(shell, paths))


def checkpoint(host: FakeHost, *entries: tuple[str, str]) -> None:
    """The kubelet's record of devices, as (UID of a pod, resource)."""
    entry = '{"PodUID":"%s","ContainerName":"c","ResourceName":"%s","DeviceIDs":{}}'
    host.file(
        "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
        '{"Data":{"PodDeviceEntries":[' + ",".join(entry % pair for pair in entries) + "]}}",
    )


def test_gpu_processes_and_pods(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.device("/dev/nvidiactl")
    host.file("/proc/812/comm", "my train er\n")
    command = b"python3\0-m\0train\0--api-key\0hunter2hunter2\0say\nend\t\x1b[31m\xff\0"
    host.file("/proc/812/cmdline", command + b"--more\0" * 40)
    host.link("/proc/812/fd/3", "/dev/nvidia0")
    host.link("/proc/812/fd/4", "/dev/nvidia0")
    host.link("/proc/812/fd/5", "/dev/nvidiactl")
    host.link("/proc/900/fd/1", "/var/log/x")
    entries = (
        ("aa", "nvidia.com/gpu"),
        ("aa", "nvidia.com/gpu"),
        ("bb", "nvidia.com/mig-1g.5gb"),
        ("gone", "nvidia.com/gpu"),
        ("cc", "intel.com/qat"),
    )
    checkpoint(host, *entries)
    for pod in ("aa", "bb", "cc"):
        host.file(f"/var/lib/kubelet/pods/{pod}/x", "")
    found = facts(host, shell)
    (process,) = found.gpu_processes
    assert (process.pid, process.command) == (812, "my train er")
    assert process.devices == ("/dev/nvidia0", "/dev/nvidiactl")
    assert process.arguments == "python3 -m train …"
    assert str(process).endswith("… (812)")
    assert found.gpu_pods == 2


def test_containers_that_have_gpus(host: FakeHost, shell: tuple[str, ...]) -> None:
    """A container counts even if it has no device open. gpufleet's exporter does not count."""
    host.device("/dev/nvidiactl")
    host.file("/proc/812/comm", "train\n")
    host.file("/proc/812/cgroup", f"0::/system.slice/docker-{'a' * 64}.scope\n")
    host.link("/proc/812/fd/3", "/dev/nvidia0")
    host.file("/run/gpufleet-dcgm-exporter.cid", "e" * 64)
    given = '{"env":["NVIDIA_VISIBLE_DEVICES=all"],"hooks":"nvidia-container-runtime-hook"}'
    tasks = "/run/containerd/io.containerd.runtime.v2.task"
    host.file(f"{tasks}/moby/{'a' * 64}/config.json", given)
    host.file(f"{tasks}/k8s.io/{'b' * 64}/config.json", '{"linux":{"path":"/dev/nvidia0"}}')
    host.file(f"{tasks}/moby/{'c' * 64}/config.json", given.replace("all", "void"))
    proxy = '{"resources":{"devices":[{"allow":true,"access":"rwm"}]},"path":"/dev/nvidia0"}'
    host.file(f"{tasks}/k8s.io/{'d' * 64}/config.json", proxy)
    host.file(f"{tasks}/moby/{'e' * 64}/config.json", given)
    found = facts(host, shell)
    assert found.gpu_containers == 2
    assert found.gpu_processes[0].cgroup == f"/system.slice/docker-{'a' * 64}.scope"


@pytest.mark.parametrize(
    "group",
    [
        "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{slice}.slice",
        "devices/node-a/kubepods/besteffort/pod{uid}",
        "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{slice}.slice",
    ],
)
def test_a_pod_that_ended_uses_no_gpu(host: FakeHost, shell: tuple[str, ...], group: str) -> None:
    """The pod's folder stays until its object is deleted. A Job's pod may stay for ever."""
    runs, ended = "0a1b-2c3d", "0a1b-9f9f"
    checkpoint(host, (runs, "nvidia.com/gpu"), (ended, "nvidia.com/gpu"))
    for pod in (runs, ended):
        host.file(f"/var/lib/kubelet/pods/{pod}/x", "")
    path = group.format(uid=runs, slice=runs.replace("-", "_"))
    host.file(f"/sys/fs/cgroup/{path}/cgroup.procs", "")
    assert facts(host, shell).gpu_pods == 1


def test_pods_count_where_the_kubelet_keeps_no_control_groups(
    host: FakeHost, shell: tuple[str, ...]
) -> None:
    checkpoint(host, ("0a1b-2c3d", "nvidia.com/gpu"))
    host.file("/var/lib/kubelet/pods/0a1b-2c3d/x", "")
    host.file("/sys/fs/cgroup/system.slice/cgroup.procs", "")
    assert facts(host, shell).gpu_pods == 1


def test_many_processes_on_a_gpu_are_counted_to_a_limit(
    host: FakeHost, shell: tuple[str, ...]
) -> None:
    host.device("/dev/nvidiactl")
    for pid in range(10_000, 11_050):
        host.file(f"/proc/{pid}/comm", "dcgm-exporter\n")
        host.link(f"/proc/{pid}/fd/3", "/dev/nvidia0")
        host.link(f"/proc/{pid}/fd/4", "/dev/nvidia0")
    output = host.gather(shell)
    assert len([line for line in output if line.startswith("process ")]) <= 1000
    assert len(parse_node_facts(output).gpu_processes) == 1000
    assert len([line for line in output if line.startswith("collector ")]) == 1000


def test_output_without_an_end_is_cut_off(host: FakeHost) -> None:
    host.command("stat", "exec yes 1 1 x")
    with pytest.raises(FactsError, match="the output of the host was cut off"):
        facts(host, ("sh",))


def test_the_name_of_a_process_is_one_line(host: FakeHost, shell: tuple[str, ...]) -> None:
    """dash's echo prints `\\n` as a line break, so the name of a process could forge sections."""
    name = r"x\n@@os\nID=evil\n@@lock\n1 apt"
    host.device("/dev/nvidiactl")
    host.file("/proc/812/comm", name + "\n")
    host.link("/proc/812/fd/3", "/dev/nvidia0")
    host.file("/proc/900/comm", "sh\n")
    host.link("/proc/900/fd/3", "/dev/nvidia0\n812 /dev/nvidia1")
    found = facts(host, shell)
    assert found.os.id == "debian"
    assert found.lock_holder == ""
    assert [(work.pid, work.command) for work in found.gpu_processes] == [(812, name)]


def test_lock_is_found_by_inode(host: FakeHost, shell: tuple[str, ...]) -> None:
    lock = host.file("/var/lib/dpkg/lock-frontend", "")
    inode = lock.stat().st_ino
    host.file("/proc/77/comm", "apt-get\n")
    host.link("/proc/77/fd/4", "/var/lib/dpkg/lock-frontend")
    host.file(
        "/proc/locks",
        f"1: POSIX  ADVISORY  READ 76 fe:01:{inode} 0 EOF\n"
        f"2: POSIX  ADVISORY  WRITE 75 fe:01:{inode}9 0 EOF\n"
        f"3: POSIX  ADVISORY  WRITE 77 fe:01:{inode} 0 EOF\n",
    )
    assert facts(host, shell).lock_holder == "apt-get (process 77)"


def test_a_step_of_a_run_that_was_killed_is_at_work(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.file("/run/gpufleet.lock", "alice [1]\n")
    steps = host.file("/run/gpufleet.lock.steps", "")
    found = facts(host, shell)
    assert (found.busy, found.run_lock) == (False, "alice [1]")
    with steps.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        found = facts(host, shell)
    assert (found.busy, found.run_lock) == (True, "alice [1]")


def test_lock_of_another_file_system_with_the_same_inode(
    host: FakeHost, shell: tuple[str, ...]
) -> None:
    lock = host.file("/var/lib/dpkg/lock-frontend", "")
    host.file("/proc/77/comm", "mysqld\n")
    host.link("/proc/77/fd/4", "/proc/77/comm")
    host.file("/proc/locks", f"1: POSIX  ADVISORY  WRITE 77 fe:02:{lock.stat().st_ino} 0 EOF\n")
    assert facts(host, shell).lock_holder == ""


def test_a_flock_keeps_no_package_manager_out(host: FakeHost, shell: tuple[str, ...]) -> None:
    lock = host.file("/var/lib/rpm/.rpm.lock", "")
    host.file("/proc/77/comm", "mine\n")
    host.link("/proc/77/fd/4", "/var/lib/rpm/.rpm.lock")
    text = f"1: FLOCK  ADVISORY  WRITE 77 fe:01:{lock.stat().st_ino} 0 EOF\n"
    host.file("/proc/locks", text)
    assert facts(host, shell).lock_holder == ""
    host.file("/proc/locks", text.replace("FLOCK", "OFDLCK"))
    assert facts(host, shell).lock_holder == "mine (process 77)"


@pytest.mark.parametrize("text", ["self", "77/..", "-1"])
def test_what_is_no_number_of_a_process_is_no_lock(
    host: FakeHost, shell: tuple[str, ...], text: str
) -> None:
    for pid in (text, "77"):
        host.file(f"/proc/{pid}/comm", "x\n")
    host.file("/var/run/yum.pid", f"{text}\n")
    assert facts(host, shell).lock_holder == ""


def test_lock_by_process_id_file(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.file("/var/run/yum.pid", "4242\n")
    assert facts(host, shell).lock_holder == ""
    host.file("/proc/4242/comm", "yum\n")
    assert facts(host, shell).lock_holder == "yum (process 4242)"
