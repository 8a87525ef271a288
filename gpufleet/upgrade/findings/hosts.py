"""Findings before and after the change of a host."""

from __future__ import annotations

from gpufleet.core.findings import blocker

NOT_BY_ITSELF = blocker(
    "GF050",
    "Deploy is run by gpufleet upgrade",
    "deploys/upgrade_driver.py carries out one step of an upgrade. Nothing was done.",
    "Run `gpufleet upgrade INVENTORY`.",
)

STATE_UNREADABLE = blocker(
    "GF053",
    "State of the host cannot be used",
    "{file} on the host, the state of its upgrade, is not valid: {problem}.",
    "See `gpufleet verify` of the host, and `kubectl get nodes` for its node. Then remove "
    "the file and run `gpufleet upgrade` again.",
)

NOT_KEPT = blocker(
    "GF051",
    "Installed packages cannot be fetched",
    "The packages of the installed version {version} cannot be fetched into {folder}: the host "
    "could not be rolled back. It was not disturbed.",
    "Free the space that is named below, or use a repository that still has {version}, for example "
    "a mirror (driver_repo_url, toolkit_repo_url).",
)

GPUS_MISSING_BEFORE = blocker(
    "GF052",
    "GPUs are missing before the change",
    "nvidia-smi lists {found:GPU|GPUs}; the PCI bus has {wanted}.",
    "Repair the host first: after the change, the cause could no longer be identified.",
)

NOT_AS_BEFORE = blocker(
    "GF054",
    "Host differs from its state before the change",
    "With driver {version}, the host differs from its earlier state or from the expected one.",
    "`gpufleet upgrade` rolls it back; the differences are listed with this finding.",
)

NOTHING_KEPT = blocker(
    "GF055",
    "Packages to roll back to cannot be used",
    "The packages of version {version} are not in {folder}, or are not those that were fetched.",
    "Set driver_version or toolkit_version to a version that a repository has, then run `gpufleet "
    "apply INVENTORY --limit HOST --allow-driver-change --allow-toolkit-change`.",
)

NOT_RESTORED = blocker(
    "GF057",
    "Roll-back failed",
    "The packages of version {version} could not be installed from {folder}.",
    "The host is left out of service. Repair it: `gpufleet apply INVENTORY --limit HOST` prints "
    "what fails. Then run `gpufleet upgrade release INVENTORY --limit HOST`.",
)

NOT_CONVERGED = blocker(
    "GF058",
    "Host is not converged",
    "`gpufleet apply` has other steps for this host: {steps}.",
    "Run `gpufleet apply INVENTORY --limit HOST` for this host first: this run changes only the "
    "{subject}.",
)

NOT_PREPARED = blocker(
    "GF059",
    "Host was not prepared",
    "{folder} is missing: it has the packages to roll back to. The host was not changed.",
    "Run `gpufleet upgrade` again; do not remove the folder during a run.",
)

IN_USE = blocker(
    "GF072",
    "GPUs are in use",
    "{work} started after the host was drained. Nothing was changed under it.",
    "Wait for it or end it. If the host was changed before, set driver_version to the "
    "earlier version and run `gpufleet apply INVENTORY --limit HOST --allow-driver-change`.",
)

OWN_MACHINE = blocker(
    "GF077",
    "Controller cannot reboot itself",
    "gpufleet runs on this host: the reboot would end the run.",
    "Start the run from another machine, or reboot this one manually.",
)

DOWNGRADE = blocker(
    "GF078",
    "Target is older than the installed version",
    "{target} is older than {before}, which is installed, and --allow-downgrade is not given.",
    "Correct --to or the inventory, or add --allow-downgrade.",
)

NO_TARGET = blocker(
    "GF281",
    "No version to install",
    "There is no version to install: {reason}.",
    "Set driver_version or driver_branch in the inventory, or add --to or --branch. A branch is "
    "its newest version in the catalog: `gpufleet catalog branches` lists them.",
)

LAYOUT_NOT_NOTED = blocker(
    "GF287",
    "Layout of the GPUs cannot be noted",
    "nvidia-smi does not show the state of every GPU, gpufleet cannot make their MIG instances "
    "again, or the layouts have more than {most:character|characters}: the host could not be "
    "rolled back.",
    "See `nvidia-smi -L` on the host. Each GPU instance must have one compute instance of its own "
    "size.",
)
