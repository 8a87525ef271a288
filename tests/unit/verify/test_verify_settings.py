"""Checks of settings: an error that stops a deploy fails `gpufleet verify` as well."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from gpufleet.cli.verify import Settings
from gpufleet.verify.checks import CheckFailed, Subject
from gpufleet.verify.findings.hosts import SETTINGS
from gpufleet.verify.inventory import Target

CLUSTER = ("gpu_cluster",)


def judged(groups: tuple[str, ...], **data: Any) -> Subject:
    target = Target("gpu-1", groups, data)
    return Subject(replace(target, problems=Settings().pytest_gpufleet_problems(target)))


def test_valid_settings_pass() -> None:
    judged(("gpu_nodes",), driver_branch="580", _sudo_password="x").expect_settings(SETTINGS)
    judged(CLUSTER, cluster_context="prod").expect_settings(SETTINGS)


@pytest.mark.parametrize(
    ("groups", "key"), [(("gpu_nodes",), "driver_brnach"), (CLUSTER, "cluster_contxt")]
)
def test_a_misspelt_key_fails(groups: tuple[str, ...], key: str) -> None:
    with pytest.raises(CheckFailed) as caught:
        judged(groups, **{key: "580"}).expect_settings(SETTINGS)
    assert caught.value.finding.code == "GF705"
    assert f"GF201 Unsupported key {key}" in str(caught.value)


def test_settings_that_break_their_reader_fail_on_that_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(groups: Collection[str], data: dict[str, Any]) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr("gpufleet.cli.verify.settings_problems", broken)
    with pytest.raises(CheckFailed, match=r"cannot be read \(RuntimeError: unforeseen"):
        judged(("gpu_nodes",)).expect_settings(SETTINGS)


def test_settings_that_were_not_read_are_skipped() -> None:
    with pytest.raises(pytest.skip.Exception):
        Subject(Target("gpu-1", (), {})).expect_settings(SETTINGS)
