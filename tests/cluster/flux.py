"""The files of `gpufleet render --format flux`, installed by Flux's own programs.

source-controller and helm-controller run as processes of this machine. The test applies the files
as kustomize-controller would: by server-side apply, with its labels.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from gpufleet.kube.operations.access import KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet_sandbox.cluster.build import program
from gpufleet_sandbox.cluster.modules import OwnModule
from gpufleet_sandbox.cluster.versions import versions
from gpufleet_sandbox.golang import go_command, go_environment
from gpufleet_sandbox.paths import cache_dir
from gpufleet_sandbox.process import own_group
from gpufleet_sandbox.waiting import wait_until
from tests import warm
from tests.cluster.pods import SECONDS
from tests.cluster.stacking import ROOT, Bench

GPUFLEET = Path(sys.executable).with_name("gpufleet")
HELM_RELEASES = "/apis/helm.toolkit.fluxcd.io/v2/helmreleases"
HELM_CHARTS = "/apis/source.toolkit.fluxcd.io/v1/helmcharts"
HOME = cache_dir() / "go"  # of programs; tests set another cache for charts
MARK = "kustomize.toolkit.fluxcd.io"
BY_KUSTOMIZE = {f"{MARK}/name": "gpu", f"{MARK}/namespace": "flux-system"}
# written by servers, nodes and controllers, or secret
OTHERS = re.compile(
    "secrets|events|leases|nodes|pods|endpoints|endpointslices|replicasets|controllerrevisions"
    "|componentstatuses|ipaddresses"
)
MARKS_OF_TOOLS = re.compile(
    r"toolkit\.fluxcd\.io|argocd\.argoproj\.io|^meta\.helm\.sh|^deprecated\.|^deployment\."
)
SET_BY_SERVER = ("metadata", "status")
CRD = "CustomResourceDefinition"  # gpufleet labels those that it applies


@dataclass(frozen=True)
class Flux:
    """A cluster with Flux's controllers, and a folder for files."""

    bench: Bench
    folder: Path
    data: Mapping[str, Any]  # of the inventory
    api: ClusterApi

    def gpufleet(self, command: str, *words: str, **data: Any) -> str:
        """The output of a command for the cluster."""
        inventory = self.folder / "inventory.py"
        self.bench.write_inventory(inventory, {**self.data, **data})
        asked = [GPUFLEET, command, inventory, *words]
        status, output = warm.ended(asked, ROOT, os.environ)
        assert status == 0, output
        return output

    def planned(self, **data: Any) -> set[str]:
        """The codes of a plan, which changes nothing."""
        done = self.bench.deploy("--dry", **{**self.data, **data})
        assert (done.returncode, done.report["changed"]) == (0, 0), done.output
        return done.codes

    def render(self, **data: Any) -> dict[str, str]:
        """Path -> text of the files of `gpufleet render`."""
        place = self.folder / "gitops"
        self.gpufleet("render", "--output", str(place), "--format", "flux", **data)
        return {str(path.relative_to(place)): path.read_text() for path in place.rglob("*.*")}

    def apply(self, files: Mapping[str, str]) -> None:
        """Apply the releases, wait until Flux has installed them, then apply the objects."""
        self.put_folder(files, "releases")
        wait_until(lambda: set(self.states().values()) == {("True", "")}, SECONDS)
        assert set(self.states().values()) == {("True", "")}, self.states()
        self.put_folder(files, "objects")

    def put_folder(self, files: Mapping[str, str], folder: str) -> None:
        """Apply the files of a folder, namespaces first."""
        texts = (
            text
            for path, text in sorted(files.items())
            if f"/{folder}/" in path and not path.endswith("/kustomization.yaml")
        )
        bodies = [body for text in texts for body in yaml.safe_load_all(text)]
        for body in sorted(bodies, key=lambda each: each["kind"] != "Namespace"):
            self.put(body)

    def put(self, body: dict[str, Any]) -> None:
        """Apply an object as kustomize-controller does."""
        about = body["metadata"]
        about["labels"] = {**about.get("labels", {}), **BY_KUSTOMIZE}
        put(self.api, body)

    def states(self) -> dict[str, tuple[str, str]]:
        """HelmRelease -> status of its condition Ready, "" for an earlier state, and a problem."""
        found = {}
        for each in self.api.list(HELM_RELEASES):
            conditions = (each.get("status") or {}).get("conditions", ())
            ready = next((one for one in conditions if one["type"] == "Ready"), {})
            current = ready.get("observedGeneration") == each["metadata"]["generation"]
            status = ready["status"] if current else ""
            problem = "" if status == "True" else ready.get("message", "")
            found[each["metadata"]["name"]] = (status, problem)
        return found


