"""`gpufleet doctor` of a cluster: what its Prometheus has of exporters and rules, on a fake API."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.doctor.operations import clusters, monitoring
from gpufleet.facts.model import NodeFacts
from gpufleet.kube.operations.refused import ApiError
from tests.fakes.fixed_fleet import FixedFleet
from tests.not_found import not_found
from tests.unit.doctor.machines import exported, machine
from tests.unit.status.fleets import NOW

pytestmark = pytest.mark.claim(
    "`doctor` of a cluster asks Prometheus for its targets and rules, and names the first broken "
    "link between a GPU and its alerts.",
    level=1,
)

LAB = {"status": "converged", "releases": {}, "plan": {"steps": []}, "findings": []}
NOT_SELECTED = {
    "code": "GF876", "severity": "warning", "message": "Prometheus selects no monitor of it.",
    "remedy": "Set monitoring_monitor_labels.",
}  # fmt: skip
API = "/api/v1/namespaces/monitoring/services/kps:9090/proxy/api/v1"
OPERATED = "/apis/monitoring.coreos.com/v1"
SELECTOR = {"app.kubernetes.io/name": "prometheus"}
LONG_AGO = 4000  # seconds


def at(seconds: int) -> str:
    """A time of the API, some seconds before now."""
    return datetime.fromtimestamp(NOW - seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def about(name: str, space: str = "gpu", **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": space, "uid": f"uid-{name}", **more}


EXPORTER = {
    "metadata": about("dcgm-exporter"),
    "spec": {
        "selector": {"matchLabels": {}},
        "template": {
            "spec": {
                "containers": [
                    {"name": "c", "image": "nvcr.io/nvidia/k8s/dcgm-exporter:4.5.2-4.8.1",
                     "ports": [{"containerPort": 9400}]}
                ],
                "volumes": [{"name": "v", "hostPath": {"path": "/var/lib/kubelet/pod-resources"}}],
            }
        },
    },
}  # fmt: skip


def pod(number: int, *, since: int = LONG_AGO, ready: bool = True) -> dict[str, Any]:
    """The exporter's pod on the node of that number."""
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": at(since)}
    owners = [{"uid": "uid-dcgm-exporter"}]
    return {
        "metadata": about(f"dcgm-exporter-{number}", ownerReferences=owners),
        "spec": {"nodeName": f"n{number}"},
        "status": {
            "phase": "Running", "podIP": f"10.0.0.{number}", "conditions": [condition],
        },
    }  # fmt: skip


def rules(*names: str, since: int = LONG_AGO) -> dict[str, Any]:
    """A PrometheusRule of gpufleet."""
    spec = {"groups": [{"name": "gpufleet", "rules": [{"alert": name} for name in names]}]}
    written = {"creationTimestamp": at(LONG_AGO), "managedFields": [{"time": at(since)}]}
    return {"metadata": about("gpufleet-gpu", "monitoring", **written), "spec": spec}


def loaded(**health: str) -> dict[str, Any]:
    """Prometheus' answer about its rules: name -> why its evaluation fails, or ""."""
    found = [
        {"name": name, "health": "err" if why else "ok", "lastError": why}
        for name, why in health.items()
    ]
    return {
        "data": {"groups": [{"name": "other", "rules": []}, {"name": "gpufleet", "rules": found}]}
    }


def series(values: Mapping[str, object]) -> dict[str, Any]:
    """The answer to a query: pod -> value. A name with a colon is an address without a pod."""
    found = [
        {"metric": {"instance" if ":" in name else "pod": name}, "value": [NOW, str(value)]}
        for name, value in values.items()
    ]
    return {"status": "success", "data": {"resultType": "vector", "result": found}}


