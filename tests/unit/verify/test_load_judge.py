"""What dcgmproftester prints in its versions, and what is made of it and of Prometheus' series."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpufleet.verify.load_job import Load, field_of
from gpufleet.verify.load_judge import Printed, idle, parse, samples, slow, throttled, xids
from gpufleet.verify.load_models import load_load_test

CATALOG = load_load_test()
PERCENTS = CATALOG.utilization.metrics
TENSOR, UTIL = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"
REASONS, XID = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_XID_ERRORS"
XIDS = "DCGM_EXP_XID_ERRORS_COUNT"
OUTPUTS = Path(__file__).with_name("load_outputs")
FALLING = (100.0, 200.0, 201.0, 199.0, 150.0, 149.0, 200.0, 100.0)  # 0.75 of 200 is 150


def output(name: str) -> str:
    return (OUTPUTS / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("name", "worker", "rates", "last"),
    [
        ("t4-2.0.10", "0", 5, 27294.1),
        ("a100-3.x", "0:0", 7, 253109.4),
        ("a100-openshift", "0:0", 4, 189000.0),
        ("fp32-3.1.3", "0:0", 5, 12255.3),
    ],
)
def test_rates_are_found_in_every_wording(name: str, worker: str, rates: int, last: float) -> None:
    found = parse(output(name))
    assert found.passed
    assert not found.complaint
    assert len(found.rates[worker]) == rates
    assert found.rates[worker][-1] == last
    assert slow(found, CATALOG.rates) == []


def test_a_load_without_rates_has_passed_too() -> None:
    found = parse(output("fp32-4.2.3"))
    assert (found.passed, found.rates, found.workers) == (True, {}, {"0:0"})


def test_workers_are_counted_however_they_are_written() -> None:
    text = "".join(f"Worker {gpu}:0 [1004]: TensorEngineActive: x\n" for gpu in range(8))
    assert len(parse(text * 2).workers) == 8
    assert parse(output("t4-2.0.10")).workers == frozenset()


@pytest.mark.parametrize(
    "complaint",
    [
        "Wrong version of dcgmproftester is used. Expected Cuda version is 12. Installed Cuda "
        "version is 13.",
        "Unable to validate Cuda version. cuDriverGetVersion returned 34.",
        "GPU 0, TestField 1004 testing FAILED.",
        "2026-01-11 19:12:16.827 ERROR [28:28] Error -33 from RunTests(). Exiting.",
    ],
)
def test_a_fault_is_quoted_whatever_else_was_printed(complaint: str) -> None:
    found = parse(output("a100-3.x") + complaint + "\nGPU 0, TestField 1004 test PASSED.\n")
    assert not found.passed
    assert found.complaint == complaint


@pytest.mark.parametrize("text", ["", "PARSE ERROR: Argument: -d\n", "nv-hostengine started\n"])
def test_what_shows_no_load_has_not_passed(text: str) -> None:
    assert not parse(text).passed


def printed(**rates: tuple[float, ...]) -> Printed:
    return Printed(rates, frozenset(rates), True, "")


def test_a_gpu_that_falls_behind_itself_is_reported() -> None:
    [found] = slow(printed(a=FALLING), CATALOG.rates)
    assert found.startswith("GPU of worker a fell to 149 of 200")
    assert slow(printed(a=tuple(max(rate, 150) for rate in FALLING)), CATALOG.rates) == []


def test_a_gpu_that_falls_behind_its_neighbours_is_reported() -> None:
    fine, lame = (1.0, 200.0, 200.0, 200.0, 1.0), (1.0, 149.0, 149.0, 149.0, 1.0)
    assert slow(printed(a=fine, b=lame), CATALOG.rates) == [
        "GPU of worker b did 149 gflops, the best one 200"
    ]
    assert slow(printed(a=fine, b=tuple(rate + 1 for rate in lame)), CATALOG.rates) == []


def test_a_gpu_that_computes_nothing_is_reported() -> None:
    assert slow(printed(a=(0.0,) * 5), CATALOG.rates) == ["GPU of worker a computed nothing"]


def series(name: str, *values: float, gpu: int = 0, start: int = 0, **labels: str) -> Any:
    pairs = [[1000 + 15 * (start + index), str(value)] for index, value in enumerate(values)]
    return {"metric": {"__name__": name, "gpu": str(gpu), **labels}, "values": pairs}


def load(compute: str) -> Load:
    field = field_of(CATALOG, compute)
    assert field
    return Load("gpu-1", 1, "image", 13, field, compute)


@pytest.mark.parametrize(
    ("compute", "least"),
    [("8.0", 0.5), ("9.0", 0.4), ("7.5", 0.2), ("8.6", 0.2), ("12.0", 0.4), ("7.0", 0.5)],
)
def test_the_pipe_has_to_work_as_much_as_its_generation_can(compute: str, least: float) -> None:
    ends = (0.0, least, least, least, 0.0)
    assert idle(CATALOG, load(compute), [series(TENSOR, *ends)]) == []
    low = [value - 0.01 for value in ends]
    [found] = idle(CATALOG, load(compute), [series(TENSOR, *low)])
    assert found == f"GPU 0: its tensor pipe worked {least - 0.01:.2f} of the time"


def test_a_gpu_without_that_metric_is_judged_by_its_utilization() -> None:
    found = [series(UTIL, 0, 100, 98), series(UTIL, 40, 30, 100, gpu=1)]
    assert idle(CATALOG, load("6.1"), found) == [
        "GPU 1 was busy 40 % of the time (DCGM_FI_DEV_GPU_UTIL)"
    ]
    ratio = [series("DCGM_FI_DEV_GPU_UTIL_RATIO", 0.98, 0.98)]
    assert idle(CATALOG, load("6.1"), ratio) == []
    assert samples(found, PERCENTS) == 3
    assert samples(ratio, PERCENTS) == 2
    assert samples([], PERCENTS) == 0


def test_heat_is_reported_and_the_power_limit_is_not() -> None:
    found = [series(REASONS, 0, 4, 4), series(REASONS, 4, 4 + 64, 32 + 64, gpu=1)]
    assert throttled(CATALOG, found) == [
        "GPU 1: too hot (hardware) (2 samples)",
        "GPU 1: too hot (software) (1 sample)",
    ]


def test_only_an_xid_that_came_meanwhile_is_reported() -> None:
    before = [series(XID, 31, 31, 31), series(XIDS, 1, 1, 1, xid="31")]
    assert xids(CATALOG, before) == []
    assert xids(CATALOG, [series(XID, 0, 0, 79, gpu=3)]) == ["GPU 3: XID 79"]
    assert xids(CATALOG, [series(XID, 0, 79, 79)]) == ["GPU 0: XID 79"]
    again = [series(XID, 31, 31, 31), series(XIDS, 1, 1, 2, xid="31")]
    assert xids(CATALOG, again) == ["GPU 0: XID 31"]
    new = [series(UTIL, 100, 100, 100), series(XIDS, 1, start=2, xid="48")]
    assert xids(CATALOG, new) == ["GPU 0: XID 48"]
