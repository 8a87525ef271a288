"""Findings of a removal, of what stays and why: GF56x (more of them in the room host)."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

CLUSTER_STAYS = Kind(
    "GF571",
    Severity.BLOCKER,
    "Nothing is removed from a cluster",
    "this is a cluster, and deploys/remove.py takes away only what was installed on hosts; nothing "
    "was removed from the cluster.",
    "Run it with --limit gpu_nodes. Releases that gpufleet made are listed by `helm list -A`, and "
    "`helm uninstall RELEASE -n NAMESPACE` removes one; custom resource definitions stay.",
)

NOT_ENDED = Kind(
    "GF572",
    Severity.INFO,
    "An installation that did not end",
    "a run of gpufleet did not finish here: {roles}. What it installed is removed too, by the "
    "notes that it made before each step.",
    "Nothing to do.",
)

THERE_BEFORE = Kind(
    "GF566",
    Severity.INFO,
    "Packages that were there before",
    "these packages were on the host before gpufleet, and stay: {packages}.",
    "Nothing to do, or remove them by hand.",
)

MAY_BE_ANOTHERS = Kind(
    "GF573",
    Severity.INFO,
    "Packages that may be another's stay",
    "the record was written by an earlier version of gpufleet, which cannot tell these packages "
    "from what others installed at that time, so they stay: {packages}.",
    "Remove by hand what nobody needs (apt-get autoremove, yum autoremove).",
)

BACKUPS_KEPT = Kind(
    "GF567",
    Severity.INFO,
    "Copies of files are kept",
    "something that somebody changed stays on the host, so the copies of what gpufleet replaced "
    "stay too, in {folder}.",
    "Remove the folder when they are not needed any more.",
)

RECORD_MOVED = Kind(
    "GF574",
    Severity.BLOCKER,
    "Another run wrote the host's record meanwhile",
    "{file} changed between being read and being written, or is no JSON any more: what this run "
    "did is not on record yet.",
    "See that no other run works on this host, then run again: what is there already is not done "
    "twice, and comes on record.",
)

KEY_NEEDED = Kind(
    "GF570",
    Severity.INFO,
    "A repository's key is still needed",
    "{path} stays: a package source that was changed since, and so stays too, names it.",
    "Nothing to do; it goes by hand together with that source.",
)

PACKAGES_STAY = Kind(
    "GF569",
    Severity.BLOCKER,
    "Packages could not be removed",
    "the package manager refused to remove packages, and no other package needs them.",
    "What it said follows; with that put right, run remove again: it goes on where it stopped.",
)
