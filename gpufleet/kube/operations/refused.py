"""Requests that an API server rejects, and their findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.quoting import quote_field
from gpufleet.kube import findings
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.permissions import missing_permissions, speaks_of_permissions

CAUSES = 10  # of one answer
MAX_ANSWER_CHARS = 64 * 1024
CORE = " /api/v1/"  # of every API server
UNSERVED = ("", "404 page not found")  # what an API server says of paths that it does not know
PASSING = (408, 409, 429)  # statuses of a client's error that pass
_MISSING = 404


class ApiError(ClusterProblem):
    """The API server rejected a request. `reason`: the server's, such as Forbidden or NotFound;
    `context`: of the kubeconfig; `is_missing`: whether the server itself says that there is no such
    object, or that it does not know the path: a load balancer before it has 404s of its own. What
    the server says is quoted."""

    def __init__(self, request: str, status: int, answer: Mapping[str, Any], context: str) -> None:
        self.request = request
        self.context = context
        self.status = status
        self.reason = quote_field(str(answer.get("reason") or ""))
        said = str(answer.get("message") or "")
        self.answer = said[:MAX_ANSWER_CHARS]  # as it came, for programs alone
        self.message = quote_field(said)
        self.causes = tuple(_causes_of(answer.get("details")))
        unserved = answer.get("message") in UNSERVED and CORE not in request
        self.is_missing = status == _MISSING and (answer.get("kind") == "Status" or unserved)
        super().__init__(*refusals([self]))

    def __str__(self) -> str:
        return f"{self.request}: {self.status} {self.message or self.reason}"

    @property
    def is_final(self) -> bool:
        """Whether the same request has the same answer later: not what load balancers, webhooks and
        overloaded servers say for a moment."""
        if self.status == _MISSING and not self.is_missing:
            return False
        return self.status < 500 and self.status not in PASSING


def is_final(problem: ClusterProblem) -> bool:
    """Whether a cluster has answered, and will not answer otherwise."""
    return isinstance(problem, ApiError) and problem.is_final


def refusals(errors: Sequence[ApiError]) -> list[Finding]:
    """Findings for rejected requests: one for all missing permissions."""
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
    """The messages in the details of a Status; a proxy may answer with anything else."""
    causes = details.get("causes") if isinstance(details, dict) else None
    listed = causes if isinstance(causes, list) else []
    known = [each for each in listed if isinstance(each, dict)][:CAUSES]
    return [quote_field(str(each.get("message") or "")) for each in known]
