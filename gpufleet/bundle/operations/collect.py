"""Collects the packages of one host's plan, in a deploy."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import cast
from weakref import WeakKeyDictionary

from pyinfra import host, logger, state
from pyinfra.api import State

from gpufleet.bundle.models import BundleFile, BundlePart, merge_parts
from gpufleet.bundle.operations.gather import (
    KUBEADM,
    PackageRequest,
    gather_packages,
    gather_present,
    list_kubeadm_images,
)
from gpufleet.bundle.operations.images import copy_images
from gpufleet.bundle.operations.store import FOLDER_VARIABLE, store_file, store_part
from gpufleet.bundle.plan import (
    bare_facts,
    bundled_repositories,
    closure_words,
    cluster_images,
    images_on_host,
    key_file,
    own_packages,
    planned_transactions,
    present_packages,
)
from gpufleet.core.findings import Finding
from gpufleet.core.stopped import Stopped
from gpufleet.facts.model import NodeFacts
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.node.catalog import load_catalog
from gpufleet.node.operations.node import login_files, settings_and_facts
from gpufleet.node.operations.place import place_in_run
from gpufleet.node.plan import NodePlan, plan_node
from gpufleet.node.settings import NodeSettings
from gpufleet.packages.operations.fitting import headers_of_dnf
from gpufleet.packages.operations.logins import node_logins
from gpufleet.packages.operations.lookup import CopyReader, refreshed_copy
from gpufleet.packages.operations.reading import AvailableVersions, Unreadable
from gpufleet.packages.operations.repository import fetch_keyring, sources_unreadable
from gpufleet.packages.transaction import PackageTransaction, is_headers, resolve_transaction
from gpufleet.role.listing import node_roles
from gpufleet.run.reporting import RunReport

_CLAIMED: WeakKeyDictionary[State, set[str]] = WeakKeyDictionary()  # requests that a host serves


def collect_from_host() -> None:
    """Add the packages of this host's plan to the bundle. The host itself stays as it is. Of hosts
    that need the same packages, the first one downloads them."""
    report = RunReport.of(state)
    report.plan_only = True
    known = _bare_plan()
    if known is None:
        return
    plan, settings, facts = known
    report.host(host.name).examined = True
    asked = planned_transactions(plan)
    if not asked:
        return
    folder, lacking = Path(os.environ[FOLDER_VARIABLE]), images_on_host(plan)
    with refreshed_copy(asked, plan.sources) as ask:
        resolved = [_resolved(each, ask) for each in asked]
        words = tuple(sorted(map(closure_words, resolved)))
        present = present_packages(resolved, facts)
        gone = " ".join(own_packages(facts, asked))
        name = repr((facts.os, facts.kernel.architecture, words, present, gone, lacking))
        if not _claim(name):
            return
        logger.info(f"{host.print_prefix}collecting packages")
        request = PackageRequest(asked[0].manager, words, gone, f"{ask.folder}/bundle")
        files = gather_packages(folder, request, ask)
        listed, unlisted = list_kubeadm_images(files, request, ask)
        for each in present:
            more, missing = gather_present(folder, request, each, ask)
            files, unlisted = [*files, *more], (*unlisted, *missing)
    images: tuple[str, ...] = ()
    if any(file.name == KUBEADM for file in files):
        images = cluster_images(listed, _kubernetes(settings), load_catalog().kubernetes)
    copied = copy_images(folder, [each for each in images if _claim(f"image {each}")])
    keys = [_store_key(folder, each) for each in asked if each.repository.repository]
    repositories = bundled_repositories(asked, files)
    packages = BundlePart((*files, *keys), repositories, (*lacking, *unlisted))
    store_part(folder, name, merge_parts([packages, copied]))


def _kubernetes(settings: NodeSettings) -> KubernetesSettings:
    role = next(role for role in node_roles() if role.settings is KubernetesSettings)
    return cast("KubernetesSettings", settings.of(role))


def _bare_plan() -> tuple[NodePlan, NodeSettings, NodeFacts] | None:
    """The plan for the host without gpufleet's packages, with settings and facts. None if a blocker
    stops the host."""
    known = settings_and_facts()
    if known is None:
        return None
    settings, facts = known
    logins, problems = node_logins(login_files(settings))
    place = place_in_run(state, host, settings, facts)
    now = int(time.time())
    plan = plan_node(settings, bare_facts(facts), load_catalog(), now, logins, place)
    if problems or plan.blockers:
        RunReport.of(state).block(host, [*problems, *plan.blockers])
        return None
    return plan, settings, facts


def _claim(name: str) -> bool:
    """True for the first host of the run with this request, or that needs this image."""
    claimed = _CLAIMED.setdefault(host.state, set())
    first = name not in claimed
    claimed.add(name)
    return first


def _resolved(asked: PackageTransaction, ask: CopyReader) -> PackageTransaction:
    """The transaction with the versions of the repositories. Raises Stopped."""
    available = ask(AvailableVersions, asked.manager, asked.packages)
    if isinstance(available, Unreadable):
        raise Stopped(sources_unreadable(asked.manager, available))
    found = resolve_transaction(asked, available)
    if isinstance(found, Finding):
        raise Stopped(found)
    headers = [name for name in found.prerequisites if is_headers(name)]
    return headers_of_dnf(found, headers, ask) if headers else found


def _store_key(folder: Path, asked: PackageTransaction) -> BundleFile:
    """Store the key of a repository, after a check of its fingerprint. Raises Stopped."""
    repository = asked.repository.repository
    assert repository
    key = fetch_keyring(repository, asked.role)
    if isinstance(key, Finding):
        raise Stopped(key)
    file = key_file(repository, key.data)
    store_file(folder, file, [key.data])
    return file
