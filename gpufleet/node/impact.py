"""The impact of a host's plan: interruptions, and files that it writes. Pure."""

from __future__ import annotations

from dataclasses import replace

from gpufleet.core.secrets import plain_urls
from gpufleet.facts.files import RECORD_PATH
from gpufleet.facts.model import NodeFacts
from gpufleet.node.plan import NodePlan, RolePart, plan_steps
from gpufleet.packages.repository import urls_on
from gpufleet.role.impact import NO_IMPACT, Impact


def impact_of(plan: NodePlan, *, may_reboot: bool) -> Impact:
    """The impact of all roles, empty without steps. `may_reboot`: the settings allow a reboot."""
    if plan.context is None or not plan_steps(plan):
        return NO_IMPACT
    facts = plan.context.facts
    found = Impact(files=(RECORD_PATH, *(file.path for file in plan.archives.files)))
    for part in plan.wanted:
        found += _of_files(part, facts) + part.role.impact(part.plan, plan.context)
    if found.reboot == "possible" and not may_reboot:
        found = replace(found, reboot="manual")
    return replace(found, pods=facts.gpu_pods)


def _of_files(part: RolePart, facts: NodeFacts) -> Impact:
    """A role's files and package repository, which are computed the same way for every role."""
    role, plan = part.role, part.plan
    paths = [file.path for file in (*role.files(plan), *role.edits(plan))]
    wanted = role.repository(plan)
    if wanted is None or wanted.repository is None or not wanted.needed:
        return Impact(files=tuple(paths))
    repository = wanted.repository
    written = (wanted.source, wanted.login)
    paths += [repository.keyring, *(file.path for file in written if file)]
    before = plain_urls(", ".join(urls_on(repository, facts))) or None
    after = plain_urls(repository.url)
    sources = {} if before == after else {repository.name: (before, after)}
    return Impact(files=tuple(paths), sources=sources)
