"""gather.sh, run by every POSIX shell there is, on a host made of files."""

from __future__ import annotations

import fcntl
import json
import re
import subprocess
from importlib import resources

import pytest
from fakehost import FakeHost

from gpufleet.core.distributions import load_distributions
from gpufleet.facts.distribution import code_of
from gpufleet.facts.model import NodeFacts, PciDevice
from gpufleet.facts.parse import parse_node_facts
from gpufleet.facts.script import LINE_END, MAX_ARGUMENT, gather_command
from gpufleet.facts.sections import FactsError
from gpufleet.node.catalog import load_catalog
from gpufleet.toolkit.record import recorded_runtimes


def facts(host: FakeHost, shell: tuple[str, ...], *paths: str) -> NodeFacts:
    return parse_node_facts(host.gather(shell, paths))


def test_script_is_one_argument_and_has_no_comments() -> None:
    command = gather_command(["/etc/it's.toml"])
    assert len(command) < MAX_ARGUMENT / 8
    assert "\n#" not in command
    with pytest.raises(ValueError, match="absolute"):
        gather_command(["relative"])
    with pytest.raises(ValueError, match="absolute"):
        gather_command(["/etc/a\n/etc/b"])


def test_script_writes_nothing_on_stderr_and_ends_well() -> None:
    done = subprocess.run(["sh", "-c", gather_command()], capture_output=True, check=True)
    assert done.stderr == b""
    assert parse_node_facts(done.stdout.decode("ascii").splitlines()).kernel.release


def test_the_lines_are_one_line_for_pyinfra() -> None:
    done = subprocess.run(["sh", "-c", gather_command()], capture_output=True, check=True)
    assert b"\n" not in done.stdout
    assert parse_node_facts(done.stdout.decode("ascii").split(LINE_END)).kernel.release


def test_bare_host(host: FakeHost, shell: tuple[str, ...]) -> None:
    found = facts(host, shell)
    assert found.kernel.release == "6.1.0-9"
    assert found.privileged
    assert (found.pci, found.modules, found.packages, found.services) == ((), {}, {}, {})
    assert found.files["/etc/docker/daemon.json"].content is None
    assert found.files["/etc/docker/daemon.json"].error == ""


def test_pci_devices(host: FakeHost, shell: tuple[str, ...]) -> None:
    for slot, vendor, device, kind in (
        ("0000:17:00.0", "0x10de", "0x2330", "0x030200"),
        ("0000:00:1f.0", "0x8086", "0x0001", "0x060100"),
        ("0000:05:00.0", "0x10de", "0x22a3", "0x068000"),
    ):
        for name, value in (("vendor", vendor), ("device", device), ("class", kind)):
            host.file(f"/sys/bus/pci/devices/{slot}/{name}", value + "\n")
    (host.root / "sys/bus/pci/drivers/nvidia").mkdir(parents=True)
    host.link("/sys/bus/pci/devices/0000:17:00.0/driver", "/sys/bus/pci/drivers/nvidia")
    host.link("/sys/bus/pci/devices/0000:05:00.0/driver", "/sys/bus/pci/drivers/gone")
    found = facts(host, shell)
    assert found.pci == (
        PciDevice("0000:05:00.0", 0x22A3, 0x068000, None),
        PciDevice("0000:17:00.0", 0x2330, 0x030200, "nvidia"),
    )
    assert (len(found.gpus), len(found.nvswitches)) == (1, 1)


def test_kernels_and_secure_boot(host: FakeHost, shell: tuple[str, ...]) -> None:
    for release in ("6.1.0-10", "6.1.0-9"):
        host.file(f"/lib/modules/{release}/modules.order", "")
    host.file("/lib/modules/5.0-leftover/updates/x.ko", "")
    host.file("/usr/src/linux-headers-6.1.0-9/Makefile", "")
    host.link("/lib/modules/6.1.0-9/build", "/usr/src/linux-headers-6.1.0-9")
    host.link("/lib/modules/6.1.0-10/build", "/usr/src/linux-headers-6.1.0-10")
    host.file(
        "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
        b"\x06\x00\x00\x00\x01",
    )
    kernel = facts(host, shell).kernel
    assert kernel.headers
    assert kernel.secure_boot is True


