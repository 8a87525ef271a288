"""The configuration of a runtime depends on its version."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufleet.facts.model import NodeFacts, Package, Runtime, Service
from gpufleet.facts.sections.services import parse_runtimes
from gpufleet.formats.json_text import MAX_DEPTH
from gpufleet.toolkit.runtime_result import find_undefined
from tests.unit.hosts import bare_host
from tests.unit.toolkit.runtime_removal_plan_setup import edited, provisioned, removal, reported
from tests.unit.toolkit.toolkit_setup import (
    CONFIG,
    CRI_1,
    DAEMON,
    carried_out,
    codes,
    containerd_host,
    docker_host,
    file,
    plan,
    runtime,
)

MARK = "\ufeff"
OLD, NEW = "20.10.24", "27.5.1"
V3_NAMES = """version = 3
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = true
"""


class TestDockerBefore23:
    @pytest.mark.parametrize("blank", ["", " \n\t", "\n"])
    def test_an_empty_file_never_comes_back(self, blank: str) -> None:
        facts = provisioned(docker_host(blank, version=OLD))
        done = removal(facts)
        assert done.change is not None
        assert done.change.after == "{}\n"
        assert reported(done) == [("GF437", False)]

    def test_one_that_was_emptied_since_either(self) -> None:
        facts = provisioned(docker_host('{"debug": true}', version=OLD))
        done = removal(edited(facts, DAEMON, ""))
        assert done.change is not None
        assert (done.change.after, done.activation) == ("{}\n", "restart")

    def test_a_byte_order_mark_is_dropped(self) -> None:
        facts = docker_host(MARK + '{"debug": true}', version=OLD)
        done = plan(facts)
        assert "GF437" in codes(done)
        assert done.runtimes[0].change is not None
        assert (done.runtimes[0].change.after or "")[0] == "{"
        after = provisioned(facts)
        assert plan(after).runtimes[0].change is None
        assert removal(after).change is not None
        marked = edited(after, DAEMON, MARK + after.texts[DAEMON])
        done_again = removal(marked)
        assert done_again.change is not None
        assert done_again.change.after == '{"debug": true}'

    def test_a_mark_alone(self) -> None:
        facts = provisioned(docker_host(MARK, version=OLD))
        change = removal(facts).change
        assert change is not None
        assert change.after == "{}\n"

    @pytest.mark.parametrize("text", ["", " \n", MARK + "{}"])
    def test_newer_ones_get_their_bytes_back(self, text: str) -> None:
        facts = docker_host(text, version=NEW)
        assert codes(plan(facts)) == []
        change = removal(provisioned(facts)).change
        assert change is not None
        assert change.after == text


class TestContainerd1:
    def test_a_file_of_version_3_gets_the_names_of_version_2(self) -> None:
        change = plan(containerd_host(V3_NAMES, "1.6.20")).runtimes[0].change
        assert change is not None
        added = (change.after or "").removeprefix(V3_NAMES)
        assert '"io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]' in added
        assert "io.containerd.cri.v1" not in added
        # an ignored entry cannot be the base either: the built-in runc has no SystemdCgroup
        assert '"io.containerd.grpc.v1.cri".containerd.runtimes.runc]' in added
        assert "SystemdCgroup" not in added

    def test_a_file_without_runtimes_gets_the_built_in_one_too(self) -> None:
        """The parent table may have other keys."""
        text = 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\n'
        text += 'snapshotter = "overlayfs"\n'
        change = plan(containerd_host(text, "1.6.20")).runtimes[0].change
        assert change is not None
        for name in ("runc", "nvidia"):
            assert f'"io.containerd.grpc.v1.cri".containerd.runtimes.{name}]' in change.after

    @pytest.mark.parametrize("version", ["2.0.5", ""])
    def test_a_newer_or_unknown_one_gets_those_of_the_file(self, version: str) -> None:
        change = plan(containerd_host(V3_NAMES, version)).runtimes[0].change
        assert change is not None
        added = (change.after or "").removeprefix(V3_NAMES)
        assert '"io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]' in added
        assert "SystemdCgroup = true" in added

    def test_names_of_another_version_go_with_the_program(self) -> None:
        facts = provisioned(containerd_host(V3_NAMES, "2.0.5"))
        older = replace(facts, runtimes=runtime("containerd", "1.6.20"))
        after = provisioned(older)
        assert (
            '"io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]' not in after.texts[CONFIG]
        )
        assert '"io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]' in after.texts[CONFIG]
        change = removal(after).change
        assert change is not None
        assert change.after == V3_NAMES


def test_the_result_is_read_back() -> None:
    facts = containerd_host(V3_NAMES, "1.6.20")
    change = plan(facts).runtimes[0].change
    assert change is not None
    assert change.read_back == ("containerd", "--config", CONFIG, "config", "dump")
    assert change.expected
    gone = removal(provisioned(facts)).change
    assert gone is not None
    assert (gone.read_back, gone.expected) == ((), "")


def test_each_runtime_s_own_parser_judges_the_new_file() -> None:
    crio = "/etc/crio/crio.conf"
    files = file(crio, None) | file("/etc/crio/crio.conf.d/99-nvidia.toml", None)
    change = plan(bare_host(files=files, runtimes=runtime("crio", "1.34.0"))).runtimes[0].change
    assert change is not None
    assert change.validate == ("crio", "--config", "{path}", "config")
    assert (change.read_back, bool(change.expected)) == (("crio", "config"), True)
    change = plan(containerd_host(None, "1.7.24")).runtimes[0].change
    assert change is not None
    assert change.validate == ("containerd", "--config", "{path}", "config", "dump")
    words = {"27.5.1": ("dockerd", "--validate", "--config-file", "{path}"), OLD: ()}
    for version, expected in words.items():
        change = plan(docker_host("{}", version=version)).runtimes[0].change
        assert change is not None
        assert (change.validate, change.read_back) == (expected, ())


@pytest.mark.parametrize(
    ("program", "version"), [("/usr/local/bin", "2.1.0"), ("/usr/bin", "1.6.20")]
)
def test_the_version_is_that_of_the_program_that_runs(program: str, version: str) -> None:
    """A program in /usr/local can run although the distribution's package is installed."""
    reported = [
        "command containerd",
        "version containerd containerd github.com/containerd v2.1.0 1234",
    ]
    packages = {"containerd": Package("containerd", "1.6.20~ds1-1", "amd64")}
    unit = Service("containerd.service", "loaded", "active", "enabled", f"{program}/containerd")
    found = parse_runtimes(reported, packages, {unit.name: unit}, {})
    assert found["containerd"].version == version


