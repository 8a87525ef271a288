"""Sends requests to the Kubernetes API as plain dicts: get, paged list, writes."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode

import urllib3
from kubernetes.client.exceptions import ApiException

from gpufleet.core.findings import Finding
from gpufleet.core.limits import API_PAGES
from gpufleet.core.quoting import quote_field
from gpufleet.core.responses import ResponseRefused
from gpufleet.kube import findings
from gpufleet.kube.kubeconfig import Kubeconfig
from gpufleet.kube.objects import FIELD_MANAGER, Body
from gpufleet.kube.operations.access import (
    ClusterProblem,
    KubeAccess,
    client_of,
    expired_client_certificate,
    refused_certificate,
)
from gpufleet.kube.operations.refused import ApiError
from gpufleet.kube.prometheus import decode_response

PAGE_SIZE = 500  # objects per response
API_TIMEOUT = (5, 60)  # seconds to connect, and between parts of a response
SERVICE_TIMEOUT = (5, 20)  # the same for a Service: the API server waits longer for a silent pod
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
ANONYMOUS = 'User "system:anonymous"'  # the user of requests without valid credentials
MAX_API_TRIES = 6  # for a server that responded before
MAX_BODY_CHARS = 200  # characters of a body that is not JSON
PAUSE = 2.0  # seconds between retries
SETTLING = 60.0  # seconds in which a server that was unavailable may still reject valid requests
STARTING_SERVER = "it was away a moment ago, and rejects requests until it has read its roles"
_DENIED = 403
_GONE = 410
_LATER = 429  # nothing was done: too many requests, or a kind that is not yet served


class ClusterApi:
    """One connection to a cluster. Several threads may use it.

    Every method raises ApiError if the server rejects the request, and ClusterProblem if it is
    unreachable or rejects the credentials.
    """

    def __init__(self, access: KubeAccess | Kubeconfig) -> None:
        self.kubeconfig = access if isinstance(access, Kubeconfig) else access.read()
        self.context = self.kubeconfig.context
        self._client = client_of(self.kubeconfig)
        self.url = str(self._client.configuration.host)
        self.clock = 0  # seconds since 1970, from the server's last response, or 0
        self.before_write: Callable[[], None] = lambda: None
        self._reached = False
        self._away = -SETTLING  # last time without response, by time.monotonic()

    def get(self, path: str, accept: str = "application/json", /, **query: str) -> dict[str, Any]:
        return self._request("GET", path, accept=accept, query=query)

    def find(self, path: str) -> dict[str, Any] | None:
        """The object at a path, or None."""
        try:
            return self.get(path)
        except ApiError as error:
            if not error.is_missing:
                raise
            return None

    def list(
        self,
        path: str,
        accept: str = "application/json",
        kept: Callable[[Any], Any] = lambda item: item,
        /,
        **query: str,
    ) -> list[Any]:
        """The items of a list, page by page. `kept` reduces an item to the needed part, or to None
        to drop it, so that only one whole page is in memory."""
        items: list[Any] = []
        more: dict[str, str] = {"limit": str(PAGE_SIZE)}
        for _ in range(API_PAGES):
            try:
                answer = self.get(path, accept, **query, **more)
            except ApiError as error:
                if error.status != _GONE or "limit" not in more:
                    raise
                items, more = [], {}  # the continue token expired: list without pages
                continue
            if "items" not in answer:  # from a proxy: an empty list has items
                raise self._unreadable(f"GET {path}", "a list without items")
            items += (found for item in answer["items"] or () if (found := kept(item)))
            token = (answer.get("metadata") or {}).get("continue")
            if not token:
                return items
            more = {"limit": str(PAGE_SIZE), "continue": str(token)}
        raise self._unreadable(f"GET {path}", f"more than {API_PAGES} pages")

    def read_log(self, path: str, **query: str) -> str:
        """The text at a path whose answer is not JSON, such as the log of a pod."""
        response = self._response("GET", path, accept="*/*", query=query)
        if response.status >= 400:
            self._answer(f"GET {path}", int(response.status), response.data)
        return str(response.data.decode("utf-8", "replace"))

    def ask_service(self, path: str, **query: str) -> dict[str, Any] | str:
        """The JSON object that a Service returns through the API server's proxy, or why there is
        none. Asks once, and raises nothing: the Service may be any program."""
        try:
            response = self._response("GET", path, query=query, tries=1, timeout=SERVICE_TIMEOUT)
        except ClusterProblem as problem:
            return problem.findings[0].message
        return decode_response(int(response.status), response.data)

    def create(self, path: str, body: Body) -> dict[str, Any]:
        return self._request("POST", path, body=body)

    def try_create(self, path: str, body: Body) -> dict[str, Any]:
        """Create an object as a dry run: with all admission checks, but without storing it."""
        return self._request("POST", path, body=body, query={"dryRun": "All"})

    def attempt(self, path: str, body: Body) -> dict[str, Any]:
        """Create without a retry after 429, by which a disruption budget rejects an eviction."""
        return self._request("POST", path, body=body, tries=1)

    def replace(self, path: str, body: Body) -> dict[str, Any]:
        return self._request("PUT", path, body=body)

    def merge(self, path: str, body: Body) -> dict[str, Any]:
        """Merge-patch an object: set the fields of `body`. null removes a field."""
        return self._request("PATCH", path, body=body, content="application/merge-patch+json")

    def patch(self, path: str, operations: Sequence[Body]) -> dict[str, Any]:
        """JSON-patch an object. A failed `test` gets 422."""
        return self._request("PATCH", path, body=operations, content="application/json-patch+json")

    def apply(
        self, path: str, body: Body, *, manager: str = FIELD_MANAGER, force: bool = True
    ) -> dict[str, Any]:
        """Server-side apply. `force`: as --force-conflicts."""
        content = "application/apply-patch+yaml"
        query = {"fieldManager": manager, "force": str(force).lower()}
        return self._request("PATCH", path, body=body, content=content, query=query)

    def delete(self, path: str, body: Body | None = None) -> dict[str, Any]:
        """Delete an object. `body`: DeleteOptions, for example preconditions."""
        return self._request("DELETE", path, body=body)

    def close(self) -> None:
        self._client.close()

    def _request(self, method: str, path: str, **how: Any) -> dict[str, Any]:
        response = self._response(method, path, **how)
        return self._answer(f"{method} {path}", int(response.status), response.data)

    def _response(
        self,
        method: str,
        path: str,
        *,
        accept: str = "application/json",
        content: str = "application/json",
        query: Mapping[str, str] | None = None,
        body: Body | Sequence[Any] | None = None,
        tries: int = MAX_API_TRIES,
        timeout: tuple[int, int] = API_TIMEOUT,
    ) -> Any:
        if method != "GET":
            self.before_write()
        url = self.url + path + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": accept, "Accept-Encoding": "gzip", "User-Agent": "gpufleet"}
        if body is not None:
            headers["Content-Type"] = content
        self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        for left in reversed(range(tries)):
            try:
                response = self._sent(method, url, headers, body, tries, timeout)
            except ResponseRefused as error:
                reason = f"a response that is not read: {error}"
                raise self._unreadable(f"{method} {path}", reason) from error
            if response.status != _LATER or not left:
                break
            time.sleep(PAUSE)
        return response

    def _sent(
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        body: Any,
        tries: int,
        timeout: tuple[int, int],
    ) -> Any:
        """The response. Retries reads if a server that responded before is briefly unavailable,
        because of an upgrade or a broken connection."""
        tries = tries if self._reached and method == "GET" else 1
        for left in reversed(range(tries)):
            try:
                response = self._client.rest_client.request(
                    method, url, headers=headers, body=body, _request_timeout=timeout
                )
            except ResponseRefused:
                raise
            except (urllib3.exceptions.HTTPError, ApiException) as error:  # ApiException for TLS
                self._away = time.monotonic()
                if not left:
                    raise ClusterProblem(self._unreachable(error)) from error
                time.sleep(PAUSE)
            else:
                self._reached = True
                self.clock = _clock(response.headers)
                return response
        raise AssertionError("at least one attempt is made")

    def _answer(self, request: str, status: int, data: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(data or b"{}")
        except (ValueError, RecursionError):
            answer = None
        said = answer.get("message") if isinstance(answer, dict) else ""
        anonymous = status == _DENIED and ANONYMOUS in str(said)
        if status == 401 or anonymous:
            expired = expired_client_certificate(self._client, self.context, self.url)
            denied = expired or findings.UNAUTHORIZED(url=self.url, context=self.context)
            raise ClusterProblem(denied)
        if not isinstance(answer, dict):
            if status < 400:
                raise self._unreadable(request, "a body that is not JSON")
            answer = {"message": quote_field(data.decode("utf-8", "replace"), MAX_BODY_CHARS)}
        if status == _DENIED and time.monotonic() - self._away < SETTLING:
            raise ClusterProblem(
                findings.API_UNREACHABLE(context=self.context, url=self.url, reason=STARTING_SERVER)
            )
        if status >= 400:
            raise ApiError(request, status, answer if data else {"message": ""}, self.context)
        return answer

    def _unreadable(self, request: str, reason: str) -> ClusterProblem:
        found = findings.ANSWER_UNREADABLE(request=request, context=self.context, reason=reason)
        return ClusterProblem(found)

    def _unreachable(self, error: BaseException) -> Finding:
        causes = list(_causes(error))
        for cause in causes:
            if isinstance(cause, ssl.SSLError):
                authority = self._client.configuration.ssl_ca_cert
                return refused_certificate(cause, self.context, self.url, authority)
        reason = quote_field(str(causes[-1])) or type(causes[-1]).__name__
        return findings.API_UNREACHABLE(context=self.context, url=self.url, reason=reason)


def _clock(headers: Mapping[str, str]) -> int:
    try:
        return int(parsedate_to_datetime(headers.get("Date") or "").timestamp())
    except (ValueError, TypeError, OverflowError):
        return 0


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes. urllib3 stores a cause in `reason`."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        reason = getattr(cause, "reason", None)
        inner = reason if isinstance(reason, BaseException) else None
        cause = inner or cause.__cause__ or cause.__context__
