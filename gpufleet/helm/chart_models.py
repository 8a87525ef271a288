"""Types of charts.yaml."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from gpufleet.core.entries import Entry, Sourced

if TYPE_CHECKING:  # the checks import the catalog, but not the cluster facts
    from gpufleet.kube.facts import Workload

Minor = Annotated[str, Field(pattern=r"^1\.\d+$")]
ChartVersion = Annotated[str, Field(pattern=r"^v?\d+\.\d+\.\d+$")]


class Pick(Entry):
    """The version that policy `careful` chooses, from a minor on."""

    from_: Minor = Field(alias="from")
    version: ChartVersion
    why: str


class Break(Sourced):
    """Versions that do not install below a minor. `values` fix that; `last` needs no fix."""

    since: ChartVersion
    until: ChartVersion | None = None  # exclusive
    below: Minor
    error: str
    last: ChartVersion
    values: dict[str, Any] = Field(default_factory=dict)


class Documented(Entry):
    """The minors that upstream documents for versions from `since` up to the next entry."""

    since: ChartVersion
    first: Minor
    last: Minor | None = None


class Memory(Entry):
    """Memory limit of a pod on a node with at least that many GPUs."""

    gpus: int
    limit: str


class LeftBehind(Sourced):
    """An object that a release's programs or hooks create, and that helm does not delete.
    `namespace`: "" for the release's."""

    kind: Literal["Secret", "Service"]
    namespace: str = ""
    name: str


class Chart(Sourced):
    """One chart. See charts.yaml for the fields."""

    repository: str
    picks: tuple[Pick, ...]
    breaks: tuple[Break, ...] = ()
    documented: tuple[Documented, ...] = ()
    features: dict[str, ChartVersion] = Field(default_factory=dict)
    lost_features: dict[str, ChartVersion] = Field(default_factory=dict)
    memory: tuple[Memory, ...] = ()
    may_be_empty: tuple[str, ...] = ()
    left_behind: tuple[LeftBehind, ...] = ()
    title: str
    namespace: str
    namespace_key: str
    values_key: str
    left_by: str
    named_lists: dict[str, str] = Field(default_factory=dict)
    gives_way: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    installed: dict[ChartVersion, dict[Minor, Annotated[str, Field(pattern=r"^\d+/\d+$")]]]


class GpuLabels(Sourced):
    """Labels of nodes with GPUs. `labels`: charts select by them; `also`: NFD may set them instead;
    `driver`: GFD sets it if a driver is loaded; `count`: GFD sets it to the number of GPUs."""

    labels: dict[str, str]
    also: tuple[str, ...]
    driver: tuple[str, ...]
    count: str

    @property
    def all(self) -> dict[str, str]:
        """Every label of a node with GPUs, with its value."""
        return {**self.labels, **dict.fromkeys(self.also, "true")}


class Signs(Sourced):
    """Signs that identify a workload on nodes. `names`: parts of its name or an image's; `not_`:
    parts of names with another purpose; `folders`: ends of paths, one of which it mounts from its
    node; `port`: the port that it opens."""

    names: tuple[str, ...]
    not_: tuple[str, ...] = Field((), alias="not")
    folders: tuple[str, ...] = ()
    port: int = 0

    def fits(self, work: Workload) -> bool:
        """True if it uses its node in that way and one of the names fits. A name alone proves
        nothing, because every user can choose it."""
        uses = work.uses_node
        if self.folders:
            uses = any(path.rstrip("/").endswith(self.folders) for path in work.host_paths)
        named = " ".join((work.name, *work.image_names))
        other = " ".join((named, *work.image_folders))
        return (
            uses
            and any(part in named for part in self.names)
            and not any(part in other for part in self.not_)
        )


class Operand(Entry):
    """A DaemonSet on each GPU node; `switch`: the component whose `enabled` installs it."""

    name: str
    since: ChartVersion
    switch: str | None = None


class OperatorOperands(Sourced):
    """The objects that the GPU Operator creates for its ClusterPolicy. Fields: see charts.yaml."""

    crd: str
    api: str
    owners: tuple[str, ...]
    everywhere: tuple[Operand, ...]
    left_out: dict[str, str]
    chart_label: str
    no_labels: str
    no_nodes: str
    hold: int


class ChartCatalog(Sourced):
    """charts.yaml. `kubernetes`: supported minors, with their end of life."""

    as_of: date
    kubernetes: dict[Minor, date]
    charts: dict[str, Chart]
    gpu_labels: GpuLabels
    exporter_signs: Signs
    engine_signs: Signs
    nfd_signs: Signs
    dra_signs: Signs
    plugin_signs: Signs
    operands: OperatorOperands

    def is_exporter(self, work: Workload) -> bool:
        """True if a workload has the exporter's signs, and not only a host engine's port."""
        exporter, engine = self.exporter_signs, self.engine_signs
        ports = {*work.ports, *work.host_ports}
        only_engine = engine.port in ports and exporter.port not in ports
        return exporter.fits(work) and not only_engine
