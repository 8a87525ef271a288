"""The next steps that `gpufleet doctor` prints: each repairs its cause, and can be copied."""

from __future__ import annotations

import io

from rich.console import Console

from gpufleet.doctor.text import show_verdicts
from tests.unit.doctor.faults import FAULTS
from tests.unit.doctor.machines import judged, machine
from tests.unit.status.fleets import seen


def shown(fault: str) -> str:
    host = seen("gpu-01", FAULTS[fault][0](machine()), toolkit_enabled=True)
    out = io.StringIO()
    show_verdicts(Console(file=out, width=300), judged(host))
    return out.getvalue()


def test_an_undefined_default_runtime_is_repaired_before_its_unit_is_started() -> None:
    text = shown("docker's default runtime nvidia is not defined")
    assert "Next: gpufleet apply prod.py --limit gpu-01\n" in text
    assert "Follows from it: chain.runtime\n" in text
    assert "--fix" not in text


def test_a_failed_runtime_is_read_whatever_a_run_writes() -> None:
    assert "Next (on the host): journalctl -b -n 50 -u docker.service\n" in shown("docker failed")
