"""The ConfigMaps with the exporter's lists, as they are written, put back and removed."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.core.merge import merged
from gpufleet.gpu_stack.counters import config_map_name, list_objects
from gpufleet.gpu_stack.operations import counters
from gpufleet.kube.facts import ObjectRef, ReleaseRef
from gpufleet.kube.operations import objects
from gpufleet.monitoring.settings import MonitoringSettings

WANTED = list_objects(MonitoringSettings(), "ours\n")
NONE = list_objects(MonitoringSettings(), None)
NAME = config_map_name("ours\n")
PATH = f"{WANTED.path}/{NAME}"
EXPORTER = ObjectRef("DaemonSet", "monitoring", "dcgm-exporter")
RELEASE = ReleaseRef("monitoring", "dcgm-exporter")
SECRETS = "/api/v1/namespaces/monitoring/secrets"


class Api:
    """An API server that keeps objects by their path."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.restarts = 0

    def list(self, path: str, **query: str) -> list[Any]:
        inside = [body for name, body in self.objects.items() if name.startswith(f"{path}/")]
        return [body for body in inside if path == SECRETS or body["metadata"].get("labels")]

    def find(self, path: str) -> Any:
        return self.objects.get(path)

    def apply(self, path: str, body: Any) -> None:
        self.objects[path] = body

    def merge(self, path: str, body: Any) -> None:
        self.objects[path] = merged(self.objects[path], body)
        self.restarts += 1

    def delete(self, path: str) -> None:
        del self.objects[path]

    def run_exporter(self, config_map: str = NAME) -> None:
        """A DaemonSet that mounts a ConfigMap."""
        volumes = [{"name": "other", "hostPath": {}}, {"configMap": {"name": config_map}}]
        template = {"metadata": {"labels": {}}, "spec": {"volumes": volumes}}
        path = "/apis/apps/v1/namespaces/monitoring/daemonsets/dcgm-exporter"
        self.objects[path] = {"spec": {"template": template}}

    def record(self, number: int, content: str) -> None:
        """A stored revision of the release."""
        packed = base64.b64encode(base64.b64encode(gzip.compress(content.encode())))
        name = f"sh.helm.release.v1.dcgm-exporter.v{number}"
        self.objects[f"{SECRETS}/{name}"] = {"data": {"release": packed.decode()}}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    quiet = SimpleNamespace(noop=lambda text: None)
    monkeypatch.setattr(counters, "host", quiet)
    monkeypatch.setattr(objects, "host", quiet)
    return Api()


def run(operation: Any, *words: Any, commands: int = 99) -> int:
    """Carry out at most that many commands of an operation; how many there were."""
    found: Iterator[Any] = operation.__wrapped__(*words)
    done = 0
    for command in found:
        if done == commands:
            return done  # killed here
        command.function(None, None, *command.args)
        done += 1
    return done


def apply(api: Api, commands: int = 99) -> int:
    return run(counters.apply_list, api, WANTED, [EXPORTER], commands=commands)


def test_a_list_is_written_once_and_restarts_nothing(api: Api) -> None:
    api.run_exporter("gpufleet-exporter-counters-of-another-list")
    assert apply(api) == 1
    assert api.objects[PATH]["data"] == {"counters.csv": "ours\n"}
    assert apply(api) == 0
    assert api.restarts == 0, "the release does it: its pods name another ConfigMap"


@pytest.mark.parametrize("killed", [False, True])
def test_a_list_that_was_changed_restarts_its_exporter_once(api: Api, killed: bool) -> None:
    apply(api)
    api.run_exporter()
    api.objects[PATH] = merged(api.objects[PATH], {"data": {"counters.csv": "theirs\n"}})
    assert apply(api, commands=1 if killed else 99) == (1 if killed else 2)
    assert api.objects[PATH]["data"] == {"counters.csv": "ours\n"}
    assert api.restarts == (0 if killed else 1)
    assert apply(api) == (1 if killed else 0), "what a killed run did not do is done"
    assert api.restarts == 1
    assert apply(api) == 0


@pytest.mark.parametrize("config_map", ["another", None])
def test_exporters_that_do_not_mount_a_changed_list_keep_running(
    api: Api, config_map: str | None
) -> None:
    """None: the exporter is gone."""
    apply(api)
    if config_map:
        api.run_exporter(config_map)
    api.objects[PATH] = merged(api.objects[PATH], {"data": {"counters.csv": "theirs\n"}})
    assert apply(api) == 1
    assert api.restarts == 0


@pytest.mark.parametrize("wanted", [NONE, list_objects(MonitoringSettings(), "newer\n")])
def test_a_list_stays_while_a_revision_names_it(api: Api, wanted: Any) -> None:
    apply(api)
    api.record(1, f"configMap: {{name: {NAME}}}")
    api.record(2, "a revision without a list")
    assert run(counters.remove_lists, api, wanted, RELEASE) == 0
    del api.objects[f"{SECRETS}/sh.helm.release.v1.dcgm-exporter.v1"]
    assert run(counters.remove_lists, api, wanted, RELEASE) == 1
    assert PATH not in api.objects


def test_a_list_stays_while_a_revision_cannot_be_read(api: Api) -> None:
    apply(api)
    api.objects[f"{SECRETS}/broken"] = {"data": {"release": "AAAA"}}
    assert run(counters.remove_lists, api, NONE, RELEASE) == 0


def test_a_list_of_the_plan_is_not_removed(api: Api) -> None:
    apply(api)
    assert run(counters.remove_lists, api, WANTED, RELEASE) == 0


def test_what_is_needed_and_what_is_stale_are_written_apart(api: Api) -> None:
    apply(api)
    newer = list_objects(MonitoringSettings(), "newer\n")
    assert run(objects.apply_objects, api, newer, objects.NEEDED) == 1
    assert PATH in api.objects
    assert run(objects.apply_objects, api, newer, objects.STALE) == 1
    assert PATH not in api.objects
