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
    "See `gpufleet upgrade status --run {run}`; `gpufleet upgrade pause --run {run}` ends it after "
    "the hosts that it has begun.",
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
    "Finish it as that user: `gpufleet upgrade resume --run {run}` or `abort`. If it is lost, move "
    "{folder} away; its nodes stay cordoned: docs/how-to/upgrade.md says how they return.",
)

NO_RUN = blocker(
    "GF063",
    "No such run",
    "There is no {run} in {folder}.",
    "Runs are kept on the machine and for the user that started them.",
)

RECORD_DAMAGED = blocker(
    "GF064",
    "Record of the run is damaged",
    "{file} cannot be used: {problem}.",
    "Restore the file, or run the command as the user who has it. Else move the folder away and "
    "start a new run: hosts that have the target are left out of it, those that the lost run was "
    "at work on too (GF053), and their nodes stay cordoned.",
)

RECORD_UNWRITTEN = blocker(
    "GF274",
    "Record of the run cannot be written",
    "{file} cannot be written: {problem}. Nothing more was done with hosts and nodes.",
    "Free space on that file system, or make it writable, then repeat the command. A run that was "
    "begun goes on with `gpufleet upgrade resume --run RUN`: leave its folder where it is.",
)

RECORD_FULL = blocker(
    "GF381",
    "Record of the run is full",
    "{file} would have more than {most} MiB. No more hosts are begun: what is left of {whole} MiB "
    "is for the return of those that are out of service.",
    "Run `gpufleet upgrade abort --run {run}`, which returns them, then start a new run.",
)

OTHER_VERSION = blocker(
    "GF289",
    "Run of another version of gpufleet",
    "{file} was written by another version of gpufleet, and this one cannot use it: {problem}. It "
    "stays where it is; no host was touched.",
    "Continue or end the run with that version: `gpufleet upgrade resume --run {run}` or "
    "`gpufleet upgrade abort --run {run}`. If you do not have that version, return the nodes of "
    "the run by hand, as docs/how-to/upgrade.md says of a host that was left behind, then move "
    "{folder} away.",
)

NOTHING_TO_RETURN = blocker(
    "GF065",
    "Nothing to roll back",
    "Run {run} has changed no host, is a roll-back itself, or is not finished ({state}).",
    "End it first with `gpufleet upgrade abort --run {run}`; hosts that failed were rolled "
    "back already.",
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
    "Hosts that it was at work on are left out (GF053), their nodes have the annotation "
    "gpufleet/upgrade: docs/how-to/upgrade.md says how they return.",
)

SEVERAL_RUNS = blocker(
    "GF282",
    "Several runs are not finished",
    "Several runs are not finished: {runs}. Nothing was done.",
    "Say which one is meant: --run RUN.",
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
    "Folder {folder}, in which run {run} was begun, cannot be used: {why}. No host was touched.",
    "Restore it with its deploys/, config.py and group_data/, or give it back to its owner, then "
    "repeat the command.",
)
