"""Operations of an upgrade on one host: packages to roll back to, and checks of a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyinfra import host

from gpufleet.core.entries import PackageManager
from gpufleet.host.operation import Commands, operation
from gpufleet.host.shell import explain, script
from gpufleet.packages.operations.locks import wait_for_lock
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.upgrade.findings import hosts as findings
from gpufleet.upgrade.look import FOLDER
from gpufleet.upgrade.settings import UpgradeSettings


def _other() -> str:
    return explain(host.name, findings.NOT_OURS(folder=FOLDER))


@operation
def keep(
    settings: UpgradeSettings, job: PackageTransaction, version: str, packages: Mapping[str, str]
) -> Commands:
    """
    Fetch the installed packages, and note the health of the host.

    + settings: of the run
    + job: of the driver's transaction
    + version: of the installed driver
    + packages: name -> version, as installed
    """
    yield wait_for_lock(job.lock_timeout)
    message = explain(host.name, findings.NOT_KEPT(version=version, folder=FOLDER))
    full = explain(host.name, findings.NO_ROOM(folder=FOLDER))
    words = [f"{name}={wanted}" for name, wanted in sorted(packages.items())]
    seconds = str(settings.validation_timeout)
    yield script(
        "upgrade/keep",
        FOLDER,
        settings.run or "",
        version,
        message,
        _other(),
        full,
        job.manager,
        seconds,
        *words,
    )


@operation
def note(run: str, word: str) -> Commands:
    """
    Write down on the host where its change is.

    + run: its name
    + word: the state
    """
    message = explain(host.name, findings.NOT_PREPARED(folder=FOLDER))
    yield script("upgrade/note", FOLDER, run, word, message, _other())


@operation
def take(run: str, origin: str, version: str) -> Commands:
    """
    Take over the packages that another run has left, for a roll-back.

    + run: its name
    + origin: the run that has left them
    + version: of the driver that they have
    """
    lacking = explain(host.name, findings.NOTHING_KEPT(folder=FOLDER, version=version))
    damaged = explain(host.name, findings.KEPT_DAMAGED(folder=FOLDER, version=version))
    yield script("upgrade/take", FOLDER, run, origin, version, lacking, damaged, _other())


@operation
def release(run: str, origin: str) -> Commands:
    """
    Leave the host to other runs.

    + run: its name
    + origin: the run that it has taken the packages from, if any
    """
    yield script("upgrade/release", FOLDER, run, origin)


@operation
def validate(settings: UpgradeSettings, version: str, toolkit: str = "") -> Commands:
    """
    Compare the host with what it was before the change.

    + settings: of the run
    + version: of the driver, now
    + toolkit: version of the container toolkit, where the run has changed it
    """
    message = explain(host.name, findings.NOT_AS_BEFORE(version=version))
    other = explain(host.name, findings.NOT_COMPARED(folder=FOLDER))
    seconds = str(settings.validation_timeout)
    yield script(
        "upgrade/validate", FOLDER, settings.run or "", version, toolkit, seconds, message, other
    )


@operation
def restore(
    run: str, version: str, manager: PackageManager, lock_timeout: int, installed: Sequence[str]
) -> Commands:
    """
    Install the packages of the earlier version, without a repository.

    + run: its name
    + version: the earlier one
    + manager: of packages
    + lock_timeout: seconds to wait for another package manager
    + installed: packages of the driver that are there
    """
    yield wait_for_lock(lock_timeout)
    lacking = explain(host.name, findings.NOTHING_KEPT(folder=FOLDER, version=version))
    damaged = explain(host.name, findings.KEPT_DAMAGED(folder=FOLDER, version=version))
    message = explain(host.name, findings.NOT_RESTORED(folder=FOLDER, version=version))
    yield script(
        "upgrade/restore", FOLDER, run, version, lacking, damaged, _other(), message, manager,
        str(lock_timeout), *installed,
    )  # fmt: skip
