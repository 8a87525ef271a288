"""Discontinued repositories, switched to their archives."""

from __future__ import annotations

from pyinfra import host

from gpufleet.core.findings import Finding
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.host.files import show_diff
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.shell import stop_command
from gpufleet.packages.archives import ARCHIVE_SECTION_PREFIX, ARCHIVES_FILE, ArchivesPlan
from gpufleet.packages.operations.locks import wait_for_lock
from gpufleet.packages.operations.repository import fetch_key, put_sources, send_login


@host_operation
def use_archives(facts: NodeFacts, plan: ArchivesPlan, lock_timeout: int) -> Commands:
    """
    Disable dead repositories and add their archives. Revert if an archive cannot be read.

    + facts: of the host
    + plan: the files and keys that differ; an empty plan changes nothing
    + lock_timeout: seconds to wait for another package manager
    """
    manager = facts.package_manager
    if not plan.needed or manager is None:
        host.noop("no repository must be replaced")
        return
    yield wait_for_lock(lock_timeout)
    keys = []
    for wanted in plan.keys:
        login = yield from send_login(wanted.netrc)
        key = fetch_key(manager, wanted.url, wanted.fingerprints, "node_archives", login)
        if isinstance(key, Finding):
            yield stop_command(host.name, key)
            return
        keys.append(FileWrite(wanted.path, key.armored))
    show_diff(facts, plan.files)
    written = [*keys, *plan.files]
    paths, url = [file.path for file in written], f"the archives in {ARCHIVES_FILE}"
    yield from put_sources(written, paths, manager, f"{ARCHIVE_SECTION_PREFIX}*", url, "")
