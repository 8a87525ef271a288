"""Types of toolkit.yaml and runtimes.yaml."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import Field, model_validator

from gpufleet.core.entries import Entry, Sourced, Style
from gpufleet.packages.catalog import Key, PackageCatalog, RepositoryLayout

ToolkitNumber = Annotated[str, Field(pattern=r"^\d{1,4}(\.\d{1,4}){2}$")]


class NamedPackages(Sourced):
    """A list of package names."""

    names: tuple[str, ...]


class ToolkitVersion(Sourced):
    """A version of the container toolkit."""

    version: ToolkitNumber


class Advisory(Sourced):
    """A vulnerability of the toolkit in versions below `fixed`."""

    cve: str
    fixed: str


class ToolkitRepository(Sourced):
    """The toolkit's repository: `base`, then a path per packaging."""

    base: str
    paths: dict[Style, str]
    key: Key
    layouts: tuple[RepositoryLayout, ...]


class Cdi(Sourced):
    """CDI specifications, and the units that update them."""

    refresh_since: str
    refresh_units: tuple[str, ...]
    refresh_output: str
    refresh_environment: str
    refresh_minimum_systemd: int
    output: str


class Toolkit(Entry):
    """toolkit.yaml"""

    as_of: date
    newest: ToolkitNumber
    oldest: ToolkitNumber
    packages: NamedPackages
    packages_removed: NamedPackages
    architectures: dict[str, dict[Style, str]]  # `uname -m` -> name in the repository
    repository: ToolkitRepository
    versions: tuple[ToolkitVersion, ...]
    security: tuple[Advisory, ...]
    cdi: Cdi

    @model_validator(mode="after")
    def _require_newest(self) -> Toolkit:
        if all(each.version != self.newest for each in self.versions):
            raise ValueError(f"has the newest version {self.newest}, which versions does not have")
        return self


class ConfigTemplate(Entry):
    """A template of a runtime's configuration of that version."""

    version: int
    path: str


class RuntimeConfig(Sourced):
    """The location of a runtime's configuration, by the service that starts it."""

    variant: str
    unit: str
    agent_unit: str = ""
    config: str
    generated: bool = False  # regenerated at every start: change a template instead
    templates: tuple[ConfigTemplate, ...] = ()
    socket: str = ""


class RuntimeMinimum(Sourced):
    """The lowest version of a runtime with a feature."""

    feature: str
    version: str
    how: str = ""


class CatalogRuntime(Sourced):
    """A container runtime."""

    name: Literal["docker", "containerd", "crio", "podman"]
    configs: tuple[RuntimeConfig, ...] = ()
    minimums: tuple[RuntimeMinimum, ...] = ()

    def minimum(self, feature: str) -> str:
        """Lowest version with the feature, or "" if the catalog does not list it."""
        return next((m.version for m in self.minimums if m.feature == feature), "")


class Runtimes(Entry):
    """runtimes.yaml"""

    as_of: date
    runtimes: tuple[CatalogRuntime, ...]


class ToolkitCatalog(PackageCatalog):
    """The catalog for toolkit decisions."""

    toolkit: Toolkit
    runtimes: Runtimes

    def runtime(self, name: str) -> CatalogRuntime | None:
        return next((r for r in self.runtimes.runtimes if r.name == name), None)
