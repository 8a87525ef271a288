"""Runs: their records, their settings, and other runs in the way."""

from __future__ import annotations

from gpufleet.core.findings import blocker, warning

SETTINGS_DIFFER = blocker(
    "GF060",
    "Settings of the run differ between hosts",
    "{key} is {first} for {one} and {second} for {other}: a run has one. Nothing was done.",
    "Set it for all hosts of the run, as in group_data/all.py.",
)

IN_PROGRESS = blocker(
    "GF061",
    "Run is in progress",
    "Another process on this machine carries out run {run}.",
    "See `gpufleet upgrade status --run {run}`; `gpufleet upgrade pause --run {run}` ends it "
    "after the hosts in progress.",
)

UNFINISHED = blocker(
    "GF062",
    "Earlier run is not finished",
    "Run {run} over {inventory} is not finished: {state}.",
    "Continue it with `gpufleet upgrade resume --run {run}`, or end it with "
    "`gpufleet upgrade abort --run {run}`.",
)

FOREIGN_RUN = blocker(
    "GF287",
    "Earlier run of another user is not finished",
    "Run {run} over the same inventory belongs to another user and is not finished; a process of "
    "that user may be at work on its hosts.",
    "Finish it as that user: `gpufleet upgrade resume --run {run}` or `abort`. If it is lost, "
    "move {folder} away; its nodes stay cordoned until you return them: see "
    "docs/how-to/upgrade.md.",
)

NO_RUN = blocker(
    "GF063",
    "No such run",
    "There is no {run} in {folder}.",
    "A run is recorded on the machine and for the user that started it: run the command there. "
    "Without a name it takes the newest run.",
)

RECORD_DAMAGED = blocker(
    "GF064",
    "Record of the run is damaged",
    "{file} cannot be used: {problem}.",
    "Restore the file, or run the command as its owner. Otherwise move the folder away and start "
    "a new run. It skips hosts that have the target and hosts that the lost run left unfinished "
    "(GF053); nodes of the latter stay cordoned.",
)

RECORD_UNWRITTEN = blocker(
    "GF274",
    "Record of the run cannot be written",
    "{file} cannot be written: {problem}. Nothing more was done with hosts and nodes.",
    "Free space on that file system, or make it writable, then run the command again. A run that "
    "was started continues with `gpufleet upgrade resume --run RUN`: do not move its folder.",
)

RECORD_FULL = blocker(
    "GF381",
    "Record of the run is full",
    "{file} would exceed {most} MiB. No more hosts are started; the rest of {whole} MiB is "
    "reserved for returning hosts that are out of service.",
    "Run `gpufleet upgrade abort --run {run}`, which returns them, then start a new run.",
)

OTHER_VERSION = blocker(
    "GF289",
    "Run of another version of gpufleet",
    "{file} was written by another version of gpufleet, and this one cannot use it: {problem}. It "
    "was not changed; no host was touched.",
    "Continue or end the run with that version: `gpufleet upgrade resume --run {run}` or "
    "`gpufleet upgrade abort --run {run}`. If you do not have that version, return the nodes of "
    "the run manually (see docs/how-to/upgrade.md), then move {folder} away.",
)

NOTHING_TO_RETURN = blocker(
    "GF065",
    "Nothing to roll back",
    "Run {run} cannot be rolled back (state: {state}): it has changed no host, is not finished, "
    "or is itself a roll-back or a reboot.",
    "If it is not finished, end it with `gpufleet upgrade abort --run {run}`. Hosts that failed "
    "are rolled back already.",
)

WRONG_SETTINGS = blocker(
    "GF068",
    "Settings of the upgrade are not valid",
    "{host}: {problem}",
    "Correct it in the inventory; docs/how-to/upgrade.md has the keys.",
    description="A key `upgrade_*` of a host is misspelt or has a value that is not allowed; the "
    "message quotes the finding about it. Nothing was done.",
)

RECORD_SET_ASIDE = warning(
    "GF075",
    "Damaged record of a run was set aside",
    "The record of run {run} cannot be used ({problem}); it was moved to {folder}.",
    "Hosts in progress are skipped (GF053); their nodes have the annotation gpufleet/upgrade: see "
    "docs/how-to/upgrade.md to return them.",
)

SEVERAL_RUNS = blocker(
    "GF282",
    "Several runs are not finished",
    "Several runs are not finished: {runs}. Nothing was done.",
    "Select one with --run RUN.",
)

NOT_PAUSED = blocker(
    "GF283",
    "Nothing to pause",
    "Run {run} cannot be paused: {why}.",
    "`gpufleet upgrade status --run {run}` shows its hosts.",
)

FOLDER_LOST = blocker(
    "GF271",
    "Folder of the run cannot be entered",
    "Folder {folder}, in which run {run} was started, cannot be used: {why}. No host was touched.",
    "Restore it with its deploys/, config.py and group_data/, or its owner, then run the command "
    "again.",
)
