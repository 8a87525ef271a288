"""The key of a repository is compared before anything is written, whatever the mirror serves."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from gpufleet.operations import repository
from tests.unit.plan.hosts import bare_host, plan_for

ERROR_PAGE = base64.b64encode(b"<html>Not what you asked for</html>").decode()


@pytest.mark.parametrize(
    "answer",
    [
        ERROR_PAGE,
        "error curl: (22) The requested URL returned error: 404 (exit status 22)",
        "%%% not base64 %%%",
    ],
)
def test_what_is_no_key_stops_the_host_before_a_file_is_written(
    carry_out: Callable[..., Any], answer: str
) -> None:
    plan = plan_for(bare_host()).repository
    host = carry_out(
        lambda: repository.trust("Trust", plan, "driver", 5), {"gpufleet-fetch": answer}
    )
    assert not any("put_files" in command for command in host.commands)
    # the fake host has no shell: that this last command fails is in test_quoting.py
    assert "exit 1" in host.commands[-1]
    assert "GF310" in host.commands[-1] or "GF311" in host.commands[-1]
