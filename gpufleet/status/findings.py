"""Findings from comparing hosts with their settings, with the catalog and with similar hosts."""

from __future__ import annotations

from gpufleet.core.findings import info, warning

DRIFT = warning(
    "GF715",
    "Host or cluster differs from its settings",
    "The {kind} differs from its settings: {steps}.",
    "`gpufleet plan` shows all of it, `gpufleet apply` changes the {kind}.",
)

CLUSTER_NOT_READ = warning(
    "GF742",
    "Cluster was not read",
    "gpufleet could not plan the cluster.",
    "Run `gpufleet plan INVENTORY --limit {cluster}`, which says why.",
)

BEHIND = warning(
    "GF717",
    "Newer version available",
    "{what} {version} is installed; the newest in the catalog is {newest}.",
    "{remedy}",
    advice="For a driver: `gpufleet upgrade`. For the container toolkit: remove toolkit_version, "
    "or set it to the newest, and run `gpufleet upgrade INVENTORY --toolkit`.",
)

OUTLIER = warning(
    "GF718",
    "Host differs from hosts with the same GPUs",
    "{what} is {found}; on {share} of {total:host|hosts} with {model} it is {usual}.",
    "Find out whether the difference is intended: `gpufleet doctor INVENTORY --limit HOST`.",
)

RUNTIME_OLD = warning(
    "GF719",
    "Container runtime without fixes",
    "{package} {version} {why}.",
    "Upgrade the package to {fixed}. Packages of the distribution are not judged: it numbers its "
    "fixes differently.",
    description="The minor version of a container runtime reached its end of life, or this version "
    "has known vulnerabilities.",
)

HOST_BUSY = info(
    "GF729",
    "Host is being changed",
    "The host is being changed, and may look unfinished: {holder}.",
    "Run again when that has ended.",
)

UNFIT_DRIVER = warning(
    "GF726",
    "Driver does not support the GPU",
    "{what} does not work with {gpu}: {why}",
    "{remedy}",
    advice="Set driver_modules and driver_branch to what `gpufleet catalog driver --distro NAME "
    "--gpu ID` names, or remove both keys, then run `gpufleet apply INVENTORY --limit HOST`.",
)
