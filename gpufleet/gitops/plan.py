"""Plans the files of one cluster from the plan of its GPU stack. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date

from gpufleet.core.findings import Finding
from gpufleet.core.masks import flat_lines
from gpufleet.core.secrets import MASK, SHORTEST, hide_secrets, without_secrets
from gpufleet.gitops import findings
from gpufleet.gitops.releases import LOGINS_SECRET, Style
from gpufleet.gitops.render import Files, NeededSecret, render_files, stack_objects
from gpufleet.gpu_stack.model import StackPlan, node_names
from gpufleet.gpu_stack.node_labels import LabelChange
from gpufleet.gpu_stack.node_sharing import OWN_LABELS, HostData
from gpufleet.gpu_stack.plan import plan_stack
from gpufleet.gpu_stack.settings import ClusterSettings
from gpufleet.helm.chart_choice import cluster_findings, load_charts
from gpufleet.helm.release import Release, ReleasePlan
from gpufleet.kube.facts import ClusterFacts
from gpufleet.monitoring.alertmanager import CONFIG_KEY, CONFIG_SECRET

_OPTION = re.compile(r"none|true|false|yes|no|on|off|\d+(ms|[smhd])?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ClusterFiles:
    """The files of a cluster, path -> content. A cluster with a blocker has no files."""

    files: Files
    findings: tuple[Finding, ...]

    @property
    def blocked(self) -> bool:
        return any(finding.blocks for finding in self.findings)


def plan_files(
    name: str,
    settings: ClusterSettings,
    facts: ClusterFacts,
    data: HostData,
    style: Style,
    judge: Callable[[Release], ReleasePlan],
    today: date,
) -> ClusterFiles:
    """The files with which a cluster gets what `gpu_cluster` would do to it.

    `name`: of the cluster in the inventory; `data`: of its GPU nodes there; `judge`: plans
    one release, as a run does.
    """
    catalog = load_charts()
    plan = plan_stack(settings, facts, catalog, node_names(data), data)
    found = [*cluster_findings(catalog, facts.server.full, today), *plan.findings]
    if not plan.blockers:
        found += [each for release in plan.releases for each in judge(release).findings]
    secrets = list(_secrets(plan, style))
    found += _lacking(plan, settings, style, secrets)
    planned = ClusterFiles({}, tuple(dict.fromkeys(found)))
    if planned.blocked:
        return planned
    return replace(planned, files=render_files(name, settings, facts, plan, style, secrets))


def _lacking(
    plan: StackPlan, settings: ClusterSettings, style: Style, secrets: list[NeededSecret]
) -> Iterator[Finding]:
    """Findings about steps of a run that files cannot replace."""
    for release in plan.releases:
        yield from _exposed(f"Release {release.ref}", release.values)
        if release.source.kind == "archive" and style != "values":
            place = release.source.location
            yield findings.NO_CHART_SOURCE(chart=release.chart, location=place)
    for body in stack_objects(plan):
        yield from _exposed(f"{body['kind']} {body['metadata']['name']}", body)
    for each in secrets:
        keys = " and ".join(each.keys)
        yield findings.SECRET_NEEDED(user=each.user, secret=each.secret, keys=keys)
    if plan.label_nodes and settings.cluster.stack == "device-plugin":
        nodes = ", ".join(f"{node} ({plan.label}={plan.label_value})" for node in plan.label_nodes)
        yield findings.NODES_TO_LABEL(keys="device_plugin_label_nodes", nodes=nodes)
    if plan.config_labels:
        nodes = ", ".join(f"{each.node} ({_label(each)})" for each in plan.config_labels)
        yield findings.NODES_TO_LABEL(keys="gpu_sharing or gpu_mig", nodes=nodes)


def _label(change: LabelChange) -> str:
    """The labels of gpufleet that a node must have, and no other one, for kubectl."""
    gone = [f"{label}-" for label in sorted(OWN_LABELS - {change.label})]
    own = f"{change.label}={change.after}" if change.after else f"{change.label}-"
    return " ".join([own, *gone])


def _exposed(what: str, content: Mapping[str, object]) -> Iterator[Finding]:
    """The finding if a registered secret, or one too short to be registered, is in the content."""
    keys = []
    for line, masked in zip(flat_lines(content), flat_lines(without_secrets(content)), strict=True):
        key, _, text = line.partition(": ")
        short = masked == f"{key}: {MASK}" and len(text) < SHORTEST and not _is_option(key, text)
        if short or hide_secrets(text) != text:
            keys.append(key)
    if keys:
        yield findings.SECRET_IN_FILE(what=what, keys=", ".join(keys))


def _is_option(key: str, text: str) -> bool:
    """True for a short text below a secret key that is no secret: `auth: none`, `tokenTTL: 60s`."""
    return text == MASK or ("pass" not in key.lower() and bool(_OPTION.fullmatch(text)))


def _secrets(plan: StackPlan, style: Style) -> Iterator[NeededSecret]:
    """The Secrets that the files name and that a run, or a person, creates."""
    if plan.secret:
        keys = ("admin-user", "admin-password")
        yield NeededSecret("Grafana", "/".join(plan.secret), keys)
    if plan.receivers:
        yield NeededSecret("Alertmanager", f"{plan.receivers[0]}/{CONFIG_SECRET}", (CONFIG_KEY,))
    if style != "flux":
        return
    for release in plan.releases:
        if release.source.logins:
            oci = release.source.kind == "oci"
            of_flux = (".dockerconfigjson",) if oci else ("username", "password")
            yield NeededSecret("Flux", f"{release.namespace}/{LOGINS_SECRET}", of_flux)
