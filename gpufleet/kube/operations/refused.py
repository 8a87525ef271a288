"""Requests that an API server rejects, and their findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.quoting import quote_field
from gpufleet.kube import findings
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.permissions import missing_permissions, speaks_of_permissions

CAUSES = 10  # in one answer
MAX_ANSWER_CHARS = 64 * 1024
CORE = " /api/v1/"  # part of every API server
UNSERVED_PATHS = ("", "404 page not found")  # the answers of an API server to unknown paths
PASSING_STATUSES = (408, 409, 429)  # client error statuses that a retry may resolve
_MISSING = 404


class ApiError(ClusterProblem):
    """The API server rejected a request. `reason`: the server's, such as Forbidden or NotFound;
    `context`: of the kubeconfig; `is_missing`: the server itself says that the object does not
    exist or that it does not know the path. A load balancer's own 404 is not meant. The server's
    text is quoted."""

    def __init__(self, request: str, status: int, answer: Mapping[str, Any], context: str) -> None:
        self.request = request
        self.context = context
        self.status = status
        self.reason = quote_field(str(answer.get("reason") or ""))
        said = str(answer.get("message") or "")
        self.answer = said[:MAX_ANSWER_CHARS]  # unchanged, only for programs
        self.message = quote_field(said)
        self.causes = tuple(_causes_of(answer.get("details")))
        unserved = answer.get("message") in UNSERVED_PATHS and CORE not in request
        self.is_missing = status == _MISSING and (answer.get("kind") == "Status" or unserved)
        super().__init__(*refusal_findings([self]))

    def __str__(self) -> str:
        return f"{self.request}: {self.status} {self.message or self.reason}"

    @property
    def is_final(self) -> bool:
        """True if a later request would get the same answer. False for temporary answers of load
        balancers, webhooks and overloaded servers."""
        if self.status == _MISSING and not self.is_missing:
            return False
        return self.status < 500 and self.status not in PASSING_STATUSES


def is_final(problem: ClusterProblem) -> bool:
    """True if a cluster has answered and a retry would not change the answer."""
    return isinstance(problem, ApiError) and problem.is_final


def refusal_findings(errors: Sequence[ApiError]) -> list[Finding]:
    """Findings for rejected requests. All missing permissions become one finding."""
    forbidden = [error for error in errors if error.status == 403]
    found = [
        findings.ANSWER_UNREADABLE(
            request=error.request,
            context=error.context,
            reason=f"{error.status} {error.message or error.reason}",
        )
        for error in errors
        if error not in forbidden
    ]
    if forbidden:
        messages = [
            error.answer if speaks_of_permissions(error.answer) else error.message
            for error in forbidden
        ]
        found.append(missing_permissions(forbidden[0].context, messages))
    return found


def _causes_of(details: Any) -> list[str]:
    """The messages in the details of a Status. A proxy may answer with anything else."""
    causes = details.get("causes") if isinstance(details, dict) else None
    listed = causes if isinstance(causes, list) else []
    known = [each for each in listed if isinstance(each, dict)][:CAUSES]
    return [quote_field(str(each.get("message") or "")) for each in known]