class PrometheusApi:
    """An API server with exporters on the nodes n1 and n2, their Prometheus, and two rules."""

    context = "lab"

    def __init__(self) -> None:
        self.up: dict[str, object] = {
            "dcgm-exporter-1": 1,
            "dcgm-exporter-2": 1,
            "kubelet:10250": 1,
        }
        self.ages: dict[str, object] = {"dcgm-exporter-1": 12.3, "dcgm-exporter-2": 14}
        self.pods = [pod(1), pod(2)]
        self.machines = {"n1": "machine-1", "n2": "machine-2"}
        self.written = [rules("GpuHot", "GpuMissing")]
        self.answers: dict[str, Any] = {"rules": loaded(GpuHot="", GpuMissing="", Other="")}
        ports = [{"port": 9090}]
        services = [("kps", SELECTOR, ports), ("web", {"app": "web"}, ports), ("none", None, None)]
        self.services = [
            {"metadata": about(name, "monitoring"), "spec": {"selector": each, "ports": port}}
            for name, each, port in services
        ]
        self.operated: list[Any] | None = [{"metadata": about("kps", "monitoring"), "spec": {}}]
        self.asked: list[str] = []

    def __call__(self, access: object) -> PrometheusApi:
        return self

    def close(self) -> None: ...

    def list(self, path: str, accept: str = "", kept: Any = lambda item: item, /, **_: Any) -> Any:
        items: dict[str, Any] = {
            "/api/v1/services": self.services,
            "/apis/apps/v1/daemonsets": [EXPORTER],
            "/api/v1/namespaces/gpu/pods": self.pods,
            "/api/v1/nodes": [
                {"metadata": {"name": name}, "status": {"nodeInfo": {"machineID": machine}}}
                for name, machine in self.machines.items()
            ],
            f"{OPERATED}/prometheuses": self.operated,
            f"{OPERATED}/prometheusrules": self.written if self.operated is not None else None,
        }
        if (found := items[path]) is None:
            raise ApiError(f"GET {path}", 404, not_found(path), self.context)
        return [each for item in found if (each := kept(item))]

    def ask_service(self, path: str, **query: str) -> Any:
        self.asked.append(path)
        what = query.get("query", path.removeprefix(f"{API}/"))
        answers = {
            "up": series(self.up), "time() - timestamp(up)": series(self.ages), **self.answers,
        }  # fmt: skip
        return answers[what]


