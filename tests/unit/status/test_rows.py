"""The flags of a host, and their reasons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.core.findings import Finding, Severity
from gpufleet.core.findings.settings import NEAR_MISS
from gpufleet.facts.kernels import newer_kernel
from gpufleet.facts.model import (
    Kernel,
    ManagedFile,
    ModuleOnDisk,
    NodeFacts,
    OsRelease,
    Package,
    PciDevice,
    Runtime,
)
from gpufleet.host.findings import (
    CONNECTION_LOST,
    FACTS_UNREADABLE,
    NO_SHELL,
    PRIVILEGES_REFUSED,
    SU_PASSWORD,
)
from gpufleet.host.upgrade_state import STATE_FILE, HostState, Phase, state_text
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_node
from gpufleet.node.settings import load_node_settings
from gpufleet.status.detail import host_details
from gpufleet.status.models import FLAGS, MEANINGS, Row, SeenHost
from gpufleet.status.rows import row_of
from tests.unit.status.fleets import (
    DRIVER_ALONE,
    NEWEST,
    NOW,
    bare,
    fleet,
    healthy,
    row,
    seen,
    silent,
)

pytestmark = pytest.mark.claim(
    "`status` flags drift, reboots, end of life, known vulnerabilities, versions, lost "
    "GPUs and outliers.",
    level=1,
)

SECOND = PciDevice("0000:65:00.0", 0x20B2, 0x030200, "nvidia")


def codes(found: Row, flag: str) -> list[str]:
    return [note.finding.code for note in found.notes if note.flag == flag]


def text(found: Row, flag: str) -> str:
    return " ".join(note.finding.message for note in found.notes if note.flag == flag)


def test_a_host_at_its_newest_has_what_it_has_and_no_flag_of_age() -> None:
    found = row(healthy())
    assert (found.model, found.gpus, found.gpu_text) == ("A100 SXM4 80GB", 1, "1 x A100 SXM4 80GB")
    assert (found.driver, found.loaded, found.os) == (NEWEST, True, "ubuntu2204")
    assert not {"vulnerable", "version", "end-of-life", "reboot", "gpu-fault"} & set(found.flags)


def test_a_host_differs_from_its_settings_by_the_steps_of_its_plan() -> None:
    found = row(bare())
    assert codes(found, "drift") == ["GF715"]
    assert "driver: install the driver" in " ".join(found.steps)
    assert f"and {len(found.steps) - 3} more steps" in text(found, "drift")
    assert row(bare(), driver_enabled=False).flags == ()


def test_a_host_that_a_blocker_stops_says_so() -> None:
    found = row(bare(), driver_branch="330")
    assert "blocked" in found.flags
    assert codes(found, "blocked") == ["GF111", "GF112"]


def test_a_driver_that_is_kept_is_behind_and_no_drift() -> None:
    facts = healthy()
    found = row(facts, driver_version="580.95.05")
    assert found.steps == row(facts).steps
    assert codes(found, "version") == ["GF149"]
    assert "drift" in row(facts, driver_version="580.95.05", driver_allow_change=True).flags


def test_wrong_settings_and_missing_privileges_block() -> None:
    wrong = row(bare(), driver_brunch="580")
    assert (wrong.flags, wrong.steps) == (("blocked",), ())
    assert "driver_brunch" in text(wrong, "blocked")
    assert codes(row(bare(privileged=False)), "blocked") == ["GF505"]


def test_data_without_an_effect_is_said() -> None:
    missed = NEAR_MISS(key="drver_branch", place="the inventory", meant="driver_branch")
    host = replace(seen("a", healthy(), driver_enabled=False), problems=(missed,))
    (found,) = fleet(host).rows
    assert [(note.flag, note.finding) for note in found.notes] == [("settings", missed)]


def test_a_host_that_did_not_answer_is_a_row_with_its_finding() -> None:
    found = row_of(silent("gpu-07"), load_catalog(), NOW)
    assert (found.reached, found.flags) == (False, ("unreachable",))
    assert "timed out" in text(found, "unreachable")


@pytest.mark.parametrize(
    ("problem", "flag"),
    [
        (PRIVILEGES_REFUSED(cause="a password is required"), "no-sudo"),
        (SU_PASSWORD(), "no-sudo"),
        (NO_SHELL(cause="nologin"), "no-sudo"),
        (FACTS_UNREADABLE(host="h", doing="now", problem="it is cut off"), "unreadable"),
        (CONNECTION_LOST(doing="now", cause="it hangs"), "unreachable"),
    ],
)
def test_unreachable_is_the_network(problem: Finding, flag: str) -> None:
    found = row_of(SeenHost("gpu-07", problem=problem), load_catalog(), NOW)
    assert (found.reached, found.flags) == (False, (flag,))


@pytest.mark.parametrize(
    ("phase", "more", "flags"),
    [
        (Phase.PREPARED, {}, ["GF738"]),
        (Phase.CHANGING, {}, ["GF738"]),
        (Phase.STUCK, {}, ["GF738"]),
        (Phase.DONE, {"out": True}, ["GF738"]),
        (Phase.DONE, {}, []),
        (Phase.PASSED, {}, []),
    ],
)
def test_a_host_in_an_upgrade_says_so(phase: Phase, more: dict[str, Any], flags: list[str]) -> None:
    state = HostState("r1", "upgrade", "driver", "570.1", NEWEST, "A100", 0, phase, NOW, **more)
    file = ManagedFile(STATE_FILE, state_text(state))
    found = row(replace(healthy(), files={STATE_FILE: file}))
    assert codes(found, "upgrade") == flags
    if flags:
        assert f"run r1, upgrade to {NEWEST}: {phase.value} since 2026-11-25" in text(
            found, "upgrade"
        )


def test_a_damaged_state_of_an_upgrade_is_said() -> None:
    found = row(replace(healthy(), files={STATE_FILE: ManagedFile(STATE_FILE, "{")}))
    assert codes(found, "upgrade") == ["GF738"]


@pytest.mark.parametrize(
    ("version", "flags"),
    [
        (NEWEST, ()),
        ("580.173.02", ("vulnerable", "version")),
        ("595.91.07", ()),
        ("570.211.01", ("vulnerable", "end-of-life")),
        ("999.1", ()),
        ("not a version", ()),
    ],
)
def test_a_driver_is_judged_by_the_version_that_is_there(
    version: str, flags: tuple[str, ...]
) -> None:
    found = row(bare(modules={"nvidia": version}))
    assert tuple(f for f in found.flags if f in ("vulnerable", "end-of-life", "version")) == flags


@pytest.mark.parametrize("version", ["580.173.02", "570.211.01"])
def test_no_upgrade_is_advised_for_a_driver_that_came_without_packages(version: str) -> None:
    found = row(bare(modules={"nvidia": version}, foreign_driver="/usr/local/nvidia/lib"))
    remedies = [note.finding.remedy for note in found.notes
                if note.flag in ("vulnerable", "end-of-life", "version")]  # fmt: skip
    assert len(remedies) == 2
    assert not [remedy for remedy in remedies if "`gpufleet upgrade" in remedy]


def test_a_driver_that_is_installed_and_not_loaded_counts() -> None:
    found = row(bare(module_on_disk=ModuleOnDisk("570.211.01", "NVIDIA")))
    assert (found.driver, found.loaded) == ("570.211.01", False)
    assert "vulnerable" in found.flags


def test_the_toolkit_and_the_distribution_are_judged() -> None:
    package = Package("nvidia-container-toolkit", "1.17.4-1", "amd64")
    found = row(bare(packages={package.name: package}))
    assert found.toolkit == "1.17.4"
    assert codes(found, "vulnerable") == ["GF161"]
    assert "1.17.4 is installed; the newest in the catalog is 1.20.1" in text(found, "version")
    newest = Package(package.name, "1.20.1-1", "amd64")
    assert codes(row(bare(packages={package.name: newest})), "version") == []
    old = row(bare(os=OsRelease("ubuntu", "18.04")))
    assert codes(old, "end-of-life") == ["GF103"]


@pytest.mark.parametrize(
    ("version", "package", "expected"),
    [
        ("1.7.27", "containerd.io", {"end-of-life": ["GF719"], "vulnerable": ["GF719"]}),
        ("2.3.5", "containerd.io", {"end-of-life": [], "vulnerable": []}),
        ("1.6.39", "containerd.io", {"end-of-life": ["GF719"], "vulnerable": ["GF719"]}),
        ("2.3.4", "containerd.io", {"end-of-life": [], "vulnerable": ["GF719"]}),
        ("9.9.9", "containerd.io", {"end-of-life": [], "vulnerable": []}),
        ("1.7.27", "containerd", {"end-of-life": [], "vulnerable": []}),  # the distribution's own
    ],
)
def test_a_runtime_is_judged_in_packages_of_its_makers(
    version: str, package: str, expected: dict[str, list[str]]
) -> None:
    runtime = Runtime(
        "containerd", version, "containerd.service", "/etc/containerd/config.toml", True
    )
    facts = bare(
        runtimes={"containerd": runtime}, packages={package: Package(package, version, "amd64")}
    )
    found = row(facts)
    assert {flag: codes(found, flag) for flag in expected} == expected
    assert found.runtime_text == f"containerd {version}"


def test_a_runtime_that_does_not_run_is_not_the_runtime() -> None:
    runtime = Runtime("docker", "28.3.3", "docker.service", "/etc/docker/daemon.json", False)
    assert row(bare(runtimes={"docker": runtime})).runtimes == ()


def test_a_driver_that_is_not_the_loaded_one_needs_a_reboot() -> None:
    found = row(healthy(module_on_disk=ModuleOnDisk("595.91.07", "NVIDIA")))
    assert codes(found, "reboot") == ["GF524"]
    assert f"Driver 595.91.07 is installed, {NEWEST} is loaded" in text(found, "reboot")


def debian(running: str, *images: str, **changes: Any) -> NodeFacts:
    packages = {name: Package(name, "1", "amd64", **changes) for name in images}
    return bare(kernel=Kernel(running, "x86_64", headers=True), packages=packages)


def rpm(running: str, *versions: str, name: str = "kernel-core") -> NodeFacts:
    packages = {f"{name}-{version}": Package(name, version, "x86_64") for version in versions}
    return bare(kernel=Kernel(running, "x86_64", headers=True), packages=packages)


@pytest.mark.parametrize(
    ("facts", "newer"),
    [
        (debian("5.15.0-122-generic", "linux-image-5.15.0-122-generic"), ""),
        (debian("5.15.0-99-generic", "linux-image-5.15.0-122-generic"), "5.15.0-122-generic"),
        (debian("5.15.0-122-generic", "linux-image-5.15.0-99-generic"), ""),
        (debian("5.15.0-99-generic", "linux-image-6.8.0-45-aws"), ""),
        (debian("5.15.0-99-generic", "linux-image-generic"), ""),
        (debian("5.15.0-9-generic", "linux-image-unsigned-5.15.0-10-generic"), "5.15.0-10-generic"),
        (debian("5.15.0-9-generic", "linux-image-5.15.0-10-generic", state="half-installed"), ""),
        (debian("odd", "linux-image-5.15.0-10-generic"), ""),
        (rpm("5.14.0-427.el9.x86_64", "5.14.0-427.el9", "5.14.0-503.el9"), "5.14.0-503.el9.x86_64"),
        (rpm("5.14.0-503.el9.x86_64", "5.14.0-427.el9", "1:5.14.0-503.el9"), ""),
        (rpm("3.10.0-1127.el7.x86_64", "3.10.0-1160.el7", name="kernel"), "3.10.0-1160.el7.x86_64"),
        (rpm("5.15.0-1.el9uek.x86_64", "6.14.0-427.el9"), ""),
        (rpm("6.12.9-1.amzn2023.x86_64", "6.12.37-61.amzn2023", name="kernel6.12"),
         "6.12.37-61.amzn2023.x86_64"),
        (rpm("6.1.9-1.amzn2023.x86_64", "6.12.37-61.amzn2023", name="kernel6.12"), ""),
        (rpm("5.14.0-427.el9.aarch64", "5.14.0-503.el9"), "5.14.0-503.el9.x86_64"),
    ],
)  # fmt: skip
def test_a_newer_kernel_of_the_same_flavour_needs_a_reboot(facts: NodeFacts, newer: str) -> None:
    if facts.kernel.release.endswith("aarch64"):
        facts = replace(facts, kernel=replace(facts.kernel, architecture="aarch64"))
        newer = ""
    assert newer_kernel(facts) == newer
    assert codes(row(facts), "reboot") == (["GF524"] if newer else [])
    host = seen("gpu-01", facts)
    (found,) = host_details([host], fleet(host), load_catalog(), NOW)
    assert found.has["kernel"]["newer"] == (newer or None)


def test_a_gpu_that_the_driver_has_and_the_bus_has_not_is_lost() -> None:
    facts = healthy(taken=("0000:17:00.0", SECOND.slot))
    found = row(facts)
    assert codes(found, "gpu-fault") == ["GF725"]
    assert text(found, "gpu-fault") == (
        "1 GPU that the driver has and the PCI bus no longer has: 0000:65:00.0."
    )
    assert codes(row(replace(facts, pci=())), "gpu-fault") == ["GF725"], "the last one, too"
    assert codes(row(replace(facts, pci=(*facts.pci, SECOND))), "gpu-fault") == []


def test_a_gpu_that_does_not_respond_or_has_no_driver_is_a_fault() -> None:
    facts = healthy()
    gone = replace(SECOND, answers=False)
    unbound = replace(SECOND, driver=None)
    assert codes(row(replace(facts, pci=(*facts.pci, gone))), "gpu-fault") == ["GF725"]
    found = row(replace(facts, pci=(*facts.pci, unbound)))
    assert codes(found, "gpu-fault") == ["GF727"]
    assert "1 GPU is not bound to it: 0000:65:00.0" in text(found, "gpu-fault")
    assert codes(row(bare(pci=(unbound,))), "gpu-fault") == [], "no driver is loaded at all"


def test_a_host_that_is_being_changed_says_by_whom() -> None:
    found = row(bare(lock_holder="apt (process 812)"))
    assert codes(found, "busy") == ["GF729"]
    assert "apt (process 812)" in text(found, "busy")
    assert all(
        note.finding.severity is Severity.INFO for note in found.notes if note.flag == "busy"
    )
    assert "busy" in row(bare(busy=True, run_lock="ops@ctl")).flags


def test_flags_have_an_order_and_a_meaning() -> None:
    assert set(MEANINGS) == set(FLAGS)
    found = row(bare(modules={"nvidia": "570.211.01"}, lock_holder="apt"), driver_branch="330")
    assert list(found.flags) == [flag for flag in FLAGS if flag in found.flags]
    assert found.flags[0] == "blocked"


def test_a_host_without_a_gpu_has_a_row() -> None:
    found = row_of(SeenHost("login", ("others",), bare(pci=())), load_catalog(), NOW)
    assert (found.model, found.gpu_text, found.gpus) == ("", "", 0)
    assert found.reached


def test_seen_without_settings_has_no_plan() -> None:
    host = replace(seen("gpu-07", bare()), settings=None)
    assert row_of(host, load_catalog(), NOW).steps == ()


LONG = "9" * 5000  # int() refuses it


def hostile_number() -> NodeFacts:
    facts = healthy()
    kernel = replace(facts.kernel, release=f"5.15.{LONG}")
    module = ModuleOnDisk(f"580.{LONG}", "NVIDIA", "/lib/modules/nvidia.ko")
    return replace(facts, kernel=kernel, modules={"nvidia": f"580.{LONG}"}, module_on_disk=module)


def test_a_number_of_thousands_of_digits_is_text_to_a_row() -> None:
    assert row(hostile_number()).reached
    assert newer_kernel(hostile_number()) == ""


def test_facts_that_nothing_can_be_made_of_end_one_row_alone() -> None:
    """Any exception makes one host unreadable, in the table and in the details."""
    catalog, worst = load_catalog(), replace(healthy(), runtimes=None)  # type: ignore[arg-type]
    found = fleet(seen("bad", worst), seen("good", healthy()))
    bad, good = found.rows
    assert (bad.reached, bad.flags, codes(bad, "unreadable")) == (
        False,
        ("unreadable",),
        ["GF502"],
    )
    assert good.reached
    hosts = [seen("bad", worst), seen("good", healthy())]
    first, second = host_details(hosts, found, catalog, NOW)
    assert (first.has, [each.code for each in first.findings]) == ({}, ["GF502"])
    assert second.has


def test_facts_that_fail_in_depth_alone_make_the_host_unreadable() -> None:
    worst = replace(healthy(), collectors=(None,))  # type: ignore[arg-type]
    host = seen("bad", healthy())
    (first,) = host_details([replace(host, facts=worst)], fleet(host), load_catalog(), NOW)
    assert (first.row.reached, first.has) == (False, {})
    assert [each.code for each in first.findings] == ["GF502"]


@pytest.mark.parametrize("code", ["GF120", "GF121"])
def test_status_and_plan_have_one_remedy_for_a_branch_without_fixes(code: str) -> None:
    """CentOS 7 has no other branch, so neither text may advise to choose one."""
    facts = bare(
        os=OsRelease("centos", "7"), package_manager="yum", modules={"nvidia": "550.163.01"}
    )
    found = {note.finding.code: note.finding.remedy for note in row(facts).notes}
    settings, _ = load_node_settings(DRIVER_ALONE)
    assert settings
    plan = plan_node(settings, facts, load_catalog(), NOW)
    planned = {finding.code: finding.remedy for finding in plan.all_findings}
    assert found[code] == planned[code]
    assert "No branch for this host still gets fixes" in found[code]


def test_packages_without_a_module_are_the_driver_of_the_host() -> None:
    found = row(healthy(modules={}, module_on_disk=None, library=None))
    assert found.driver_text == f"{NEWEST} (not loaded)"
