"""The container toolkit on hosts: users' settings, restarts, faults, devices in containers."""

from __future__ import annotations

import json

import pytest
from checking import verify
from containers import WITH_GPUS, devices, import_image, running, start, started_at
from deploying import Outcome, run_deploy

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = pytest.mark.hosts

DAEMON_JSON, CONFIG_TOML = "/etc/docker/daemon.json", "/etc/containerd/config.toml"
RECORD = "/var/lib/gpufleet/provenance.json"
DAEMON = """{"log-driver": "json-file",
  "log-opts": {"max-size": "10m", "labels": "größe"},   "features": {"buildkit": true},
\t"default-address-pools": [{"base": "10.201.0.0/16", "size": 24}],
  "max-concurrent-downloads": 4, "registry-mirrors": ["https://mirror.example"],
  "labels": ["api_token=hunter2", "feed=https://hunter4@host/", "note={hunter5}, 'hunter6'"]}
"""
DAEMON_AFTER = """{"log-driver": "json-file",
  "log-opts": {"max-size": "10m", "labels": "größe"},   "features": {"buildkit": true},
\t"default-address-pools": [{"base": "10.201.0.0/16", "size": 24}],
  "max-concurrent-downloads": 4, "registry-mirrors": ["https://mirror.example"],
  "labels": ["api_token=hunter2", "feed=https://hunter4@host/", "note={hunter5}, 'hunter6'"],
  "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}
"""
CONTAINERD = """# ours: do not touch
version = 2
oom_score = -999 # keep

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.example/pause:3.9"
  [plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
    endpoint = ["https://mirror.example"]
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc] # plain
  runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = true # with systemd
[plugins."io.containerd.grpc.v1.cri".registry.configs."registry.example".auth]
  password = "hunter3, }' hunter7"
[plugins."io.containerd.grpc.v1.cri".registry.headers]
  Authorization = ["Basic hunter8"] # hunter9
"""
CONTAINERD_ADDED = """
# The next tables are gpufleet's: gpufleet changes them, and takes them away again.
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
SystemdCgroup = true
BinaryName = "/usr/bin/nvidia-container-runtime"
"""
# every command line of the host while the unit runs
WATCH = "while :; do cat /proc/[0-9]*/cmdline 2>/dev/null; sleep 0.05; done >/tmp/commands"
SPEC_VERSION = "grep -oE 'libnvidia-ml.so.[0-9]+[.][0-9.]+' {} | sort -u | cut -d. -f3-"
OLD_DRIVER, NEW_DRIVER, EL7_OLD, EL7_NEW = "550.163.01", "580.178.04", "550.144.03", "550.163.01"


@pytest.fixture(scope="module")
def fleet(bare_host: HostFactory) -> dict[str, Host]:
    """Bare hosts: debian12 with the user's settings, ubuntu2204 with a running container."""
    hosts = {kind: bare_host(kind) for kind in ("debian12", "ubuntu2204", "el7")}
    hosts["debian12"].put(DAEMON_JSON, DAEMON, 0o600)
    hosts["debian12"].put(CONFIG_TOML, CONTAINERD)
    hosts["debian12"].run("systemctl restart containerd docker")
    for host in hosts.values():
        import_image(host)
    start(hosts["ubuntu2204"], "work")
    return hosts


@pytest.fixture(scope="module")
def installed(fleet: dict[str, Host]) -> Outcome:
    """Outcome of gpu_node on all hosts, with older drivers or an older toolkit."""
    fleet["debian12"].run(f"systemd-run -q --unit watch sh -c '{WATCH}'")
    done = run_deploy(
        "gpu_node",
        list(fleet.values()),
        per_host={
            "debian12": {"driver_branch": "550"},
            "ubuntu2204": {"driver_version": NEW_DRIVER, "toolkit_version": "1.18.2"},
            "el7": {"driver_version": EL7_OLD, "toolkit_default_runtime": True},
        },
        options=["--diff"],
    )
    fleet["debian12"].run("systemctl stop watch")
    assert done.returncode == 0, done.output
    return done


def starts(host: Host) -> list[str]:
    return [started_at(host, unit) for unit in ("docker", "containerd")]


def runtimes(host: Host) -> list[str]:
    listed = json.loads(host.output("docker info --format '{{json .Runtimes}}'"))
    return sorted(name for name in listed if not name.startswith("io."))


