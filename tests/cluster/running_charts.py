"""Charts whose pods run: python -m tests.cluster.running_charts FOLDER

The charts of the device plugin and of Node Feature Discovery are the real ones, from their Go
modules. The others have names, versions and keys of the real charts; they start the images that the
sandbox builds with the arguments that the real charts give them. The operator's CRDs are those of
its Go module.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
from pathlib import Path
from typing import Any

import yaml

from gpufleet.kube.manifests import load_manifests
from gpufleet_sandbox.cluster.build import module_folder
from gpufleet_sandbox.cluster.versions import versions
from gpufleet_sandbox.paths import cache_dir
from tests.cluster.fake_charts import CHARTS, FakeChart, packed

SOURCE = Path(__file__).parent / "charts" / "running"
OPERATOR_CRDS = "example/prometheus-operator-crd"
RUNNING = {
    "kube-prometheus-stack": "88.5.3",
    "dcgm-exporter": "4.8.2",
    "prometheus-adapter": "5.3.0",
    "node-problem-detector": "2.4.1",
}

PLUGIN = "deployments/helm/nvidia-device-plugin"
UPSTREAM = (  # chart, a program of its Go module, and the chart's folder there
    ("nvidia-device-plugin", "nvidia-device-plugin", PLUGIN),
    ("nvidia-device-plugin", "nvidia-device-plugin-0.18", PLUGIN),
    ("node-feature-discovery", "nfd-master", "deployment/helm/node-feature-discovery"),
    (
        "dra-driver-nvidia-gpu",
        "gpu-kubelet-plugin",
        "deployments/helm/dra-driver-nvidia-gpu",
    ),
)


def write_running_charts(folder: Path) -> None:
    """Write each chart as CHART-VERSION.tgz."""
    folder.mkdir(parents=True, exist_ok=True)
    for chart in CHARTS:
        if RUNNING.get(chart.chart) == chart.version:
            archive = folder / f"{chart.chart}-{chart.version}.tgz"
            archive.write_bytes(_running(chart))
    for name, program, place in UPSTREAM:
        version = versions().programs[program].version.removeprefix("v")
        (folder / f"{name}-{version}.tgz").write_bytes(upstream_chart(name, program, place))


def upstream_chart(name: str, program: str, place: str) -> bytes:
    """Archive of a real chart from its Go module. Releases give it the version of the module."""
    source = module_folder(program, cache_dir() / "go", print) / place
    about = yaml.safe_load((source / "Chart.yaml").read_text())
    about["version"] = versions().programs[program].version.removeprefix("v")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as written:
        for path in sorted(path for path in source.rglob("*") if path.is_file()):
            data = path.read_bytes()
            if path == source / "Chart.yaml":
                data = yaml.safe_dump(about).encode()
            entry = tarfile.TarInfo(f"{name}/{path.relative_to(source)}")
            entry.size = len(data)
            written.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _running(chart: FakeChart) -> bytes:
    source = SOURCE / chart.chart
    files = {"templates/all.yaml": (source / "templates.yaml").read_text()}
    if chart.crds:
        there = module_folder("prometheus-operator", cache_dir() / "go", print) / OPERATOR_CRDS
        files |= {f"crds/{path.name}": _brief(path) for path in sorted(there.glob("*.yaml"))}
    return packed(chart, yaml.safe_load((source / "values.yaml").read_text()), files)


def _brief(path: Path) -> str:
    """A CRD without its descriptions: helm stores the chart in a Secret, of 1 MiB at most."""

    def kept(value: Any) -> Any:
        if isinstance(value, list):
            return [kept(each) for each in value]
        if not isinstance(value, dict):
            return value
        return {
            name: kept(each)
            for name, each in value.items()
            if not (name == "description" and isinstance(each, str))
        }

    return json.dumps(kept(load_manifests(path.read_text())[0]))


if __name__ == "__main__":
    os.umask(0o022)
    write_running_charts(Path(sys.argv[1]))
