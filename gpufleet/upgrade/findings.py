"""Changing the drivers of a fleet: what stops a run, a host, or leaves a host out."""

from __future__ import annotations

from gpufleet.core.findings import blocker, warning

NOT_BY_ITSELF = blocker(
    "GF050",
    "Deploy is run by gpufleet upgrade",
    "deploys/upgrade_driver.py carries out one step of a run, and this is none: beside other "
    "deploys, with --exclude or from Python it cannot start a run. Nothing was done.",
    "Run `gpufleet upgrade INVENTORY`, or pyinfra with that deploy alone.",
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
    "nvidia-smi lists {found:GPU|GPUs}, the PCI bus {wanted}.",
    "Repair the host first: after the change it could not be said what caused it.",
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
    "Host is not as before the change",
    "With driver {version} the host differs from what it was before, or from what it should be.",
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
    "Beside the {subject}, a run would change: {steps}.",
    "Run `gpufleet apply --limit` for this host first: an upgrade changes one thing alone.",
)

NOT_PREPARED = blocker(
    "GF059",
    "Host was not prepared",
    "{folder} is missing: it has the packages to roll back to. The host was not changed.",
    "Run `gpufleet upgrade` again; do not remove the folder during a run.",
)

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

NOTHING_TO_RETURN = blocker(
    "GF065",
    "Nothing to roll back",
    "Run {run} has changed no host, is a roll-back itself, or is not finished ({state}).",
    "End it first with `gpufleet upgrade abort --run {run}`; hosts that failed were rolled "
    "back already.",
)

COMMAND_FAILED = blocker(
    "GF066",
    "Command on the controller failed",
    "{key} for {host} ended with {status}: {output}.",
    "Run it by hand, correct it, then run `gpufleet upgrade resume --run {run}`.",
)

NODE_UNKNOWN = blocker(
    "GF067",
    "Cluster of the node is not known",
    "The host is a node of a cluster, by a kubelet that runs on it or by its name, and which one "
    "is not known: no cluster of the inventory has a node with its machine id, or several machines "
    "have the same.",
    "Add the cluster to the group gpu_cluster, or set kubernetes_kubeconfig for its control plane: "
    "a node is drained before its driver is changed. Copies of one image need a machine id each: "
    "systemd-machine-id-setup.",
)

OPERATOR_DRIVER = blocker(
    "GF070",
    "GPU Operator installs the drivers of the cluster",
    "A ClusterPolicy of cluster {context} installs the driver.",
    "Change the version there (driver.version), or set driver.enabled=false.",
)

WRONG_SETTINGS = blocker(
    "GF068",
    "Settings of the upgrade are not valid",
    "{host}: {problem}",
    "Correct it in the inventory; docs/how-to/upgrade.md has the keys.",
    description="A key `upgrade_*` of a host is misspelt or has a value that is not allowed; the "
    "message quotes the finding about it. Nothing was done.",
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
    "{folder} belongs to another run, or to none: two runs must not change a host at a time. "
    "Nothing was done.",
    "End the run that is named below on its controller: `gpufleet upgrade abort --run RUN`. If it "
    "is lost, check the host and remove {folder}/state.",
)

IN_USE = blocker(
    "GF072",
    "GPUs are in use",
    "{work} began after the host was drained. Nothing was changed under it.",
    "Wait for it or end it. Where the host was changed before, install the earlier version with "
    "`gpufleet apply --limit` for this host.",
)

CHECK_REFUSED = blocker(
    "GF073",
    "Pod that checks the node cannot run",
    "A pod with a GPU is to run on the node after its change, in the namespace default, and "
    "cannot: {problem}. The node was not disturbed.",
    "Allow it where a quota or a webhook is named above. Where its image cannot be pulled, set "
    "upgrade_gpu_image to one that the nodes can reach.",
)

IMAGE_MISSING = blocker(
    "GF286",
    "Drained node cannot be checked",
    "The node was drained, and it is not sure that the pod which is to check it after its change "
    "could run: {problem}. It was not changed.",
    "Correct what is named above. Where its image cannot be pulled, set upgrade_gpu_image to one "
    "that the nodes can reach.",
)

