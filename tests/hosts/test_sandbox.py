"""The sandbox itself: hosts and faults behave as documented."""

from __future__ import annotations

import os
import signal

import pytest

from gpufleet_sandbox import GPU_KINDS, Host, Sandbox, SandboxError
from gpufleet_sandbox.process import run
from gpufleet_sandbox.waiting import wait_until
from tests.hosts.conftest import HostFactory

pytestmark = pytest.mark.hosts

CUDA = "http://mirror/compute/cuda/repos"
OLD, NEW = "550.144.03", "550.163.01"
CAP_SYS_MODULE = 16
GPUS = {"ubuntu2204": 2, "ubuntu2404": 1, "debian12": 1, "el7": 1, "nogpu": 0, "nvswitch": 8}
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


def trust_nvidia(host: Host) -> None:
    """Add NVIDIA's repository with its keyring package, and install the kernel's headers."""
    package = f"{CUDA}/{host.kind.archive}/x86_64/cuda-keyring_1.1-1_all.deb"
    host.run(
        f"curl -sfo /tmp/keyring.deb {package} && dpkg -i /tmp/keyring.deb && apt-get -q update"
        " && apt-get -q -y install linux-headers-$(uname -r)"
    )


def install_driver(host: Host, version: str) -> None:
    """Install one exact version of branch 550, proprietary modules."""
    names = host.output(
        "apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks"
        " --no-replaces --no-enhances nvidia-driver-550 | grep -E '^[a-z].*-550$' | sort -u"
    )
    listed = host.output(f"apt-cache madison {' '.join(names.split())}")
    rows = [line.split("|") for line in listed.splitlines()]
    wanted = [f"{row[0].strip()}={row[1].strip()}" for row in rows if version in row[1]]
    host.run(f"apt-get -q -y --allow-downgrades install {' '.join(wanted)}")


def smi(host: Host, words: str = "-L") -> tuple[int, str]:
    done = host.run(f"nvidia-smi {words} 2>&1", check=False)
    return done.returncode, done.stdout.strip()


def refusal(host: Host, command: str) -> str:
    done = host.run(command, check=False)
    assert done.returncode == 1
    return done.stderr.strip()


@pytest.mark.extended
@pytest.mark.parametrize("kind", GPU_KINDS)
def test_a_bare_host_shows_its_kernel_and_hardware(bare_host: HostFactory, kind: str) -> None:
    host = bare_host(kind)
    assert host.output("uname -r") == host.kind.kernel
    assert host.output("cat /proc/sys/kernel/osrelease") == host.kind.kernel
    devices = host.output("lspci -nn -d 10de:")
    assert devices.count("3D controller") == GPUS[kind]
    assert devices.count("Bridge") == (4 if kind == "nvswitch" else 0)
    if GPUS[kind]:
        with host.fault("gpu-lost"):
            left = host.output("lspci -nn -d 10de:")
            assert left.count("3D controller") == GPUS[kind] - 1, "a GPU, not an NVSwitch"
    assert host.output("systemctl is-system-running") == "running"
    assert not host.output("ls -d /lib/modules/*/build 2>/dev/null || true")
    manager = host.output("command -v apt-get || command -v yum")
    assert manager == ("/usr/bin/yum" if kind == "el7" else "/usr/bin/apt-get")
    runtimes = host.output("systemctl is-active docker containerd || true").split()
    assert runtimes == ["inactive" if kind == "ubuntu2404" else "active", "active"]


@pytest.mark.claim(
    "A sandbox host cannot load a module of the real kernel or reach a real disk.",
    level=3,
)
def test_a_host_can_reach_neither_real_modules_nor_real_disks(sandbox_host: HostFactory) -> None:
    host = sandbox_host("ubuntu2204")
    capabilities = int(host.output("sed -n 's/^CapBnd:\t//p' /proc/1/status"), 16)
    assert not capabilities & 1 << CAP_SYS_MODULE
    assert host.output("find /dev -type b") == ""


