"""Findings of a removal, of what stays and why: GF56x (more of them in the room host)."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info

CLUSTER_STAYS = blocker(
    "GF571",
    "Removal does not apply to clusters",
    "This is a cluster, and deploys/remove.py removes only what was installed on hosts; the "
    "cluster was not changed.",
    "Run it with --limit gpu_nodes. `helm list -A` lists gpufleet's releases, and `helm uninstall "
    "RELEASE -n NAMESPACE` removes one; custom resource definitions stay.",
)

NOT_ENDED = info(
    "GF572",
    "Removal of an incomplete installation",
    "A gpufleet run did not finish on this host: {roles}. What it installed is removed too, from "
    "the journal it wrote before each step.",
    "No action required.",
)

THERE_BEFORE = info(
    "GF566",
    "Packages installed before gpufleet",
    "These packages were on the host before gpufleet and stay: {packages}.",
    "No action required; remove them manually if you do not need them.",
)

MAY_BE_ANOTHERS = info(
    "GF573",
    "Packages of unknown origin",
    "The record was written by an earlier version of gpufleet, which did not distinguish these "
    "packages from those installed by others at the time; they stay: {packages}.",
    "Remove manually what is not needed (apt-get autoremove, yum autoremove).",
)

BACKUPS_KEPT = info(
    "GF567",
    "Backups kept",
    "A file modified since the installation stays on the host, so the backups of what gpufleet "
    "replaced stay too, in {folder}.",
    "Delete the folder when you no longer need it.",
)

RECORD_MOVED = blocker(
    "GF574",
    "Record changed during the run",
    "{file} changed between read and write, or is not valid JSON any more; this run's changes are "
    "not recorded yet.",
    "Check that no other run uses this host, then run again: completed steps are not repeated, "
    "and are recorded.",
)

KEY_NEEDED = info(
    "GF570",
    "Repository key still referenced",
    "{path} stays: a package source that was modified since, and therefore stays too, references "
    "it.",
    "No action required; remove it together with that source.",
)

PACKAGES_STAY = blocker(
    "GF569",
    "Packages could not be removed",
    "The package manager refused to remove packages that no other package requires.",
    "Its output follows. Fix the cause, then run remove again: it continues where it stopped.",
)
