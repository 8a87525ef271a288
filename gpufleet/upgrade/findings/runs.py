"""Findings about runs: their settings, and other runs that block them."""

from __future__ import annotations

from gpufleet.core.findings import blocker

AT_WORK = blocker(
    "GF061",
    "Another process is at work on the host",
    "{holder} is at work on {host}. Nothing was done.",
    "Wait for it, or press Ctrl-C in its terminal: it finishes changed hosts and returns "
    "draining ones.",
)

RUN_UNFINISHED = blocker(
    "GF062",
    "Another run is not finished",
    "Run {run} is not finished on {host}: {what} to {target}. Nothing was done.",
    "Go on with it: run the command again that began it. Or end it with `gpufleet upgrade abort "
    "INVENTORY`.",
)

NOTHING_TO_RETURN = blocker(
    "GF065",
    "Nothing to roll back",
    "No host of the inventory was changed by an upgrade, or they are rolled back already. A reboot "
    "cannot be rolled back.",
    "`gpufleet upgrade status INVENTORY` shows the hosts. Those that failed are rolled back "
    "already.",
)

ONLY_STUCK = blocker(
    "GF286",
    "Only stuck hosts to roll back",
    "Change and roll-back failed: {hosts}. No other host has a change to roll back.",
    "Repair each: `gpufleet apply INVENTORY --limit HOST` prints what fails. Then run `gpufleet "
    "upgrade release INVENTORY --limit HOST`.",
)

NOTHING_TO_RELEASE = blocker(
    "GF079",
    "Nothing to release",
    "No run left one of these hosts out of service.",
    "`gpufleet upgrade status INVENTORY` shows the hosts. `gpufleet upgrade INVENTORY` finishes an "
    "unfinished run, `gpufleet upgrade abort INVENTORY` ends it.",
)

NODE_AWAY = blocker(
    "GF074",
    "Nodes of an unfinished run are not found",
    "Run {run} has hosts whose nodes are not found, so they cannot be returned: "
    "{hosts}. {problem} Nothing was done.",
    "Restore access to their cluster, then run the same command again. If the cluster is gone, use "
    "an inventory without it, and stop the kubelet of the hosts.",
)

COMMAND_FAILED = blocker(
    "GF066",
    "Command on the controller failed",
    "{key} for {host} failed: {problem}. The host stays out of service.",
    "Run it manually and correct it, then run the same `gpufleet upgrade` again.",
)

WRONG_SETTINGS = blocker(
    "GF068",
    "Settings of the upgrade are not valid",
    "{host}: {problem}",
    "Correct it in the inventory, settings of a run for all of its hosts, as in group_data/all.py; "
    "docs/reference/keys.md has the keys.",
    description="A key `upgrade_*` of a host is misspelt, has a value that is not allowed, or "
    "differs between the hosts of a run. Nothing was done.",
)

CHANGED_SINCE_PLAN = blocker(
    "GF071",
    "Host was changed after the run",
    "The run left version {target}; the host has {found} now.",
    "Install the version that you want: set driver_version or toolkit_version, then run "
    "`gpufleet upgrade`.",
)