Run = Callable[..., Any]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run(api, hosts, …)`: the document of the command on the cluster lab and these hosts."""

    def runs(
        api: PrometheusApi, *words: str, part: Any = LAB,
        hosts: Mapping[str, NodeFacts] | None = None, **data: Any,
    ) -> Any:  # fmt: skip
        fleet = FixedFleet(dict(hosts or {}), monkeypatch, clusters={"lab": part}, data=data)
        for module in (clusters, monitoring):
            monkeypatch.setattr(module, "ClusterApi", api)
            monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: NOW))
        done = fleet.run("--json", *words)
        assert done.stdout.startswith("{"), done.output
        return json.loads(done.stdout)

    return runs


def on_node(number: int, facts: NodeFacts | None = None) -> NodeFacts:
    """A host that is the node of that number, with an exporter that answers."""
    found = facts or exported(machine(), "GPU-1")
    return replace(found, machine_id=f"machine-{number}")


def checks(subject: Any) -> dict[str, str]:
    return {each["check"]: each["verdict"] for each in subject["checks"]}


def causes(subject: Any) -> dict[str, list[str]]:
    """Check of each cause -> what follows from it."""
    return {each["check"]: each["consequences"] for each in subject["causes"]}


ASKED = ("cluster.prometheus", "cluster.targets", "cluster.alerts")


def test_a_cluster_whose_exporters_and_rules_are_in_prometheus_passes(run: Run) -> None:
    found = run(PrometheusApi())["clusters"]["lab"]
    assert found["verdict"] == "PASS"
    assert {name: checks(found)[name] for name in ASKED} == dict.fromkeys(ASKED, "PASS")


def test_a_target_that_is_down_is_a_fault_of_its_host_alone(run: Run) -> None:
    api = PrometheusApi()
    api.up["dcgm-exporter-1"] = 0
    document = run(api, hosts={"gpu-01": on_node(1), "gpu-02": on_node(2)})
    assert causes(document["hosts"]["gpu-01"]) == {"chain.target": []}
    assert document["hosts"]["gpu-02"]["verdict"] == "PASS"
    assert document["clusters"]["lab"]["verdict"] == "PASS"
    (cause,) = document["hosts"]["gpu-01"]["causes"]
    assert "gpu/dcgm-exporter-1" in cause["cause"]
    assert "dcgm-exporter" in cause["steps"][0]["command"]


@pytest.mark.parametrize(
    ("hosts", "words"),
    [({}, ()), ({"gpu-02": on_node(2)}, ()),
     ({"gpu-01": on_node(1)}, ("--check", "cluster.targets"))],
    ids=["no host", "another host", "the hosts' check is not chosen"],
)  # fmt: skip
def test_a_target_of_no_judged_host_is_a_fault_of_the_cluster(
    run: Run, hosts: Mapping[str, NodeFacts], words: tuple[str, ...]
) -> None:
    api = PrometheusApi()
    api.up["dcgm-exporter-1"] = 0
    document = run(api, *words, hosts=hosts)
    assert causes(document["clusters"]["lab"]) == {"cluster.targets": []}
    assert {host["verdict"] for host in document["hosts"].values()} <= {"PASS"}


def test_an_exporter_that_is_down_explains_its_target(run: Run) -> None:
    api = PrometheusApi()
    api.up["dcgm-exporter-1"] = 0
    silent = exported(machine(), status=0)
    document = run(api, hosts={"gpu-01": on_node(1, silent)})
    assert causes(document["hosts"]["gpu-01"]) == {"chain.metrics": ["chain.target"]}
    api.pods[0] = pod(1, ready=False)
    assert causes(run(api)["clusters"]["lab"]) == {"cluster.exporter": ["cluster.targets"]}


def test_an_old_scrape_is_a_fault(run: Run) -> None:
    api = PrometheusApi()
    api.ages["dcgm-exporter-1"] = 200.7
    document = run(api, hosts={"gpu-01": on_node(1)})
    assert causes(document["hosts"]["gpu-01"]) == {"chain.scrape": []}
    assert document["clusters"]["lab"]["verdict"] == "PASS"


@pytest.mark.parametrize("age", ["NaN", "+Inf", "", "x"])
def test_an_age_that_is_no_number_is_not_judged(run: Run, age: str) -> None:
    api = PrometheusApi()
    api.ages["dcgm-exporter-1"] = age
    document = run(api, hosts={"gpu-01": on_node(1)})
    assert "chain.scrape" not in checks(document["hosts"]["gpu-01"])


def test_a_pod_that_is_no_target(run: Run) -> None:
    api = PrometheusApi()
    del api.up["dcgm-exporter-1"]
    assert causes(run(api)["clusters"]["lab"]) == {"cluster.targets": []}


@pytest.mark.parametrize(
    "change",
    [
        {"pods": [pod(1, since=100), pod(2)]},
        {"pods": [pod(1, since=60, ready=False), pod(2)]},
        {"operated": [{"metadata": about("kps", "monitoring"), "spec": {"shards": 2}}]},
        {"up": {"10.0.0.1:9400": 1, "dcgm-exporter-2": 1}},
    ],
    ids=["it is new", "it is not Ready", "another shard may have it", "its job has no pods"],
)
def test_a_pod_that_need_not_be_a_target_by_name(run: Run, change: dict[str, Any]) -> None:
    api = PrometheusApi()
    del api.up["dcgm-exporter-1"]
    vars(api).update(change)
    assert causes(run(api)["clusters"]["lab"]) == {}


def test_no_target_at_all_is_one_fault_of_the_cluster(run: Run) -> None:
    api = PrometheusApi()
    api.up = {"kubelet:10250": 1}
    hosts = {"gpu-01": on_node(1), "gpu-02": on_node(2)}
    document = run(api, hosts=hosts)
    assert causes(document["clusters"]["lab"]) == {"cluster.targets": []}
    assert {host["verdict"] for host in document["hosts"].values()} == {"PASS"}
    document = run(api, hosts=hosts, part={**LAB, "findings": [NOT_SELECTED]})
    assert causes(document["clusters"]["lab"]) == {"cluster.exporter": ["cluster.targets"]}


def test_new_pods_alone_are_no_fault(run: Run) -> None:
    api = PrometheusApi()
    api.up, api.pods = {"kubelet:10250": 1}, [pod(1, since=20), pod(2, since=20, ready=False)]
    found = run(api)["clusters"]["lab"]
    assert (found["verdict"], "cluster.targets" in checks(found)) == ("PASS", False)


@pytest.mark.parametrize(
    "answer", ["503 no endpoints \x1b[2J", {"data": []}], ids=["silent", "another program"]
)
def test_a_prometheus_that_does_not_answer_is_one_unknown(run: Run, answer: Any) -> None:
    api = PrometheusApi()
    api.answers["up"] = answer
    document = run(api, hosts={"gpu-01": on_node(1)})
    lab = document["clusters"]["lab"]
    assert (lab["verdict"], causes(lab)) == ("UNKNOWN", {"cluster.prometheus": []})
    assert "monitoring/kps" in lab["causes"][0]["cause"]
    assert document["hosts"]["gpu-01"]["verdict"] == "PASS"
    assert len(api.asked) == 1, "a second question would wait, too"


def test_a_prometheus_that_scrapes_nothing(run: Run) -> None:
    """Its disk may be full: it answers queries, and stores no value."""
    api = PrometheusApi()
    api.up = {}
    document = run(api, hosts={"gpu-01": on_node(1)})
    lab = document["clusters"]["lab"]
    assert (lab["verdict"], causes(lab)) == ("WARNING", {"cluster.prometheus": []})
    assert document["hosts"]["gpu-01"]["verdict"] == "PASS"


@pytest.mark.parametrize("refused", ["/api/v1/services", "/api/v1/nodes"])
def test_an_api_server_that_refuses_to_say_is_unknown(
    run: Run, refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = PrometheusApi()
    listed = api.list

    def refusing(path: str, *how: Any, **more: Any) -> Any:
        if path == refused:
            raise ApiError(f"GET {path}", 403, {"message": "cannot do that \x1b[2J"}, "lab")
        return listed(path, *how, **more)

    monkeypatch.setattr(api, "list", refusing)
    lab = run(api)["clusters"]["lab"]
    assert (lab["verdict"], causes(lab)) == ("UNKNOWN", {"cluster.prometheus": []})
    assert "does not answer" not in lab["causes"][0]["cause"]
    assert lab["causes"][0]["cause"].isprintable()


@pytest.mark.parametrize(
    ("data", "change"),
    [
        ({"monitoring_enabled": False}, {}),
        ({"monitoring_prometheus": "none"}, {}),
        ({}, {"operated": None}),
        ({}, {"services": []}),
        ({"monitoring_prometheus": "existing"}, {"services": []}),
    ],
    ids=["off", "no Prometheus wanted", "one of others, without an operator", "none", "none yet"],
)
def test_without_monitoring_nothing_is_judged(
    run: Run, data: dict[str, Any], change: dict[str, Any]
) -> None:
    api = PrometheusApi()
    vars(api).update(change)
    document = run(api, hosts={"gpu-01": on_node(1)}, **data)
    assert not {*ASKED} & {*checks(document["clusters"]["lab"])}
    assert "chain.target" not in checks(document["hosts"]["gpu-01"])
    assert document["verdict"] == "PASS"
    assert api.asked == []


def test_the_prometheus_that_the_inventory_names_needs_no_operator(run: Run) -> None:
    api = PrometheusApi()
    api.operated = None
    found = run(api, monitoring_prometheus="existing")["clusters"]["lab"]
    assert checks(found)["cluster.targets"] == "PASS"


@pytest.mark.parametrize(
    ("answer", "verdict", "word"),
    [
        (loaded(GpuHot=""), "WARNING", "GpuMissing"),
        (loaded(GpuHot="", GpuMissing="many-to-many \x1b[2J"), "WARNING", "many-to-many"),
        ({"data": {"groups": []}}, "WARNING", "GpuHot"),
        ("404 page not found", "UNKNOWN", "404"),
        ({"data": {"groups": [{"rules": 1}]}}, "UNKNOWN", "not that of a Prometheus"),
    ],
    ids=["one is not loaded", "one fails", "none is loaded", "no answer", "another program"],
)
def test_rules_that_prometheus_does_not_evaluate(
    run: Run, answer: Any, verdict: str, word: str
) -> None:
    api = PrometheusApi()
    api.answers["rules"] = answer
    lab = run(api)["clusters"]["lab"]
    assert (lab["verdict"], causes(lab)) == (verdict, {"cluster.alerts": []})
    assert word in lab["causes"][0]["cause"]
    assert "\x1b" not in lab["causes"][0]["cause"]


@pytest.mark.parametrize("written", [[], [rules("GpuHot", since=60)]], ids=["none", "new ones"])
def test_rules_that_need_not_be_loaded(run: Run, written: list[Any]) -> None:
    api = PrometheusApi()
    api.written, api.answers["rules"] = written, loaded()
    assert run(api)["clusters"]["lab"]["verdict"] == "PASS"


def test_nodes_that_share_a_machine_id_are_faults_of_the_cluster(run: Run) -> None:
    """Copies of a virtual machine: the host of a fault is not known."""
    api = PrometheusApi()
    api.machines = dict.fromkeys(api.machines, "machine-1")
    api.up["dcgm-exporter-2"] = 0
    document = run(api, hosts={"gpu-01": on_node(1)})
    assert document["hosts"]["gpu-01"]["verdict"] == "PASS"
    assert causes(document["clusters"]["lab"]) == {"cluster.targets": []}
