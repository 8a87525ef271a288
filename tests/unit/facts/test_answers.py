"""What docker and containerd say of themselves."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from fakehost import FakeHost

from gpufleet.facts.health import KubeletAnswer, RuntimeAnswer
from gpufleet.facts.parse import parse_node_facts
from gpufleet.facts.sections.answers import parse_answers


def test_docker_and_containerd_answer() -> None:
    lines = [
        "asked docker",
        "docker runc io.containerd.runc.v2 nvidia runc",
        "asked containerd",
        "plugin - io.containerd.content.v1.content",
        "plugin ok io.containerd.cri.v1.images",
        "plugin error io.containerd.cri.v1.runtime",
    ]
    assert parse_answers(lines) == {
        "docker": RuntimeAnswer(
            answered=True, default="runc", runtimes=("io.containerd.runc.v2", "nvidia", "runc")
        ),
        "containerd": RuntimeAnswer(
            answered=True,
            cri={"io.containerd.cri.v1.images": "ok", "io.containerd.cri.v1.runtime": "error"},
        ),
    }


def test_a_silent_runtime_has_an_empty_answer_and_one_that_was_not_asked_has_none() -> None:
    assert parse_answers(["asked docker"]) == {"docker": RuntimeAnswer()}
    assert parse_answers([]) == {}


def test_containerd_without_cri_answers() -> None:
    lines = ["asked containerd", "plugin - io.containerd.content.v1.content", "docker", "plugin x"]
    assert parse_answers(lines) == {"containerd": RuntimeAnswer(answered=True)}


PLUGINS = """TYPE                            ID                       PLATFORMS      STATUS
io.containerd.content.v1        content                  -              ok
io.containerd.grpc.v1           cri                      linux/amd64    error
"""


def test_only_runtimes_that_run_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: tuple[str, ...]
) -> None:
    host = FakeHost(tmp_path / "root")
    host.says("docker", "runc nvidia runc\n")
    host.says("ctr", PLUGINS)
    assert parse_node_facts(host.gather(shell, health=True)).answers == {}
    host.file("/run/docker.pid", "1")
    place = host.file("/run/containerd/none", "").parent
    monkeypatch.chdir(place)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("containerd.sock")
        assert parse_node_facts(host.gather(shell)).answers == {}, "not asked for"
        answers = parse_node_facts(host.gather(shell, health=True)).answers
    assert answers["docker"].runtimes == ("nvidia", "runc")
    assert answers["containerd"].cri == {"io.containerd.grpc.v1.cri": "error"}
    host.command("docker", "exit 1")
    silent = parse_node_facts(host.gather(shell, health=True)).answers["docker"]
    assert not silent.answered


CRIO_CONFIG = """[crio]
  root = "/var/lib/containers/storage"
  [crio.api]
    listen = "/var/run/crio/crio.sock"
  [crio.runtime]
    default_env = ["HTTPS_PROXY=http://user:example-value@proxy"]
    cgroup_manager = "systemd"
    default_runtime = "crun"
    [crio.runtime.runtimes]
      [crio.runtime.runtimes.crun]
        runtime_path = "/usr/bin/crun"
        [crio.runtime.runtimes.crun.default_annotations]
      [crio.runtime.runtimes.nvidia]
        runtime_path = "/usr/bin/nvidia-container-runtime"
  [crio.image]
    default_transport = "docker://"
