"""Steps on a host: a host that lost its GPUs fails, and a host with GPU work is not changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpufleet.facts.model import GpuProcess
from gpufleet.host.findings import REBOOT_FAILED
from gpufleet.host.upgrade_settings import Subject, UpgradeSettings
from gpufleet.run.report import HostReport
from gpufleet.upgrade.operations import steps, subject_steps
from gpufleet.upgrade.operations.result import step_result
from gpufleet.upgrade.subjects import data_of

SETTINGS = UpgradeSettings.model_validate({})
PLANS = {
    "driver": SimpleNamespace(
        before="580.1", target="580.2", transaction=SimpleNamespace(installed=("driver",))
    ),
    "toolkit": SimpleNamespace(
        before="1.18.2", target="1.20.1", transaction=SimpleNamespace(installed=("ctk", "libs"))
    ),
}


def node(work: tuple[GpuProcess, ...] = (), **plans: Any) -> SimpleNamespace:
    facts = SimpleNamespace(
        gpus=(), gpu_processes=work, gpu_pods=0, loaded_driver="580.1", controller=False
    )
    host = SimpleNamespace(lock_timeout=1, reboot_timeout=60)
    plan = SimpleNamespace(of=lambda role: plans.get(role.name), context=None)
    return SimpleNamespace(plan=plan, facts=facts, settings=SimpleNamespace(host=host))


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The codes of the findings that stopped a step."""
    found: list[str] = []

    def block(host: Any, findings: Any) -> None:
        found.extend(each.code for each in findings)

    report = SimpleNamespace(block=block)
    monkeypatch.setattr(steps, "RunReport", SimpleNamespace(of=lambda state: report))
    return found


@pytest.mark.parametrize(
    "step", [steps.prepare_step, lambda settings: steps.change_step(settings, lambda node: None)]
)
def test_a_host_whose_gpus_are_gone_is_no_success(
    step: Any, blocked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "current_node", node)
    step(SETTINGS)
    assert blocked == ["GF052"]


