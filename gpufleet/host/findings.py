"""Findings about access to a host, its privileges, other runs on it, and its reboot."""

from __future__ import annotations

from gpufleet.core.findings import blocker, warning

UNEXPECTED = blocker(
    "GF503",
    "Internal error",
    "Internal error in gpufleet: {error} at {place}, {doing}.",
    "Run again with --limit for only this host. If it fails again, report the error and the "
    "place. Other hosts are not affected.",
)

CONNECTION_LOST = blocker(
    "GF504",
    "Connection lost",
    "Connection lost {doing}: {cause}.",
    "Check that the host is up and that `ssh` reaches it, then run again: completed steps are not "
    "repeated.",
)

NOT_ROOT = blocker(
    "GF505",
    "Commands do not run as root",
    "Commands run on the host as a non-root user, who cannot install packages.",
    "Set _sudo = True in the inventory (or _doas, _dzdo, _su_user), or log in as root.",
)

PRIVILEGES_REFUSED = blocker(
    "GF506",
    "Privilege escalation failed",
    "The host refused to run commands as root: {cause}.",
    "Add --ask-sudo-password, or set _sudo_password from a vault, or correct it; or allow the user "
    "in sudoers (doas.conf, dzdo's policy) to run all commands as root, with NOPASSWD and "
    "!requiretty; or log in as root. sudo also needs space in a /tmp without noexec, or in the "
    "folder of _temp_dir.",
)

SU_PASSWORD = blocker(
    "GF558",
    "su with a password is not supported",
    "_su_password is set: su reads the password from standard input, which gpufleet needs to "
    "transfer files without exposing them to other users.",
    "Use sudo (_sudo, with or without _sudo_password), or log in as root. _su_user without a "
    "password works.",
)

NO_SHELL = blocker(
    "GF507",
    "User has no usable login shell",
    "The host runs no commands for the connecting user: {cause}.",
    "Connect as a user (ssh_user) whose login shell is bash or another POSIX shell, not csh or "
    "tcsh; or set one: usermod -s /bin/sh USER",
)

RECORD_UNUSABLE = blocker(
    "GF557",
    "Installation record is unusable",
    "The record {path} on the host is unusable: {problem}. Without it, gpufleet does not know "
    "what it installed.",
    "If a newer gpufleet wrote it, use that version. Otherwise restore a copy from {folder}, or "
    "move the file away: gpufleet then treats everything on the host as not its own.",
)

# Changes of a run that does not get a host's lock: before its first change, and later.
NOTHING, NO_MORE = "nothing", "nothing more"

ANOTHER_RUN = blocker(
    "GF508",
    "Host is locked by another run",
    "Another gpufleet run holds the lock of this host: {holder}. This run changed {done}.",
    "Wait for the other run to finish, then run again. The lock is released when that run ends, "
    "is killed or loses its connection, and its current step on the host has ended (see that "
    "step: fuser -v /run/gpufleet.lock.steps).",
)

SAME_MACHINE = blocker(
    "GF559",
    "Two inventory names refer to one machine",
    "{this} and {other} are the same machine, which this run changes as {other}. As {this}, it "
    "changed {done}.",
    "Remove one of the two names from the inventory, or correct its address. Until then, select "
    "one with --limit.",
)

CHANGED_SINCE = blocker(
    "GF509",
    "Host changed during the run",
    "Another gpufleet run changed this host after this run read its facts: {holder}. This run "
    "changed {done}.",
    "Run again: the next run plans from the host's current state.",
)

FACTS_UNREADABLE = blocker(
    "GF502",
    "Unreadable answer from the host",
    "Cannot read the host's answer, {doing}: {problem}.",
    "Try `ssh {host} true` with the user, port and key from the inventory. When that works: "
    "gpufleet doctor INVENTORY --limit {host}",
)

REBOOT_PUT_OFF = blocker(
    "GF535",
    "Reboot would kill GPU work",
    "The driver is installed and requires a reboot to load, but GPU work started during the run: "
    "{work}. The host was not rebooted.",
    "Run again when the work has finished; or set driver_allow_disruption = True to let "
    "it be killed.",
)

MODULE_NOT_BUILT = blocker(
    "GF550",
    "Kernel module was not built",
    "DKMS did not build the nvidia module {version} for the running kernel, or for a newer one "
    "that is installed.",
    "Run `dkms install --force nvidia/{version}` on the host (nvidia-current with Debian's own "
    "packages): it prints why, or names its log. Fix headers or compiler, then run again to "
    "rebuild.",
)

REBOOT_NOT_BEGUN = blocker(
    "GF536",
    "Host was not rebooted",
    "The host was not rebooted: {why}.",
    "Correct the cause, then run again. `systemd-inhibit --list` on the host names what prevents a "
    "reboot.",
)

REBOOT_FAILED = blocker(
    "GF554",
    "Host did not come back after the reboot",
    "The host was rebooted and did not report a new boot ID within {seconds} seconds.",
    "Check its console. When the host is up, run again: it continues where it stopped.",
)

RELOAD_WAITS = warning(
    "GF537",
    "Unit file not in effect yet",
    "The file of {unit} is new, and systemd was not made to read it: containers with GPUs run "
    "here, and a daemon-reload can take the GPUs from them. {unit} runs with its earlier file.",
    "No action required if the host reboots. Otherwise run gpufleet again once no container has a "
    "GPU, or accept that containers lose their GPUs until they are restarted: "
    "`systemctl daemon-reload && systemctl restart {unit}`.",
)

PACKAGES_RELOAD = warning(
    "GF538",
    "Scripts of packages reload systemd",
    "Containers with GPUs run here, and the packages of {roles} change: their own scripts run "
    "`systemctl daemon-reload`, which can take the GPUs from these containers (`Failed to "
    "initialize NVML: Unknown Error`).",
    "Run again when no container has a GPU, for example on a drained node. Otherwise restart the "
    "containers that lost their GPUs. To prevent it: `gpufleet explain 'Failed to initialize NVML: "
    "Unknown Error'`.",
)

EXTRA_FAILED = warning(
    "GF539",
    "Optional part does not work",
    "{what} does not work on this host: {why}. Nothing else depends on it, and the run went on.",
    "Find the reason on the host (`journalctl -u nvidia-persistenced`, `nvidia-ctk cdi generate`) "
    "and run again, or set {key} = False for this host.",
)

SERVICE_FAILED = blocker(
    "GF553",
    "Service is not active",
    "{service} was started but is not active.",
    "Find the reason with: journalctl -u {service} -n 50",
)