"""
CRICTL = """default containerd runc
handler containerd nvidia <no value>
handler containerd runc true
"""


def listen(host: FakeHost, path: str, monkeypatch: pytest.MonkeyPatch) -> socket.socket:
    """A socket of the host, which the script looks for."""
    monkeypatch.chdir(host.file(f"{path}.d", "").parent)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(Path(path).name)
    return listening


@pytest.mark.parametrize("program", ["crio", "crio-status"])
def test_crio_says_its_configuration(
    host: FakeHost, program: str, monkeypatch: pytest.MonkeyPatch, shell: tuple[str, ...]
) -> None:
    host.file("/fakes/config", CRIO_CONFIG)
    host.command("crio", "exit 1")
    host.command(program, f"case $* in *config) cat '{host.commands}/config' ;; *) exit 1 ;; esac")
    with listen(host, "/run/crio/crio.sock", monkeypatch):
        lines = host.gather(shell, health=True)
    assert not any("example-value" in line for line in lines)
    assert parse_node_facts(lines).answers == {
        "crio": RuntimeAnswer(
            answered=True, default="crun", runtimes=("crun", "nvidia"), cgroups={"": "systemd"}
        )
    }


@pytest.mark.parametrize(("status", "answers"), [(1, {}), (124, {"crio": RuntimeAnswer()})])
def test_a_crio_that_cannot_be_asked_is_not_silent(
    host: FakeHost,
    status: int,
    answers: dict[str, RuntimeAnswer],
    monkeypatch: pytest.MonkeyPatch,
    shell: tuple[str, ...],
) -> None:
    """One that is too old to be asked ends with an error, at once."""
    host.command("crio", f"exit {status}")
    with listen(host, "/run/crio/crio.sock", monkeypatch):
        assert parse_node_facts(host.gather(shell, health=True)).answers == answers


def test_containerd_says_the_cgroup_driver_of_each_runtime(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch, shell: tuple[str, ...]
) -> None:
    host.says("ctr", PLUGINS)
    host.says("crictl", CRICTL)
    with listen(host, "/run/containerd/containerd.sock", monkeypatch):
        answer = parse_node_facts(host.gather(shell, health=True)).answers["containerd"]
    assert (answer.default, answer.runtimes) == ("runc", ("nvidia", "runc"))
    assert (answer.cgroups, answer.cgroup_driver) == ({"runc": "systemd"}, "systemd")


DUMP = """disabled_plugins = []
[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".containerd]
      default_runtime_name = "runc"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes]
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
          [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
            BinaryName = "/usr/bin/nvidia-container-runtime"
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
          BinaryName = ""
          SystemdCgroup = true
    [plugins."io.containerd.grpc.v1.cri".registry.configs.x.auth]
      password = "example-value"
"""
UNIT = "Names=containerd.service\nExecStart={{ path=/x ; argv[]=/usr/bin/containerd{} ; }}\n"


@pytest.mark.parametrize("quote", ['"', "'"])  # of containerd 1.x and 2.x
def test_without_crictl_containerd_reads_its_files(
    host: FakeHost, quote: str, monkeypatch: pytest.MonkeyPatch, shell: tuple[str, ...]
) -> None:
    host.file("/etc/systemd/system/containerd.service", "")
    host.says("ctr", PLUGINS)
    host.says("containerd", DUMP.replace('"', quote))
    with listen(host, "/run/containerd/containerd.sock", monkeypatch):
        host.says("systemctl", UNIT.format("").replace("/usr", f"{host.root}/usr"))
        lines = host.gather(shell, health=True)
        host.says("systemctl", UNIT.format(" --config /etc/other.toml"))
        other = parse_node_facts(host.gather(shell, health=True)).answers["containerd"]
    assert not any("example-value" in line for line in lines)
    answer = parse_node_facts(lines).answers["containerd"]
    assert (answer.runtimes, answer.cgroups) == ((), {"runc": "systemd"})
    assert answer.cgroup_driver == "systemd"
    assert other.cgroup_driver == "", "its files are others"


KUBELET = (
    "/usr/bin/kubelet\0--config={}\0--container-runtime-endpoint\0unix:///run/crio/crio.sock\0"
)
YAML = "kind: KubeletConfiguration\ncgroupDriver: systemd\n"
JSON = '{"kind": "KubeletConfiguration",\n  "cgroupDriver": "systemd", "port": 10250}\n'


@pytest.mark.parametrize(
    ("content", "options", "drop_in", "driver"),
    [
        (YAML, "", "", "systemd"),
        (JSON, "", "", "systemd"),
        ("kind: KubeletConfiguration\n", "", "", "cgroupfs"),
        (YAML, "--cgroup-driver=cgroupfs\0", "", "cgroupfs"),
        (YAML, "--config-dir={}.d\0", "cgroupDriver: cgroupfs\n", "cgroupfs"),
        ("", "--config-dir={}.d\0", YAML, "systemd"),
    ],
)
def test_options_of_the_kubelet(
    host: FakeHost,
    content: str,
    options: str,
    drop_in: str,
    driver: str,
    shell: tuple[str, ...],
) -> None:
    path = host.file("/var/lib/kubelet/config.yaml", content)
    host.file("/var/lib/kubelet/config.yaml.d/10.conf", drop_in)
    host.file("/proc/4711/comm", "kubelet\n")
    host.file("/proc/4711/cmdline", (KUBELET + options).replace("{}", str(path)))
    host.link("/proc/self/ns/mnt", "/proc/4711/ns/mnt")
    host.file("/proc/4711/ns/mnt", "")
    host.says("kubelet", "Kubernetes v1.34.1\nmore\n")
    assert parse_node_facts(host.gather(shell)).kubelet_answer is None, "not asked for"
    answer = parse_node_facts(host.gather(shell, health=True)).kubelet_answer
    assert answer == KubeletAnswer("v1.34.1", driver, "unix:///run/crio/crio.sock")
    host.file("/proc/4711/comm", "k3s\n")
    assert parse_node_facts(host.gather(shell, health=True)).kubelet_answer is None


def test_a_process_of_a_pod_is_no_kubelet(host: FakeHost, shell: tuple[str, ...]) -> None:
    """Its program would be run as root otherwise, and its options believed."""
    host.file("/proc/self/ns/mnt", "")
    for number, driver in ((4711, "cgroupfs"), (4712, "systemd")):
        host.file(f"/proc/{number}/comm", "kubelet\n")
        host.file(f"/proc/{number}/cmdline", f"kubelet\0--cgroup-driver={driver}\0")
        host.file(f"/proc/{number}/exe", "#!/bin/sh\necho Kubernetes v9; touch ran\n", 0o755)
    host.file("/proc/4711/ns/mnt", "")
    host.link("/proc/4712/ns/mnt", "/proc/self/ns/mnt")
    answer = parse_node_facts(host.gather(shell, health=True)).kubelet_answer
    assert answer == KubeletAnswer("", "systemd")
