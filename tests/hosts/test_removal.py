"""`deploys/remove.py` restores the host and keeps changes that users made since."""

from __future__ import annotations

import pytest
from containers import import_image, running, start
from deploying import run_deploy
from snapshots import differences, snapshot

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory
from tests.selection import some

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.claim(
        "A removal takes what gpufleet installed and leaves what users changed.",
        level=3,
    ),
]

KINDS = ("ubuntu2204", "debian12")
DAEMON = """{"log-driver": "json-file",
  "log-opts": {"max-size": "10m", "labels": "größe"},   "features": {"buildkit": true},
\t"insecure-registries": ["registry.example:5000"]}"""
CONTAINERD = """# ours: do not touch
version = 2
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc] # plain
  runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = true"""
# files that a removal changes: docs/how-to/removal.md
LEFT = (
    "/boot/initr",  # rebuilt, so its bytes differ
    "/etc/dnf/plugins/versionlock.list",  # dnf drops the comments; the locks are compared
)
RECORD = "/var/lib/gpufleet/provenance.json"
OVERRIDE = "/etc/modules-load.d/gpufleet-nvidia.conf"
TOOLKIT_CONFIG = "/etc/nvidia-container-runtime/config.toml"
USERS_LIST = "/etc/apt/sources.list.d/cuda-debian12-x86_64.list"
TOOLKIT_LIST = "/etc/apt/sources.list.d/nvidia-container-toolkit.list"
TOOLKIT_KEY = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"
NEEDY = """
mkdir -p /tmp/needy/DEBIAN && cd /tmp
printf 'Package: needy\nVersion: 1\nArchitecture: all\n' > needy/DEBIAN/control
printf 'Maintainer: a <a@example.com>\nDepends: nvidia-modprobe\n' >> needy/DEBIAN/control
printf 'Description: needs it\n' >> needy/DEBIAN/control
dpkg-deb -b needy needy.deb && dpkg -i needy.deb
"""

Snapshot = dict[str, list[str]]


@pytest.fixture(scope="module")
def fleet(bare_host: HostFactory) -> dict[str, Host]:
    """Bare hosts with the user's settings of docker and containerd."""
    hosts = {kind: bare_host(kind) for kind in KINDS}
    for host in hosts.values():
        configure(host)
    hosts["debian12"].put(USERS_LIST, "# nothing from here yet\n", 0o600)
    return hosts


def configure(host: Host) -> None:
    """Write the user's settings of docker and containerd."""
    host.put("/etc/docker/daemon.json", DAEMON, 0o640)
    host.put("/etc/containerd/config.toml", CONTAINERD)
    host.run("systemctl restart containerd docker")


@pytest.fixture(scope="module")
def before(fleet: dict[str, Host]) -> dict[str, Snapshot]:
    """Each host before the installation."""
    return {name: snapshot(host, *LEFT) for name, host in fleet.items()}


def test_an_installation_changes_each_host(
    fleet: dict[str, Host], before: dict[str, Snapshot]
) -> None:
    """The tests below remove all of it; on each host every kind of state changes."""
    done = run_deploy("gpu_node", list(fleet.values()))
    assert done.returncode == 0, done.output
    for name, host in fleet.items():
        changed = differences(before[name], snapshot(host, *LEFT))
        assert set(changed) >= {"packages", "holds", "files", "modules", "units", "devices"}


def test_a_dry_removal_reports_what_it_would_remove(fleet: dict[str, Host]) -> None:
    host = fleet["debian12"]
    was = snapshot(host)
    done = run_deploy("remove", [host], options=["--dry"])
    assert done.returncode == 0, done.output
    assert done.report["debian12"]["status"] == "planned"
    assert done.report["debian12"]["driver"]["after"] is None
    assert "would debian12: removal: release and remove the packages" in done.output
    assert differences(was, snapshot(host)) == {}


@pytest.mark.parametrize("fault", some(["gpu-busy", "module-busy"], ["gpu-busy"]))
def test_running_work_prevents_removal(fleet: dict[str, Host], fault: str) -> None:
    host = fleet["ubuntu2204"]
    was = snapshot(host)
    with host.fault(fault):
        done = run_deploy("remove", [host])
        assert done.returncode == 1
        assert {"gpu-busy": "GF563", "module-busy": "GF552"}[fault] in done.codes(host.name)
        assert host.output("systemctl is-active nvidia-persistenced") == "active"
    assert differences(was, snapshot(host)) == {}


