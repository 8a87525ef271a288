"""Whole runs with secrets of the inventory and of a cluster: no output shows one."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpufleet_sandbox.debian import debian_program
from tests.cluster.serving import PASSWORD, USER, chart_repository, registry
from tests.cluster.stacking import PYINFRA, ROOT, SECONDS, STACK, Bench, Outcome
from tests.cluster.users import kubeconfig_of
from tests.planting.marks import Marks, shown
from tests.planting.watching import files_that_show, home_apart, watching

EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
              {"nonResourceURLs": ["*"], "verbs": ["*"]}]  # fmt: skip
SPACE = "monitoring"


def values(marks: Marks) -> dict[str, Any]:
    """Settings whose charts' values hold secrets."""
    alertmanager = {
        "config": {
            "global": {"slack_api_url": f"https://hooks.example/T0/{marks['slack']}"},
            "receivers": [
                {
                    "name": "pager",
                    "webhook_configs": [{"url": f"https://w.example/?sig={marks['webhook']}"}],
                    "pagerduty_configs": [{"routing_key": marks["pagerduty"]}],
                }
            ],
        }
    }
    write = {
        "url": f"https://me:{marks['address of remote write']}@write.example/api",
        "headers": {"Authorization": f"Bearer {marks['bearer of remote write']}"},
        "sigv4": {"accessKey": "AKIAEXAMPLE", "secretKey": marks["aws key"]},
    }
    jobs = [{"job_name": "foreign", "params": {"token": [marks["token of a job"]]}}]
    return {
        "monitoring_values": {
            "alertmanager": alertmanager,
            "grafana": {"adminPassword": marks["password of grafana"]},
            "prometheus": {
                "prometheusSpec": {"remoteWrite": [write], "additionalScrapeConfigs": jobs}
            },
        },
        "monitoring_exporter_values": {
            "extraEnv": [{"name": "API_KEY", "value": marks["variable of a container"]}],
            "basicAuth": {"users": {"scraper": marks["login of the exporter"]}},
            "podAnnotations": {"example.com/token": marks["annotation of pods"]},
        },
        "device_plugin_nfd_values": {
            "worker": {"extraArgs": [f"--api-token={marks['argument of a container']}"]},
            "imagePullSecrets": [{"name": "pull"}],
        },
    }


def plant(bench: Bench, marks: Marks) -> None:
    """Create objects of other users that contain secrets."""
    core = bench.core
    core.create_namespace({"metadata": {"name": SPACE}})
    secrets = {
        "foreign": {"tls.key": marks["key in a Secret"], "password": marks["Secret"]},
        "existing": {"admin-user": "admin", "admin-password": marks["existing Secret of grafana"]},
        "receivers": {
            "receivers.yaml": yaml.safe_dump(
                [
                    {
                        "name": "default",
                        "webhook_configs": [{"url": f"https://w.example/{marks['receivers']}"}],
                    }
                ]
            )
        },
    }
    for name, texts in secrets.items():
        core.create_namespaced_secret(SPACE, {"metadata": {"name": name}, "stringData": texts})
    for node in core.list_node().items:
        notes = {"example.com/join-token": marks["annotation of a node"]}
        core.patch_node(node.metadata.name, {"metadata": {"annotations": notes}})
    core.create_namespaced_config_map(
        "default", {"metadata": {"name": "c"}, "data": {"x": f"token: {marks['ConfigMap']}"}}
    )


