"""Looks for the cluster of a run that is not where it was: by its UID."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import one_line
from gpufleet.kube.kubeconfig import (
    Kubeconfig,
    KubeconfigError,
    NoKubeconfig,
    kubeconfig_paths,
    read_contexts,
)
from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.upgrade.operations.clusters import uid_of
from gpufleet.upgrade.operations.readable import readable

MOST = 48  # contexts that are tried
AT_ONCE = 8
SHOWN, LONGEST = 5, 200  # contexts in a sentence; characters of why one is not the cluster
ANOTHER = "another cluster"
NO_UID = "the UID of its namespace kube-system may not be read"
NO_OTHERS = "That file, KUBECONFIG and the inventory have no other context."

Elsewhere = Callable[[], Sequence[KubeAccess]]
Leads = Kubeconfig | str  # a context, or why it cannot be used


@dataclass(slots=True)
class Search:
    """What was found, and why each of the others is not it, in words."""

    apis: list[ClusterApi] = field(default_factory=list)  # ways to it, the first to be tried first
    others: list[str] = field(default_factory=list)  # contexts of other clusters
    unknown: list[str] = field(default_factory=list)  # that may lead to it all the same

    @property
    def tried(self) -> str:
        every = [*self.unknown, *self.others]
        return f"None of these leads to it: {listed(every)}." if every else NO_OTHERS


def search(access: KubeAccess, uid: str, elsewhere: Elsewhere) -> Search:
    """Try the clusters of `elsewhere`, which may raise Stopped, and every context of the run's
    files and of those of KUBECONFIG."""
    found = Search()
    contexts = _contexts(access, elsewhere, found)
    if len(contexts) > MOST:
        found.unknown.append(f"{len(contexts) - MOST} more contexts, which were not tried")
    tried = [(where, _client(leads)) for where, leads in contexts[:MOST]]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = pool.map(lambda each: _asked(each[1], uid), tried)
        for (where, _), answer in zip(tried, asked, strict=True):
            if not isinstance(answer, str):
                found.apis.append(answer)
            elif answer == ANOTHER:
                found.others.append(f"{where}: {answer}")
            else:
                found.unknown.append(f"{where}: {one_line(answer)[:LONGEST].rstrip('.')}")
    return found


def _contexts(access: KubeAccess, elsewhere: Elsewhere, found: Search) -> list[tuple[str, Leads]]:
    """What is to be tried beside the run's own access, in words, each cluster and user once; adds
    what cannot be read."""
    own = [leads for leads in [_read(access)] if not isinstance(leads, str)]
    every = list[tuple[str, Leads]]()
    try:
        every += [(described(other), _read(other)) for other in elsewhere()]
    except Stopped as error:
        every.append(("the inventory", error.findings[0].message))
    for paths in dict.fromkeys((kubeconfig_paths(access.kubeconfig), kubeconfig_paths())):
        try:
            for name, leads in read_contexts(paths):
                other = KubeAccess(paths, name)
                every += [(described(other), leads)] if other != access else []
        except NoKubeconfig:
            continue
        except KubeconfigError as error:
            every.append((described(KubeAccess(paths)), str(error)))
    once = list[tuple[str, Leads]]()
    for where, leads in every:
        known = [_target(each) for each in (*own, *(each for _, each in once))]
        once += [(where, leads)] if _target(leads) not in known else []
    return once


def _read(access: KubeAccess) -> Leads:
    try:
        return access.read()
    except ClusterProblem as error:
        return error.findings[0].message


def _target(leads: Leads) -> object:
    """Where a context leads, and as whom: several names may do."""
    if isinstance(leads, str):
        return leads
    return leads.content["clusters"][0]["cluster"], leads.user


def _client(leads: Leads) -> ClusterApi | str:
    """For a context, or why there is none. One at a time: it may write files that several contexts
    share, and run a program that asks for a login."""
    if isinstance(leads, str):
        return leads
    try:
        return ClusterApi(leads)
    except ClusterProblem as error:
        return error.findings[0].message


def _asked(api: ClusterApi | str, uid: str) -> ClusterApi | str:
    """The cluster, if it is that one; else why not."""
    if isinstance(api, str):
        return api
    try:
        there = uid_at(api)
    except ClusterProblem as error:
        why = error.findings[0].message
    else:
        if there == uid:
            return api
        why = ANOTHER if there else NO_UID
    api.close()
    return why


@readable
def uid_at(api: ClusterApi) -> str:
    """As `uid_of`. Raises ClusterProblem."""
    return uid_of(api)


def described(access: KubeAccess) -> str:
    """Where a cluster is looked for."""
    paths = kubeconfig_paths(access.kubeconfig).replace(os.pathsep, ", ")
    where = f"kubeconfig {paths}" if access.kubeconfig else f"KUBECONFIG ({paths})"
    return f"context {access.context!r} of {where}" if access.context else where


def listed(items: Sequence[str]) -> str:
    """A list of clauses for a sentence."""
    more = f"; and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return "; ".join(items[:SHOWN]) + more
