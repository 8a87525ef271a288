"""The plan of a removal: it follows the record, and blocks while GPU work runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpufleet.driver.files import MODPROBE_FILE
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.facts.model import GpuProcess, ManagedFile, NodeFacts, Package
from gpufleet.facts.record import EMPTY_RECORD
from gpufleet.kubernetes.notes import (
    MODULES,
)
from gpufleet.kubernetes.role import ROLE as KUBERNETES
from gpufleet.node.catalog import load_catalog
from gpufleet.node.removal import RemovalPlan, plan_removal
from gpufleet.node.settings import load_node_settings
from gpufleet.node.unfinished import NOTHING_LEFT, Unfinished
from gpufleet.role.listing import node_roles
from gpufleet.role.protocol import Removal
from gpufleet.toolkit.role import ROLE as TOOLKIT
from tests.unit.hosts import record_of
from tests.unit.node.removal_plan_setup import RECORD, codes, host, plan


def test_what_the_record_names_goes_and_nothing_else() -> None:
    done = plan(host())
    assert done.packages == ("t", "a", "lib")
    assert done.held == ("a", "b")
    assert done.of(TOOLKIT).specs[0] == "/etc/cdi/nvidia.yaml"
    assert [path for path, _ in done.files] == [MODPROBE_FILE]
    assert done.of(DRIVER).initramfs == MODPROBE_FILE
    assert done.of(DRIVER).unload
    assert codes(done) == {"GF562"}  # b was installed before
    assert not done.blockers


def test_every_part_of_a_removal_is_a_step() -> None:
    done = plan(host())
    steps = done.describe()["steps"]
    assert steps == done.steps()
    text = "\n".join(steps)
    for part in ("unload", "/etc/cdi/nvidia.yaml", "t, a, lib", MODPROBE_FILE, "the record"):
        assert part in text
    assert plan(host(provenance=EMPTY_RECORD)).steps() == []


class _Part(Removal):
    """The steps of a role's removal, with the role's name."""

    findings = ()

    def __init__(self, name: str) -> None:
        self.name = name

    def first(self) -> Mapping[str, object]:
        return {f"first of {self.name}": True}

    def before(self) -> Mapping[str, object]:
        return {f"before of {self.name}": True}


def test_steps_are_in_the_order_of_the_removal() -> None:
    """roles/removal removes roles in this order: the last one installed goes first."""
    roles = {role.name: role for role in node_roles()}
    driver, toolkit = roles["driver"], roles["toolkit"]
    done = RemovalPlan(parts=((driver, _Part("driver")), (toolkit, _Part("toolkit"))))
    assert [step.removeprefix("removal: ") for step in done.steps()] == [
        "first of toolkit", "first of driver", "before of toolkit", "before of driver",
    ]  # fmt: skip


def test_a_driver_that_was_there_before_does_not_go() -> None:
    before = {"version": "580.159.03", "packages": {"a": "1"}, "added": []}
    ours = {"version": "1.20.1", "packages": {"t": "1"}, "added": ["t"]}
    record = record_of(driver=before, toolkit=ours)
    busy = (GpuProcess(7, "python3", ("/dev/nvidia0",)),)
    done = plan(host(provenance=record, gpu_processes=busy))
    assert (done.packages, done.of(DRIVER).unload, done.blockers) == (("t",), False, ())
    roles = dict(done.roles)
    assert roles["driver"].movement == {"before": "580.159.03", "after": "580.159.03"}
    assert roles["toolkit"].movement == {"before": "1.20.1", "after": None}


def test_a_role_of_which_nothing_is_left_is_not_there() -> None:
    """An earlier removal stopped after the packages, or a user removed them by hand."""
    driver = {"version": "580.159.03", "packages": {"a": "1"}, "added": ["a"]}
    exporter = {"version": "4.5", "packages": {}, "units": ["gpufleet-dcgm-exporter.service"]}
    record = {"driver": driver, "exporter": exporter}
    gone = dict(plan(host(provenance=record_of(**record), packages={})).roles)
    nothing = {"before": None, "after": None}
    assert gone["driver"].movement == gone["exporter"].movement == nothing


def test_no_record_is_no_change() -> None:
    done = plan(host(provenance=EMPTY_RECORD))
    assert done == RemovalPlan(findings=done.findings)
    assert codes(done) == {"GF560"}


def test_work_on_the_gpus_stops_it() -> None:
    busy = host(gpu_processes=(GpuProcess(7, "python3", ("/dev/nvidia0",)),))
    (finding,) = plan(busy).blockers
    assert finding.code == "GF563"
    assert "python3 (7)" in finding.message
    assert not plan(busy, driver_allow_disruption=True).blockers
    daemon = host(gpu_processes=(GpuProcess(8, "nvidia-persiste", ("/dev/nvidiactl",)),))
    assert not plan(daemon).blockers


def test_containers_stop_it() -> None:
    facts = host()
    full = replace(facts, runtimes={"docker": replace(facts.runtimes["docker"], containers=3)})
    (finding,) = plan(full).blockers
    assert finding.code == "GF564"
    assert not plan(full, toolkit_allow_disruption=True).blockers


def test_a_changed_file_is_named() -> None:
    digest = hashlib.sha256(b"theirs").hexdigest()
    changed = host(files={MODPROBE_FILE: ManagedFile(MODPROBE_FILE, "theirs", sha256=digest)})
    assert "GF561" in codes(plan(changed))
    assert not plan(changed).of(DRIVER).initramfs, "the file stays in it"


class TestOfOneRole:
    """`gpufleet cluster destroy`: driver and toolkit stay."""

    def host(self, **changes: Any) -> NodeFacts:
        names = ("kubelet", "a", "b", "lib", "t")
        entry = {"packages": {"kubelet": "1"}, "added": ["kubelet"], "held": True}
        files = {**RECORD["files"], MODULES: "x", "/etc/containerd/certs.d/ghcr.io/hosts.toml": "y"}
        packages = {name: Package(name, "1", "amd64") for name in names}
        record = record_of(**{**RECORD, "kubernetes": entry, "files": files})
        return replace(host(), provenance=record, packages=packages, **changes)

    def plan(self, facts: NodeFacts, left: Unfinished = NOTHING_LEFT) -> RemovalPlan:
        settings, _ = load_node_settings({})
        assert settings is not None
        return plan_removal(settings, facts, load_catalog(), left, KUBERNETES)

    def test_its_packages_and_files_go_and_no_others(self) -> None:
        done = self.plan(self.host())
        assert (done.packages, done.held) == (("kubelet",), ("kubelet",))
        assert set(done.paths) == {MODULES, "/etc/containerd/certs.d/ghcr.io/hosts.toml"}
        assert [role.name for role, _ in done.parts] == ["kubernetes"]
        assert done.steps()[-1] == "removal: remove kubernetes from the record"

    def test_work_on_the_gpus_does_not_concern_it(self) -> None:
        busy = self.host(gpu_processes=(GpuProcess(7, "python"),))
        assert not self.plan(busy).blockers

    def test_what_runs_of_other_roles_left_stays(self) -> None:
        left = Unfinished(there=True, begun={"driver": ("a",)}, written=(MODULES, "/etc/other"))
        done = self.plan(self.host(), left)
        assert done.written == (MODULES,)
        assert "a" not in (*done.packages, *done.held)

    def test_a_host_without_it_is_done(self) -> None:
        assert not self.plan(host()).owns

    def test_one_that_was_only_begun_goes(self) -> None:
        left = Unfinished(there=True, begun={"kubernetes": ("kubelet",)})
        left = left.with_added("kubernetes", ("kubelet",))
        record = record_of(**RECORD)
        done = self.plan(replace(self.host(), provenance=record), left)
        assert done.packages == ("kubelet",)
