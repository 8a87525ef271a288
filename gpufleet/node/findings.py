"""Findings about a host as a whole: its GPUs, clock, edited files and record; and its removal."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

HOST_WITHOUT_GPU = info(
    "GF501",
    "No NVIDIA GPU",
    "No NVIDIA GPU on the PCI bus; nothing is installed.",
    "Remove the host from gpu_nodes, or check that the card is seated and powered (lspci -d "
    "10de:).",
)

FILE_EDITED = warning(
    "GF513",
    "Managed file was edited",
    "{file} differs from what gpufleet wrote and will be replaced. The current content is copied "
    "to /var/lib/gpufleet/backup first.",
    "Move your lines to another file in the same folder, or use the matching setting in the "
    "inventory. --diff shows them.",
)

OWN_PREFLIGHT = blocker(
    "GF514",
    "Blocked by a preflight of your repository",
    "{file}: {problem}",
    "Solve what it names, or change {name} in {file}.",
    description="A function `preflight_*` in `checks/preflight_*.py` of the working directory "
    "returned a text: the host is not changed.",
)

OWN_PREFLIGHT_FAILED = blocker(
    "GF515",
    "A preflight of your repository failed",
    "{name} did not answer ({place}): {error}.",
    "Correct {file}: a preflight takes a host and returns None, a text or a list of texts.",
)

CLOCK_SKEW = warning(
    "GF541",
    "Clock skew",
    "The host's clock is {seconds:second|seconds} {direction} this machine's: signatures and "
    "certificates appear expired or not yet valid.",
    "Set the clock: timedatectl set-ntp true, or chronyc makestep.",
)

NO_RECORD = info(
    "GF560",
    "Nothing installed by gpufleet",
    "The host has no record of anything that gpufleet installed or started to install; nothing is "
    "removed.",
    "Remove anything else manually.",
)

FILE_CHANGED = warning(
    "GF561",
    "Modified file left in place",
    "{path} was written by gpufleet and modified since; it is left in place.",
    "Remove it manually if you do not need it.",
)

STAYS_INSTALLED = info(
    "GF562",
    "Left on the host",
    "What is left on the host: {what}, because {why}.",
    "No action required; remove it manually if you do not need it.",
)

NOT_ENDED = info(
    "GF572",
    "Removal of an incomplete installation",
    "A gpufleet run did not finish on this host: {roles}. What it installed is removed too, from "
    "the journal it wrote before each step.",
    "No action required.",
)

UPGRADE_UNFINISHED = warning(
    "GF738",
    "Upgrade of the host has not ended",
    "The host belongs to an upgrade that has not ended: {what}.",
    "`gpufleet upgrade status INVENTORY` shows the run. To continue it, run the command that began "
    "it again; to end it, `gpufleet upgrade abort INVENTORY`. A stuck host: repair it with "
    "`gpufleet apply`, then `gpufleet upgrade release INVENTORY` returns it.",
)
