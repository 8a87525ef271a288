"""Configures and starts a new containerd, and reads its facts for the roles that follow."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence

from pyinfra import host
from pyinfra.api import FactBase, StringCommand

from gpufleet.containerd import findings as found
from gpufleet.containerd.plan import PACKAGED, PLAIN, ContainerdPlan, disables_cri
from gpufleet.core.findings import Finding
from gpufleet.core.versions import version_tuple
from gpufleet.facts.files import HOME, INCOMING
from gpufleet.facts.model import NodeFacts
from gpufleet.host.asking import frame_command, framed_answer
from gpufleet.host.files import run_stamp
from gpufleet.host.findings import SERVICE_FAILED
from gpufleet.host.operation import Commands, Later, host_operation
from gpufleet.host.reading import read_fact
from gpufleet.host.shell import (
    explain_finding,
    quote_command,
    script_command,
    stop_command,
    upload_command,
)
from gpufleet.packages.transaction import PackageTransaction


class FileText(FactBase[str | None]):
    """The text of a file. None if it does not exist."""

    def command(self, path: str) -> StringCommand:
        return frame_command(script_command("containerd/file_text", path))

    def process(self, output: Iterable[str]) -> str | None:
        lines = framed_answer(output) or []
        return base64.b64decode("".join(lines[1:])).decode() if lines[:1] == ["file"] else None


@host_operation
def require_containerd(plan: ContainerdPlan, chosen: Later[PackageTransaction]) -> Commands:
    """
    Stop the host if the repository's version is too old.

    + plan: of the host
    + chosen: the resolved transaction
    """
    version = (chosen.value.version if chosen.value else None) or ""
    if not version or version_tuple(version) >= version_tuple(plan.minimum):
        host.noop("the version is new enough")
        return
    offer = f"The repository has {plan.package} {version}"
    yield stop_command(host.name, found.TOO_OLD_THERE(offer=offer, minimum=plan.minimum))


@host_operation
def settle_containerd(
    plan: ContainerdPlan,
    chosen: Later[PackageTransaction],
    learn: Callable[[NodeFacts], Sequence[Finding]],
) -> Commands:
    """
    Start containerd with the CRI plugin, and plan the following roles for the actual containerd.

    + plan: of the host
    + chosen: the transaction, if one ran
    + learn: takes the host's current facts, and returns findings that must stop the host
    """
    if not plan.settles:
        host.noop("containerd was configured before")
        return
    yield quote_command("install", "-d", "-m", "700", HOME, INCOMING)
    text = read_fact(FileText, plan.config)
    if plan.fresh and disables_cri(text):
        text, staged = PLAIN, f"{INCOMING}/{run_stamp()}"
        yield upload_command(PLAIN.encode(), staged)
        yield script_command("containerd/replace", staged, plan.config, PACKAGED)
    message = explain_finding(host.name, SERVICE_FAILED(service=plan.unit))
    yield script_command("containerd/start", message, plan.unit)
    version = (chosen.value.version if chosen.value else plan.before) or ""
    for problem in learn(plan.facts_with(version, text)):
        yield stop_command(host.name, problem)


@host_operation
def require_idle(needed: bool) -> Commands:
    """
    Stop the host if containerd runs containers, because its package will be removed.

    + needed: gpufleet installed it
    """
    if not needed:
        host.noop("gpufleet did not install containerd")
        return
    yield script_command("containerd/idle", explain_finding(host.name, found.CONTAINERD_IN_USE()))


@host_operation
def restore_containerd_config(config: str, needed: bool) -> Commands:
    """
    Restore the package's own configuration, which is then removed with the package.

    + config: path of the file
    + needed: gpufleet replaced it
    """
    if not needed:
        host.noop("the file is not gpufleet's")
        return
    digest = hashlib.sha256(PLAIN.encode()).hexdigest()
    yield script_command("containerd/restore", config, digest, PACKAGED)
