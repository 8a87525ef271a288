"""One cluster under check: the state that its API reports, and how its checks fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from gpufleet.core.findings import Finding
from gpufleet.core.limits import API_PAGES
from gpufleet.core.quoting import quote_field
from gpufleet.kube.findings import WRONG_CLUSTER
from gpufleet.kube.kubeconfig import KubeconfigError, kubeconfig_paths, open_client, read_kubeconfig
from gpufleet.kube.prometheus import (
    NOT_JSON,
    choose_prometheus,
    decode_response,
    selects_prometheus,
    series_of,
)
from gpufleet.verify.answers import (
    error_text,
    has_ready_condition,
    is_object_gone,
    is_unserved,
    runs_image,
)
from gpufleet.verify.checks import CheckFailed, Subject
from gpufleet.verify.findings.clusters import CLUSTER_SILENT
from gpufleet.verify.inventory import Target

PRESENT = (
    "nvidia.com/gpu.present",
    "feature.node.kubernetes.io/pci-10de.present",
    "feature.node.kubernetes.io/pci-0302_10de.present",
    "feature.node.kubernetes.io/pci-0300_10de.present",
)
COUNT = "nvidia.com/gpu.count"  # the number of GPUs that GFD counted
MONITORS = ("monitoring.coreos.com", "v1", "servicemonitors")
RESOURCE = "nvidia.com/gpu"
PROMETHEUS_RESOURCE = ("monitoring.coreos.com", "v1", "prometheuses")
PROMETHEUS_SILENT = "Prometheus does not answer through the API server"
PAGE_SIZE = 500  # objects per response
VERIFY_API_TIMEOUT = (5, 20)  # seconds to connect, and to wait for one answer
Answers = dict[str, Any]


class CheckedCluster(Subject):
    """A cluster of the inventory. Each part is read once, when a check first needs it.

    `count_gpus`: the number of GPUs that the host of a node has, None if unknown.
    `sharing_seconds`: until a device plugin offers what its configuration says. It retries every
    30 s to reach its MPS control daemon.
    """

    sharing_seconds = 75

    def __init__(
        self, target: Target, count_gpus: Callable[[str], int | None] = lambda name: None
    ) -> None:
        super().__init__(target)
        self.count_gpus = count_gpus
        self._closed = ""  # why the API cannot be used

    @cached_property
    def api(self) -> Any:
        """A kubernetes.client.ApiClient. Fails the check if the client cannot be created, or if the
        cluster is not the one with the uid `cluster_uid`."""
        self.need_api()
        try:
            paths = kubeconfig_paths(self.data.get("cluster_kubeconfig") or "")
            kubeconfig = read_kubeconfig(paths, self.data.get("cluster_context") or "")
            api = open_client(kubeconfig)
        except KubeconfigError as error:
            raise self.gone(f"the kubeconfig cannot be used: {error}") from error
        if wanted := self.data.get("cluster_uid"):
            self._require(api, kubeconfig.context, str(wanted))
        return api

    def _require(self, api: Any, context: str, wanted: str) -> None:
        """Fail the check unless the namespace kube-system has the uid `wanted`."""
        core: Any = client.CoreV1Api(api)
        try:
            system = core.read_namespace("kube-system", _request_timeout=VERIFY_API_TIMEOUT)
        except ApiException as error:
            answer = error_text(error) if error.status else _cause(error)
            why = f"the namespace kube-system, which cluster_uid is of, cannot be read: {answer}"
            raise self.gone(why) from error
        except HTTPError as error:
            raise self.gone(error) from error
        found = system.metadata.uid
        if found != wanted:
            url = api.configuration.host
            raise self.close(
                WRONG_CLUSTER(None, context=context, url=url, found=found, wanted=wanted),
                "the kubeconfig leads to another cluster",
            )

    def silent(self, why: str) -> CheckFailed:
        """The failure if the API did not answer one request."""
        return CheckFailed(self.name, CLUSTER_SILENT(None, why=quote_field(why)))

    def gone(self, error: Exception | str) -> CheckFailed:
        """The failure if the API is unreachable. It skips all later checks of the cluster."""
        why = _cause(error) if isinstance(error, Exception) else error
        silent = CLUSTER_SILENT(None, why=quote_field(why))
        return self.close(silent, "the API of the cluster gives no answer")

    def close(self, finding: Finding, why: str) -> CheckFailed:
        """The failure if the API cannot be used. It skips all later checks of the cluster."""
        self._closed = f"{why} ({finding.code})"
        return CheckFailed(self.name, finding)

    def need_api(self) -> None:
        """Skip the check if the API turned out to be unusable."""
        if self._closed:
            pytest.skip(self._closed)

    def ask(self, call: Any, *arguments: Any, **more: Any) -> Any:
        """Request something that every API server has, so a 404 comes from another program."""
        return self._asked(call, arguments, more, lambda body: False)

    def find(self, call: Any, name: str, *arguments: Any, **more: Any) -> Any:
        """Request an object as `ask` does. None if the API server has no object of that name."""
        return self._asked(call, (name, *arguments), more, lambda body: is_object_gone(body, name))

    def _asked(
        self,
        call: Any,
        arguments: Sequence[Any],
        more: Mapping[str, Any],
        is_missing: Callable[[Any], bool],
    ) -> Any:
        """An answer of the API. None for a 404 if `is_missing` accepts its body."""
        self.need_api()
        try:
            return call(*arguments, _request_timeout=VERIFY_API_TIMEOUT, **more)
        except ApiException as error:
            if error.status == 404 and is_missing(error.body):
                return None
            if not error.status:  # TLS error, no answer
                raise self.gone(error) from error
            raise self.silent(error_text(error)) from error
        except HTTPError as error:
            raise self.gone(error) from error

    def delete(self, call: Any, name: str, *arguments: Any, **more: Any) -> str | None:
        """Why the API did not delete an object of that name, or None if it is gone. Sends the
        request even if the API did not answer before."""
        try:
            answer = call(name, *arguments, _request_timeout=VERIFY_API_TIMEOUT, **more)
        except ApiException as error:
            if error.status == 404 and is_object_gone(error.body, name):
                return None
            return error_text(error) if error.status else _cause(error)
        except Exception as error:  # noqa: BLE001 a boundary: a proxy's answer may be anything
            return _cause(error)
        is_object = isinstance(answer, Mapping) or hasattr(answer, "kind")
        return None if is_object else NOT_JSON

    def listed(
        self, call: Any, *arguments: Any, is_missing: Callable[[Any], bool] = lambda body: False
    ) -> list[Any]:
        """The items of a list, page by page. `is_missing`: True if the body of a 404 says that the
        API does not serve the kind; the list is then empty."""
        items: list[Any] = []
        more: dict[str, str] = {}
        for _ in range(API_PAGES):
            answer = self._asked(call, arguments, {"limit": PAGE_SIZE, **more}, is_missing)
            found, token = _page(answer) if answer else ([], "")
            items += found
            if not token:
                return items
            more = {"_continue": token}
        raise self.gone(f"a list has more than {API_PAGES} pages")

    @cached_property
    def core(self) -> Any:
        return client.CoreV1Api(self.api)

    @cached_property
    def batch(self) -> Any:
        return client.BatchV1Api(self.api)

    @cached_property
    def nodes(self) -> list[Any]:
        return self.listed(self.core.list_node)

    @cached_property
    def gpu_nodes(self) -> list[Any]:
        """The nodes with GPUs, by their labels or by their capacity."""
        return [
            node
            for node in self.nodes
            if any((node.metadata.labels or {}).get(label) == "true" for label in PRESENT)
            or int((node.status.capacity or {}).get(RESOURCE, 0))
        ]

    @cached_property
    def workloads(self) -> list[Any]:
        """DaemonSets and Deployments of all namespaces."""
        apps = client.AppsV1Api(self.api)
        daemons = self.listed(apps.list_daemon_set_for_all_namespaces)
        return [*daemons, *self.listed(apps.list_deployment_for_all_namespaces)]

    @cached_property
    def pods(self) -> list[Any]:
        return self.pods_now()

    def pods_now(self) -> list[Any]:
        return self.listed(self.core.list_pod_for_all_namespaces)

    def nodes_with(self, image: str) -> set[str]:
        """Names of nodes with a ready pod that runs an image for its main purpose."""
        return {pod.spec.node_name for pod in self.pods_with(image)}

    def pods_with(self, image: str) -> list[Any]:
        """Ready pods that run an image for its main purpose."""
        return [pod for pod in self.pods if runs_image(pod, image) and has_ready_condition(pod)]

    def custom(self, kind: tuple[str, str, str]) -> list[Answers]:
        """Custom resources of all namespaces. Empty if the API does not serve the kind."""
        call = client.CustomObjectsApi(self.api).list_cluster_custom_object
        return self.listed(call, *kind, is_missing=is_unserved)

    @cached_property
    def query_path(self) -> str | None:
        """The path for queries to a Prometheus, or None. One that an operator runs is preferred,
        such as ours to Istio's."""
        services = [
            self.core.api_client.sanitize_for_serialization(service)
            for service in self.listed(self.core.list_service_for_all_namespaces)
            if selects_prometheus(service.spec.selector)
        ]
        found = self.custom(PROMETHEUS_RESOURCE) if services else []
        ours = self.data.get("monitoring_namespace") or "monitoring"
        chosen = choose_prometheus(services, found, ours)
        return f"{chosen.path}/query" if chosen else None

    def prometheus(self, query: str) -> list[Answers] | str:
        """The series of an instant query through the API server, or why it was not answered."""
        if self.query_path is None:
            return "no Service selects the pods of a Prometheus"
        try:
            answer = self._get(f"{self.query_path}?{urlencode({'query': query})}")
        except HTTPError as error:  # the API server waits longer for a silent pod
            return quote_field(str(error))
        return series_of(answer)

    def need_series(self, query: str) -> list[Answers]:
        """The series of an instant query. Skips the check if Prometheus does not answer."""
        answer = self.prometheus(query)
        if isinstance(answer, str):
            pytest.skip(f"{PROMETHEUS_SILENT}: {answer}")
        return answer

    def get(self, path: str) -> Answers | str:
        """A response of the API, or the reason why it failed."""
        self.need_api()
        try:
            return self._get(path)
        except (HTTPError, ApiException) as error:
            raise self.gone(error) from error

    def _get(self, path: str) -> Answers | str:
        """A GET with a literal path. The client would encode / and ? behind a proxy."""
        headers = {"Accept": "application/json"}
        self.api.update_params_for_auth(headers, [], ["BearerToken"], path, "GET", None)
        url = self.api.configuration.host + path
        response = self.api.rest_client.request(
            "GET", url, headers=headers, _request_timeout=VERIFY_API_TIMEOUT
        )
        return decode_response(response.status, response.read())


def _cause(error: BaseException) -> str:
    """The innermost cause of an error, on one line. urllib3 wraps it in its own objects."""
    while True:
        inner = getattr(error, "reason", None)
        inner = inner if isinstance(inner, BaseException) else error.__cause__
        if inner is None:
            return " ".join(str(error).split()) or type(error).__name__
        error = inner


def _page(found: Any) -> tuple[list[Any], str]:
    """The items of a list, and the token of the next page. Custom resources are plain dicts."""
    if isinstance(found, dict):
        token = (found.get("metadata") or {}).get("continue")
        return list(found.get("items") or ()), str(token or "")
    token = found.metadata._continue if found.metadata else ""
    return list(found.items or ()), str(token or "")
