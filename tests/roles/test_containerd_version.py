"""A repository whose containerd is too old stops its host before a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gpufleet.containerd import operations as containerd
from gpufleet.host.operation import Later
from tests.unit.containerd.containerd_plan_setup import host, plan_of


@pytest.mark.parametrize(("version", "stops"), [("1.2.0", True), ("99.0", False), ("", False)])
def test_the_version_of_the_repository(
    version: str, stops: bool, carry_out: Callable[..., Any]
) -> None:
    """ "": the transaction has been carried out before."""
    plan = replace(plan_of(host()), minimum="1.7")
    found = replace(plan.transaction, version=version)
    chosen = Later(found if version else None)
    done = carry_out(lambda: containerd.require_containerd("Check the version", plan, chosen))
    assert bool(done.commands) is stops
    assert all(f"containerd {version}" in command for command in done.commands)
