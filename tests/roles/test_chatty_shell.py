"""Output of a login shell is never part of a response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyinfra import host, state

from gpufleet.driver import operations as modules
from gpufleet.host.asking import OUTPUT_MARK, framed_answer, privilege_arguments
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.reading import read_fact
from gpufleet.packages.operations.locks import wait_for_lock
from gpufleet.packages.operations.reading import (
    AddedPackages,
    AvailableVersions,
    Fetched,
    LockHolder,
)
from gpufleet.run.reporting import RunReport
from tests.roles.answers import framed_lines

BANNER = "reboot required\nchanged /etc/passwd\napt-get (17)\nnvidia-driver-580 580.1\n"


def around(text: str) -> str:
    return BANNER + framed_lines(text) + BANNER


def test_only_what_is_framed_counts(carry_out: Callable[..., Any]) -> None:
    found: dict[str, Any] = {}

    @host_operation
    def ask() -> Commands:
        found["holder"] = read_fact(LockHolder)
        found["added"] = read_fact(AddedPackages, "/x")
        found["versions"] = read_fact(AvailableVersions, "apt", ("nvidia-driver-580",))
        found["fetched"] = read_fact(Fetched, "apt", "http://mirror/key")
        yield wait_for_lock(0)

    answers = {
        "gpufleet-lock_holder": around(""),
        "gpufleet-packages_added": around("libfoo"),
        "gpufleet-available": around(""),
        "gpufleet-fetch": around("a2V5"),
    }

    def deploy() -> None:
        state.add_callback_handler(RunReport(state))
        ask("Ask")

    done = carry_out(deploy, answers)
    assert not done.failed
    expected = {"holder": "", "added": ["libfoo"], "versions": {}, "fetched": b"key"}
    assert found == expected


def test_a_banner_is_no_reason_for_a_reboot() -> None:
    assert modules.reboot_reason(around("").splitlines()) is None
    assert modules.reboot_reason(around("reboot nouveau stays").splitlines()) == "nouveau stays"


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["x"],
        [OUTPUT_MARK],
        [OUTPUT_MARK, "cut"],
        [OUTPUT_MARK, "a", OUTPUT_MARK, "b", OUTPUT_MARK],
    ],
)
def test_an_answer_that_is_not_whole_is_none(lines: list[str]) -> None:
    assert framed_answer(lines) is None


@pytest.mark.parametrize(
    "how",
    [{"_sudo": True}, {"_doas": True, "_doas_user": "root"}, {"_dzdo": True}, {"_su_user": "root"}],
)
def test_what_waits_for_a_lock_has_the_privileges_of_its_operation(
    carry_out: Callable[..., Any], how: dict[str, Any]
) -> None:
    seen: list[dict[str, Any]] = []

    @host_operation
    def ask() -> Commands:
        seen.append(privilege_arguments(host))
        yield wait_for_lock(0)

    def deploy() -> None:
        state.add_callback_handler(RunReport(state))
        ask("Ask")

    done = carry_out(deploy, {"gpufleet-lock_holder": framed_lines("")}, **how)
    assert not done.failed
    assert seen[0].items() >= how.items()
    assert "_timeout" not in seen[0]
