"""Repositories, their keys, packages and the package manager."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

CONFLICTING_REPOSITORY = Kind(
    "GF301",
    Severity.BLOCKER,
    "Conflicting repository entries",
    "{files} list the same repository {url} with different options; apt rejects the combination.",
    "Keep one of them: back up and remove the other entries on the host, then run again.",
)

REVOKED_KEY = Kind(
    "GF302",
    Severity.WARNING,
    "Revoked repository key",
    "NVIDIA's revoked key {key} is still trusted ({where}).",
    "Remove it on the host: {command}",
)

HELD_PACKAGES = Kind(
    "GF303",
    Severity.BLOCKER,
    "Packages held at another version",
    "These packages are held at another version, and gpufleet did not hold them: {packages}.",
    "Release them (apt-mark unhold, yum versionlock delete), or request the held version.",
)

UNATTENDED_UPGRADES = Kind(
    "GF304",
    Severity.INFO,
    "Unattended upgrades are enabled",
    "Unattended upgrades are enabled on this host and could upgrade the driver while it is in use.",
    "gpu_node holds the driver packages and excludes them from unattended upgrades.",
)

LOCK_HELD = Kind(
    "GF305",
    Severity.WARNING,
    "Package manager is locked",
    "{holder} holds the lock of the package manager.",
    "gpu_node waits for it, up to node_lock_timeout seconds.",
)

BROKEN_PACKAGES = Kind(
    "GF306",
    Severity.BLOCKER,
    "Interrupted package transaction",
    "An earlier transaction of packages that gpufleet does not manage is incomplete: {problem}.",
    "Finish it on the host: {remedy}",
)

UNFINISHED = Kind(
    "GF307",
    Severity.WARNING,
    "Interrupted installation",
    "An earlier transaction of the driver packages is incomplete: {problem}.",
    "gpu_node finishes it first.",
)

WRONG_KEY = Kind(
    "GF310",
    Severity.BLOCKER,
    "Repository key mismatch",
    "{what}, expected {expected}. The key is not trusted and no package was changed.",
    "If this is your own mirror, set {setting} to its fingerprint. Otherwise stop: the repository "
    "may be compromised.",
)

KEY_EMPTY = Kind(
    "GF328",
    Severity.BLOCKER,
    "Repository key is empty",
    "The key file at {url} is empty; no package was changed.",
    "Check that the mirror has the complete file (an interrupted upload, a proxy), or set "
    "{setting} to another mirror.",
)

KEY_NOT_KEPT = Kind(
    "GF329",
    Severity.BLOCKER,
    "Download cannot be stored on the host",
    "Cannot store the key from {url} in the host's temporary folder: {problem}.",
    "Free space in /tmp, or make it writable (df -h /tmp; mount), then run again.",
)

FOREIGN_KEY = Kind(
    "GF324",
    Severity.BLOCKER,
    "Unexpected key in the repository's keyring",
    "{keyring} contains {foreign} in addition to the expected key {expected}: its owner can sign "
    "packages for this host. It is trusted in {where}.",
    "Find out where it came from and what was installed since. Then remove it on the host "
    "({commands}), and run again.",
)

KEY_REPLACED = Kind(
    "GF325",
    Severity.WARNING,
    "Keyring contains another key",
    "{keyring} contains {found} instead of the expected key {expected}, which replaces it.",
    "No action required if the mirror or its key changed; otherwise find out where that key came "
    "from.",
)

KEY_UNREACHABLE = Kind(
    "GF311",
    Severity.BLOCKER,
    "Repository key cannot be downloaded",
    "The host cannot download the key from {url}: {problem}.",
    "Check that the host reaches the repository (proxy, firewall), or set {setting} to a mirror.",
)

VERSION_NOT_THERE = Kind(
    "GF313",
    Severity.BLOCKER,
    "Version not in the repository",
    "The host's repositories have no {package} for the {what}; available: {available}.",
    "Check that the mirror is complete. Otherwise request an available version; use another "
    "driver branch only if it supports your GPUs and applications.",
)

UNEXPECTED_REMOVAL = Kind(
    "GF314",
    Severity.BLOCKER,
    "Transaction would remove other packages",
    "The package manager would also remove or replace: {packages}.",
    "The transaction was not started. Find the reason with `{command}`, and resolve the conflict "
    "manually.",
)

LOCK_NOT_RELEASED = Kind(
    "GF308",
    Severity.BLOCKER,
    "Timed out waiting for the package manager's lock",
    "{holder} held the package manager's lock for more than {seconds} seconds. This run changed "
    "{done}.",
    "Let it finish or stop it, then run again: completed steps are not repeated. A lock file "
    "named here contains a process ID; if that process is not a package manager, remove the stale "
    "file. node_lock_timeout sets how long to wait.",
)

REPOSITORY_UNREADABLE = Kind(
    "GF312",
    Severity.BLOCKER,
    "Repository metadata cannot be read",
    "The metadata of {url} cannot be read, or is not signed by a trusted key; no package was "
    "changed.",
    "Check that the host reaches the repository and that it is complete. The package manager's "
    "output follows.",
)

UNSUPPORTED_MANAGER = Kind(
    "GF315",
    Severity.BLOCKER,
    "Package manager not supported",
    "gpufleet plans for this distribution but cannot install packages with {manager}.",
    "Use hosts with apt, yum or dnf; on others, install manually what `gpufleet catalog driver` "
    "prints.",
)

TRANSACTION_INCOMPLETE = Kind(
    "GF316",
    Severity.BLOCKER,
    "Packages missing after the transaction",
    "The package manager reported success, but these packages are not installed at the requested "
    "version.",
    "Run again. If the problem persists, see `yum history info` on the host.",
)

REPOSITORIES_GONE = Kind(
    "GF317",
    Severity.BLOCKER,
    "Repositories are offline",
    "These repositories point to servers that no longer exist, so every {manager} command fails: "
    "{sections}.",
    "Set node_archives = True to switch them to their archives (the files are backed up), or "
    "point them to your own mirror.",
)

ARCHIVES_USED = Kind(
    "GF320",
    Severity.INFO,
    "Archives replace offline repositories",
    "Archives ({archives}) are used in place of: {sections}. They get no more updates.",
    "No action required now; plan the move to a newer release.",
)

PREREQUISITES_MISSING = Kind(
    "GF318",
    Severity.BLOCKER,
    "Packages required by the driver are not available",
    "No enabled repository provides {packages}.",
    "Add a repository that does: on EL, the distribution's own or EPEL. On EL 7, node_archives "
    "= True adds the archives of CentOS 7 and EPEL 7.",
)

TRANSACTION_REFUSED = Kind(
    "GF319",
    Severity.BLOCKER,
    "Transaction rejected by the package manager",
    "{manager}: {problem}",
    "The transaction was not started. No space left: free some (apt-get clean, yum clean all, old "
    "kernels). Conflicts: remove the conflicting packages or add the missing ones manually. Then "
    "run again.",
    description="The trial run of the package transaction failed; the message quotes the package "
    "manager.",
)

TRANSACTION_FAILED = Kind(
    "GF322",
    Severity.BLOCKER,
    "Package manager failed",
    "{manager} failed while downloading or changing packages; its output follows.",
    "Run again: it completes the transaction. No space left: free some first (apt-get "
    "clean, yum clean all, old kernels). Otherwise fix what the package manager reports.",
)

HEADERS_MISSING = Kind(
    "GF323",
    Severity.BLOCKER,
    "Headers of the running kernel are not available",
    "No enabled repository provides {packages}, so DKMS cannot build a module.",
    "Repositories drop the headers of replaced kernels: boot into the distribution's newest "
    "kernel, or enable a repository that has them, then run again.",
)

LOGIN_FILE = Kind(
    "GF326",
    Severity.BLOCKER,
    "Credentials file cannot be used",
    "{path}, set in {setting}, cannot be used: {reason}.",
    "Write lines `machine HOST login USER password PASSWORD`, then chmod 600 {path}",
)

NOT_HELD = Kind(
    "GF327",
    Severity.BLOCKER,
    "Packages could not be held",
    "The packages are installed but could not be held at their version; the package manager's "
    "output follows.",
    "Fix what it reports (apt-mark hold, yum versionlock list), then run again.",
)

NOT_RELEASED = Kind(
    "GF330",
    Severity.BLOCKER,
    "Package holds could not be released",
    "gpufleet holds these packages at their version and could not release them; the package "
    "manager's output follows. No package was changed.",
    "Fix what it reports (apt-mark unhold; yum versionlock delete, or edit versionlock.list), "
    "then run again: it continues where it stopped.",
)
