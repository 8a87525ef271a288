"""What stops the change of a host, or was found after it."""

from __future__ import annotations

from gpufleet.core.findings import blocker

NOT_BY_ITSELF = blocker(
    "GF050",
    "Deploy is run by gpufleet upgrade",
    "deploys/upgrade_driver.py runs one step of an upgrade. It cannot start a run together with "
    "other deploys, with --exclude, or from Python. Nothing was done.",
    "Run `gpufleet upgrade INVENTORY`, or pyinfra with only that deploy.",
)

NOT_KEPT = blocker(
    "GF051",
    "Installed packages cannot be fetched",
    "The packages of the installed version {version} cannot be fetched into {folder}: the host "
    "could not be rolled back. It was not disturbed.",
    "Use a repository that still has {version}, for example a mirror (driver_repo_url, "
    "toolkit_repo_url).",
)

GPUS_MISSING = blocker(
    "GF052",
    "GPUs are missing before the change",
    "nvidia-smi lists {found:GPU|GPUs}; the PCI bus has {wanted}.",
    "Repair the host first: after the change, the cause could no longer be identified.",
)

ANOTHER_RUN = blocker(
    "GF053",
    "Another run was at work on the host",
    "Run {run} left this host as {state!r}.",
    "Continue that run on its controller: `gpufleet upgrade resume --run {run}`, or end it: "
    "`gpufleet upgrade abort --run {run}`. If it is lost, run `gpufleet apply` and remove {file} "
    "on the host.",
)

NOT_AS_BEFORE = blocker(
    "GF054",
    "Host differs from its state before the change",
    "With driver {version}, the host differs from its earlier state or from the expected one.",
    "`gpufleet upgrade` rolls it back; the differences are listed with this finding.",
)

NOTHING_KEPT = blocker(
    "GF055",
    "No packages to roll back to",
    "{folder} does not have the packages of version {version}.",
    "Install {version} from a repository: set driver_version or toolkit_version, then run "
    "`gpufleet apply`.",
)

KEPT_DAMAGED = blocker(
    "GF056",
    "Packages to roll back to are damaged",
    "The packages of version {version} in {folder} are not those that were fetched.",
    "Install {version} from a repository: set driver_version or toolkit_version, then run "
    "`gpufleet apply`.",
)

NOT_RESTORED = blocker(
    "GF057",
    "Roll-back failed",
    "The packages of version {version} could not be installed from {folder}.",
    "The host is left out of service. Read the output below, repair it, then run `gpufleet apply`.",
)

NOT_CONVERGED = blocker(
    "GF058",
    "Host is not converged",
    "`gpufleet apply` would also change, besides the {subject}: {steps}.",
    "Run `gpufleet apply INVENTORY --limit HOST` for this host first: an upgrade changes only the "
    "{subject}.",
)

NOT_PREPARED = blocker(
    "GF059",
    "Host was not prepared",
    "{folder} is missing: it has the packages to roll back to. The host was not changed.",
    "Run `gpufleet upgrade` again; do not remove the folder during a run.",
)

COMMAND_FAILED = blocker(
    "GF066",
    "Command on the controller failed",
    "{key} for {host} ended with {status}: {output}.",
    "Run it manually, correct it, then run `gpufleet upgrade resume --run {run}`.",
)

STEP_LOST = blocker(
    "GF069",
    "Step without a result",
    "The process of the step {step!r} ended with status {status} and without a report: {output}.",
    "Read {log}, then {again}.",
)

NOT_OURS = blocker(
    "GF071",
    "Packages on the host belong to another run",
    "{folder} belongs to another run, or to none; only one run may change a host at a time. "
    "Nothing was done.",
    "End the run named below on its controller: `gpufleet upgrade abort --run RUN`. If it is "
    "lost, check the host and remove {folder}/state.",
)

IN_USE = blocker(
    "GF072",
    "GPUs are in use",
    "{work} started after the host was drained. Nothing was changed under it.",
    "Wait for it or end it. If the host was changed before, install the earlier version with "
    "`gpufleet apply INVENTORY --limit HOST`.",
)

NO_ROOM = blocker(
    "GF076",
    "No room for the packages to roll back to",
    "The installed packages do not fit into {folder}. The host was not disturbed.",
    "Free the space that is named below, then run `gpufleet upgrade` again.",
)

OWN_MACHINE = blocker(
    "GF077",
    "Controller cannot reboot itself",
    "gpufleet runs on this host: the reboot would end the run.",
    "Start the run from another machine, or reboot this one manually.",
)

NOT_COMPARED = blocker(
    "GF078",
    "Changed host cannot be compared",
    "The host was changed, and {folder}, which has its earlier state, belongs to another run, or "
    "to none.",
    "It is rolled back if its packages are there; otherwise it stays out of service. See what is "
    "named below, check the host, then remove {folder}/state.",
)

STEP_NOT_DONE = blocker(
    "GF270",
    "Step was not carried out",
    "The process of the step {step!r} ended with status {status} before the step was carried out "
    "on all of its hosts: {log}.",
    "Read that file: your deploys/upgrade_driver.py or config.py may end pyinfra early. Correct "
    "it, then run `gpufleet upgrade` again.",
)

NOT_REPORTED = blocker(
    "GF280",
    "Host was not reached",
    "The step's report does not contain this host.",
    "Check that `ssh` reaches the host, then run `gpufleet upgrade` again.",
)

NO_TARGET = blocker(
    "GF281",
    "No version is requested",
    "Neither the inventory nor the command line requests a version: set driver_version or "
    "driver_branch, or add --to or --branch.",
    "A branch selects its newest version in the catalog.",
)

BRANCH_UNKNOWN = blocker(
    "GF284",
    "Catalog has no version of the branch",
    "The catalog has no version of branch {branch}, so there is no version to install.",
    "Request a version, with --to or driver_version, or another branch: "
    "`gpufleet catalog branches` lists them.",
)