def default_runtime(host: Host) -> str:
    return host.output("docker info --format '{{.DefaultRuntime}}'")


@pytest.mark.claim(
    "The user's settings of docker and containerd stay, byte for byte.",
    level=3,
)
def test_the_users_settings_stay_byte_for_byte(fleet: dict[str, Host], installed: Outcome) -> None:
    host = fleet["debian12"]
    assert host.get(DAEMON_JSON) == DAEMON_AFTER
    assert host.output(f"stat -c '%a %U' {DAEMON_JSON}") == "600 root"
    assert host.get(CONFIG_TOML) == CONTAINERD + CONTAINERD_ADDED
    assert installed.report["debian12"]["runtimes"] == {
        "docker": "configured", "containerd": "configured",
    }  # fmt: skip
    dump = host.output("containerd config dump")
    assert 'BinaryName = "/usr/bin/nvidia-container-runtime"' in dump
    assert 'endpoint = ["https://mirror.example"]' in dump


@pytest.mark.claim("Differences of files show no secrets.", level=3)
def test_the_diff_shows_no_secrets(fleet: dict[str, Host], installed: Outcome) -> None:
    assert "+runtimes.nvidia.path: nvidia-container-runtime" in installed.output
    assert ".containerd.runtimes.nvidia.runtime_type: io.containerd.runc.v2" in installed.output
    host = fleet["debian12"]
    commands = host.get("/tmp/commands")
    assert "dpkg" in commands, "nothing was watched"
    report = json.dumps(installed.report)
    for secret in (f"hunter{number}" for number in range(2, 10)):
        assert secret not in installed.output
        assert secret not in report
        assert secret not in commands
        assert secret not in host.output("journalctl -b -o cat -t sshd")
        assert secret not in host.get(RECORD)


@pytest.mark.claim("Containers see the GPUs, and running containers go on.", level=3)
def test_containers_see_the_gpus(fleet: dict[str, Host], installed: Outcome) -> None:
    for name, count in {"debian12": 1, "el7": 1}.items():
        seen = devices(fleet[name])
        assert {"nvidiactl", *(f"nvidia{number}" for number in range(count))} <= set(seen)
        assert runtimes(fleet[name]) == ["nvidia", "runc"]
    assert devices(fleet["debian12"], "") == []
    assert default_runtime(fleet["debian12"]) == "runc"
    assert default_runtime(fleet["el7"]) == "nvidia"
    assert "nvidia0" in devices(fleet["el7"], "-e NVIDIA_VISIBLE_DEVICES=all")


def test_running_containers_keep_running(fleet: dict[str, Host], installed: Outcome) -> None:
    """docker knows the runtime after a reload; a needed restart is left to the user."""
    host, part = fleet["ubuntu2204"], installed.report["ubuntu2204"]
    assert "GF413" in installed.codes("ubuntu2204")
    assert [need.split(":")[0] for need in part["needs"]] == ["restart docker.service"]
    assert running(host) == ["work"]
    assert runtimes(host) == ["nvidia", "runc"]
    assert {"nvidia0", "nvidia1"} <= set(devices(host))
    before = starts(host)
    again = run_deploy("gpu_node", [host], driver_version=NEW_DRIVER, toolkit_version="1.18.2")
    assert again.returncode == 0, again.output
    assert "GF413" in again.codes(host.name), "still needed"
    assert starts(host) == before


@pytest.mark.extended
def test_an_older_toolkit_gives_a_warning_and_is_upgraded(
    fleet: dict[str, Host], installed: Outcome
) -> None:
    """The postponed restart happens once it is allowed."""
    host = fleet["ubuntu2204"]
    assert installed.report[host.name]["toolkit"] == {"before": None, "after": "1.18.2"}
    warned = {
        f["code"] for f in installed.report[host.name]["findings"] if "1.18.2" in f["message"]
    }
    assert warned, installed.report[host.name]["findings"]
    allowed = {"toolkit_allow_disruption": True, "toolkit_allow_change": True}
    done = run_deploy("gpu_node", [host], driver_version=NEW_DRIVER, **allowed)
    assert done.returncode == 0, done.output
    assert done.report[host.name]["toolkit"] == {"before": "1.18.2", "after": "1.20.1"}
    assert done.report[host.name]["needs"] == []
    assert host.output("nvidia-ctk --version | head -n 1").endswith("1.20.1")
    assert running(host) == [], "docker was restarted"
    assert "nvidia-container-toolkit" in host.output("apt-mark showhold")


