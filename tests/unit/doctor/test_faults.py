"""A fault is named as the cause by its own check; what follows from it is not a cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gpufleet.core.accepted import accepted_of
from gpufleet.doctor.models import SubjectVerdict, Verdict
from gpufleet.host.upgrade_state import STATE_FILE
from gpufleet.run.findings import UNREACHABLE
from gpufleet.status.models import SeenHost
from tests.unit.doctor.faults import FAULTS, OLDER
from tests.unit.doctor.machines import judged, machine, on_containerd, verdict_on, with_file
from tests.unit.status.fleets import seen

pytestmark = pytest.mark.claim(
    "`gpufleet doctor` names the first broken link of a host's software chain as the cause.",
    level=1,
)

# two faults -> the checks that name the causes
PAIRS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("docker failed", "not loaded"): ("chain.loaded", "chain.runtime"),
    ("nouveau has the GPU", "toolkit was removed"): ("chain.nouveau", "chain.toolkit"),
    ("headers are missing", "persistence daemon failed"): ("chain.headers",),
    ("headers are missing", "nvidia-smi fails"): ("chain.headers",),
    ("DKMS failed", "exporter failed"): ("chain.build",),
    ("not signed", "CDI of another driver"): ("chain.signature",),
    ("GPU fell off the bus", "nvidia-smi fails"): ("chain.gpus",),
    ("GPU fell off the bus", "docker is stopped"): ("chain.gpus", "chain.runtime"),
    ("the package is newer than the module", "exporter failed"): ("chain.version",),
    ("the package is newer than the module", "fabric manager of another version"): (
        "chain.version",
    ),
    ("invalid daemon.json", "docker failed"): ("chain.config",),
    ("toolkit was removed", "docker failed"): ("chain.toolkit",),
    ("packages half installed", "DKMS failed"): ("host.packages",),
    ("packages half installed", "nouveau has the GPU"): ("host.packages", "chain.nouveau"),
    ("no device nodes", "persistence daemon failed"): ("chain.nodes",),
    ("containerd failed", "kubelet failed"): ("chain.runtime",),
    ("containerd failed", "exporter does not answer"): ("chain.runtime",),
    ("exporter failed", "exporter does not answer"): ("chain.exporter",),
    ("not loaded", "exporter has no metrics"): ("chain.loaded",),
    ("clock is wrong", "not loaded"): ("host.clock", "chain.loaded"),
    ("fabric manager failed", "CDI of another driver"): ("chain.fabric", "chain.cdi"),
    ("no GPU is bound", "exporter failed"): ("chain.bound",),
}  # fmt: skip


def causes(found: SubjectVerdict) -> set[str]:
    return {cause.check for cause in found.causes}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_verdict_names_the_fault(fault: str) -> None:
    change, check, consequences = FAULTS[fault]
    found = verdict_on(change(machine()))
    assert found.verdict.fails
    assert [cause.check for cause in found.causes] == [check]
    (cause,) = found.causes
    assert set(found.consequences_of(cause)) == set(consequences)
    assert cause.cause
    assert cause.steps


@pytest.mark.parametrize("pair", PAIRS, ids=" + ".join)
def test_of_two_faults_each_cause_is_named(pair: tuple[str, str]) -> None:
    facts = machine()
    for fault in pair:
        facts = FAULTS[fault][0](facts)
    assert causes(verdict_on(facts)) == set(PAIRS[pair])


def test_a_host_that_does_not_answer_is_unknown() -> None:
    silent = SeenHost("gpu-07", problem=UNREACHABLE(host="gpu-07", cause="timed out"))
    (found,) = judged(silent).hosts
    assert (found.verdict, causes(found)) == (Verdict.UNKNOWN, {"host.answers"})


@pytest.mark.parametrize(
    ("data", "check", "verdict"),
    [
        ({"node_gpus": 2}, "chain.gpus", Verdict.CRITICAL),
        ({"driver_brunch": "580"}, "host.plan", Verdict.CRITICAL),
    ],
)
def test_what_the_inventory_says(data: dict[str, Any], check: str, verdict: Verdict) -> None:
    found = verdict_on(machine(), **data)
    assert (found.verdict, causes(found)) == (verdict, {check})


def test_an_upgrade_that_has_not_ended() -> None:
    found = verdict_on(with_file(machine(), STATE_FILE, "{"))
    assert (found.verdict, causes(found)) == (Verdict.WARNING, {"host.upgrade"})


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [("removed from DKMS, still loaded", Verdict.WARNING),
     ("precompiled for another kernel", Verdict.CRITICAL)],
)  # fmt: skip
def test_a_loaded_module_that_is_not_on_disk_works_until_the_next_boot(
    fault: str, verdict: Verdict
) -> None:
    found = verdict_on(FAULTS[fault][0](machine()))
    assert (found.verdict, causes(found)) == (verdict, {"chain.build"})


def test_versions_that_do_not_work_together() -> None:
    facts = on_containerd(machine())
    packages = {
        name: replace(each, version="1.18.0-1") if "nvidia-container" in name else each
        for name, each in facts.packages.items()
    }
    found = verdict_on(replace(facts, packages=packages))
    assert "host.versions" in causes(found)


def test_a_host_that_differs_from_its_peers() -> None:
    hosts = [seen(f"gpu-{number}", machine()) for number in range(3)]
    *peers, odd = judged(*hosts, seen("gpu-3", machine(OLDER))).hosts
    assert {peer.verdict for peer in peers} == {Verdict.PASS}
    assert (odd.verdict, causes(odd)) == (Verdict.WARNING, {"host.peers"})


def test_a_cause_is_as_bad_as_its_consequences() -> None:
    change, *_ = FAULTS["packages half installed"]
    found = verdict_on(FAULTS["DKMS failed"][0](change(machine())))
    assert [cause.verdict for cause in found.causes] == [Verdict.CRITICAL]


def test_a_failed_runtime_is_read_on_the_host_whatever_the_plan_does() -> None:
    (cause,) = verdict_on(FAULTS["docker failed"][0](machine())).causes
    assert (cause.unit, cause.verdict) == ("docker.service", Verdict.CRITICAL)


APT = "apt-get (4711)"


def test_half_installed_packages_are_no_fault_while_a_package_manager_works() -> None:
    found = verdict_on(replace(FAULTS["packages half installed"][0](machine()), lock_holder=APT))
    assert (found.verdict, causes(found)) == (Verdict.PASS, set())
    busy = [each for each in found.results if each.check == "host.busy"]
    assert [each.verdict for each in busy] == [Verdict.INFO]


def test_what_a_package_manager_has_not_finished_is_one_cause() -> None:
    change, *_ = FAULTS["packages half installed"]
    found = verdict_on(replace(FAULTS["DKMS failed"][0](change(machine())), lock_holder=APT))
    (cause,) = found.causes
    assert (cause.check, cause.verdict) == ("host.busy", Verdict.CRITICAL)
    assert set(found.consequences_of(cause)) == {"chain.build", "chain.loaded"}


def test_a_fault_that_packages_cannot_have_is_no_consequence_of_the_package_manager() -> None:
    found = verdict_on(replace(FAULTS["clock is wrong"][0](machine()), lock_holder=APT))
    assert causes(found) == {"host.clock"}


def test_a_finding_that_the_inventory_accepts_does_not_count() -> None:
    facts = FAULTS["clock is wrong"][0](machine())
    accepted = accepted_of({"accepted_findings": {"GF541": "until 2099-01-01"}})
    host = replace(seen("gpu-07", facts), accepted=accepted)
    (found,) = judged(host).hosts
    assert found.verdict is Verdict.PASS
