"""monitoring_node_problems: the release, and the reports of the real Node Problem Detector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufleet.monitoring.node_problems import DETECTOR, load_node_problems, monitor_files
from gpufleet_sandbox.cluster.build import program
from gpufleet_sandbox.cluster.processes import Process, end, start
from gpufleet_sandbox.paths import cache_dir
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.conftest import KUBERNETES
from tests.cluster.pods import SECONDS
from tests.cluster.pool import Pool
from tests.cluster.stacking import REAL_CHARTS, Bench
from tests.unit.monitoring.nodes import OTHER, Node, sound

WANTED = {
    "monitoring_node_problems": True,
    "monitoring_prometheus": "none",
    "monitoring_exporter": False,
}
NODE = "gpu-1"


@pytest.fixture(scope="module", params=KUBERNETES)
def bench(request: pytest.FixtureRequest, pool: Pool) -> Bench:
    """A cluster with GPU nodes, for all tests of this file."""
    charts: Path = request.getfixturevalue("charts")
    if REAL_CHARTS and not list(charts.glob(f"{DETECTOR}-*.tgz")):
        pytest.skip(f"{REAL_CHARTS} has no chart of {DETECTOR}")
    return Bench(pool.bare(request.param), charts)


@pytest.mark.claim(
    "The real node-problem-detector writes conditions and events with our scripts.",
    level=6,
)
def test_it_runs_on_every_gpu_node_and_a_second_run_changes_nothing(bench: Bench) -> None:
    done = bench.deploy(**WANTED)
    assert done.returncode == 0, done.output
    assert bench.releases()[DETECTOR] == "deployed"
    pods = bench.core.list_pod_for_all_namespaces(
        label_selector=f"app.kubernetes.io/name={DETECTOR}"
    ).items
    nodes = bench.core.list_node(label_selector="nvidia.com/gpu.present=true").items
    assert nodes
    assert {pod.spec.node_name for pod in pods} == {node.metadata.name for node in nodes}
    maps = bench.core.list_namespaced_config_map("monitoring").items
    assert monitor_files(load_node_problems()) in [entry.data for entry in maps]
    again = bench.deploy(**WANTED)
    assert (again.returncode, again.report["changed"]) == (0, 0), again.output


@pytest.fixture
def node(bench: Bench, tmp_path: Path) -> Iterator[Node]:
    """The files that the real detector checks every second for a simulated node."""
    host, folder = sound(tmp_path / "host"), tmp_path / "checks"
    folder.mkdir()
    catalog = load_node_problems().model_copy(update={"folder": str(folder), "interval": 1})
    for name, text in monitor_files(catalog).items():
        (folder / name).write_text(text)
    detector = program(DETECTOR, cache_dir() / "go", print)
    server = bench.cluster.api.configuration.host
    flags = {
        "config.custom-plugin-monitor": folder / f"{catalog.monitor}.json",
        "apiserver-override": f"{server}?inClusterConfig=false&auth={bench.cluster.kubeconfig}",
        "hostname-override": NODE,
        "prometheus-port": 0,
        "port": 0,
        "logtostderr": "true",
    }
    words = [detector, *(f"--{flag}={value}" for flag, value in flags.items())]
    process: Process = start(DETECTOR, words, tmp_path / "log", {"HOST_ROOT": str(host.root)})
    try:
        yield host
    finally:
        end([process])
        print((tmp_path / "log").read_text()[-4000:])


def conditions(bench: Bench) -> dict[str, tuple[str, str]]:
    """Type -> status and message of the node's conditions about GPUs."""
    found = bench.core.read_node(NODE).status.conditions
    return {each.type: (each.status, each.message) for each in found if each.type.startswith("Gpu")}


def events(bench: Bench) -> set[str]:
    """Reasons of the events about the node."""
    found = bench.core.list_event_for_all_namespaces().items
    return {each.reason for each in found if each.involved_object.name == NODE}


def test_the_real_detector_reports_the_nodes_gpus(bench: Bench, node: Node) -> None:
    fine = {entry.type: ("False", entry.fine.message) for entry in load_node_problems().conditions}
    assert wait_until(lambda: conditions(bench) == fine, SECONDS), conditions(bench)

    just_now = 99_990.5
    node.log("boot-535", "xid-79-535", "xid-64-570", "xid-31-470", uptime=just_now)
    (node.root / "dev/nvidia1").unlink()
    node.link("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "libnvidia-ml.so.580.65.06")
    expected = {
        "GpuFellOffBus": "GPU has fallen off the bus",
        "GpuNeedsReplacement": "Xid 64 on PCI:0000:86:00",
        "GpuDeviceMissing": f"GPU {OTHER}: /dev/nvidia1 is missing",
        "GpuDriverMismatch": "module 535.104.05 is loaded, the library is 580.65.06",
    }

    def troubles() -> dict[str, str]:
        return {kind: text for kind, (on, text) in conditions(bench).items() if on == "True"}

    assert wait_until(lambda: set(troubles()) == set(expected), SECONDS), conditions(bench)
    assert all(text in troubles()[kind] for kind, text in expected.items()), troubles()
    assert wait_until(lambda: "GpuXidApplication" in events(bench), SECONDS), events(bench)

    node.log("boot-535", "harmless")
    node.write("dev/nvidia1")
    node.link("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "libnvidia-ml.so.535.104.05")
    assert wait_until(lambda: conditions(bench) == fine, SECONDS), conditions(bench)