def put(api: ClusterApi, body: dict[str, Any]) -> None:
    """Server-side apply."""
    version, about = body["apiVersion"], body["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    (kind,) = (
        each
        for each in api.get(root)["resources"]
        if each["kind"] == body["kind"] and "/" not in each["name"]
    )
    space = f"/namespaces/{about['namespace']}" if kind["namespaced"] else ""
    path = f"{root}{space}/{kind['name']}/{about['name']}"
    api.apply(path, body, manager="kustomize-controller")


def objects_of(api: ClusterApi) -> dict[str, Any]:
    """Path -> object, of every kind, without what servers and tools set."""
    groups = [each["preferredVersion"]["groupVersion"] for each in api.get("/apis")["groups"]]
    found = {}
    for root in ("/api/v1", *(f"/apis/{each}" for each in groups if "fluxcd" not in each)):
        for kind in api.get(root)["resources"]:
            if "list" not in kind["verbs"] or OTHERS.fullmatch(kind["name"]):
                continue
            for body in api.list(f"{root}/{kind['name']}"):
                about = body["metadata"]
                name = f"{kind['name']}/{about.get('namespace', '')}/{about['name']}"
                if "fluxcd" not in name:
                    found[name] = comparable(body, labels=kind["kind"] != CRD)
    return found


def comparable(body: dict[str, Any], *, labels: bool) -> dict[str, Any]:
    """An object without what differs by design. Flux adds the digest of a chart from a registry to
    its version; the end of a rendered text has a line break or not, as helm 3 and 4 differ."""
    about, kept = body["metadata"], {key: body[key] for key in body if key not in SET_BY_SERVER}
    if isinstance(kept.get("spec"), dict):
        kept["spec"] = {key: each for key, each in kept["spec"].items() if "clusterIP" not in key}
    for part in ("labels", "annotations") if labels else ("annotations",):
        marks = (about.get(part) or {}).items()
        kept[part] = {key: text for key, text in marks if not MARKS_OF_TOOLS.search(key)}
    text = re.sub(r"\+[0-9a-f]{12}\b", "", json.dumps(kept)).replace('\\n"', '"')
    same: dict[str, Any] = json.loads(text)
    return same


def crds(name: str, folder: Path) -> Iterator[dict[str, Any]]:
    """The CRDs in the module of a program."""
    wanted = versions().programs[name]
    module = OwnModule(go_command(HOME, print), folder, go_environment(HOME), print)
    place = Path(module.download(wanted.module, wanted.version)["Dir"], "config", "crd", "bases")
    for path in sorted(place.glob("*.yaml")):
        yield yaml.safe_load(path.read_text())


@contextmanager
def flux(bench: Bench, folder: Path, data: Mapping[str, Any]) -> Iterator[Flux]:
    """Flux's controllers on the bench's cluster; files are served on loopback."""
    stored = folder / "artifacts"
    stored.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        storage = f"127.0.0.1:{free.getsockname()[1]}"
    options = {
        "source-controller": [
            f"--storage-path={stored}",
            f"--storage-addr={storage}",
            f"--storage-adv-addr={storage}",
        ],
        "helm-controller": ["--requeue-dependency=1s"],
    }
    environment = {**os.environ, "KUBECONFIG": str(bench.cluster.kubeconfig)}
    api = ClusterApi(KubeAccess(str(bench.cluster.kubeconfig)))
    with closing(api), ExitStack() as running:
        for body in (each for name in options for each in crds(name, folder / "module")):
            put(api, body)
        for kind in (HELM_RELEASES, HELM_CHARTS):
            assert wait_until(partial(api.find, kind), SECONDS), kind  # it is served
        for name, more in options.items():
            binary = program(name, HOME, print)
            log = running.enter_context((folder / f"{name}.log").open("w"))
            words = [str(binary), "--metrics-addr=0", "--health-addr=0", *more]
            running.enter_context(own_group(words, env=environment, stderr=log))
        yield Flux(bench, folder, data, api)
