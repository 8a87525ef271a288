"""Packages of DCGM and dcgm-exporter: names from the catalog, with small imitations as programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpufleet.node.catalog import load_catalog
from gpufleet_sandbox.mirror.contents import contents
from gpufleet_sandbox.mirror.model import File, Package
from gpufleet_sandbox.mirror.payload import LIBRARY_DIRS, UNITS, Format, program, stub_library, text

CORE = "datacenter-gpu-manager-4-core"
EXPORTER = "datacenter-gpu-manager-exporter"
OLD = "datacenter-gpu-manager"
LIBRARY = "libdcgm.so.4"
COUNTERS = "/etc/dcgm-exporter/default-counters.csv"


def packages(code: str, format: Format, work: Path) -> list[Package]:
    """Every DCGM package of the CUDA repository for a distribution; may be empty."""
    listed = contents()["dcgm"]
    if code not in listed["distributions"]:
        return []
    found = [package for v in listed["versions"] for package in _dcgm(v, format, work)]
    found += [_exporter(version, format, work) for version in listed["exporter"]]
    return [*found, *(_old(version, format) for version in listed["old"])]


def image_program(work: Path) -> Path:
    """The exporter as a static program, for an image."""
    return program("dcgm-exporter", load_catalog().exporter.newest, work, static=True)


def _dcgm(version: str, format: Format, work: Path) -> Iterator[Package]:
    """One version; every package depends on exactly that version of the core."""
    exporter = load_catalog().exporter
    complete = f"1:{version}-1"
    names = [name for entry in exporter.cuda for name in entry.names]
    for name in dict.fromkeys([*exporter.packages.dcgm, *names]):
        summary = f"NVIDIA DCGM {version}: {name.removeprefix('datacenter-gpu-manager-4-')}"
        if name == CORE:
            yield _core(version, complete, summary, format, work)
        else:
            readme = {f"/usr/share/doc/{name}/README": File("Imitation: empty package.\n")}
            relations = _needs(format, CORE, "=", complete)
            yield Package(format, name, complete, summary, relations=relations, files=readme)


def _core(version: str, complete: str, summary: str, format: Format, work: Path) -> Package:
    unit = "nvidia-dcgm.service"
    files = {
        "/usr/bin/nv-hostengine": File(program("nv-hostengine", version, work), 0o755),
        f"{LIBRARY_DIRS[format]}/{LIBRARY}": File(stub_library(LIBRARY, work), 0o755),
        f"{UNITS}/{unit}": File(text(f"units/{unit}")),
    }
    conflicts = {"Conflicts": (OLD,)}
    return Package(
        format,
        CORE,
        complete,
        summary,
        relations=conflicts,
        files=files,
        scripts=_service(format, unit),
    )


def _exporter(version: str, format: Format, work: Path) -> Package:
    unit = "nvidia-dcgm-exporter.service"
    files = {
        "/usr/bin/dcgm-exporter": File(program("dcgm-exporter", version, work), 0o755),
        COUNTERS: File(text("conf/default-counters.csv"), config=True),
        f"{UNITS}/{unit}": File(text(f"units/{unit}")),
    }
    return Package(
        format,
        EXPORTER,
        f"{version}-1",
        f"NVIDIA DCGM exporter {version}",
        relations=_needs(format, CORE, ">=", "1:4"),
        files=files,
        scripts=_service(format, unit),
    )


def _old(version: str, format: Format) -> Package:
    readme = {f"/usr/share/doc/{OLD}/README": File("Imitation: empty package.\n")}
    complete = f"1:{version}" if format == "deb" else f"1:{version}-1"
    return Package(format, OLD, complete, f"NVIDIA DCGM {version}", files=readme)


def _needs(format: Format, name: str, comparison: str, version: str) -> dict[str, tuple[str, ...]]:
    """A dependency in the syntax of the format."""
    if format == "deb":
        return {"Depends": (f"{name} ({comparison} {version})",)}
    return {"Requires": (f"{name} {comparison} {version}",)}


def _service(format: Format, unit: str) -> dict[str, str]:
    """Scripts that reload systemd; the packages neither enable nor start the unit."""
    names = ("postinst", "prerm") if format == "deb" else ("post", "preun")
    values = {"SERVICES": unit, "ENABLE": "no"}
    return {name: text(f"scripts/service.{name}", **values) for name in names}
