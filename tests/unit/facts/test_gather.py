"""The facts command, run by several POSIX shells on a host made of files."""

from __future__ import annotations

import json
import subprocess

import pytest
from fakehost import FakeHost

from gpufleet.facts.model import NodeFacts, PciDevice
from gpufleet.facts.parse import parse_node_facts
from gpufleet.facts.script import LINE_END, MAX_ARGUMENT, gather_command
from gpufleet.toolkit.record import recorded_runtimes

pytestmark = pytest.mark.claim(
    "One command of POSIX sh gathers the facts: dash, bash, busybox.",
    level=1,
)


def facts(host: FakeHost, shell: tuple[str, ...], *paths: str) -> NodeFacts:
    return parse_node_facts(host.gather(shell, paths))


def test_script_is_one_argument_and_has_no_comments() -> None:
    command = gather_command(["/etc/it's.toml"])
    assert len(command) < MAX_ARGUMENT / 6
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


def test_gpus_that_are_gone(host: FakeHost, shell: tuple[str, ...]) -> None:
    states = {"17": ("63", "active"), "18": ("16", "active"), "19": ("63", "suspended")}
    for bus, (width, power) in states.items():
        for name, value in (
            ("vendor", "0x10de"), ("device", "0x2330"), ("class", "0x030200"),
            ("current_link_width", width), ("power/runtime_status", power),
        ):  # fmt: skip
            host.file(f"/sys/bus/pci/devices/0000:{bus}:00.0/{name}", value + "\n")
    for slot in ("0000:17:00.0", "0000:18:00.0", "0000:2A:00.0"):
        host.file(f"/proc/driver/nvidia/gpus/{slot}/information", "Model: H100\n")
    found = facts(host, shell)
    assert [gpu.slot for gpu in found.gpus if not gpu.answers] == ["0000:17:00.0"]
    assert found.taken == ("0000:17:00.0", "0000:18:00.0", "0000:2a:00.0")


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
    validation = "/sys/firmware/efi/efivars/MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23"
    for value, enforced in ((b"\x00", True), (b"\x01", False)):
        host.file(validation, b"\x06\x00\x00\x00" + value)
        assert facts(host, shell).kernel.secure_boot is enforced


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
    assert found.loaded_flavour == "open"
    assert found.device_nodes == ("/dev/nvidia0", "/dev/nvidiactl")


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


def test_whether_a_unit_is_enabled_is_asked_of_the_disk(
    host: FakeHost, shell: tuple[str, ...]
) -> None:
    """`systemctl show` has the earlier state until systemd reads its units again."""
    host.file("/usr/lib/systemd/system/docker.service", "")
    shown = "Names=docker.service\\nLoadState=loaded\\nUnitFileState=disabled\\n"
    host.command(
        "systemctl", f"case $1 in show) printf '{shown}' ;; is-enabled) echo enabled ;; esac"
    )
    assert facts(host, shell).services["docker.service"].enabled == "enabled"


def test_containers_are_counted(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.command("dockerd", "exit 1")
    host.command("containerd", "exit 1")
    for name in ("aa", "bb"):
        host.file(f"/run/containerd/io.containerd.runtime.v2.task/moby/{name}/pid", "1")
    host.file("/run/containerd/io.containerd.runtime.v2.task/k8s.io/cc/pid", "1")
    found = facts(host, shell)
    assert found.runtimes["docker"].containers == 2
    assert found.runtimes["containerd"].containers == 1


def test_oddities(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.file("/usr/bin/nvidia-uninstall", "", 0o755)
    host.file("/run/nvidia/driver/usr/x", "")
    found = facts(host, shell)
    assert (found.runfile_install, found.operator_driver) == (True, True)


def test_cdi_specs(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.file(
        "/var/run/cdi/nvidia.yaml",
        "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n"
        "  - containerPath: /usr/lib64/libnvidia-ml.so.580.95.05\n",
    )
    host.file("/etc/cdi/a b.json", '{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu"}')
    host.file("/etc/cdi/other vendor.yaml", "kind: vendor.com/x\n")
    host.file(
        "/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json",
        '{"kind":"k8s.device-plugin.nvidia.com/gpu","x":"libnvidia-ml.so.550.1"}',
    )
    specs = {spec.path: spec.driver for spec in facts(host, shell).cdi_specs}
    assert specs == {"/var/run/cdi/nvidia.yaml": "580.95.05", "/etc/cdi/a b.json": ""}


def test_recorded_files_are_read(host: FakeHost, shell: tuple[str, ...]) -> None:
    """A runtime's configuration may have moved, and the old file still has gpufleet's entries."""
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


def test_the_last_write_of_a_recorded_file_is_read(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.file("/var/lib/gpufleet/provenance.json", json.dumps({"files": {"/etc/a": "1"}}) + "\n")
    host.file("/var/lib/gpufleet/written", "/etc/a\t1\t2\n")
    assert facts(host, shell).provenance.files == {"/etc/a": "2"}


def test_what_an_unfinished_run_wrote_is_known(host: FakeHost, shell: tuple[str, ...]) -> None:
    note = json.dumps({"config": "/srv/noted.toml"}, indent=2)
    host.file("/var/lib/gpufleet/runtimes/containerd.json", note + "\n")
    host.file("/var/lib/gpufleet/runtimes/docker.json", "{")
    found = facts(host, shell)
    assert found.noted_runtimes == {"containerd": {"config": "/srv/noted.toml"}}
    assert recorded_runtimes(found)["containerd"].config == "/srv/noted.toml"
    assert found.files["/srv/noted.toml"].content is None


def test_the_api_server_of_a_node(host: FakeHost, shell: tuple[str, ...]) -> None:
    """A control plane's kubelet uses its own API server; admin.conf has the server for users."""
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


def test_docker_of_a_snap_and_of_a_user(host: FakeHost, shell: tuple[str, ...]) -> None:
    assert not facts(host, shell).rootless_docker
    host.file("/etc/systemd/system/snap.docker.dockerd.service", "[Service]\n")
    host.file("/run/user/1000/docker.sock", "")
    host.says(
        "systemctl", "Names=snap.docker.dockerd.service\nLoadState=loaded\nActiveState=active\n"
    )
    found = facts(host, shell)
    assert "snap.docker.dockerd.service" in found.services
    assert found.rootless_docker
    assert found.runtimes == {}