def test_ssh_checks_host_keys_and_logs_sessions(sandbox_host: HostFactory) -> None:
    host = sandbox_host("ubuntu2204")
    before = len(host.sessions())
    assert host.ssh("id -un && sudo -n id -un").stdout == "admin\nroot\n"
    assert len(host.sessions()) == before + 1
    words = host.ssh_command("true")
    place = words.index(f"UserKnownHostsFile={host.state.known_hosts}")
    words[place] = "UserKnownHostsFile=/dev/null"
    refused = run(words, check=False)
    assert refused.returncode == 255
    assert "Host key verification failed" in refused.stderr


@pytest.mark.extended
def test_reset_makes_a_host_bare_again(sandbox_host: HostFactory) -> None:
    host = sandbox_host("nogpu")
    host.put("/root/lost", "lost\n")
    host.set_fault("clock-skew", True)
    host.reset()
    assert host.run("test -e /root/lost || test -e /etc/sim/clock-offset", check=False).returncode
    assert host.ssh("true").returncode == 0


@pytest.mark.extended
def test_a_bare_host_is_reset_whoever_used_it(sandbox: Sandbox, bare_host: HostFactory) -> None:
    sandbox.up(["nogpu"])
    sandbox.host("nogpu").put("/root/lost", "lost\n")
    assert bare_host("nogpu").run("test -e /root/lost", check=False).returncode == 1


@pytest.mark.extended
def test_up_again_changes_nothing(sandbox: Sandbox, sandbox_host: HostFactory) -> None:
    before = sandbox_host("nogpu").output(BOOT_ID)
    sandbox.up(["nogpu"])
    assert sandbox.host("nogpu").output(BOOT_ID) == before


@pytest.mark.claim(
    "A sandbox host that was killed with its monitor is recreated.",
    level=3,
)
@pytest.mark.extended
def test_a_host_killed_with_its_monitor_is_recreated(
    sandbox: Sandbox, sandbox_host: HostFactory
) -> None:
    """This happens when a CI job is killed: podman still reports the host as running."""
    host = sandbox_host("nogpu")
    if sandbox.engine.name != "podman":
        pytest.skip("docker's daemon notices the end of a container")
    found = sandbox.engine.inspect(host.state.container)["State"]
    os.kill(found["ConmonPid"], signal.SIGKILL)
    os.kill(found["Pid"], signal.SIGKILL)
    assert wait_until(lambda: sandbox.engine.is_lost(host.state.container), 120)
    assert sandbox.engine.is_running(host.state.container)
    sandbox.up(["nogpu"])
    assert sandbox.host("nogpu").ssh("true").returncode == 0
    assert sandbox.host("nogpu").output("echo inside") == "inside"
    assert not sandbox.engine.is_lost(host.state.container)


@pytest.mark.claim(
    "The sandbox's nvidia-smi ends as the real one does: 9 no driver, 18 mismatch, 12 no library.",
    level=3,
)
@pytest.mark.extended
def test_life_of_a_driver(bare_host: HostFactory) -> None:
    """Install, load, upgrade under a loaded module, reboot: rc and text of the real nvidia-smi."""
    host = bare_host("ubuntu2204")
    assert smi(host)[0] == 127
    assert "Module nvidia not found in directory" in refusal(host, "modprobe nvidia")
    trust_nvidia(host)
    install_driver(host, OLD)
    code, text = smi(host)
    assert (code, "couldn't communicate with the NVIDIA driver" in text) == (9, True)
    host.run("modprobe nvidia")
    code, text = smi(host)
    assert code == 0
    assert text.count("NVIDIA A100-SXM4-80GB (UUID: GPU-") == 2
    assert OLD in host.get("/proc/driver/nvidia/version")
    install_driver(host, NEW)
    code, text = smi(host)
    assert code == 18
    assert "Driver/library version mismatch" in text
    assert "NVML library version: 550.163" in text
    host.reboot()
    query = "--query-gpu=index,driver_version,pci.bus_id --format=csv,noheader"
    assert smi(host, query)[1].splitlines() == [
        f"0, {NEW}, 00000000:17:00.0",
        f"1, {NEW}, 00000000:65:00.0",
    ]
    assert host.output("cat /sys/module/nvidia/version") == NEW


