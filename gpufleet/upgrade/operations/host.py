"""Operations of an upgrade on one host: packages to roll back to, and checks of a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyinfra import host

from gpufleet.core.entries import PackageManager
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.shell import explain_finding, script_command
from gpufleet.host.upgrade_settings import UpgradeSettings
from gpufleet.packages.operations.locks import wait_for_lock
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.upgrade.findings import hosts as findings
from gpufleet.upgrade.look import KEPT_FOLDER


@host_operation
def keep_packages(
    settings: UpgradeSettings,
    job: PackageTransaction | None,
    version: str,
    packages: Mapping[str, str],
) -> Commands:
    """
    Fetch the installed packages, and record the health of the host.

    + settings: of the run
    + job: of the driver's transaction, None if no packages change
    + version: of the installed driver
    + packages: name -> version, as installed
    """
    if job:
        yield wait_for_lock(job.lock_timeout)
    message = explain_finding(host.name, findings.NOT_KEPT(version=version, folder=KEPT_FOLDER))
    words = [f"{name}={wanted}" for name, wanted in sorted(packages.items())]
    about = (KEPT_FOLDER, settings.run or "", version, message, job.manager if job else "")
    yield script_command("upgrade/keep", *about, str(settings.validation_timeout), *words)


@host_operation
def note_health(attempt: str = "changing") -> Commands:
    """
    Record the state of the host right before its change, for the comparison afterwards.

    + attempt: "restoring" for a roll-back
    """
    message = explain_finding(host.name, findings.NOT_PREPARED(folder=KEPT_FOLDER))
    yield script_command("upgrade/note", KEPT_FOLDER, message, attempt)


@host_operation
def check_kept_packages(version: str) -> Commands:
    """
    Check that the packages for a roll-back exist.

    + version: that they have
    """
    yield script_command("upgrade/take", KEPT_FOLDER, version, _unusable(version))


@host_operation
def compare_health(settings: UpgradeSettings, version: str, toolkit: str = "") -> Commands:
    """
    Compare the host with its state before the change.

    + settings: of the run
    + version: the driver's current version
    + toolkit: version of the container toolkit, if the run changed it
    """
    message = explain_finding(host.name, findings.NOT_AS_BEFORE(version=version))
    seconds = str(settings.validation_timeout)
    yield script_command("upgrade/validate", KEPT_FOLDER, version, toolkit, seconds, message)


@host_operation
def restore_packages(
    version: str, manager: PackageManager, lock_timeout: int, installed: Sequence[str]
) -> Commands:
    """
    Install the packages of the earlier version, without a repository.

    + version: the earlier one
    + manager: of packages
    + lock_timeout: seconds to wait for another package manager
    + installed: installed packages of the driver
    """
    yield wait_for_lock(lock_timeout)
    message = explain_finding(host.name, findings.NOT_RESTORED(folder=KEPT_FOLDER, version=version))
    yield script_command(
        "upgrade/restore", KEPT_FOLDER, version, _unusable(version), message, manager,
        str(lock_timeout), *installed,
    )  # fmt: skip


def _unusable(version: str) -> str:
    """The message if these packages are missing or damaged."""
    return explain_finding(host.name, findings.NOTHING_KEPT(folder=KEPT_FOLDER, version=version))
