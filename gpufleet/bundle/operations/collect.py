"""Collects the packages of one host's plan, in a deploy: the host lists, downloads, hands over."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

from pyinfra import host, logger, state
from pyinfra.api import State

from gpufleet.bundle import findings
from gpufleet.bundle.apt import (
    HostFile,
    apt_packages,
    list_file,
    read_host_files,
    used_lists,
    without_sha256,
)
from gpufleet.bundle.bare import (
    bare_facts,
    closure_words,
    images_on_host,
    own_packages,
    planned_transactions,
)
from gpufleet.bundle.mirrors import bundled_repositories, key_file
from gpufleet.bundle.models import BundleFile, BundlePart
from gpufleet.bundle.operations.asking import PIECE_BYTES, FilePiece, ScriptLines
from gpufleet.bundle.operations.store import (
    FOLDER_VARIABLE,
    has_file,
    store_file,
    store_part,
)
from gpufleet.bundle.rpm import (
    RpmRepository,
    UnreadableListError,
    cached_repositories,
    listed_packages,
    repository_urls,
    used_repositories,
)
from gpufleet.core.entries import PackageManager
from gpufleet.core.findings import Finding
from gpufleet.core.secrets import plain_urls
from gpufleet.core.stopped import Stopped
from gpufleet.node.catalog import load_catalog
from gpufleet.node.operations.node import login_files, settings_and_facts
from gpufleet.node.operations.place import place_in_run
from gpufleet.node.plan import NodePlan, plan_node
from gpufleet.packages.operations.fitting import headers_of_dnf
from gpufleet.packages.operations.logins import node_logins
from gpufleet.packages.operations.lookup import CopyReader, refreshed_copy
from gpufleet.packages.operations.reading import AvailableVersions, Unreadable
from gpufleet.packages.operations.repository import fetch_keyring, sources_unreadable
from gpufleet.packages.transaction import PackageTransaction, is_headers, resolve_transaction
from gpufleet.run.reporting import RunReport

_CLAIMED: WeakKeyDictionary[State, set[str]] = WeakKeyDictionary()  # requests that a host serves
_APT_URLS = 50  # packages that one command downloads


def collect_from_host() -> None:
    """Add the packages of this host's plan to the bundle. The host itself stays as it is.

    Of hosts that need the same packages, the first one downloads them.
    """
    report = RunReport.of(state)
    report.plan_only = True
    plan, gone = _bare_plan()
    if plan is None:
        return
    asked = planned_transactions(plan)
    report.host(host.name).examined = True
    if not asked:
        return
    with refreshed_copy(asked, plan.sources) as ask:
        chosen = [_resolved(each, ask) for each in asked]
        words = sorted(closure_words(each) for each in chosen)
        system = asked[0].facts.os
        lacking = images_on_host(plan)
        request = repr((system, asked[0].facts.kernel.architecture, words, gone, lacking))
        if not _claim(request):
            return
        logger.info(f"{host.print_prefix}collecting packages")
        gather = _gather_apt if asked[0].manager == "apt" else _gather_rpm
        part = gather(Path(os.environ[FOLDER_VARIABLE]), asked[0].manager, words, gone, ask)
    keys = [_store_key(each) for each in asked if each.repository.repository]
    places = bundled_repositories(asked, part.files)
    whole = BundlePart((*part.files, *keys), places, lacking)
    store_part(Path(os.environ[FOLDER_VARIABLE]), request, whole)


def _bare_plan() -> tuple[NodePlan | None, str]:
    """The plan for the host without gpufleet's packages, and these packages. None if a blocker
    stops the host."""
    known = settings_and_facts()
    if known is None:
        return None, ""
    settings, facts = known
    logins, problems = node_logins(login_files(settings))
    place = place_in_run(state, host, settings, facts)
    now = int(time.time())
    plan = plan_node(settings, bare_facts(facts), load_catalog(), now, logins, place)
    if problems or plan.blockers:
        RunReport.of(state).block(host, [*problems, *plan.blockers])
        return None, ""
    return plan, " ".join(own_packages(facts, planned_transactions(plan)))


def _claim(request: str) -> bool:
    """True for the first host of the run with this request."""
    claimed = _CLAIMED.setdefault(host.state, set())
    first = request not in claimed
    claimed.add(request)
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


def _lines(ask: CopyReader, manager: str, name: str, *arguments: str) -> list[str]:
    """The lines of a script. Raises Stopped for its error."""
    lines = ask(ScriptLines, name, *arguments)
    for line in lines:
        if line.startswith("error "):
            problem = line.removeprefix("error ").strip()
            raise Stopped(findings.PACKAGES_NOT_LISTED(manager=manager, problem=problem))
    return lines


def _gather_apt(
    folder: Path,
    manager: PackageManager,
    words: Sequence[Sequence[str]],
    gone: str,
    ask: CopyReader,
) -> BundlePart:
    """The packages, and the signed lists of the archives that have them."""
    place = f"{ask.folder}/bundle"
    lines = [line for w in words for line in _lines(ask, manager, "apt_closure", place, gone, *w)]
    if unlisted := without_sha256(lines):
        raise Stopped(findings.SOURCE_UNKNOWN(what=", ".join(map(plain_urls, unlisted))))
    packages = apt_packages(lines)
    _require_places(packages)
    lists = read_host_files(_lines(ask, manager, "apt_lists", f"{place}/lists"), "list")
    used = used_lists(lists, packages)
    missing = [file for file in packages if not has_file(folder, file)]
    for start in range(0, len(missing), _APT_URLS):
        some = missing[start : start + _APT_URLS]
        pairs = [word for file in some for word in (file.source, file.sha256)]
        _lines(ask, manager, "apt_fetch", place, *pairs)
        for file in some:
            store_file(folder, file, _pieces(ask, f"{place}/{file.sha256}"))
    return BundlePart((*packages, *_store_lists(folder, used, ask)))


def _gather_rpm(
    folder: Path,
    manager: PackageManager,
    words: Sequence[Sequence[str]],
    gone: str,
    ask: CopyReader,
) -> BundlePart:
    """The packages, and the metadata of the repositories that have them."""
    place = f"{ask.folder}/bundle"
    lines = [
        line
        for number, each in enumerate(words)
        for line in _lines(ask, manager, "rpm_closure", f"{place}/{number}", manager, gone, *each)
    ]
    cached = {each.path: each for each in read_host_files(lines, "metadata")}
    repositories = cached_repositories(cached.values(), repository_urls(lines))
    known: dict[str, BundleFile] = {}
    for each in repositories:
        known |= _listed(each, ask)
    found = {each.sha256: each for each in read_host_files(lines, "package")}
    packages = [known[digest] for digest in found if digest in known]
    unknown = [each.path.rpartition("/")[2] for each in found.values() if each.sha256 not in known]
    if unknown:
        raise Stopped(findings.SOURCE_UNKNOWN(what=", ".join(unknown)))
    _require_places(packages)
    for file in packages:
        if not has_file(folder, file):
            store_file(folder, file, _pieces(ask, found[file.sha256].path))
    used = used_repositories(repositories, packages)
    lists = [file for each in used for file in each.files]
    return BundlePart((*packages, *_store_lists(folder, lists, ask)))


def _listed(repository: RpmRepository, ask: CopyReader) -> dict[str, BundleFile]:
    """sha256 -> package of a repository. Raises Stopped."""
    primary = repository.primary
    if primary is None:
        raise Stopped(findings.SOURCE_UNKNOWN(what=f"the list of {repository.url}"))
    try:
        data = b"".join(_pieces(ask, primary.path))
        return listed_packages(repository.url, data, primary.path)
    except UnreadableListError as error:
        what = f"the list of {repository.url} ({error})"
        raise Stopped(findings.SOURCE_UNKNOWN(what=what)) from error


def _store_lists(folder: Path, used: Sequence[HostFile], ask: CopyReader) -> Iterator[BundleFile]:
    """Store metadata, signed as its repository has it."""
    for each in used:
        file = list_file(each)
        _require_places([file])
        if not has_file(folder, file):
            store_file(folder, file, _pieces(ask, each.path))
        yield file


def _store_key(asked: PackageTransaction) -> BundleFile:
    """Store a repository's key, whose fingerprint was checked. Raises Stopped."""
    repository = asked.repository.repository
    assert repository
    key = fetch_keyring(repository, asked.role)
    if isinstance(key, Finding):
        raise Stopped(key)
    file = key_file(repository, key.data)
    store_file(Path(os.environ[FOLDER_VARIABLE]), file, [key.data])
    return file


def _require_places(files: Sequence[BundleFile]) -> None:
    """Raises Stopped if a file has no path in a bundle."""
    if lost := [file.source for file in files if not file.path]:
        raise Stopped(findings.SOURCE_UNKNOWN(what=", ".join(lost)))


def _pieces(ask: CopyReader, path: str) -> Iterator[bytes]:
    """The content of a file on the host."""
    number = 0
    while piece := ask(FilePiece, path, number):
        yield piece
        number += 1
        if len(piece) < PIECE_BYTES:
            return
