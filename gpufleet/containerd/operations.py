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
from gpufleet.host.asking import answer, framed
from gpufleet.host.files import stamp
from gpufleet.host.operation import Commands, Later, operation
from gpufleet.host.reading import read
from gpufleet.host.shell import command, explain, script, stop, upload
from gpufleet.packages.transaction import PackageTransaction


class FileText(FactBase[str | None]):
    """The text of a file. None if it does not exist."""

    def command(self, path: str) -> StringCommand:
        return framed(script("containerd/file_text", path))

    def process(self, output: Iterable[str]) -> str | None:
        lines = answer(output) or []
        return base64.b64decode("".join(lines[1:])).decode() if lines[:1] == ["file"] else None


@operation
def require(plan: ContainerdPlan, chosen: Later[PackageTransaction]) -> Commands:
    """
    Stop the host if the repository's version is too old.

    + plan: of the host
    + chosen: the resolved transaction
    """
    version = (chosen.value.version if chosen.value else None) or ""
    if not version or version_tuple(version) >= version_tuple(plan.minimum):
        host.noop("the version is new enough")
        return
    other = "distribution" if plan.docker else "docker"
    yield stop(
        host.name,
        found.TOO_OLD_THERE(
            package=plan.package, version=version, minimum=plan.minimum, other=other
        ),
    )


@operation
def settle(
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
    yield command("install", "-d", "-m", "700", HOME, INCOMING)
    text = read(FileText, plan.config)
    if plan.fresh and disables_cri(text):
        text, staged = PLAIN, f"{INCOMING}/{stamp()}"
        yield upload(PLAIN.encode(), staged)
        yield script("containerd/replace", staged, plan.config, PACKAGED)
    yield script(
        "containerd/start", explain(host.name, found.NOT_STARTED(unit=plan.unit)), plan.unit
    )
    version = (chosen.value.version if chosen.value else plan.before) or ""
    for problem in learn(plan.facts_with(version, text)):
        yield stop(host.name, problem)


@operation
def require_idle(needed: bool) -> Commands:
    """
    Stop the host if containerd runs containers, because its package will be removed.

    + needed: gpufleet installed it
    """
    if not needed:
        host.noop("gpufleet did not install containerd")
        return
    yield script("containerd/idle", explain(host.name, found.CONTAINERS_RUN()))


@operation
def restore(config: str, needed: bool) -> Commands:
    """
    Restore the package's own configuration, which is then removed with the package.

    + config: path of the file
    + needed: gpufleet replaced it
    """
    if not needed:
        host.noop("the file is not gpufleet's")
        return
    digest = hashlib.sha256(PLAIN.encode()).hexdigest()
    yield script("containerd/restore", config, digest, PACKAGED)
