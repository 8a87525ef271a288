"""The plan of the container toolkit: packages, runtimes, CDI."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufleet.facts.model import (
    CdiSpec,
    ManagedFile,
    OsRelease,
    Package,
    Service,
)
from gpufleet.node.catalog import load_catalog
from gpufleet.toolkit.config.containerd_layers import version_of
from gpufleet.toolkit.config.tables import parse_tables
from gpufleet.toolkit.runtime_removal import plan_runtime_removal
from gpufleet.toolkit.settings import ToolkitSettings
from tests.unit.hosts import bare_host
from tests.unit.toolkit.toolkit_setup import (
    CRI_1,
    DAEMON,
    DRIVER,
    NAMES,
    carried_out,
    codes,
    containerd_host,
    docker_host,
    file,
    installed,
    plan,
    runtime,
)

HOSTS = {
    "docker without a file": docker_host(),
    "docker with settings": docker_host('{\n  "debug": true\n}\n'),
    "docker 25, CDI to be switched on": docker_host("{}", version="26.1.5"),
    "containerd 1.6, no file": containerd_host(None, "1.6.20"),
    "containerd 1.7": containerd_host(CRI_1, "1.7.24"),
    "containerd 2.2 with drop-ins": containerd_host(
        'version = 3\nimports = ["/etc/containerd/conf.d/*.toml"]\n', "2.2.7"
    ),
    "containerd 2.3": containerd_host("version = 4\n", "2.3.4"),
    "CRI-O": bare_host(
        files=file("/etc/crio/crio.conf", None)
        | file("/etc/crio/crio.conf.d/10-crio.conf", '[crio.runtime]\ndefault_runtime = "crun"\n'),
        runtimes=runtime("crio", "1.34.0"),
    ),
}


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("default", [False, True])
def test_carried_out_once_is_enough(name: str, default: bool) -> None:
    facts = HOSTS[name]
    first = plan(facts, default_runtime=default)
    assert first.action == "install"
    assert [each.activation for each in first.runtimes] == ["restart"]
    assert all(each.change for each in first.runtimes)
    second = plan(carried_out(facts, first), default_runtime=default)
    assert second.action == "none"
    assert [(each.change, each.activation) for each in second.runtimes] == [(None, "none")]
    assert not second.hold
    assert not second.cdi.stale(DRIVER)
    assert second.record(DRIVER, {}) == first.record(DRIVER, {})


@pytest.mark.parametrize("name", HOSTS)
def test_removal_gives_back_what_was_there(name: str) -> None:
    facts = HOSTS[name]
    after = carried_out(facts, plan(facts, default_runtime=True))
    (removal,) = plan_runtime_removal(ToolkitSettings(), after, load_catalog())
    assert removal.change is not None
    there = facts.files.get(removal.change.path)
    assert removal.change.after == (there.content if there else None)
    assert removal.activation == "restart"


def test_removal_after_the_runtime_itself_went() -> None:
    facts = containerd_host(CRI_1, "1.7.24")
    after = replace(carried_out(facts, plan(facts)), runtimes={})
    (removal,) = plan_runtime_removal(ToolkitSettings(), after, load_catalog())
    assert removal.change is not None
    assert removal.change.after == CRI_1
    assert removal.change.validate == ()
    assert removal.activation == "none"


def test_a_removed_setting_is_reverted() -> None:
    kata = '"runtimes": {"kata": {"path": "/usr/bin/kata"}}'
    facts = docker_host(f'{{"default-runtime": "kata", {kata}}}')
    after = carried_out(facts, plan(facts, default_runtime=True))
    again = plan(after)
    assert again.runtimes[0].change is not None
    text = again.runtimes[0].change.after or ""
    assert '"default-runtime": "kata"' in text
    assert '"nvidia"' in text


class TestRestart:
    def test_docker_takes_up_a_runtime_on_reload(self) -> None:
        done = plan(installed(docker_host("{}"), "1.20.1"), cdi=False)
        assert done.runtimes[0].activation == "reload"

    def test_running_containers_are_not_stopped(self) -> None:
        done = plan(docker_host(containers=3))
        assert done.runtimes[0].activation == "reload"
        assert done.runtimes[0].postponed
        assert "GF413" in codes(done)

    def test_live_restore_lets_containers_run_on(self) -> None:
        done = plan(docker_host(containers=3, live_restore=True))
        assert done.runtimes[0].activation == "restart"
        assert "GF413" not in codes(done)

    def test_disruption_allowed(self) -> None:
        done = plan(docker_host(containers=3), allow_disruption=True)
        assert done.runtimes[0].activation == "restart"

    def test_a_postponed_restart_is_not_forgotten(self) -> None:
        facts = docker_host(containers=3)
        after = carried_out(facts, plan(facts))
        assert plan(after).runtimes[0].postponed
        idle = replace(after, runtimes=runtime("docker", "27.5.1"))
        assert plan(idle).runtimes[0].activation == "restart"
        rebooted = replace(idle, boot_id="2")
        assert plan(rebooted).runtimes[0].activation == "none"

    def test_restart_switched_off(self) -> None:
        done = plan(containerd_host(CRI_1, "1.7.24"), restart=False)
        assert done.runtimes[0].activation == "none"
        assert "GF413" in codes(done)

    def test_stopped_runtime_is_left_stopped(self) -> None:
        done = plan(docker_host(running=False))
        assert done.runtimes[0].change is not None
        assert done.runtimes[0].activation == "none"


class TestBlockers:
    def test_invalid_file(self) -> None:
        done = plan(docker_host('{"a": 1,}'))
        assert done.runtimes[0].change is None
        assert codes(done) == ["GF401"]

    def test_unreadable_file(self) -> None:
        facts = docker_host()
        odd = {DAEMON: ManagedFile(DAEMON, None, error="it is not UTF-8 text")}
        assert codes(plan(replace(facts, files=odd))) == ["GF401"]
        for files, reason in ((odd, "it is not UTF-8 text"), ({}, "it was not among the files")):
            (finding,) = plan(replace(facts, files=files)).findings
            assert reason in finding.message

    def test_flag_and_key(self) -> None:
        start = "/usr/sbin/dockerd -H fd:// --default-runtime=runc"
        service = Service("docker.service", "loaded", "active", "enabled", start)
        facts = replace(docker_host("{}"), services={"docker.service": service})
        assert "GF404" in codes(plan(facts, default_runtime=True))
        assert "GF404" not in codes(plan(facts))

    def test_added_runtime_by_flag_is_no_conflict(self) -> None:
        start = "/usr/bin/dockerd --add-runtime x=/usr/bin/x"
        service = Service("docker.service", "loaded", "active", "enabled", start)
        facts = replace(docker_host("{}"), services={"docker.service": service})
        assert codes(plan(facts)) == []

    def test_import_that_replaces_the_main_file(self) -> None:
        main = 'version = 2\nimports = ["conf.d/*.toml"]\n' + CRI_1.split("\n", 1)[1]
        other = "/etc/containerd/conf.d/50-site.toml"
        text = CRI_1 + 'runtime_type = "io.containerd.runc.v2"\n'
        facts = containerd_host(main, "1.7.24")
        facts = replace(facts, files=facts.files | file(other, text))
        assert "GF426" in codes(plan(facts))

    def test_version_1_file_on_containerd_2(self) -> None:
        text = '[plugins.cri]\nstream_server_port = "1"\n'
        assert "GF427" in codes(plan(containerd_host(text, "2.2.7")))
        assert "GF427" not in codes(plan(containerd_host(text, "1.7.24")))


class TestLeftAlone:
    def test_stub_of_docker_s_containerd(self) -> None:
        done = plan(containerd_host('disabled_plugins = ["cri"]\n', "1.7.24"))
        assert done.runtimes[0].change is None
        assert codes(done) == ["GF409"]
        assert done.record(DRIVER, {}).runtimes == {}

    def test_k3s_finds_the_runtime_by_itself(self) -> None:
        path = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"
        k3s = runtime("containerd", "2.0.5", unit="k3s-agent.service", config_path=path)
        done = plan(bare_host(runtimes=k3s), default_runtime=True)
        assert done.runtimes[0].change is None
        assert done.runtimes[0].activation == "restart"
        assert codes(done) == ["GF410", "GF411"]
        assert done.runtimes[0].socket == ""  # other programs cannot list its plugins

    @pytest.mark.parametrize(
        ("head", "plugin"),
        [
            ("version = 3\n", "io.containerd.cri.v1.runtime"),
            ("version = 2\n", "io.containerd.grpc.v1.cri"),
        ],
    )
    def test_k3s_has_the_default_runtime(self, head: str, plugin: str) -> None:
        path = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"
        text = f'{head}[plugins."{plugin}".containerd]\ndefault_runtime_name = "nvidia"\n'
        k3s = runtime("containerd", "2.0.5", unit="k3s.service", config_path=path)
        done = plan(bare_host(runtimes=k3s, files=file(path, text)), default_runtime=True)
        assert codes(done) == ["GF410"]

    def test_the_socket_of_containerd_is_asked_for_its_plugins(self) -> None:
        (found,) = plan(containerd_host(None, "1.7.24")).runtimes
        assert found.socket == "/run/containerd/containerd.sock"
        text = 'version = 2\n[grpc]\naddress = "/run/own.sock"\n'
        (found,) = plan(containerd_host(text, "1.7.24")).runtimes
        assert found.socket == "/run/own.sock"

    def test_runtimes_that_were_not_asked_for(self) -> None:
        done = plan(docker_host(), runtimes=("containerd",))
        assert not done.runtimes
        assert codes(done) == ["GF419", "GF419"]

    def test_runtime_written_by_nvidia_ctk_elsewhere(self) -> None:
        main = 'version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\n'
        other = (
            'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]\n'
            'runtime_type = "io.containerd.runc.v2"\n'
            '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]\n'
            'BinaryName = "/usr/bin/nvidia-container-runtime"\n'
        )
        facts = containerd_host(main, "1.6.33")
        path = "/etc/containerd/conf.d/99-nvidia.toml"
        done = plan(replace(facts, files=facts.files | file(path, other)))
        assert done.runtimes[0].change is None
        assert "GF406" in codes(done)


class TestPackages:
    def test_upgrade(self) -> None:
        done = plan(installed(docker_host(), "1.17.8"), allow_change=True)
        assert (done.action, done.before, done.target) == ("upgrade", "1.17.8", "1.20.1")

    @pytest.mark.parametrize(
        ("version", "severity"), [(None, "info"), ("1.20.1", "warning"), ("1.16.2", "warning")]
    )
    def test_a_plain_run_keeps_what_is_installed(self, version: str | None, severity: str) -> None:
        done = plan(installed(docker_host(), "1.17.8"), version=version)
        assert (done.action, done.target, done.choice.version) == ("none", "1.17.8", "1.17.8")
        (kept,) = [finding for finding in done.findings if finding.code == "GF424"]
        assert kept.severity.value == severity
        assert ("--allow-downgrade" in kept.remedy) is (version == "1.16.2")

    def test_an_interrupted_change_is_completed(self) -> None:
        facts = installed(docker_host(), "1.17.8")
        newer = installed(docker_host(), "1.20.1").packages
        mixed = replace(facts, packages={**facts.packages, NAMES[0]: newer[NAMES[0]]})
        assert plan(mixed).target == "1.20.1"
        back = replace(facts, packages={**newer, NAMES[0]: facts.packages[NAMES[0]]})
        assert plan(back, version="1.17.8").target == "1.17.8"

    def test_what_does_not_work_is_repaired_at_its_version(self) -> None:
        facts = installed(docker_host(), "1.17.8")
        packages = {name: facts.packages[name] for name in NAMES[:2]}
        done = plan(replace(facts, packages=packages), version="1.20.1")
        assert (done.action, done.target) == ("repair", "1.17.8")

    def test_a_refused_version_blocks_beside_an_installed_one(self) -> None:
        done = plan(installed(docker_host(), "1.17.8"), version="1.9.0")
        assert any(finding.blocks for finding in done.findings)

    def test_newer_stays(self) -> None:
        done = plan(installed(docker_host(), "1.30.0"))
        assert (done.action, done.target) == ("none", "1.30.0")
        assert not {"GF424", "GF162"} & set(codes(done))

    def test_exact_version_goes_back(self) -> None:
        done = plan(installed(docker_host(), "1.20.1"), version="1.19.1", allow_change=True)
        assert (done.action, done.target) == ("downgrade", "1.19.1")

    def test_half_a_family_is_repaired(self) -> None:
        facts = installed(docker_host(), "1.20.1")
        packages = {name: facts.packages[name] for name in NAMES[:2]}
        assert plan(replace(facts, packages=packages)).action == "repair"

    def test_nvidia_docker2(self) -> None:
        old = {"nvidia-docker2": Package("nvidia-docker2", "2.13.0-1", "all")}
        assert "GF418" in codes(plan(replace(docker_host(), packages=old)))


class TestCdi:
    def test_refreshed_by_the_toolkit_s_units(self) -> None:
        done = plan(docker_host())
        assert (done.cdi.keeper, done.cdi.path) == ("refresh", "/var/run/cdi/nvidia.yaml")

    def test_a_user_moved_the_spec(self) -> None:
        environment = "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env"
        moved = file(environment, "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/etc/cdi/nvidia.yaml\n")
        facts = docker_host()
        facts = replace(facts, files={**facts.files, **moved})
        assert plan(facts).cdi.path == "/etc/cdi/nvidia.yaml"
        after = carried_out(facts, plan(facts))
        assert not plan(after).cdi.stale(DRIVER)

    def test_el7_has_no_such_units(self) -> None:
        el7 = OsRelease("centos", "7")
        done = plan(replace(docker_host(), os=el7, package_manager="yum"))
        assert done.cdi.keeper == "generate"
        assert done.cdi.command[-1] == "--output=/etc/cdi/nvidia.yaml"

    def test_stale_after_a_change_of_the_driver(self) -> None:
        facts = docker_host()
        after = carried_out(facts, plan(facts))
        assert not plan(after).cdi.stale(DRIVER)
        assert plan(after).cdi.stale("595.10")
        assert not plan(after).cdi.stale(None)

    def test_switched_off(self) -> None:
        assert not plan(docker_host(), cdi=False).cdi.stale(DRIVER)

    def test_two_specs(self) -> None:
        old = CdiSpec("/etc/cdi/nvidia.yaml", DRIVER)
        assert "GF416" in codes(plan(replace(docker_host(), cdi_specs=(old,))))


def test_a_containerd_without_a_unit_is_part_of_docker() -> None:
    """As in docker's archive of programs: dockerd starts containerd with a file of its own."""
    phantom = runtime("containerd", "", running=False)
    facts = docker_host()
    facts = replace(facts, runtimes={**facts.runtimes, **phantom})
    assert [each.key for each in plan(facts).runtimes] == ["docker"]
    assert len(plan(facts, runtimes=["containerd"]).runtimes) == 1