@pytest.mark.parametrize("subject", ["driver", "toolkit", "reboot", "sharing"])
def test_work_that_began_after_the_drain_stops_a_change(
    subject: Subject, blocked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    work = (GpuProcess(7, "python", ("/dev/nvidia0",), "python train.py"),)
    monkeypatch.setattr(steps, "current_node", lambda **how: node(work, **PLANS))
    monkeypatch.setattr(
        subject_steps, "change_subject", lambda *args: pytest.fail("it was changed")
    )
    steps.change_step(SETTINGS.model_copy(update={"subject": subject}), lambda node: None)
    assert blocked == ["GF072"]


@pytest.mark.parametrize(
    ("subject", "did"),
    [
        ("driver", ["note", "install", "580.2 ''"]),
        ("toolkit", ["note", "install", "580.1 '1.20.1'"]),
        ("reboot", ["note", "reboot", "580.1 ''"]),
        ("sharing", ["note", "install", "read back", "580.1 ''"]),
    ],
)
def test_only_the_middle_differs(
    subject: Subject, did: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    on_host = SimpleNamespace(
        note_health=lambda sentence: done.append("note"),
        compare_health=lambda sentence, settings, driver, toolkit: done.append(
            f"{driver} {toolkit!r}"
        ),
    )
    reboot = SimpleNamespace(reboot_if_needed=lambda *args, **how: done.append("reboot"))
    gpus = SimpleNamespace(check_layout=lambda sentence: done.append("read back"))
    monkeypatch.setattr(subject_steps, "gpus", gpus)
    monkeypatch.setattr(subject_steps, "on_host", on_host)
    monkeypatch.setattr(subject_steps, "reboot", reboot)
    settings = SETTINGS.model_copy(update={"subject": subject})
    one: Any = node(**PLANS)
    subject_steps.change_subject(settings, one, lambda node: done.append("install"))
    assert done == did


@pytest.mark.parametrize("noted", ["", "this", "earlier"])
def test_a_host_that_was_rebooted_is_not_rebooted_again(
    noted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process may have rebooted it, or the boot may have exceeded its limit."""
    reasons: list[str] = []
    on_host = SimpleNamespace(note_health=lambda *args: None, compare_health=lambda *args: None)
    when = SimpleNamespace(
        reboot_if_needed=lambda sentence, reason, *args, **how: reasons.append(reason())
    )
    monkeypatch.setattr(subject_steps, "on_host", on_host)
    monkeypatch.setattr(subject_steps, "reboot", when)
    monkeypatch.setattr(subject_steps, "read_fact", lambda fact: noted)
    one: Any = node(**PLANS)
    one.facts.boot_id = "this"
    settings = SETTINGS.model_copy(update={"subject": "reboot"})
    subject_steps.change_subject(settings, one, lambda node: None)
    assert [bool(reason) for reason in reasons] == [noted != "earlier"]


def test_a_host_that_is_away_after_a_reboot_is_waited_for() -> None:
    away = HostReport("one", status="failed", findings=[REBOOT_FAILED(seconds=30)])
    found = step_result(away, touched=True)
    assert (found.ok, found.reached, found.code) == (False, False, "GF554")


def test_the_reason_of_a_failed_roll_back_quotes_the_line_that_says_why() -> None:
    """The rest of the output is in the run's log."""
    error = """Restore the packages
  | GF057 one: The packages could not be installed.
  |   Repair it, then run `gpufleet upgrade release`.
  |   | Building initial module for
  |   | /build/nv.c:12:9: error: implicit declaration of function 'x'
  |   | Error! Bad return status for module build on kernel: 5.15.0
  |   | E: Sub-process /usr/bin/dpkg returned an error code (1)
  |   See the whole output: /logs/1"""
    found = step_result(HostReport("one", status="failed", errors=[error]), touched=True)
    assert found.reason == (
        "GF057 one: The packages could not be installed. "
        "It failed with: /build/nv.c:12:9: error: implicit declaration of function 'x'. "
        "Repair it, then run `gpufleet upgrade release`. See the whole output: /logs/1"
    )


@pytest.mark.parametrize(
    ("subject", "did"),
    [
        ("driver", ["archives", "components", "trust", "download", "keep {'driver': '580.1'}"]),
        ("reboot", ["keep {}"]),
    ],
)
def test_a_preparation_fetches_and_disturbs_nothing(
    subject: Subject, did: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def noted(word: str) -> Any:
        return lambda *args, **how: done.append(word)

    components = object()

    def opened(sentence: str, facts: Any, write: Any, timeout: int) -> None:
        assert write is components
        done.append("components")

    repository = SimpleNamespace(open_components=opened, trust_repository=noted("trust"))
    on_host = SimpleNamespace(
        keep_packages=lambda sentence, settings, job, before, there: done.append(f"keep {there}")
    )
    monkeypatch.setattr(subject_steps, "archives", SimpleNamespace(use_archives=noted("archives")))
    monkeypatch.setattr(subject_steps, "repository", repository)
    download = SimpleNamespace(resolve_and_download=noted("download"))
    monkeypatch.setattr(subject_steps, "packages", download)
    monkeypatch.setattr(subject_steps, "on_host", on_host)
    one: Any = node(**PLANS)
    one.plan.archives = ()
    one.facts.packages = {"driver": SimpleNamespace(version="580.1")}
    job: Any = SimpleNamespace(lock_timeout=1, repository=None, role="driver")
    family = subject_steps.Family(job, "580.1", ("driver",), cast(Any, components))
    subject_steps.prepare_subject(SETTINGS.model_copy(update={"subject": subject}), one, family)
    assert done == did


def test_the_packages_of_a_subject() -> None:
    plan: Any = node(**PLANS).plan
    assert subject_steps.installed_of("driver", plan) == ("driver",)
    assert subject_steps.installed_of("toolkit", plan) == ("ctk", "libs")


@pytest.mark.parametrize(
    ("subject", "version", "branch", "data"),
    [
        ("driver", "", "", {}),
        ("driver", "580.178.04", "", {"driver_version": "580.178.04", "driver_branch": "580"}),
        ("driver", "", "580", {"driver_version": None, "driver_branch": "580"}),
        ("toolkit", "1.20.1", "", {"toolkit_version": "1.20.1"}),
        ("reboot", "580.178.04", "", {}),
    ],
)
def test_data_of_a_step(subject: Subject, version: str, branch: str, data: dict[str, Any]) -> None:
    allowed = "toolkit_allow_change" if subject == "toolkit" else "driver_allow_change"
    whole = {"upgrade_subject": subject, allowed: True, **data}
    assert data_of(subject, version, branch) == whole


def test_a_layout_is_changed_without_a_permission_for_driver_or_toolkit() -> None:
    assert data_of("sharing", "") == {"upgrade_subject": "sharing"}
    lines = "0: mig=1g.10gb:7"
    assert data_of("sharing", lines) == {"upgrade_subject": "sharing", "gpu_lines": lines}


@pytest.mark.parametrize(
    ("step", "did"),
    [("prepare", "health 580.1"), ("take", "health 580.1"), ("restore", "note restoring")],
)
def test_steps_around_a_change_of_a_layout_only_note_the_health(
    step: str, did: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    on_host = SimpleNamespace(
        keep_packages=lambda sentence, settings, job, version, there: done.append(
            f"health {version}"
        ),
        note_health=lambda sentence, attempt: done.append(f"note {attempt}"),
    )
    part = SimpleNamespace(examined=False)
    report = SimpleNamespace(host=lambda name: part)
    one = SimpleNamespace(name="h", groups=(), data=SimpleNamespace(dict=lambda: asked))
    asked = {"upgrade_step": step, "upgrade_run": "r", "upgrade_subject": "sharing"}
    monkeypatch.setattr(steps, "host", one)
    monkeypatch.setattr(steps, "RunReport", SimpleNamespace(of=lambda state: report))
    monkeypatch.setattr(steps, "settings_and_facts", lambda: (None, node().facts))
    monkeypatch.setattr(steps, "host_lock", SimpleNamespace(arm_lock=lambda *args: None))
    monkeypatch.setattr(steps, "on_host", on_host)
    steps.take_part(lambda node: pytest.fail("it was changed"))
    assert (done, part.examined) == ([did], True)
