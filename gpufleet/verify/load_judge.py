"""The results of a load test, from dcgmproftester's output and Prometheus' series. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from gpufleet.core.names import counted
from gpufleet.core.versions import version_tuple
from gpufleet.verify.load_job import Load
from gpufleet.verify.load_models import ActiveLimit, LoadTest, Rates

# Worker 0:1[1004]: TensorEngineActive: generated ???, dcgm 0.000 (250362.2 gflops)
# before DCGM 2.1 without the worker, since 3.2 as 1.89e+05
_RATE = re.compile(
    r"(?:Worker (?P<worker>[\d:/]+) ?\[\d+\]: )?\b\w+EngineActive: +generated .*"
    r"\((?P<rate>\d+(?:\.\d*)?(?:e[+-]?\d+)?) gflops\)"
)
_WORKER = re.compile(r"^Worker ([\d:/]+) ?\[", re.MULTILINE)
_PASSED = re.compile(r"TestField \d+ test PASSED|All Tests Passed")
_REFUSED = re.compile(
    r"^.*(?:Wrong version of dcgmproftester|Unable to validate Cuda|FAILED\.|ERROR|Error -?\d+).*",
    re.MULTILINE,
)
_ENDS = 1  # reports at the beginning and at the end of which only a part was under load
Series = Mapping[str, Any]  # of a range query: "metric" -> labels, "values" -> [time, text]


@dataclass(frozen=True, slots=True)
class Printed:
    """Output of dcgmproftester. `rates`: worker -> gflops in the order of its reports; `workers`:
    one for each GPU, none in the wording of 2.0."""

    rates: Mapping[str, tuple[float, ...]]
    workers: frozenset[str]
    passed: bool
    complaint: str  # the first line that reports a fault; "" without one


def parse(text: str) -> Printed:
    """What dcgmproftester of DCGM 2.0 to 4.7 prints, in the wording of any of them.

    Those up to 2.1 end without a word on success; they have reported rates then.
    """
    rates: defaultdict[str, list[float]] = defaultdict(list)
    for line in text.splitlines():
        if found := _RATE.search(line):
            rates[found["worker"] or "0"].append(float(found["rate"]))
    refused = _REFUSED.search(text)
    return Printed(
        rates={worker: tuple(found) for worker, found in rates.items()},
        workers=frozenset(_WORKER.findall(text)),
        passed=bool(_PASSED.search(text) or rates) and not refused,
        complaint=refused[0].strip() if refused else "",
    )


def slow(printed: Printed, limits: Rates) -> list[str]:
    """Workers, each a GPU, that computed unsteadily or slower than others of the node."""
    inner = {
        worker: rates[_ENDS:-_ENDS]
        for worker, rates in printed.rates.items()
        if len(rates) > 2 * _ENDS
    }
    middle = {worker: median(rates) for worker, rates in inner.items()}
    best = max(middle.values(), default=0.0)
    found = []
    for worker, rates in inner.items():
        if not middle[worker]:
            found.append(f"GPU of worker {worker} computed nothing")
        elif min(rates) < limits.steady * middle[worker]:
            found.append(
                f"GPU of worker {worker} fell to {min(rates):.0f} of {middle[worker]:.0f} gflops"
            )
        elif middle[worker] < limits.even * best:
            found.append(
                f"GPU of worker {worker} did {middle[worker]:.0f} gflops, the best one {best:.0f}"
            )
    return found


def _values(series: Iterable[Series], names: Collection[str]) -> Iterator[tuple[str, list[float]]]:
    """The GPU and its samples, of the series of some metrics."""
    for one in series:
        if one["metric"]["__name__"] in names:
            yield _gpu(one["metric"]), [float(value) for _, value in one["values"]]


def _gpu(labels: Mapping[str, str]) -> str:
    return f"GPU {labels.get('gpu', labels.get('UUID', '?'))}"


def samples(series: Iterable[Series], names: Collection[str]) -> int:
    """The fewest samples that a GPU has of some metrics; 0 where there is no series."""
    return min((len(values) for _, values in _values(series, names)), default=0)


def idle(catalog: LoadTest, load: Load, series: Collection[Series]) -> list[str]:
    """GPUs that Prometheus reports as too idle.

    By the median, for the first and the last sample may be of a moment without load.
    """
    least = next(limit.least for limit in catalog.active if _applies(limit, load))
    found = []
    for gpu, values in _values(series, load.field.metrics):
        if median(values) < least:
            found.append(f"{gpu}: its {load.field.title} worked {median(values):.2f} of the time")
    for name, scale in catalog.utilization.metrics.items():
        for gpu, values in _values(series, [name]):
            percent = median(values) * scale
            if percent < catalog.utilization.least:
                found.append(f"{gpu} was busy {percent:.0f} % of the time ({name})")
    return found


def _applies(limit: ActiveLimit, load: Load) -> bool:
    """Whether a limit is for the pipe and the GPUs of a load."""
    return (
        limit.field in (None, load.field.field)
        and (not limit.only or load.compute in limit.only)
        and (limit.since is None or version_tuple(limit.since) <= version_tuple(load.compute))
    )


def throttled(catalog: LoadTest, series: Iterable[Series]) -> list[str]:
    """GPUs that were throttled in more than one sample, with the reasons."""
    reasons: defaultdict[tuple[str, str], int] = defaultdict(int)
    for gpu, values in _values(series, catalog.throttling.metrics):
        for value in values:
            for bit, text in catalog.throttling.bits.items():
                if int(value) & bit:
                    reasons[gpu, text] += 1
    return [
        f"{gpu}: {text} ({counted(count, 'sample')})"
        for (gpu, text), count in sorted(reasons.items())
    ]


def xids(catalog: LoadTest, series: Collection[Series]) -> list[str]:
    """XIDs that came while the load ran. What was there in the first sample came before it."""
    found = set()
    first = min((float(one["values"][0][0]) for one in series), default=0.0)
    for one in series:
        name, labels = one["metric"]["__name__"], one["metric"]
        values = [float(value) for _, value in one["values"]]
        new = float(one["values"][0][0]) > first
        if name in catalog.xids.counts and (max(values) > values[0] or (new and max(values))):
            found.add(f"{_gpu(labels)}: XID {labels.get('xid', '?')}")
        elif name in catalog.xids.last:
            came = [value for value in values if value and value != values[0]]
            found |= {f"{_gpu(labels)}: XID {value:.0f}" for value in came}
    return sorted(found)