ABORT_WAITS = blocker(
    "GF074",
    "Run cannot be aborted while its cluster is away",
    "Hosts of run {run} are out of service: {hosts}. Their cluster is needed to return them to "
    "service; nothing was changed.",
    "Repeat `gpufleet upgrade abort --run {run}` once the cluster answers. The nodes stay cordoned "
    "until then.",
)

RECORD_SET_ASIDE = warning(
    "GF075",
    "Damaged record of a run was set aside",
    "The record of run {run} cannot be used ({problem}); it was moved to {folder}.",
    "Hosts that it was at work on are left out (GF053), their nodes have the annotation "
    "gpufleet/upgrade: docs/how-to/upgrade.md says how they return.",
)

NO_ROOM = blocker(
    "GF076",
    "No room for the packages to roll back to",
    "The installed packages do not fit into {folder}. The host was not disturbed.",
    "Free the space that is named below, then run `gpufleet upgrade` again.",
)

OWN_MACHINE = blocker(
    "GF077",
    "Machine that gpufleet runs on is not rebooted",
    "gpufleet runs on this host: the run would end with the reboot.",
    "Start the run from another machine, or reboot this one by hand.",
)

NOT_COMPARED = blocker(
    "GF078",
    "Changed host cannot be compared",
    "The host was changed, and {folder}, which says what it was before, belongs to another run, or "
    "to none.",
    "It is rolled back if its packages are there, else left out of service: see what is named "
    "below, check the host, then remove {folder}/state.",
)

OTHER_NODE = blocker(
    "GF079",
    "Node with the machine id of the host has other names",
    "The host reports the machine id of node {node} in cluster {context}, and neither the name of "
    "the node nor one of its addresses is the name or the address of the host in the inventory. "
    "No node was drained.",
    "If {node} is this host, name the host as the node, or set ssh_hostname to one of its "
    "addresses. If not, find out why the host reports the machine id of another machine.",
)

MAYBE_A_NODE = blocker(
    "GF285",
    "Cluster that may have the host as a node cannot be asked",
    "Context {context} cannot be asked for its nodes, and no other cluster has this host as a "
    "node: whether it is to be drained is not known. {problem}",
    "Repair the access to the cluster, or use an inventory without it where the host is none of "
    "its nodes.",
)

NODE_REFUSED = blocker(
    "GF278",
    "Cluster refuses to take a node back into service",
    "The cluster refuses to return the node of {host} to service: {reason}. It stays cordoned; its "
    "driver is changed and checked, or as before.",
    "Remove what refuses it, such as an admission webhook or a missing permission, then run "
    "`gpufleet upgrade resume --run {run}`. Or uncordon the node by hand and remove its annotation "
    "gpufleet/upgrade.",
)

UNMARKED = blocker(
    "GF279",
    "Nodes that are left behind do not say so",
    "The roll-back of {hosts} failed in run {run}, and their cluster does not answer: the nodes "
    "are cordoned and have no mark with the reason.",
    "Run `gpufleet upgrade resume --run {run}` once the cluster answers: it marks them and ends "
    "the run.",
)

STEP_NOT_DONE = blocker(
    "GF270",
    "Step was not carried out",
    "The process of the step {step!r} ended with status {status} before the step was carried out "
    "on all of its hosts: {log}.",
    "Read that file: an own deploys/upgrade_driver.py or config.py may end the run of pyinfra "
    "early. Correct it, then run `gpufleet upgrade` again.",
)

NOT_REPORTED = blocker(
    "GF280",
    "Host was not reached",
    "The step has no report of the host: it was not reached.",
    "Make the host reachable, as with `ssh`, then run `gpufleet upgrade` again.",
)

NO_TARGET = blocker(
    "GF281",
    "No version is requested",
    "No version is requested: set driver_version or driver_branch in the inventory, or add --to or "
    "--branch.",
    "A branch means its newest version in the catalog.",
)

BRANCH_UNKNOWN = blocker(
    "GF284",
    "Catalog has no version of the branch",
    "The catalog has no version of branch {branch}: there is no version to change the host to.",
    "Request a version, with --to or driver_version, or another branch: "
    "`gpufleet catalog branches` lists them.",
)

OTHER_CLUSTER = blocker(
    "GF288",
    "Context points to another cluster",
    "Context {context!r} points to {url} now, which is not the cluster that the run was planned "
    "for. No node was changed.",
    "Point the context to the cluster of the run again, then repeat the command.",
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