@pytest.mark.parametrize(
    ("name", "package", "version", "upstream"),
    [
        ("docker", "docker-stable", "24.0.9_ce-150000.1.8.1", "24.0.9"),
        ("containerd", "containerd-stable", "2.2.2-0ubuntu1", "2.2.2"),
    ],
)
def test_the_stable_packages_of_distributions(
    name: str, package: str, version: str, upstream: str
) -> None:
    packages = {package: Package(package, version, "amd64")}
    unit = Service(f"{name}.service", "loaded", "active", "enabled", f"/usr/bin/{name}")
    found = parse_runtimes([], packages, {unit.name: unit}, {})
    assert found[name].version == upstream


class TestStateOfTheRuntime:
    def down(self, active: str) -> Runtime:
        return replace(runtime("docker", NEW)["docker"], running=False)

    @pytest.mark.parametrize(("active", "failed"), [("failed", True), ("inactive", False)])
    def test_one_that_is_down_is_not_said_to_be_configured(self, active: str, failed: bool) -> None:
        unit = Service("docker.service", "loaded", active, "enabled")
        facts = replace(
            docker_host("{}"), runtimes={"docker": self.down(active)}, services={unit.name: unit}
        )
        done = plan(facts)
        assert ("GF439" in codes(done)) is failed
        assert not done.runtimes[0].running
        assert done.runtimes[0].activation == "none"


@pytest.mark.parametrize(
    "text", ['{"a":' * 900 + "1" + "}" * 900, '{"a":' * 5000 + "1" + "}" * 5000]
)
def test_a_file_of_endless_depth_is_refused(text: str) -> None:
    assert codes(plan(docker_host(text))) == ["GF401"]
    assert codes(plan(docker_host('{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH))) == []
    toml = "version = 2\na = " + "[" * 200 + "]" * 200 + "\n"
    assert codes(plan(containerd_host(toml, "1.7.24"))) == ["GF401"]


def test_null_is_a_key_that_is_not_there() -> None:
    done = plan(docker_host('{"log-driver": "json-file", "runtimes": null, "features": null}'))
    assert codes(done) == []
    assert done.runtimes[0].change is not None
    assert find_undefined("docker", {"runtimes": None, "default-runtime": None}, True) == {}


def test_a_number_of_many_digits_is_a_number() -> None:
    assert codes(plan(docker_host('{"a": ' + "9" * 5000 + "}"))) == []


@pytest.mark.parametrize(
    ("facts", "newer"),
    [
        (docker_host(version=NEW), runtime("docker", "29.1.0", containers=3)),
        (containerd_host(CRI_1, "1.7.27"), runtime("containerd", "2.1.0")),
    ],
)
def test_an_upgrade_that_enables_cdi_needs_no_restart(
    facts: NodeFacts, newer: dict[str, Runtime]
) -> None:
    """docker 28.2 and containerd 2.0 enable CDI by default (moby/moby#49963): the setting stays."""
    after = replace(carried_out(facts, plan(facts)), runtimes=newer)
    (done,) = plan(after).runtimes
    assert (done.change, done.activation, done.postponed) == (None, "none", False)
    assert plan(after, cdi=False).runtimes[0].change is not None
