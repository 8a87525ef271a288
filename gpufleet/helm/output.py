"""Turns helm's standard error into findings. Pure.

The texts are those of helm 3.22 and 4.2 and of API servers. tests/unit/helm has each of them
verbatim.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from gpufleet.core.causes import find_cause
from gpufleet.core.findings import Finding
from gpufleet.core.secrets import hide_secrets
from gpufleet.helm.findings import charts
from gpufleet.helm.findings import releases as findings
from gpufleet.helm.release import STALE_SECONDS, Release
from gpufleet.kube.facts import ClusterFacts, ReleaseRef
from gpufleet.kube.permissions import missing_permissions, speaks_of_permissions

NO_ERROR = "helm printed no error"
MAX_ERROR_CHARS = 800  # characters of an error in a finding
_NOISE = re.compile(r"^([IWEF]\d{4} |level=|time=|\{\"level\")")
_UNKNOWN_FIELD = re.compile(r'unknown field \\*"([^"\\]+)')
_KUBERNETES = re.compile(r"which is incompatible with Kubernetes")
_SCHEMA = re.compile(r"values don't meet the specifications of the schema")
_KIND = re.compile(r'no matches for kind "([^"]+)" in version "([^"]+)"')
_PORT = re.compile(r"nodePort: Invalid value: (\d+): provided port is already allocated")
_CONFLICT = re.compile(
    r"while applying object (?P<object>.+?): Apply failed with \d+ conflicts?: (?P<conflicts>.+)"
)
_MANAGER = re.compile(r'conflicts? with "([^"]+)"')
_FIELD = re.compile(r"(\.[\w.\[\]\"=\-/]+)")
_IMMUTABLE = re.compile(r"field is immutable|updates to \S+ spec for fields other than")
_PATCHED = re.compile(r'cannot patch "([^"]+)" with kind (\w+)|failed to (?:update|patch|replace) '
                      r'(?:object|resource):? (\S+)')  # fmt: skip
_INVALID = re.compile(r'(\w+)(?:\.[\w.]+)? "([^"]+)" is invalid')
_REFUSED = re.compile(
    r"ValidationError\(|unknown field|not declared in schema|failed to create typed patch object"
    r"|error validating data"
)
_HOOK = re.compile(r"(?:failed )?(?:pre|post)-(?:install|upgrade|rollback)(?: hooks failed)?:")
_NO_LOGIN = re.compile(r"basic credential not found|status code 40[13]|unauthorized|denied")
_NOT_OFFERED = re.compile(r": not found$")
_OTHER_CONTENT = re.compile(r"mismatch(?:ed)? (?:digest|Content-Length)")
_NO_TLS = re.compile(r"server gave HTTP response to HTTPS client")
_GONE = re.compile(r"release: not found$")
_KEPT = re.compile(r"^failed to delete release: ")
_NOT_DELETED = re.compile(
    r'Failed to delete release(?:: |" error=")\[(?P<why>.+?)\]"?$', re.DOTALL | re.MULTILINE
)
_BUSY = re.compile(r"another operation \(install/upgrade/rollback\) is in progress")


def error_line(stderr: str) -> str:
    """The error itself on one line, from the line that begins with `Error:`, without log lines.

    Standard error also holds broken aggregated APIs, warnings and helm 4's log.
    """
    lines = stderr.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("Error:")]
    chosen = lines[starts[-1] :] if starts else lines
    text = " ".join(line for line in chosen if not _NOISE.match(line))
    shown = hide_secrets(" ".join(text.removeprefix("Error:").split()))
    cause = find_cause(lines)
    return f"{cause.text}: {_middle_out(shown)}" if cause else _middle_out(shown) or NO_ERROR


def _middle_out(text: str) -> str:
    """Cut out the middle. Servers may quote a whole object, with the error before or after it."""
    if len(text) <= MAX_ERROR_CHARS:
        return text
    return f"{text[: MAX_ERROR_CHARS // 2]} … {text[-MAX_ERROR_CHARS // 2 :]}"


def dropped_fields(stderr: str, release: Release) -> list[Finding]:
    """A finding for every field that the server dropped in a successful call."""
    fields = dict.fromkeys(_UNKNOWN_FIELD.findall(stderr))
    return [findings.FIELD_DROPPED(release=release.ref, field=field) for field in fields]


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed call. `what`: Installation, Upgrade, Roll-back; `state`: the release's state
    afterwards, as the end of a remedy; `log`: the location of the whole output."""

    what: str
    stderr: str
    state: str = "fix the cause and run again."
    log: str = "helm's output"


