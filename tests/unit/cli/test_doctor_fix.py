"""`gpufleet doctor --fix` on hosts made of facts: what is fixed, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gpufleet.doctor.container_links import CDI_SERVICE
from gpufleet.doctor.fix import fixable_step
from gpufleet.doctor.table import all_checks
from gpufleet.facts.gpu import CdiSpec
from gpufleet.facts.model import STEP_LOCK, NodeFacts
from gpufleet.host.upgrade_state import STATE_FILE
from tests.fakes.fixed_fleet import FixedFleet
from tests.unit.doctor.faults import FAULTS, OLDER
from tests.unit.doctor.machines import (
    machine,
    on_containerd,
    second_gpu,
    service,
    with_file,
    with_services,
)

pytestmark = pytest.mark.claim(
    "`doctor --fix` runs the shown command of a safe fix once it is confirmed, and refuses "
    "everything else.",
    level=1,
)

Fleet = Callable[..., FixedFleet]
REFRESHED = "systemctl restart nvidia-cdi-refresh.service"
START = "systemctl reset-failed {0}; systemctl start {0}"
# fault -> the command that fixes it
FIXED = {
    "CDI of another driver": "nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml",
    "two CDI specifications": "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
    "no CDI specification by its service": REFRESHED,
    "persistence daemon failed": START.format("nvidia-persistenced.service"),
    "persistence daemon is stopped": START.format("nvidia-persistenced.service"),
    "fabric manager failed": START.format("nvidia-fabricmanager.service"),
    "fabric manager is stopped": START.format("nvidia-fabricmanager.service"),
    "docker failed": START.format("docker.service"),
    "docker is stopped": START.format("docker.service"),
    "containerd failed": START.format("containerd.service"),
    "no device nodes": "nvidia-modprobe -c 255 -c 0 && nvidia-modprobe -u -c 0",
    "no control node": "nvidia-modprobe -c 255 -c 0 && nvidia-modprobe -u -c 0",
}


def faulty(fault: str, facts: NodeFacts | None = None) -> NodeFacts:
    return FAULTS[fault][0](facts or machine())


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """`fleet(gpu-01=facts, …)`; a command repairs its host."""

    def build(**hosts: NodeFacts) -> FixedFleet:
        named = {name.replace("_", "-"): facts for name, facts in hosts.items()}
        return FixedFleet(named, monkeypatch, effect=lambda facts: machine())

    return build


@pytest.mark.parametrize("fault", FIXED)
def test_a_safe_fix_is_shown_and_run_and_the_host_judged_again(fleet: Fleet, fault: str) -> None:
    hosts = fleet(gpu_01=faulty(fault))
    check = FAULTS[fault][1]
    judged = hosts.run().stdout
    assert f"gpufleet doctor inv.py --limit gpu-01 --fix {check}\n" in judged
    before = judged.split()[0]
    done = hosts.run("--fix", check, "--yes")
    (host, command), *more = hosts.ran
    assert (host, more) == ("gpu-01", [])
    assert FIXED[fault] in command
    assert STEP_LOCK in command
    assert FIXED[fault] in done.stdout.replace("\n", " ")
    assert "Interrupts: nothing" in done.stdout
    assert f"gpu-01: {check} was {before}, is PASS; verdict was {before}, is PASS" in done.stdout
    assert done.exit_code == 0


def test_the_service_of_the_toolkit_writes_its_own_file(fleet: Fleet) -> None:
    stale = with_services(faulty("CDI of another driver"), service(CDI_SERVICE, "inactive"))
    hosts = fleet(gpu_01=stale)
    hosts.run("--fix", "chain.cdi", "--yes")
    assert REFRESHED in hosts.ran[0][1]


def test_each_gpu_gets_its_node(fleet: Fleet) -> None:
    hosts = fleet(gpu_01=faulty("no device nodes", second_gpu(machine())))
    hosts.run("--fix", "chain.nodes", "--yes")
    assert "nvidia-modprobe -c 255 -c 0 -c 1 && nvidia-modprobe -u -c 0" in hosts.ran[0][1]


def test_nothing_is_run_without_a_yes(fleet: Fleet) -> None:
    hosts = fleet(gpu_01=faulty("docker is stopped"))
    assert hosts.run().exit_code == 1
    silent = hosts.run("--fix", "chain.runtime")
    assert (silent.exit_code, silent.stdout) == (2, "")
    assert "--yes" in silent.stderr
    hosts.answer = "n\n"
    refused = hosts.run("--fix", "chain.runtime")
    assert refused.exit_code == 1
    assert START.format("docker.service") in refused.stdout
    assert hosts.ran == []
    hosts.answer = "y\n"
    assert hosts.run("--fix", "chain.runtime").exit_code == 0
    assert len(hosts.ran) == 1


def test_only_these_checks_have_a_fix() -> None:
    found = {check.id for check in all_checks() if fixable_step(check)}
    assert found == {
        "chain.cdi", "chain.nodes", "chain.persistence", "chain.fabric", "chain.runtime",
        "cluster.plugin",
    }  # fmt: skip


@pytest.mark.parametrize("check", ["gpu.lost", "chain.kubelet", "host.answers", "chain.effect"])
def test_a_check_without_a_fix_is_refused_with_the_command_for_its_steps(
    fleet: Fleet, check: str
) -> None:
    hosts = fleet(gpu_01=machine())
    done = hosts.run("--fix", check, "--yes")
    assert (done.exit_code, done.stdout, hosts.ran) == (2, "", [])
    assert f"gpufleet doctor inv.py --check {check}`" in done.stderr.replace("\n", " ")


def changed_unit(facts: NodeFacts) -> NodeFacts:
    return with_services(facts, replace(facts.services["docker.service"], changed=True))


def disabled(facts: NodeFacts) -> NodeFacts:
    return with_services(facts, replace(facts.services["docker.service"], enabled="disabled"))


def masked(facts: NodeFacts) -> NodeFacts:
    return with_services(facts, replace(facts.services["docker.service"], load="masked"))


def other_fabric(facts: NodeFacts) -> NodeFacts:
    packages = {
        name: replace(each, version=f"{OLDER}-1") if "fabricmanager" in name else each
        for name, each in facts.packages.items()
    }
    return replace(facts, packages=packages)


# what else is on the host -> its facts, the check, a part of the reason
LEFT = {
    "docker is disabled": (disabled(faulty("docker failed")), "chain.runtime", "disabled"),
    "docker is masked": (masked(faulty("docker is stopped")), "chain.runtime", "masked"),
    "its unit changed": (changed_unit(faulty("docker is stopped")), "chain.runtime", "changed"),
    "docker is silent": (faulty("docker does not answer"), "chain.runtime", "does not help"),
    "docker starts": (faulty("docker starts again and again"), "chain.runtime", "activating"),
    "CRI-O": (faulty("CRI-O failed"), "chain.runtime", "crio.service"),
    "no fabric manager": (faulty("no fabric manager"), "chain.fabric", "not installed"),
    "another fabric manager": (
        faulty("fabric manager of another version"), "chain.fabric", "does not help"
    ),
    "a stopped fabric manager of another version": (
        other_fabric(faulty("fabric manager is stopped")), "chain.fabric", OLDER
    ),
    "a CDI file of others": (
        machine(cdi_specs=(CdiSpec("/etc/cdi/mine.yaml", OLDER),)), "chain.cdi", "mine.yaml"
    ),
    "a consequence": (
        faulty("the package is newer than the module"), "chain.cdi", "follows from chain.version"
    ),
    "an upgrade": (
        with_file(faulty("persistence daemon is stopped"), STATE_FILE, "{"),
        "chain.persistence", "upgrade",
    ),
    "another run": (
        replace(faulty("docker is stopped"), run_lock="bob [1]", busy=True), "chain.runtime", "bob"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LEFT)
def test_what_is_not_safe_on_a_host_is_left_with_its_next_step(fleet: Fleet, case: str) -> None:
    facts, check, reason = LEFT[case]
    hosts = fleet(gpu_01=facts)
    usual = hosts.run()
    assert f"--fix {check}" not in usual.stdout
    done = hosts.run("--fix", check, "--yes")
    assert hosts.ran == []
    assert reason in done.stdout
    assert "no safe fix" in done.stdout
    assert "Next" in done.stdout.split("no safe fix")[1].splitlines()[1]
    assert done.exit_code == usual.exit_code > 0


def test_a_specification_of_another_program_is_moved_away(fleet: Fleet) -> None:
    facts = machine()
    old = CdiSpec("/etc/cdi/my old.yaml", OLDER)
    hosts = fleet(gpu_01=replace(facts, cdi_specs=(*facts.cdi_specs, old)))
    shown = hosts.run().stdout
    (step,) = [line for line in shown.splitlines() if "Next" in line]
    assert "mv '/etc/cdi/my old.yaml' '/etc/cdi/my old.yaml'.old" in step
    refused = hosts.run("--fix", "chain.cdi", "--yes").stdout
    assert step.split("Next")[1] in refused


def test_only_hosts_with_the_fault_are_touched(fleet: Fleet) -> None:
    stale, docker = faulty("CDI of another driver"), faulty("docker is stopped")
    hosts = fleet(gpu_01=stale, gpu_02=machine(), gpu_03=stale, gpu_04=docker)
    done = hosts.run("--fix", "chain.cdi", "--yes", "--limit", "gpu-0[234]")
    assert [name for name, _ in hosts.ran] == ["gpu-03"]
    assert done.exit_code == 1, "docker of gpu-04 still fails"
    done = hosts.run("--fix", "chain.cdi", "--yes", "--limit", "gpu_nodes")
    assert [name for name, _ in hosts.ran] == ["gpu-03", "gpu-01"]


def test_hosts_with_one_command_are_shown_together(fleet: Fleet) -> None:
    stale = faulty("CDI of another driver")
    hosts = fleet(gpu_01=stale, gpu_02=stale)
    done = hosts.run("--fix", "chain.cdi", "--yes")
    assert done.stdout.count("Interrupts:") == 1
    assert "gpu-[01-02]" in done.stdout
    assert done.exit_code == 0


def test_a_fix_that_fails_says_why_and_the_verdict_stays(fleet: Fleet) -> None:
    hosts = fleet(gpu_01=faulty("docker is stopped"))
    hosts.refusal = "Job for docker.service \x1b[31mfailed"
    done = hosts.run("--fix", "chain.runtime", "--yes")
    assert "GF695 gpu-01" in done.stderr
    assert "\x1b" not in done.output
    assert "is WARNING; verdict was WARNING, is WARNING" in done.stdout
    assert done.exit_code == 1


def test_a_fix_without_effect_is_no_pass(fleet: Fleet) -> None:
    hosts = fleet(gpu_01=faulty("docker is stopped"))
    hosts.effect = lambda facts: facts
    assert hosts.run("--fix", "chain.runtime", "--yes").exit_code == 1
    assert len(hosts.ran) == 1


def test_a_host_that_another_run_changes_meanwhile_is_left(fleet: Fleet) -> None:
    hosts = fleet(gpu_01=faulty("docker is stopped"))
    hosts.holder = "bob at desk [2]"
    done = hosts.run("--fix", "chain.runtime", "--yes")
    assert (hosts.ran, done.exit_code) == ([], 1)
    assert "GF508 gpu-01" in done.stderr


def test_a_host_that_is_lost_afterwards_is_unknown(fleet: Fleet) -> None:
    hosts = fleet(gpu_01=faulty("docker is stopped"))
    hosts.dies = True
    done = hosts.run("--fix", "chain.runtime", "--yes")
    assert "chain.runtime was WARNING, is UNKNOWN; verdict was WARNING, is UNKNOWN" in done.stdout
    assert done.exit_code == 2


def test_a_healthy_fleet_has_nothing_to_fix(fleet: Fleet) -> None:
    hosts = fleet(gpu_01=machine(), gpu_02=on_containerd(machine()))
    done = hosts.run("--fix", "chain.runtime", "--yes")
    assert (hosts.ran, done.exit_code) == ([], 0)
    assert "nothing to fix" in done.stdout


@pytest.mark.parametrize(
    "words",
    [["--yes"], ["--fix", "chain.nosuch", "--yes"], ["--fix", "chain.cdi,chain.nodes", "--yes"],
     ["--fix", "chain.cdi", "--yes", "--json"], ["--fix", "chain.cdi", "--yes", "--for", "prolog"],
     ["--fix", "chain.cdi", "--yes", "--check", "chain.cdi"]],
)  # fmt: skip
def test_wrong_usage_fixes_nothing(fleet: Fleet, words: list[str]) -> None:
    hosts = fleet(gpu_01=faulty("CDI of another driver"))
    done = hosts.run(*words)
    assert (done.exit_code, done.stdout, hosts.ran) == (2, "", [])
