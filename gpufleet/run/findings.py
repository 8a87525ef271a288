"""The run itself: its command line, its report, and hosts that it did not come to."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

REPORT_PATH = Kind(
    "GF001",
    Severity.BLOCKER,
    "The report cannot be written there",
    "GPUFLEET_REPORT={path} cannot be written: {why}. Nothing was done.",
    "Name a new file or an older report, in a folder that exists and that you may write to; or "
    "unset GPUFLEET_REPORT.",
)

REPORT_LOST = Kind(
    "GF002",
    Severity.BLOCKER,
    "The report could not be written",
    "the run is over, but its report could not be written to {path}: {why}.",
    "The table above says what happened. Free space or correct the folder; the next run changes "
    "nothing on converged hosts and writes the report.",
)

NO_INVENTORY = Kind(
    "GF003",
    Severity.BLOCKER,
    "No such inventory",
    "there is no inventory file {path}. Nothing was done.",
    "Correct the path; inventories/prod.py is an example.",
)

NOTHING_MATCHES = Kind(
    "GF004",
    Severity.BLOCKER,
    "No host is selected",
    "{selection} leaves no host of {inventory}. Nothing was done.",
    "Correct the name. `pyinfra {inventory} debug-inventory` lists hosts and groups.",
)

UNREACHABLE = Kind(
    "GF005",
    Severity.BLOCKER,
    "The host could not be reached",
    "the connection failed: {cause}. Nothing was done on it.",
    "See that `ssh` reaches the host with the inventory's user and key; then run again with "
    "--limit {host}.",
)

NOT_BEGUN = Kind(
    "GF006",
    Severity.BLOCKER,
    "The run ended before this host's turn",
    "the run ended before anything was done on this host: it is as it was.",
    "See above what ended the run, then run again with --limit {host}.",
)

WRONG_DEPLOY = Kind(
    "GF009",
    Severity.BLOCKER,
    "The deploy is not for these hosts",
    "{deploys} leaves alone every host that this run has: {hosts}. Nothing was done.",
    "deploys/gpu_cluster.py is for the group gpu_cluster, deploys/gpu_node.py for every other "
    "host; choose with --limit, or put the host into the group it belongs to.",
)

PREFLIGHT_MIXED = Kind(
    "GF011",
    Severity.BLOCKER,
    "Preflight with a deploy that changes hosts",
    "{deploys} are asked for in one run: preflight changes nothing, and another deploy does. "
    "Nothing was done.",
    "Run deploys/preflight.py alone; then run the others.",
)

NOT_A_HOST = Kind(
    "GF010",
    Severity.INFO,
    "A cluster, not a host",
    "the inventory has this as a cluster (group gpu_cluster), so it was not asked what a host is.",
    "`gpufleet verify` checks a cluster; deploys/preflight.py says what would be done with it.",
)

CUT_SHORT = Kind(
    "GF007",
    Severity.BLOCKER,
    "The run ended during an operation",
    'the run ended before "{operation}" did: what it had begun may be half done.',
    "See above what ended the run, then run again: what is there already is not done twice.",
)

STEP_FAILED = Kind(
    "GF012",
    Severity.BLOCKER,
    "A step failed",
    'the step "{operation}" failed: {said}.',
    "Correct what the host reports and run again: steps that are done are not repeated.",
)

NO_ANSWER = Kind(
    "GF008",
    Severity.BLOCKER,
    "The host was stopped by pyinfra",
    "the facts could not be read, or the connection was lost: pyinfra's lines above say why.",
    "Look at the host with `gpufleet doctor INVENTORY --limit {host}`, then run again with "
    "--limit {host}.",
)
INVENTORY = Kind(
    "GF701",
    Severity.BLOCKER,
    "The inventory cannot be read",
    "inventory {path}: {why}",
    "try `pyinfra {path} debug-inventory` in the same folder and correct what it reports",
)
