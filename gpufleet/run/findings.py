"""Findings about the run: its command line, its report, and hosts that it did not reach."""

from __future__ import annotations

from gpufleet.core.findings import blocker

REPORT_PATH = blocker(
    "GF001",
    "Report path is not writable",
    "Cannot write the report {path}: {why}. Nothing was done.",
    "Set {option} to a new file or an older report in an existing, writable folder; or omit it.",
)

REPORT_LOST = blocker(
    "GF002",
    "Results could not be written",
    "The work is done, but its results could not be written to {path}: {why}.",
    "Free space or correct the path, then run the command again: `gpufleet apply` changes nothing "
    "on converged hosts.",
)

PLAN_DIFFERS = blocker(
    "GF019",
    "The plan is another one now",
    "planned: {planned}; now: {now}. Nothing was done on any host.",
    "If the plan was made with --limit or --exclude, apply it with the same. Otherwise review the "
    "current plan (`gpufleet plan INVENTORY --out FILE`), then apply that file.",
)

NOTHING_MATCHES = blocker(
    "GF004",
    "No host selected",
    "{selection} matches no host of {inventory}. Nothing was done.",
    "Correct the name; --limit takes a host, a group or a wildcard ('gpu-0*') and may be repeated.",
)

UNREACHABLE = blocker(
    "GF005",
    "Host unreachable",
    "Connection failed: {cause}. The host was not changed.",
    "Check that `ssh` reaches the host with the inventory's user and key, then run again with "
    "--limit {host}.",
)

HOST_KEY_UNKNOWN = blocker(
    "GF017",
    "SSH host key is not known",
    "The SSH host key of {whom} is not in the known hosts file, and the inventory's "
    "ssh_strict_host_key_checking accepts no new ones. The host was not changed.",
    "Connect once with `ssh`, compare the fingerprint that it shows with that of "
    "`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the host's console and accept it; then "
    "run again with --limit {host}.",
)

HOST_KEY_CHANGED = blocker(
    "GF018",
    "SSH host key has changed",
    "The SSH host key of {whom} is {key}; the known hosts file has {known}. Nothing was sent to "
    "the host.",
    "Another machine may answer at this address. If the host was reinstalled, compare the new "
    "fingerprint with that of `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on its console, "
    "replace the old key in the known hosts file (`ssh-keygen -R` removes it), then run again with "
    "--limit {host}.",
)

NOT_BEGUN = blocker(
    "GF006",
    "Host was not started",
    "The run ended before it reached this host; the host was not changed.",
    "See above what ended the run, then run again with --limit {host}.",
)

WRONG_DEPLOY = blocker(
    "GF009",
    "Deploy does not apply to these hosts",
    "{deploys} applies to none of the hosts of this run: {hosts}. Nothing was done.",
    "Select hosts with --limit, or correct the host's group: deploys/gpu_cluster.py applies to the "
    "group gpu_cluster, deploys/gpu_node.py to all other hosts.",
)

PREFLIGHT_MIXED = blocker(
    "GF011",
    "Preflight combined with another deploy",
    "{deploys} were requested in one run. Preflight changes nothing, the other deploys do. "
    "Nothing was done.",
    "Run deploys/preflight.py on its own, then run the others.",
)

CUT_SHORT = blocker(
    "GF007",
    "Run ended during an operation",
    'The run ended during "{operation}", which may be partially applied.',
    "See above what ended the run, then run again: completed steps are not repeated.",
)

STEP_FAILED = blocker(
    "GF012",
    "Step failed",
    'Step "{operation}" failed: {said}.',
    "Fix what the host reports and run again: completed steps are not repeated.",
)

NO_ANSWER = blocker(
    "GF008",
    "Host dropped from the run",
    "Fact gathering failed or the connection was lost; see pyinfra's output above.",
    "Run `gpufleet doctor INVENTORY --limit {host}`, then run again with --limit {host}.",
)
INVENTORY_NOT_FOUND = blocker(
    "GF701",
    "Inventory cannot be loaded",
    "Cannot load inventory {path}: {why}",
    "Correct the inventory; paths in it are relative to the working directory. `gpufleet init DIR` "
    "creates an example, inventories/prod.py.",
)

WORKER_LOST = blocker(
    "GF013",
    "Part of the run failed",
    "The process of this host's part left no result of it: {why}. It printed last: {output}.",
    "What was done on the host is not known. Run again with --limit {host}: completed steps are "
    "not repeated.",
    description="With --workers or --scheduler, the process of this host's part could not start, "
    "or ended without a valid report of the host.",
)

OVER_BUDGET = blocker(
    "GF014",
    "Too many hosts failed",
    "{failed} of {hosts} failed, --fail-percent allows {percent} %: no further part of the hosts "
    "was started.",
    "See the table for the reasons. The next run changes nothing on converged hosts.",
)
