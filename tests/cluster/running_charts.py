"""Charts whose pods run: python -m tests.cluster.running_charts FOLDER

As the fakes they have names, versions and keys of the real charts; they start the images that the
sandbox builds with the arguments that the real charts give them. The operator's CRDs are those of
its Go module.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from gpufleet.kube.manifests import load_manifests
from gpufleet_sandbox.cluster.versions import versions
from gpufleet_sandbox.golang import go_command, go_environment
from gpufleet_sandbox.paths import cache_dir
from tests.cluster.fake_charts import CHARTS, FakeChart, archive, packed

SOURCE = Path(__file__).parent / "charts" / "running"
OPERATOR_CRDS = "example/prometheus-operator-crd"
RUNNING = {
    "kube-prometheus-stack": "88.5.3",
    "dcgm-exporter": "4.8.2",
    "prometheus-adapter": "5.3.0",
    "node-problem-detector": "2.4.1",
}


def write_running_charts(folder: Path) -> None:
    """Write each chart as CHART-VERSION.tgz. Pods of the device plugin's fake chart run too."""
    folder.mkdir(parents=True, exist_ok=True)
    for chart in CHARTS:
        name = folder / f"{chart.chart}-{chart.version}.tgz"
        if RUNNING.get(chart.chart) == chart.version:
            name.write_bytes(_running(chart))
        elif (chart.chart, chart.version) == ("nvidia-device-plugin", "0.19.0"):
            name.write_bytes(archive(chart))


def module_folder(program: str) -> Path:
    """The source of a program's module in the sandbox's cache, fetched if it is not there."""
    wanted = versions().programs[program]
    home = cache_dir() / "go"
    words = [str(go_command(home, print)), "mod", "download", "-json"]
    done = subprocess.run(
        [*words, f"{wanted.module}@{wanted.version}"],
        env=dict(go_environment(home)), cwd=home, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return Path(json.loads(done.stdout)["Dir"])


def _running(chart: FakeChart) -> bytes:
    source = SOURCE / chart.chart
    files = {"templates/all.yaml": (source / "templates.yaml").read_text()}
    if chart.crds:
        there = module_folder("prometheus-operator") / OPERATOR_CRDS
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
