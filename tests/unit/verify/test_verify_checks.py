"""Exactly one check, the one for that fault, finds each fault of a fake host."""

from __future__ import annotations

import re

import pytest
from fake_host import IMAGE, VERSION, FakeHost, dpkg
from shipped_checks import CHECKS, all_checks
from verify_exporter_faults import EXPORTER_FAULTS
from verify_faults import FAULTS, OLD, no_provenance

from gpufleet.core.findings import Kind
from gpufleet.facts.files import BACKUPS
from gpufleet.verify.findings import hosts as kinds
from gpufleet.verify.findings import runtimes
from gpufleet.verify.probe import Output, Unreachable

ALL_FAULTS = FAULTS | EXPORTER_FAULTS


@pytest.mark.parametrize("name", ALL_FAULTS)
def test_fault_is_found_by_its_own_check(fake_host: FakeHost, name: str) -> None:
    fault, expected = ALL_FAULTS[name]
    fault(fake_host)
    assert fake_host.failures() == expected


def test_message_says_expected_found_and_what_to_do(fake_host: FakeHost) -> None:
    fake_host.set("loaded-version", OLD)
    text = fake_host.outcomes()["module_loaded"]
    assert text.startswith(
        f"GF730 gpu-1: Expected module nvidia {VERSION} loaded; found {OLD}. Run"
    )


def test_host_without_gpu_passes_what_concerns_it(fake_host: FakeHost) -> None:
    fake_host.set("pci", "")
    fake_host.set("modules", "")
    fake_host.set("dpkg", dpkg("bash", "5.2", "install ok installed"))
    no_provenance(fake_host)
    outcomes = fake_host.outcomes()
    passed = {check for check, text in outcomes.items() if text == "passed"}
    assert passed == {"reachable", "package_manager", "nothing_without_gpu"}
    assert all(text.startswith("skipped: ") for c, text in outcomes.items() if c not in passed)


def test_driver_without_gpu_is_found(fake_host: FakeHost) -> None:
    fake_host.set("pci", "")
    fake_host.set("modules", "")
    no_provenance(fake_host)
    assert fake_host.failures() == {"nothing_without_gpu": "GF714"}


def test_unreachable_host_fails_one_check(
    fake_host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str, *arguments: str) -> dict[str, Output]:
        raise Unreachable("Connection refused")

    monkeypatch.setattr(fake_host, "script", refuse)
    assert fake_host.failures() == {"reachable": "GF710"}


def test_a_user_other_than_root_is_one_failure(fake_host: FakeHost) -> None:
    fake_host.sections["uid"] = Output(0, "1000")
    assert fake_host.failures() == {"reachable": "GF706"}


def test_two_scripts_read_the_whole_host(fake_host: FakeHost) -> None:
    fake_host.outcomes()
    scripts = [call for call in fake_host.calls if call.endswith(".sh")]
    assert sorted(scripts) == ["container.sh", "container.sh", "host.sh", "runtimes.sh"]


def test_a_container_runs_the_image_of_the_inventory(fake_host: FakeHost) -> None:
    fake_host.data["verify_image"] = IMAGE
    seen = fake_host.outcomes()
    assert seen["container_sees_gpus[docker]"] == "passed"
    assert seen["container_sees_gpus[containerd]"] == (
        f"skipped: containerd has no image {IMAGE} (verify_image) on the host"
    )


def codes_of_hosts() -> set[str]:
    """Codes of the findings about hosts, without those about clusters."""
    declared = (*vars(kinds).values(), *vars(runtimes).values())
    return {kind.code for kind in declared if isinstance(kind, Kind)}


def test_every_check_and_code_is_documented() -> None:
    text = (CHECKS.parents[1] / "docs/reference/checks.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (GF7\d\d) \|", text, re.M))
    assert set(rows) == set(all_checks())
    codes = codes_of_hosts()
    checked = {code for code in codes if code >= "GF710"} | {kinds.SETTINGS.code}
    assert set(rows.values()) == checked


def test_every_code_is_found_by_some_fault() -> None:
    found = {code for _, expected in ALL_FAULTS.values() for code in expected.values()}
    # An unreachable host and a driver without a GPU have separate tests above.
    codes = codes_of_hosts()
    assert {code for code in codes if code >= "GF710"} - found == {"GF710", "GF714"}


@pytest.mark.parametrize("kind", [runtimes.RUNTIME_VALID, runtimes.RUNTIME_USER_KEYS])
def test_copies_are_where_the_roles_put_them(kind: Kind) -> None:
    path = "/etc/docker/daemon.json"
    remedy = kind(None, expected="", found="", path=path).remedy
    assert remedy.endswith(f"ls -d {BACKUPS}/*{path}")