@pytest.mark.extended
def test_faults_of_a_running_driver(sandbox_host: HostFactory) -> None:
    """Continues with the host of test_life_of_a_driver."""
    host = sandbox_host("ubuntu2204")
    if smi(host)[0] != 0:
        pytest.fail("needs the driver that test_life_of_a_driver installs")
    with host.fault("gpu-busy"):
        assert "Module nvidia_uvm is in use" in refusal(host, "modprobe -r nvidia_uvm")
        assert host.output("fuser -v /dev/nvidia0 2>&1 | grep -c sleep") == "1"
        assert smi(host, "--query-gpu=memory.used --format=csv,noheader -i 0")[1] == "512 MiB"
    with host.fault("gpu-lost"):
        assert smi(host)[1].count("UUID") == 1
    assert smi(host)[1].count("UUID") == 2
    host.run("rmmod nvidia_uvm")
    with host.fault("module-busy"):
        assert "Module nvidia is in use" in refusal(host, "modprobe -r nvidia")
    host.run("for name in nvidia_drm nvidia_modeset nvidia; do modprobe -r $name; done")
    with host.fault("secure-boot"):
        assert host.output("mokutil --sb-state") == "SecureBoot enabled"
        assert "Key was rejected by service" in refusal(host, "modprobe nvidia")
        host.run("modprobe ipmi_devintf")
    with host.fault("nouveau"):
        assert "No such device" in refusal(host, "modprobe nvidia")
        assert "Module nouveau is in use" in refusal(host, "rmmod nouveau")
    host.run("modprobe nvidia")
    library = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
    host.run(f"mv {library} {library}.away")
    assert smi(host)[0] == 12
    host.run(f"mv {library}.away {library}")
    with host.fault("new-kernel"):
        host.reboot()
        assert host.output("uname -r") == host.kind.next_kernel
        assert "Module nvidia not found" in refusal(host, "modprobe nvidia")
    host.reboot()
    assert smi(host)[0] == 0


@pytest.mark.extended
def test_el7_blacklist_and_dracut(bare_host: HostFactory) -> None:
    host = bare_host("el7")
    with host.fault("nouveau"):
        host.put("/etc/modprobe.d/no-nouveau.conf", "blacklist nouveau\n")
        host.reboot()
        assert "nouveau" in host.output("lsmod")
        host.run("dracut --force")
        assert "blacklist nouveau" in host.output("lsinitrd -f etc/modprobe.d/no-nouveau.conf")
        host.reboot()
        assert "nouveau" not in host.output("lsmod")


@pytest.mark.extended
def test_boot_without_space(bare_host: HostFactory) -> None:
    host = bare_host("debian12")
    with host.fault("boot-full"):
        done = host.run("update-initramfs -u 2>&1", check=False)
        assert done.returncode != 0
        assert "No space left on device" in done.stdout
    host.run("update-initramfs -u")


MIRROR_FAULTS = {
    "down": "Could not connect to mirror",
    "404": "a Release file.",
    "wrong-signature": "NO_PUBKEY",
    "expired-key": "EXPKEYSIG",
}


@pytest.mark.extended
@pytest.mark.parametrize("fault", MIRROR_FAULTS)
def test_faults_of_the_mirror(sandbox_host: HostFactory, mirror_host: Host, fault: str) -> None:
    host = sandbox_host("nogpu")
    trust_nvidia(host)
    with mirror_host.fault(fault):
        assert MIRROR_FAULTS[fault] in host.run("apt-get update 2>&1", check=False).stdout
    host.run("apt-get -q update -o APT::Update::Error-Mode=any")


def test_unknown_names_are_explained(sandbox: Sandbox, sandbox_host: HostFactory) -> None:
    with pytest.raises(SandboxError, match=r"GF604.*mirror"):
        sandbox.host("nosuch")
    with pytest.raises(SandboxError, match=r"GF605.*yum-lock"):
        sandbox_host("el7").set_fault("apt-lock", True)


def test_down_leaves_other_containers_alone(sandbox: Sandbox) -> None:
    other = Sandbox(f"{sandbox.name}-other", images="imitation").up(["nogpu"], with_mirror=False)
    assert other.down() == 1
    assert not other.is_up
    assert sandbox.engine.is_running(f"gpufleet-{sandbox.name}-mirror")
