"""Alerts in a real cluster: the PrometheusRule and Alertmanager's configuration."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml
from kubernetes import client

from gpufleet.monitoring.alert_models import load_alerts
from tests.cluster.stacking import Bench

pytestmark = pytest.mark.claim(
    "Alerts reach the cluster once. Alertmanager gets the user's receivers, which no output shows.",
    level=5,
)

GROUP = ("monitoring.coreos.com", "v1", "monitoring", "prometheusrules")
NAME = "gpufleet-gpu"
CONFIG = "gpufleet-alertmanager"


def api(bench: Bench) -> Any:
    return client.CustomObjectsApi(bench.cluster.api)


def rules(bench: Bench) -> dict[str, Any]:
    """gpufleet's PrometheusRules: name -> object."""
    ours = "app.kubernetes.io/managed-by=gpufleet"
    found = api(bench).list_namespaced_custom_object(*GROUP, label_selector=ours)["items"]
    return {one["metadata"]["name"]: one for one in found}


def secret(bench: Bench, name: str) -> dict[str, str]:
    data = bench.core.read_namespaced_secret(name, "monitoring").data
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


@pytest.mark.extended
def test_alerts_are_written_once_restored_and_removed(current: Bench) -> None:
    done = current.deploy()
    assert done.returncode == 0, done.output
    [rule] = rules(current).values()
    found = [one["alert"] for one in rule["spec"]["groups"][0]["rules"] if "alert" in one]
    assert found == [alert.name for alert in load_alerts().alerts]
    again = current.deploy()
    assert again.report["changed"] == 0, again.output
    api(current).patch_namespaced_custom_object(*GROUP, NAME, {"spec": {"groups": []}})
    back = current.deploy()
    assert back.report["changed"] == 1, back.output
    assert rules(current)[NAME]["spec"] == rule["spec"]
    assert current.deploy(monitoring_alerts=False).returncode == 0
    assert rules(current) == {}


def test_alertmanager_gets_the_users_receivers_and_no_output_shows_them(current: Bench) -> None:
    assert current.deploy().returncode == 0
    refused = current.deploy(monitoring_alert_receivers="oncall")
    assert refused.returncode != 0
    assert "GF898" in refused.output
    hidden = "https://chat.example/hook/s3cr3t"
    receivers = [{"name": "default", "webhook_configs": [{"url": hidden}]}]
    body = {
        "metadata": {"name": "oncall"},
        "stringData": {"receivers.yaml": yaml.safe_dump(receivers)},
    }
    current.core.create_namespaced_secret("monitoring", body)
    done = current.deploy(monitoring_alert_receivers="oncall")
    assert done.returncode == 0, done.output
    assert "s3cr3t" not in done.output
    config = yaml.safe_load(secret(current, CONFIG)["alertmanager.yaml"])
    assert config["receivers"][0] == receivers[0]
    assert config["inhibit_rules"]
    again = current.deploy(monitoring_alert_receivers="oncall")
    assert again.report["changed"] == 0, again.output