def test_a_second_run_restarts_nothing(fleet: dict[str, Host], installed: Outcome) -> None:
    hosts = [fleet["debian12"], fleet["el7"]]
    before = {host.name: starts(host) for host in hosts}
    done = run_deploy(
        "gpu_node",
        hosts,
        per_host={
            "debian12": {"driver_branch": "550"},
            "el7": {"driver_version": EL7_OLD, "toolkit_default_runtime": True},
        },
    )
    assert done.returncode == 0, done.output
    assert done.changes() == {"debian12": 0, "el7": 0}
    assert {host.name: starts(host) for host in hosts} == before


@pytest.mark.claim("The CDI spec follows the driver.", level=3)
def test_the_cdi_spec_follows_the_driver(fleet: dict[str, Host], installed: Outcome) -> None:
    """Updated by the toolkit's own units if systemd is recent enough, by nvidia-ctk on EL 7."""
    specs = {"debian12": "/var/run/cdi/nvidia.yaml", "el7": "/etc/cdi/nvidia.yaml"}
    read = {name: SPEC_VERSION.format(path) for name, path in specs.items()}
    assert fleet["debian12"].output(read["debian12"]) == OLD_DRIVER
    assert fleet["el7"].output(read["el7"]) == EL7_OLD
    before = starts(fleet["debian12"])
    done = run_deploy(
        "gpu_node",
        [fleet["debian12"], fleet["el7"]],
        per_host={
            "debian12": {"driver_version": NEW_DRIVER},
            "el7": {"driver_version": EL7_NEW, "toolkit_default_runtime": False},
        },
        driver_allow_change=True,
    )
    assert done.returncode == 0, done.output
    assert fleet["debian12"].output(read["debian12"]) == NEW_DRIVER
    assert fleet["el7"].output(read["el7"]) == EL7_NEW
    assert starts(fleet["debian12"]) == before, "no runtime restarts"
    assert "nvidia0" in devices(fleet["debian12"], WITH_GPUS)
    assert default_runtime(fleet["el7"]) == "runc", "the setting was reverted"


@pytest.mark.extended
def test_restarts_are_left_to_the_user_if_configured(
    fleet: dict[str, Host], installed: Outcome
) -> None:
    host = fleet["el7"]
    before = starts(host)
    host.put(CONFIG_TOML, CONTAINERD)
    settings = {"driver_version": EL7_NEW, "toolkit_restart": False}
    done = run_deploy("gpu_node", [host], **settings)
    assert done.returncode == 0, done.output
    assert "GF413" in done.codes(host.name)
    assert [need.split(":")[0] for need in done.report["el7"]["needs"]] == [
        "restart containerd.service"
    ]
    assert starts(host) == before
    host.run("systemctl restart containerd")
    done = run_deploy("gpu_node", [host], **settings)
    assert done.report["el7"]["needs"] == [], "the user restarted it"
    assert "GF413" not in done.codes(host.name)


@pytest.mark.extended
def test_live_restore_keeps_containers_through_a_restart(
    fleet: dict[str, Host], installed: Outcome
) -> None:
    host = fleet["el7"]
    host.put(DAEMON_JSON, json.dumps({"live-restore": True, "default-runtime": "nvidia",
             "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}))  # fmt: skip
    host.run("systemctl restart docker")
    start(host, "lives")
    host.put(DAEMON_JSON, json.dumps({"live-restore": True}))
    done = run_deploy("gpu_node", [host], driver_version=EL7_NEW, toolkit_default_runtime=True)
    assert done.returncode == 0, done.output
    assert "GF413" not in done.codes(host.name)
    assert running(host) == ["lives"]
    assert json.loads(host.get(DAEMON_JSON))["live-restore"] is True
    host.run("docker rm -f lives")


@pytest.mark.extended
def test_the_checks_are_green(fleet: dict[str, Host], installed: Outcome) -> None:
    """gpufleet verify passes on the three hosts, containers included."""
    results = verify(list(fleet.values()))
    for name, result in results.items():
        checks = result["checks"]
        failed = {check: found for check, found in checks.items() if found["code"]}
        assert failed == {}, name
        assert checks["container_sees_gpus[docker]"]["outcome"] == "passed", name