def test_another_tool_s_spec_says_nothing_of_ours() -> None:
    """A spec of another tool makes ours neither current nor stale."""
    facts = docker_host()
    after = carried_out(facts, plan(facts))
    ours, theirs = after.cdi_specs[0], CdiSpec("/etc/cdi/theirs.yaml", DRIVER)
    stale = replace(ours, driver="550.1")
    for specs in ((theirs, stale), (stale, theirs), (theirs,)):
        assert plan(replace(after, cdi_specs=specs)).cdi.stale(DRIVER)
    old = replace(theirs, driver="550.1")
    for specs in ((old, ours), (ours, old)):
        assert not plan(replace(after, cdi_specs=specs)).cdi.stale(DRIVER)
    renamed = replace(ours, path=ours.path.removeprefix("/var"))  # /var/run is a link
    assert not plan(replace(after, cdi_specs=(renamed,))).cdi.stale(DRIVER)


def test_a_postponed_restart_is_over_once_the_runtime_was_restarted() -> None:
    facts = replace(docker_host(containers=2), services=docker_service("1000"))
    after = carried_out(facts, plan(facts))
    assert "GF413" in codes(plan(facts))
    assert plan(after).runtimes[0].postponed
    restarted = {**after.services, **docker_service("2000")}
    assert not plan(replace(after, services=restarted)).runtimes[0].postponed
    assert not plan(replace(after, boot_id="another")).runtimes[0].postponed


def docker_service(started: str) -> dict[str, Service]:
    return {
        "docker.service": Service("docker.service", "loaded", "active", "enabled", started=started)
    }


@pytest.mark.parametrize(
    ("text", "version"), [("", 1), ("version = 2\n", 2), ('version = "3"\n', 1)]
)
def test_the_version_that_containerd_assumes_for_a_file(text: str, version: int) -> None:
    assert version_of(parse_tables(text)) == version


def test_packages_are_held_unless_a_setting_says_no() -> None:
    assert plan(bare_host()).hold == plan(bare_host()).transaction.packages
    assert plan(bare_host(), hold=False).hold == ()
