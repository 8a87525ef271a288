"""Types of load_test.yaml, which explains its fields."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import Field

from gpufleet.core.entries import Entry, Sourced, loader

Compute = Annotated[str, Field(pattern=r"^\d+\.\d+$")]  # compute capability, "9.0"
Part = Annotated[float, Field(gt=0, le=1)]


class Program(Sourced):
    """dcgmproftester. `seconds` of load; `start_seconds`: until it runs."""

    path: str
    arguments: tuple[str, ...]
    capabilities: tuple[str, ...]
    seconds: int
    start_seconds: int

    def command(self, cuda: int, field: int, seconds: int) -> list[str]:
        values = {"cuda": cuda, "field": field, "seconds": seconds}
        return [word.format(**values) for word in (self.path, *self.arguments)]


class LoadImage(Sourced):
    """An image that has the program, and the major versions of CUDA that it is for."""

    dcgm: str
    image: str
    cuda: tuple[int, ...]


class Oldest(Sourced):
    """The lowest compute capability that a major version of CUDA serves."""

    cuda: int
    compute: Compute


class LoadField(Sourced):
    """A pipe that can be loaded, from a compute capability on."""

    field: int
    title: str
    since: Compute
    metrics: tuple[str, ...]


class ActiveLimit(Sourced):
    """The part of the time that a pipe must work, on the GPUs that it is for."""

    least: Part
    field: int | None = None
    only: tuple[Compute, ...] = ()
    since: Compute | None = None


class Utilization(Sourced):
    """`least` percent of the time; `samples`: the fewest that say something; `metrics`: by how
    much each has to be multiplied to be percent."""

    metrics: dict[str, int]
    least: float
    samples: int


class Rates(Sourced):
    """Parts of a rate; see the file."""

    steady: Part
    even: Part


class Throttling(Sourced):
    """What the bits of the clocks' reasons mean."""

    metrics: tuple[str, ...]
    bits: dict[int, str]


class XidMetrics(Sourced):
    """`counts` of the last minutes by code; `last`: the code of the last one."""

    counts: tuple[str, ...]
    last: tuple[str, ...]


class NodeLabels(Sourced):
    """Names of labels."""

    cuda: tuple[str, ...]
    compute: tuple[str, str]
    product: str
    sharing: str


class PodLabels(Sourced):
    """The labels of a series that name its namespace and pod."""

    namespace: str
    pod: str


class LoadTest(Entry):
    """load_test.yaml"""

    as_of: date
    program: Program
    images: tuple[LoadImage, ...]
    oldest: tuple[Oldest, ...]
    fields: tuple[LoadField, ...]
    active: tuple[ActiveLimit, ...]
    utilization: Utilization
    rates: Rates
    throttling: Throttling
    xids: XidMetrics
    labels: NodeLabels
    series: tuple[PodLabels, ...]


load_load_test = loader(LoadTest, "verify/load_test")