def test_modules_and_devices(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.file(
        "/proc/modules",
        "nvidia_uvm 1 0 - Live 0x0 (OE)\n"
        "nvidia 1 5 nvidia_uvm, Live 0x0 (OE)\n"
        "ext4 1 1 - Live 0x0\n",
    )
    host.file("/sys/module/nvidia/version", "580.95.05\n")
    host.file("/sys/module/nvidia/refcnt", "7\n")
    host.file("/sys/module/nvidia_uvm/refcnt", "0\n")
    host.file("/sys/module/ipmi_msghandler/version", "39.2\n")
    host.device("/dev/nvidia0")
    host.device("/dev/nvidiactl")
    host.file("/dev/nvidia-caps/nvidia-cap1", "")
    found = facts(host, shell)
    assert sorted(found.modules) == ["ipmi_msghandler", "nvidia", "nvidia_uvm"]
    assert found.loaded_driver == "580.95.05"
    assert found.modules["nvidia_uvm"] is None
    assert found.device_nodes == ("/dev/nvidia0", "/dev/nvidiactl")


def test_gpu_processes_and_pods(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.device("/dev/nvidiactl")
    host.file("/proc/812/comm", "my train er\n")
    command = b"python3\0-m\0train\0--api-key\0hunter2hunter2\0say\nend\t\x1b[31m\xff\0"
    host.file("/proc/812/cmdline", command + b"--more\0" * 40)
    host.link("/proc/812/fd/3", "/dev/nvidia0")
    host.link("/proc/812/fd/4", "/dev/nvidia0")
    host.link("/proc/812/fd/5", "/dev/nvidiactl")
    host.link("/proc/900/fd/1", "/var/log/x")
    entry = '{"PodUID":"%s","ContainerName":"c","ResourceName":"%s","DeviceIDs":{}}'
    host.file(
        "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
        '{"Data":{"PodDeviceEntries":['
        + ",".join(
            entry % pair
            for pair in (
                ("aa", "nvidia.com/gpu"),
                ("aa", "nvidia.com/gpu"),
                ("bb", "nvidia.com/mig-1g.5gb"),
                ("gone", "nvidia.com/gpu"),
                ("cc", "intel.com/qat"),
            )
        )
        + "]}}",
    )
    for pod in ("aa", "bb", "cc"):
        host.file(f"/var/lib/kubelet/pods/{pod}/x", "")
    found = facts(host, shell)
    (process,) = found.gpu_processes
    assert (process.pid, process.command) == (812, "my train er")
    assert process.devices == ("/dev/nvidia0", "/dev/nvidiactl")
    assert process.arguments.startswith("python3 -m train --api-key *** say end [31m --more")
    assert len(process.arguments) <= 80
    assert str(process).endswith("… (812)")
    assert found.gpu_pods == 2


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
    """dash's echo makes a line break of `\\n`, with which any output could forge sections."""
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


def test_files_keep_every_byte(host: FakeHost, shell: tuple[str, ...]) -> None:
    text = '{"a": "ü\\u0000 $(touch x) \'\\""}\r\n\n@@files\n'
    host.file("/etc/docker/daemon.json", text, 0o600)
    host.file("/etc/containerd/config.toml", b"\xff\xfe binary\x00")
    host.file("/etc/apt/sources.list.d/with space.list", "deb http://x/ /\n")
    host.file("/etc/apt/preferences.d/cuda-repository-pin-600", "Package: *\nPin: l=NVIDIA CUDA\n")
    host.file("/etc/apt/preferences.d/other", "Package: vim\n")
    host.file("/etc/modprobe.d/blacklist.conf", "blacklist nouveau\n")
    host.file("/etc/nvidia-container-runtime/config.toml", "")
    (host.root / "etc/crio/crio.conf").mkdir(parents=True)
    files = facts(host, shell).files
    assert files["/etc/docker/daemon.json"].content == text
    assert files["/etc/docker/daemon.json"].mode == 0o600
    assert files["/etc/containerd/config.toml"].content is None
    assert "UTF-8" in files["/etc/containerd/config.toml"].error
    assert files["/etc/apt/sources.list.d/with space.list"].content == "deb http://x/ /\n"
    assert "/etc/apt/preferences.d/cuda-repository-pin-600" in files
    assert "/etc/apt/preferences.d/other" not in files
    assert files["/etc/modprobe.d/blacklist.conf"].content == "blacklist nouveau\n"
    assert files["/etc/nvidia-container-runtime/config.toml"].content == ""
    assert files["/etc/crio/crio.conf"].error == "it is not a regular file"


def test_links_and_large_files(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.file("/srv/daemon.json", "{}\n")
    host.link("/etc/docker/daemon.json", "../../srv/daemon.json")
    host.link("/etc/crio/crio.conf", "nowhere")
    host.file("/etc/containerd/config.toml", "# " + "x" * 131072)
    files = facts(host, shell).files
    assert files["/etc/docker/daemon.json"].content == "{}\n"
    assert files["/etc/docker/daemon.json"].link == "../../srv/daemon.json"
    assert files["/etc/crio/crio.conf"].content is None
    assert files["/etc/crio/crio.conf"].link == "nowhere"
    assert "128 KiB" in files["/etc/containerd/config.toml"].error


def test_containerd_imports_and_other_paths(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.file(
        "/etc/containerd/config.toml",
        f"version = 2\nimports = [\"{host.root}/opt/c/*.toml\",\n  'local.toml']\n[plugins]\n",
    )
    host.file("/opt/c/a b.toml", "x = 1\n")
    host.file("/etc/containerd/local.toml", "y = 1\n")
    host.file("/opt/own.toml", "z = 1\n")
    host.file("/opt/daemon.json", '{"live-restore": true}')
    host.file("/usr/lib/systemd/system/docker.service", "")
    host.says(
        "systemctl",
        "Names=docker.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"
        "ExecStart={ path=/usr/bin/dockerd ; argv[]=/usr/bin/dockerd --config-file "
        f"{host.root}/opt/daemon.json ; ignore_errors=no ; pid=1 }}\n",
    )
    found = facts(host, shell, "/opt/own.toml")
    for path in ("/opt/c/a b.toml", "/etc/containerd/local.toml", "/opt/own.toml"):
        assert found.files[path].content
    docker = found.runtimes["docker"]
    assert docker.config_path == "/opt/daemon.json"
    assert docker.live_restore
    assert docker.running


def test_containers_are_counted(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.command("dockerd", "exit 1")
    host.command("containerd", "exit 1")
    for name in ("aa", "bb"):
        host.file(f"/run/containerd/io.containerd.runtime.v2.task/moby/{name}/pid", "1")
    host.file("/run/containerd/io.containerd.runtime.v2.task/k8s.io/cc/pid", "1")
    found = facts(host, shell)
    assert found.runtimes["docker"].containers == 2
    assert found.runtimes["containerd"].containers == 1


def test_runtime_that_came_without_a_package(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.command("containerd", "exit 1")
    text = "containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b71"
    host.file("/usr/local/bin/containerd", f"#!/bin/sh\necho {text}\n", 0o755)
    assert facts(host, shell).runtimes["containerd"].version == "2.1.4"


def test_rpm_host(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.file("/etc/os-release", 'ID="centos"\nID_LIKE="rhel fedora"\nVERSION_ID="7"\n')
    host.command("yum", "")
    host.says(
        "rpm",
        "nvidia-driver-latest-dkms\tx86_64\t3:550.163.01-1.el7\tinstall ok installed\n"
        "bash\tx86_64\t0:4.2.46-35.el7\tinstall ok installed\n"
        "gcc\tx86_64\t0:4.8.5-44.el7\tinstall ok installed\n"
        "kernel-devel\tx86_64\t0:3.10.0-1-el7\tinstall ok installed\n"
        "kernel-devel\tx86_64\t0:3.10.0-2-el7\tinstall ok installed\n",
    )
    host.file("/etc/yum/pluginconf.d/versionlock.list", "# c\n3:nvidia-driver-*\n")
    host.file("/var/lib/yum/transaction-all.2026-01-01.10:00.00", "x")
    found = facts(host, shell)
    assert found.package_manager == "yum"
    assert code_of(found.os, load_distributions()) == "rhel7"
    assert found.packages["nvidia-driver-latest-dkms"].version == "3:550.163.01-1.el7"
    assert found.packages["nvidia-driver-latest-dkms"].upstream == "550.163.01"
    assert found.packages["gcc"].version == "4.8.5-44.el7"
    assert "bash" not in found.packages
    assert {"kernel-devel", "kernel-devel-3.10.0-2-el7"} <= set(found.packages)
    assert found.holds == {"3:nvidia-driver-*"}
    assert found.broken == "an unfinished transaction of yum"


def test_dpkg_host(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.command("apt-get", "")
    host.says(
        "dpkg-query",
        "dpkg\tamd64\t1.21\tinstall ok installed\n"
        "libnvidia-compute-580\tamd64\t580.1-1\thold ok installed\n"
        "libnvidia-compute-580\ti386\t580.1-1\tinstall ok installed\n"
        "nvidia-dkms-580\tamd64\t580.1-1\tinstall ok half-configured\n"
        "nvidia-driver-550\tamd64\t550.1-1\tdeinstall ok config-files\n"
        "vim\tamd64\t9\tinstall ok installed\n"
        "held-one\tamd64\t9\thold ok installed\n"
        "nano\tamd64\t9\tinstall ok unpacked\n",
    )
    host.file("/var/lib/dpkg/updates/0001", "")
    found = facts(host, shell)
    assert found.package_manager == "apt"
    assert found.holds == {"held-one", "libnvidia-compute-580"}
    assert found.packages["nvidia-dkms-580"].state == "ok half-configured"
    assert found.packages["libnvidia-compute-580:i386"].architecture == "i386"
    assert "nvidia-driver-550" not in found.packages
    assert "vim" not in found.packages
    assert found.broken == (
        "nvidia-dkms-580 is half-configured, nano is unpacked, an interrupted run of dpkg"
    )


def test_oddities(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.file("/usr/bin/nvidia-uninstall", "", 0o755)
    host.file("/run/nvidia/driver/usr/x", "")
    found = facts(host, shell)
    assert (found.runfile_install, found.operator_driver) == (True, True)


def test_library_that_the_loader_takes(host: FakeHost, shell: tuple[str, ...]) -> None:
    folder = "/usr/lib/x86_64-linux-gnu"
    for version in ("580.95.05", "550.163.01"):
        host.file(f"{folder}/libnvidia-ml.so.{version}", "")
    host.link(f"{folder}/libnvidia-ml.so.1", "libnvidia-ml.so.550.163.01")
    found = facts(host, shell)
    assert found.library == "550.163.01"


def test_cdi_specs(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.file(
        "/var/run/cdi/nvidia.yaml",
        "cdiVersion: 0.5.0\n  - containerPath: /usr/lib64/libnvidia-ml.so.580.95.05\n",
    )
    host.file("/etc/cdi/other vendor.yaml", "kind: vendor.com/x\n")
    specs = {spec.path: spec for spec in facts(host, shell).cdi_specs}
    assert specs["/var/run/cdi/nvidia.yaml"].driver == "580.95.05"
    assert specs["/etc/cdi/other vendor.yaml"].driver == ""


def test_dkms_tree(host: FakeHost, shell: tuple[str, ...]) -> None:
    tree = "/var/lib/dkms/nvidia"
    for version in ("550.163.01", "580.95.05"):
        host.link(f"{tree}/{version}/source", f"/usr/src/nvidia-{version}")
    for kernel in ("6.1.0-9", "6.1.0-10"):
        host.file(f"{tree}/580.95.05/{kernel}/x86_64/module/nvidia.ko", "")
    host.file(f"{tree}/580.95.05/6.1.0-11/x86_64/log/make.log", "")
    host.link(f"{tree}/kernel-6.1.0-9-x86_64", "580.95.05/6.1.0-9/x86_64")
    host.command("dkms", "exit 1")
    assert [(m.name, m.version, m.kernel, m.state) for m in facts(host, shell).dkms] == [
        ("nvidia", "550.163.01", "", "added"),
        ("nvidia", "580.95.05", "6.1.0-10", "built"),
        ("nvidia", "580.95.05", "6.1.0-9", "installed"),
    ]


def test_dkms_with_its_tree_elsewhere(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.says("dkms", "nvidia, 550.163.01, 3.10.0-1160.el7.x86_64, x86_64: installed\n")
    (module,) = facts(host, shell).dkms
    assert (module.version, module.kernel) == ("550.163.01", "3.10.0-1160.el7.x86_64")


def test_recorded_files_are_read(host: FakeHost, shell: tuple[str, ...]) -> None:
    """A runtime's configuration can have moved since: the old file still holds what is ours."""
    entry = {
        "config": "/srv/old.toml",
        "earlier": [{"config": "/srv/older one.toml"}, {"config": "x"}],
    }
    record = json.dumps({"toolkit": {"runtimes": {"containerd": entry}}}, indent=2, sort_keys=True)
    host.file("/var/lib/gpufleet/provenance.json", record + "\n")
    found = facts(host, shell)
    assert found.files["/srv/old.toml"].content is None
    assert found.files["/srv/older one.toml"].content is None
    assert "x" not in found.files
    assert found.noted_runtimes == {}


def test_what_an_unfinished_run_wrote_is_known(host: FakeHost, shell: tuple[str, ...]) -> None:
    note = json.dumps({"config": "/srv/noted.toml"}, indent=2)
    host.file("/var/lib/gpufleet/runtimes/containerd.json", note + "\n")
    host.file("/var/lib/gpufleet/runtimes/docker.json", "{")
    found = facts(host, shell)
    assert found.noted_runtimes == {"containerd": {"config": "/srv/noted.toml"}}
    assert recorded_runtimes(found)["containerd"].config == "/srv/noted.toml"
    assert found.files["/srv/noted.toml"].content is None


def test_every_package_that_a_driver_is_built_with_is_looked_for() -> None:
    text = resources.files("gpufleet.facts").joinpath("gather.sh").read_text()
    lines = re.findall(r"""^families=['"](.*)['"]$""", text, re.MULTILINE)
    families = "|".join(line.removeprefix("$families|").replace(r"\$", "$") for line in lines)
    names = {name for found in load_catalog().distributions for name in found.build}
    assert "dkms" in names
    assert sorted(name for name in names if not re.search(families, name)) == []


def test_the_api_server_of_a_node(host: FakeHost, shell: tuple[str, ...]) -> None:
    """A control plane's kubelet asks its own; admin.conf has what users ask."""
    long = "Q0E=" * 500
    conf = "clusters:\n- cluster:\n    certificate-authority-data: {}\n    server: https://{}\n"
    assert facts(host, shell).cluster_host.server == ""
    host.file("/etc/kubernetes/kubelet.conf", conf.format(long, "10.0.0.1:6443"))
    assert facts(host, shell).cluster_host.server == "https://10.0.0.1:6443"
    host.file("/etc/kubernetes/admin.conf", conf.format(long, "k8s.lab:6443"))
    host.file(
        "/etc/kubernetes/manifests/kube-apiserver.yaml",
        "metadata:\n  annotations:\n"
        "    kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint: 10.0.0.1:6443\n",
    )
    found = facts(host, shell).cluster_host
    assert (found.server, found.advertised) == ("https://k8s.lab:6443", "10.0.0.1:6443")