class MonitoredRuns:
    """Runs with a separate home. Their output, files and processes must not show a secret."""

    def __init__(self, bench: Bench, marks: Marks, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.bench, self.folder = bench, folder
        self.home = home_apart(folder, patch)
        patch.setenv("XDG_CACHE_HOME", str(self.home / "cache"))
        proxy = f"http://me:{marks['proxy']}@127.0.0.1:9"
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            patch.setenv(name, proxy)
        for name in ("no_proxy", "NO_PROXY"):
            patch.setenv(name, "127.0.0.1,localhost")
        patch.setenv("AWS_SECRET_ACCESS_KEY", marks["aws key of the user"])
        self.patterns = {**marks.patterns, **Marks("charts", {"login": PASSWORD}).patterns}
        basic = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        self.patterns[basic] = "login of the charts, encoded"
        self.texts: list[str] = []

    @contextmanager
    def monitored(self) -> Iterator[None]:
        began = time.time()
        with watching(self.patterns) as seen:
            yield
        assert seen.secrets == [], seen.secrets
        assert seen.processes > 0, "nothing was watched"
        found = shown(self.patterns, self.texts)
        assert found == [], self.texts
        assert files_that_show(self.patterns, self.home, began) == []

    def deploy(self, *options: str, **data: Any) -> Outcome:
        with self.monitored():
            done = self.bench.deploy(*options, **data)
            self.texts += [done.output, json.dumps(done.report)]
        return done

    def command(self, *words: str | Path) -> int:
        """The status of `gpufleet WORDS`; its files must show no secret either."""
        with self.monitored():
            done = subprocess.run(
                [PYINFRA.with_name("gpufleet"), *words], cwd=ROOT, capture_output=True, text=True,
                timeout=SECONDS, check=False,
            )  # fmt: skip
            self.texts += [done.stdout, done.stderr]
        return done.returncode

    def inventory(self, **data: Any) -> Path:
        path = self.folder / "inventory.py"
        self.bench.write_inventory(path, data)
        return path


@pytest.fixture
def marks() -> Marks:
    return Marks("cluster")


@pytest.fixture
def access(current: Bench, marks: Marks, tmp_path: Path) -> Bench:
    """The cluster, with a token instead of a certificate."""
    path = kubeconfig_of(current.cluster, "default", EVERYTHING, tmp_path / "kubeconfig")
    path.chmod(0o600)
    config = yaml.safe_load(path.read_text())
    marks.by_form["token of the kubeconfig"] = config["users"][0]["user"]["token"][-40:]
    return Bench(replace(current.cluster, kubeconfig=path), current.charts)


@pytest.fixture
def offered(charts: Path, current: Bench, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Settings for a repository of the charts that requires a login."""
    folder = tmp_path / "offered"
    shutil.copytree(charts, folder)
    with chart_repository(folder, login=True) as closed:
        closed.index(current.cluster.helm)
        logins = tmp_path / "logins"
        logins.write_text(f"machine 127.0.0.1 login {USER} password {PASSWORD}\n")
        logins.chmod(0o600)
        yield {
            "cluster_chart_dir": None,
            "cluster_chart_repository": closed.url,
            "cluster_chart_logins": str(logins),
            "cluster_chart_plain_http": True,
        }


@pytest.mark.claim(
    "Secrets of charts and kubeconfigs are in nothing that a run prints, writes or starts.",
    level=5,
)
def test_a_stack_shows_no_secret(
    access: Bench,
    offered: dict[str, Any],
    marks: Marks,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted = {**values(marks), **offered}
    plant(access, marks)
    runs = MonitoredRuns(access, marks, tmp_path, monkeypatch)
    done = runs.deploy("-vvv", "--diff", **wanted)
    assert done.returncode == 0, done.output[-3000:]
    assert "API_KEY" in done.output, "values are shown"
    settings = {"prometheus": wanted["monitoring_values"]["prometheus"]}
    done = runs.deploy(
        "-vvv",
        "--diff",
        monitoring_alert_receivers="receivers",
        monitoring_grafana_existing_secret="existing",
        **{**wanted, "monitoring_values": settings},
    )
    assert done.returncode == 0, done.output[-3000:]


@pytest.fixture
def mixed(
    offered: dict[str, Any], charts: Path, current: Bench, tmp_path: Path
) -> Iterator[dict[str, Any]]:
    """The inventory of `offered`, plus a registry that requires a login for one of the charts."""
    program = debian_program("docker-registry", "docker-registry")
    folder = tmp_path / "registry"
    folder.mkdir()
    with registry(program, folder, login=True) as closed:
        for archive in charts.glob("dcgm-exporter-*.tgz"):
            closed.push(current.cluster.helm, archive)
        places = dict.fromkeys(STACK, offered["cluster_chart_repository"])
        places["dcgm-exporter"] = closed.url
        yield {**offered, "cluster_chart_repository": places}


@pytest.mark.extended
@pytest.mark.parametrize("options", [[], ["-vvv", "--diff"]], ids=["plain", "vvv"])
def test_a_stack_that_changes_and_fails_shows_no_secret(
    access: Bench,
    mixed: dict[str, Any],
    marks: Marks,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
) -> None:
    wanted = {**values(marks), **mixed}
    plant(access, marks)
    refused = f"no label: {marks['value that a server refuses']}"
    runs = MonitoredRuns(access, marks, tmp_path, monkeypatch)
    done = runs.deploy(*options, **wanted)
    assert done.returncode == 0, done.output[-3000:]
    changed = {**wanted, **values(changed_marks(runs))}
    assert runs.deploy(*options, **changed).report["changed"] > 0
    labels = {"serviceMonitor": {"additionalLabels": {"token": refused}}}
    exporter = {**wanted["monitoring_exporter_values"], **labels}
    failed = runs.deploy(*options, **{**changed, "monitoring_exporter_values": exporter})
    assert failed.returncode == 1
    assert "Invalid value" in failed.output
    unknown = {"serviceMonitr": {"token": marks["value that no chart knows"]}}
    runs.patterns |= marks.patterns
    assert runs.deploy(*options, monitoring_exporter_values=unknown, **mixed).returncode == 1
    inventory = runs.inventory(**wanted)
    results = [runs.home / "found.json", runs.home / "found.xml"]
    runs.command("verify", inventory, "--json", results[0], "--junit", results[1])
    assert all(path.exists() for path in results)
    runs.command("doctor", inventory, "--json")


def changed_marks(runs: MonitoredRuns) -> Marks:
    """Other secrets of the same forms."""
    found = Marks("cluster, changed")
    values(found)
    runs.patterns |= found.patterns
    return found
