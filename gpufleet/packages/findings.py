"""Findings about repositories, keys, packages and the package manager."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

CONFLICTING_REPOSITORY = blocker(
    "GF301",
    "Conflicting repository entries",
    "The host's entries of a repository differ: {files}. {effect}.",
    "On the host, back up and remove {entries}. Then run again.",
)

REVOKED_KEY = warning(
    "GF302",
    "Revoked repository key",
    "NVIDIA's revoked key {key} is still trusted ({where}).",
    "Remove it on the host: {command}",
)

HELD_PACKAGES = blocker(
    "GF303",
    "Packages held at another version",
    "These packages are held at another version, and gpufleet did not hold them: {packages}.",
    "Release them (apt-mark unhold, yum versionlock delete), or request the held version.",
)

UNATTENDED_UPGRADES = info(
    "GF304",
    "Unattended upgrades are enabled",
    "Unattended upgrades are enabled on this host and could upgrade the driver while it is in use.",
    "`gpufleet apply` holds the driver packages and excludes them from unattended upgrades.",
)

LOCK_HELD = warning(
    "GF305",
    "Package manager is locked",
    "{holder} holds the lock of the package manager.",
    "`gpufleet apply` waits for it, up to node_lock_timeout seconds.",
)

BROKEN_PACKAGES = blocker(
    "GF306",
    "Interrupted package transaction",
    "An earlier transaction of packages that gpufleet does not manage is incomplete: {problem}.",
    "Finish it on the host: {remedy}",
)

PACKAGES_UNFINISHED = warning(
    "GF307",
    "Interrupted installation",
    "An earlier transaction of the driver packages is incomplete: {problem}.",
    "`gpufleet apply` finishes it first.",
)

WRONG_KEY = blocker(
    "GF310",
    "Repository key mismatch",
    "{what}, expected {expected}. The key is not trusted and no package was changed.",
    "If this is your own mirror, set {setting} to its fingerprint. Otherwise stop: the repository "
    "may be compromised.",
)

KEY_NOT_KEPT = blocker(
    "GF329",
    "Download cannot be stored on the host",
    "Cannot store the key from {url} in the host's temporary folder: {problem}.",
    "Free space in /tmp, or make it writable (df -h /tmp; mount), then run again.",
)

FOREIGN_KEY = blocker(
    "GF324",
    "Unexpected key in the repository's keyring",
    "{keyring} contains {foreign} in addition to the expected key {expected}: its owner can sign "
    "packages for this host. It is trusted in {where}.",
    "Find out who added it and what was installed since. Then remove it on the host ({commands}) "
    "and run again.",
)

KEY_REPLACED = warning(
    "GF325",
    "Keyring contains another key",
    "{keyring} contains {found} instead of the expected key {expected}, which replaces it.",
    "No action required if the mirror or its key changed; otherwise find out where that key came "
    "from.",
)

KEY_UNREACHABLE = blocker(
    "GF311",
    "Repository key cannot be downloaded",
    "The host cannot download the key from {url}: {problem}.",
    "Check that the host reaches the repository (proxy, firewall) and that a mirror has the whole "
    "file, or set {setting} to a mirror.",
)

VERSION_NOT_THERE = blocker(
    "GF313",
    "Version not in the repository",
    "The host's repositories have no {package} for the {what}; available: {available}.",
    "Check that the mirror is complete. Otherwise request an available version: in the inventory, "
    "or with --to of `gpufleet upgrade`, which changes what is installed. Use another driver "
    "branch only if it supports your GPUs and applications.",
)

UNEXPECTED_REMOVAL = blocker(
    "GF314",
    "Transaction would remove other packages",
    "The package manager would also remove or replace: {packages}.",
    "The transaction was not started. Find the reason with `{command}`, and resolve the conflict "
    "manually.",
)

LOCK_NOT_RELEASED = blocker(
    "GF308",
    "Timed out waiting for the package manager's lock",
    "{holder} held the package manager's lock for more than {seconds} seconds. This run changed "
    "{done}.",
    "Let it finish or stop it, then run again: completed steps are not repeated. A lock file "
    "named here contains a process ID; if that process is not a package manager, remove the stale "
    "file. node_lock_timeout sets how long to wait.",
)

REPOSITORY_UNREADABLE = blocker(
    "GF312",
    "Repository metadata cannot be read",
    "The metadata of {url} cannot be read, or is not signed by a trusted key; no package was "
    "changed.",
    "Check that the host reaches the repository and that it is complete.",
)

SOURCES_UNREADABLE = blocker(
    "GF331",
    "Package sources cannot be read",
    "{manager} cannot read its sources{when}: {problem}",
    "Fix on the host what it reports (`{command}` shows it again), then run again.",
)

EXCLUDED_PACKAGES = blocker(
    "GF332",
    "Packages excluded by the package manager's configuration",
    "{packages}: a repository has them, but {manager} is configured to exclude them.",
    "Change exclude, excludepkgs or includepkgs on the host, in the file that "
    "`grep -rE 'exclude|includepkgs' /etc/yum.conf /etc/dnf /etc/yum.repos.d` names, then run "
    "again.",
)

UNSUPPORTED_MANAGER = blocker(
    "GF315",
    "Package manager not supported",
    "gpufleet plans for this distribution but cannot install packages with {manager}.",
    "Use hosts with apt, yum or dnf; on others, install manually what `gpufleet catalog driver` "
    "prints.",
)

REPOSITORIES_GONE = blocker(
    "GF317",
    "Repositories are offline",
    "These repositories point to servers that no longer exist, so every {manager} command fails: "
    "{sections}.",
    "Set node_archives = True to switch them to their archives (the files are backed up), or "
    "point them to your own mirror.",
)

ARCHIVES_USED = info(
    "GF320",
    "Archives replace offline repositories",
    "Archives ({archives}) are used in place of: {sections}. They get no more updates.",
    "No action required now; plan the move to a newer release.",
)

PREREQUISITES_MISSING = blocker(
    "GF318",
    "Packages required by the driver are not available",
    "No enabled repository provides {packages}.",
    "Add a repository that does: on EL, the distribution's own or EPEL. On EL 7, node_archives "
    "= True adds the archives of CentOS 7 and EPEL 7.",
)

TRANSACTION_REFUSED = blocker(
    "GF319",
    "Transaction rejected by the package manager",
    "{manager}: {problem}",
    "The transaction was not started. If the disk is full, free space (apt-get clean, yum clean "
    "all, old kernels). If packages conflict, remove them or add the missing ones manually. Then "
    "run again.",
    description="The trial run of the package transaction failed; the message quotes the package "
    "manager.",
)

TRANSACTION_FAILED = blocker(
    "GF322",
    "Package manager failed",
    "{manager} failed while downloading or changing packages; its output follows.",
    "If the disk is full, free space (apt-get clean, yum clean all, old kernels). Otherwise fix "
    "what the package manager reports. Then run again: the run completes the transaction.",
)

HEADERS_MISSING = blocker(
    "GF323",
    "Headers of the running kernel are not available",
    "No enabled repository provides {packages}, for the running kernel, so DKMS cannot build a "
    "module.",
    "A kernel of the distribution: its repositories drop the headers of replaced kernels; install "
    "its newest kernel, boot into it, and run again. A kernel of a vendor, a cloud or your own: "
    "install its headers from where it came from, so that /lib/modules/$(uname -r)/build exists, "
    "and run again.",
)

LOGIN_FILE = blocker(
    "GF326",
    "Credentials file cannot be used",
    "{path}, set in {setting}, cannot be used: {reason}.",
    "Write lines `machine HOST login USER password PASSWORD`, then chmod 600 {path}",
)

HOLD_FAILED = blocker(
    "GF330",
    "Package holds could not be changed",
    "The packages could not be {what}; the package manager's output follows.",
    "Fix what it reports (apt-mark; yum versionlock, or edit versionlock.list), then run again: it "
    "continues where it stopped.",
)

USERS_MIRROR = blocker(
    "GF333",
    "Repository file with another URL",
    "{file}, which gpufleet did not write, has {found}; a run would replace that with {url}.",
    "To keep the mirror, set {setting} to it. To use {url}, back up and remove {file} on the host. "
    "Then run again.",
)

NOT_ASKED = warning(
    "GF334",
    "Repositories not asked",
    "The host cannot be asked what its repositories have: {problem}. Versions and sizes of this "
    "host's packages are not checked.",
    "`gpufleet apply` asks when it installs. If another process holds the lock of the package "
    "manager, run `gpufleet plan --check` again later.",
)

DISK_SPACE = blocker(
    "GF540",
    "Not enough disk space",
    "{path} has {free} MB free; the installation needs about {needed} MB.",
    "Free some space (apt-get clean, yum clean all, old kernels), then run again.",
)