def explain_failure(failure: Failure, release: Release, facts: ClusterFacts) -> Finding:
    """The most specific finding for helm's error."""
    error = error_line(failure.stderr)
    of: dict[str, Any] = {"what": failure.what, "release": release.ref, "error": error}
    if _BUSY.search(error):
        stale = f"{STALE_SECONDS // 60} minutes"
        return findings.RELEASE_BUSY(
            release=release.ref, status="pending", age="a moment", stale=stale
        )
    if _KUBERNETES.search(error):
        return findings.FIELD_REFUSED(**of, server=facts.server)
    if _SCHEMA.search(error):
        return findings.VALUES_REFUSED(**release.origin, error=error)
    if kind := _KIND.search(error):
        return findings.KIND_MISSING(release=release.ref, kind=kind[1], version=kind[2])
    if port := _PORT.search(error):
        holders = {held.port: f"{held.namespace}/{held.service}" for held in facts.node_ports}
        holder = holders.get(int(port[1]), "of another release")
        return findings.NODE_PORT_TAKEN(release=release.ref, port=port[1], holder=holder)
    if speaks_of_permissions(error):
        return missing_permissions(facts.context, [error])
    if conflict := _CONFLICT.search(error):
        return _conflict(failure, release, conflict["object"], conflict["conflicts"])
    if _IMMUTABLE.search(error):
        return findings.IMMUTABLE_FIELD(**of, object=_object(error, release))
    if _REFUSED.search(error):
        return findings.FIELD_REFUSED(**of, server=facts.server)
    cause = find_cause(failure.stderr.splitlines())
    advice = f"{cause.remedy} " if cause else ""
    hook = "the log of the hook's pod, and " if _HOOK.search(error) else ""
    state = f"{advice}See {hook}{failure.log}. {failure.state.capitalize()}"
    return findings.HELM_FAILED(**of, state=state)


def is_release_gone(stderr: str) -> bool:
    """True if helm could not uninstall a release because it does not exist."""
    return bool(_GONE.search(_last_error(stderr)))


def is_kept(stderr: str) -> bool:
    """True if helm could not delete an object of a release, and so kept the release's record."""
    return bool(_KEPT.search(_last_error(stderr)))


def explain_uninstall(stderr: str, release: ReleaseRef, context: str) -> Finding:
    """The most specific finding for a failed removal. `stderr`: with helm's debug output, as only
    that names the object that could not be deleted. `context`: of the kubeconfig."""
    why = _NOT_DELETED.search(stderr)
    text = why["why"].replace('\\"', '"').replace("\\n", " ") if why else _last_error(stderr)
    error = _middle_out(" ".join(text.split()))
    if speaks_of_permissions(error):
        return missing_permissions(context, [error])
    return removal_failed(release, error or NO_ERROR)


def removal_failed(release: ReleaseRef, error: str) -> Finding:
    manually = f"helm uninstall {release.name} -n {release.namespace} --debug"
    state = f"Fix the cause and run again: the removal continues. Manually: {manually}"
    return findings.HELM_FAILED(what="Removal", release=release, error=error, state=state)


def _last_error(stderr: str) -> str:
    """The last line that begins with `Error:`. Debug output follows it."""
    lines = [line for line in stderr.splitlines() if line.startswith("Error:")]
    return lines[-1].removeprefix("Error:").strip() if lines else error_line(stderr)


def explain_pull(stderr: str, release: Release) -> Finding:
    """The most specific finding for a failed pull from a registry."""
    error = error_line(stderr)
    if _NO_LOGIN.search(error):
        return login_refused(release, error)
    if _NOT_OFFERED.search(error):
        return charts.VERSION_NOT_OFFERED(**release.origin, offers="the tag does not exist")
    if _OTHER_CONTENT.search(error):
        return digest_wrong(release, error)
    if _NO_TLS.search(error):
        error = "it responds without TLS, which cluster_chart_plain_http = True allows"
    return findings.CHART_UNREACHABLE(**release.origin, error=error)


def digest_wrong(release: Release, error: str) -> Finding:
    what = f"{release.chart} {release.version}"
    return charts.DIGEST_WRONG(what=what, source=release.source.location, error=error)


def login_refused(release: Release, error: str) -> Finding:
    """The finding for a repository that rejects the credentials, or requires some."""
    source = release.source
    had = f"{source.logins} has no valid one" if source.logins else "it is not set yet"
    return charts.LOGIN_REFUSED(**release.origin, error=error, host=source.host, had=had)


def _conflict(failure: Failure, release: Release, on: str, conflicts: str) -> Finding:
    managers = ", ".join(dict.fromkeys(_MANAGER.findall(conflicts))) or "something else"
    fields = ", ".join(dict.fromkeys(_FIELD.findall(conflicts.split(": ", 1)[-1]))) or conflicts
    return findings.FIELD_CONFLICT(
        what=failure.what, release=release.ref, manager=managers, fields=fields, object=on
    )


def _object(error: str, release: Release) -> str:
    """The object in an error, in kubectl's words: deployment/grafana -n monitoring."""
    if match := _INVALID.search(error):
        return f"{match[1].lower()}/{match[2]} -n {release.namespace}"
    if match := _PATCHED.search(error):
        return f"{match[2].lower()}/{match[1]} -n {release.namespace}" if match[1] else match[3]
    return "the object in the error"