def test_containers_keep_their_runtime(fleet: dict[str, Host]) -> None:
    host = fleet["ubuntu2204"]
    was = snapshot(host)
    import_image(host)
    start(host, "stays")
    done = run_deploy("remove", [host])
    assert done.returncode == 1
    assert "GF564" in done.codes(host.name)
    assert running(host) == ["stays"]
    assert differences(was, snapshot(host)) == {}
    host.run("docker rm -f stays && docker rmi gpufleet/probe")


def test_an_interrupted_removal_is_finished_by_the_next(
    fleet: dict[str, Host], before: dict[str, Snapshot]
) -> None:
    """The earlier state is restored exactly: files with modes, packages, units, modules."""
    host = fleet["ubuntu2204"]
    with host.fault("apt-lock"):
        done = run_deploy("remove", [host], node_lock_timeout=2)
        assert done.returncode == 1
        assert "GF308" in done.output
        assert host.get(RECORD)
    done = run_deploy("remove", [host])
    assert done.returncode == 0, done.output
    part = done.report[host.name]
    assert part["driver"] == {"before": "580.178.04", "after": None}
    assert part["toolkit"] == {"before": "1.20.1", "after": None}
    assert part["needs"] == []
    assert differences(before[host.name], snapshot(host, *LEFT)) == {}
    assert "gpufleet" not in host.output("lsinitramfs /boot/initrd.img-$(uname -r)")
    assert host.get("/etc/docker/daemon.json") == DAEMON
    assert "nvidia" not in host.output("docker info --format '{{json .Runtimes}}'")


@pytest.mark.extended  # test_exporter removes everything from this kind too
def test_a_removal_on_el7(bare_host: HostFactory) -> None:
    """Packages, repository keys and version locks are removed; the user's lock stays."""
    host = bare_host("el7")
    configure(host)
    host.run("yum -q -y versionlock add bash")
    like = "my-nvidia-container-toolkit-0:1.0-1.*"  # ends like a gpufleet package
    host.run(f"echo '{like}' >>/etc/dnf/plugins/versionlock.list")
    before = snapshot(host, *LEFT)
    assert run_deploy("gpu_node", [host]).returncode == 0
    done = run_deploy("remove", [host])
    assert done.returncode == 0, done.output
    assert differences(before, snapshot(host, *LEFT)) == {}
    assert host.output("rpm -qa gpg-pubkey") == ""
    locks = host.output("yum -q versionlock list").splitlines()
    assert like in locks
    assert any(lock.startswith("bash-") for lock in locks)


def test_what_users_changed_stays(fleet: dict[str, Host], before: dict[str, Snapshot]) -> None:
    host = fleet["debian12"]
    host.run(NEEDY)
    host.run(
        f"for file in {OVERRIDE} {TOOLKIT_CONFIG} {TOOLKIT_LIST}; do echo '# mine' >> $file; done"
    )
    edited = host.get("/etc/docker/daemon.json").replace("10m", "99m")
    host.put("/etc/docker/daemon.json", edited)
    with host.fault("module-busy"):
        done = run_deploy("remove", [host], driver_allow_disruption=True)
    assert done.returncode == 0, done.output
    assert done.report[host.name]["needs"] == ["reboot: the nvidia modules are still loaded"]
    stays = [f["message"] for f in done.report[host.name]["findings"] if f["code"] == "GF562"]
    for left in ("nvidia-modprobe", TOOLKIT_KEY, "/var/lib/gpufleet/backup"):
        assert any(f": {left}, because" in message for message in stays), stays
    reported = [f["message"] for f in done.report[host.name]["findings"] if f["code"] == "GF561"]
    changed = [TOOLKIT_LIST, OVERRIDE, TOOLKIT_CONFIG]
    assert sorted(message.split()[0] for message in reported) == changed
    host.run("apt-get update -q -o APT::Update::Error-Mode=any")
    assert host.get("/etc/docker/daemon.json") == DAEMON.replace("10m", "99m")
    assert host.get(USERS_LIST) == "# nothing from here yet\n"
    assert host.output(f"stat -c %a {USERS_LIST}") == "600"
    assert host.get(OVERRIDE).endswith("# mine\n")
    kept = snapshot(host, *LEFT, "/var/lib/gpufleet")
    left = differences(before[host.name], kept)["packages"]
    assert sorted(line.split()[1] for line in left) == ["needy", "nvidia-modprobe"]
    host.run("test ! -e /var/lib/gpufleet/provenance.json && test -d /var/lib/gpufleet/backup")


def test_a_second_removal_has_nothing_to_do(fleet: dict[str, Host]) -> None:
    done = run_deploy("remove", list(fleet.values()))
    assert done.returncode == 0, done.output
    assert done.changes() == dict.fromkeys(KINDS, 0)
    for name in KINDS:
        assert done.codes(name) == {"GF560"}
