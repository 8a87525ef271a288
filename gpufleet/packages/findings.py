"""Repositories, their keys, packages and the package manager."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

CONFLICTING_REPOSITORY = Kind(
    "GF301",
    Severity.BLOCKER,
    "Conflicting repository entries",
    "{files} name the same repository {url} with other options; apt refuses to work with both.",
    "Keep one of them: remove the other entries on the host (a copy first), then run again.",
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
    "Held packages are in the way",
    "these packages are held at another version, and gpufleet did not hold them: {packages}.",
    "Release them (apt-mark unhold, yum versionlock delete), or ask for the version that is held.",
)

UNATTENDED_UPGRADES = Kind(
    "GF304",
    Severity.INFO,
    "Unattended upgrades are on",
    "unattended upgrades run on this host and could move the driver under its users.",
    "gpu_node holds the driver's packages and excludes them from unattended upgrades.",
)

LOCK_HELD = Kind(
    "GF305",
    Severity.WARNING,
    "The package manager is locked",
    "{holder} holds the lock of the package manager.",
    "gpu_node waits for it, up to driver_lock_timeout seconds.",
)

BROKEN_PACKAGES = Kind(
    "GF306",
    Severity.BLOCKER,
    "The package manager is in a half-done state",
    "an earlier transaction of packages that gpufleet does not manage is unfinished: {problem}.",
    "Finish it on the host: {remedy}",
)

UNFINISHED = Kind(
    "GF307",
    Severity.WARNING,
    "An earlier installation is unfinished",
    "an earlier transaction of the driver's packages is unfinished: {problem}.",
    "gpu_node finishes it first.",
)

WRONG_KEY = Kind(
    "GF310",
    Severity.BLOCKER,
    "Wrong repository key",
    "{what}, expected {expected}: it is not trusted, and no package was changed.",
    "If this is your own mirror, set {setting} to its fingerprint; if not, do not go on: the "
    "repository may not be what it says.",
)

KEY_EMPTY = Kind(
    "GF328",
    Severity.BLOCKER,
    "Repository key is an empty file",
    "the file at {url} is empty, so there is no key; no package was changed.",
    "See that the mirror has the whole file (an upload that broke off, a proxy), or set {setting} "
    "to another mirror.",
)

KEY_NOT_KEPT = Kind(
    "GF329",
    Severity.BLOCKER,
    "The host cannot keep a download",
    "the key at {url} could not be kept in the host's temporary folder: {problem}.",
    "Make room in /tmp, or make it writable (df -h /tmp; mount), then run again.",
)

FOREIGN_KEY = Kind(
    "GF324",
    Severity.BLOCKER,
    "A foreign key is trusted beside the repository's",
    "{keyring} holds {foreign} beside the expected key {expected}: whoever has that key can sign "
    "packages for this host. It is trusted in {where}.",
    "Find out where it came from and what was installed since. Then take it away on the host "
    "({commands}), and run again.",
)

KEY_REPLACED = Kind(
    "GF325",
    Severity.WARNING,
    "The keyring holds another key",
    "{keyring} holds {found} and not the expected key {expected}, which takes its place.",
    "Nothing to do where the mirror or its key has changed; if not, find out where that key came "
    "from.",
)

KEY_UNREACHABLE = Kind(
    "GF311",
    Severity.BLOCKER,
    "Repository key not reachable",
    "the key at {url} could not be fetched by the host: {problem}.",
    "See that the host reaches the repository (proxy, firewall), or set {setting} to a mirror.",
)

VERSION_NOT_THERE = Kind(
    "GF313",
    Severity.BLOCKER,
    "Version not in the repository",
    "the host's repositories have no {package} for the {what}; of it they have: {available}.",
    "See that the mirror is complete. Else ask for a version that is there; take another branch of "
    "the driver only where it suits your GPUs and programs.",
)

UNEXPECTED_REMOVAL = Kind(
    "GF314",
    Severity.BLOCKER,
    "The transaction would remove other packages",
    "the package manager would also remove or replace: {packages}.",
    "The transaction was not begun. See why with `{command}`, and remove what conflicts by hand.",
)

LOCK_NOT_RELEASED = Kind(
    "GF308",
    Severity.BLOCKER,
    "The package manager stayed locked",
    "{holder} held the package manager's lock for more than {seconds} seconds. This run changed "
    "{done}.",
    "Let it finish or end it, then run again: what is done already is not done twice. A file that "
    "is named here holds a process number; where that process is no package manager, an earlier "
    "one left the file: remove it. driver_lock_timeout sets how long to wait.",
)

REPOSITORY_UNREADABLE = Kind(
    "GF312",
    Severity.BLOCKER,
    "Repository not readable",
    "the metadata of {url} could not be read or is not signed by a trusted key; no package was "
    "changed.",
    "See that the host reaches it and that it is complete; what the package manager said follows.",
)

UNSUPPORTED_MANAGER = Kind(
    "GF315",
    Severity.BLOCKER,
    "Package manager not supported",
    "gpufleet plans for this distribution but cannot carry it out with {manager}.",
    "Use apt, yum or dnf hosts; for others, install by hand what `gpufleet catalog driver` prints.",
)

TRANSACTION_INCOMPLETE = Kind(
    "GF316",
    Severity.BLOCKER,
    "The transaction left packages out",
    "the package manager said it was done, and these packages are not there at the wanted version.",
    "Run gpu_node again; when it repeats, `yum history info` on the host says what happened.",
)

REPOSITORIES_GONE = Kind(
    "GF317",
    Severity.BLOCKER,
    "Repositories are gone",
    "these repositories lead to servers that are gone, so every command of {manager} fails: "
    "{sections}.",
    "Set driver_archives = True to switch them to their archives (a copy of the files is kept), or "
    "point them to a mirror of yours.",
)

ARCHIVES_USED = Kind(
    "GF320",
    Severity.INFO,
    "Archives stand in for repositories that are gone",
    "archives are used ({archives}) in place of: {sections}. Nothing in them is updated any more.",
    "Nothing to do now; plan the move to a newer release.",
)

PREREQUISITES_MISSING = Kind(
    "GF318",
    Severity.BLOCKER,
    "Packages that the driver needs are in no repository",
    "no repository that is switched on on this host has: {packages}.",
    "Make one known that has them: on EL that is the distribution's own or EPEL. On EL 7 "
    "driver_archives = True adds the archives of CentOS 7 and EPEL 7.",
)

TRANSACTION_REFUSED = Kind(
    "GF319",
    Severity.BLOCKER,
    "The package manager cannot carry out the transaction",
    "{manager} says: {problem}",
    "The transaction was not begun. No space left: make room (apt-get clean, yum clean all, old "
    "kernels). Conflicts: remove what conflicts or add what is missing by hand. Then run again.",
)

TRANSACTION_FAILED = Kind(
    "GF322",
    Severity.BLOCKER,
    "The package manager failed",
    "{manager} failed while packages were fetched or changed; what it said follows.",
    "Run gpu_node again: it finishes what was begun. No space left: make room first (apt-get "
    "clean, yum clean all, old kernels). Else correct what the package manager complains of.",
)

HEADERS_MISSING = Kind(
    "GF323",
    Severity.BLOCKER,
    "Headers of the running kernel are in no repository",
    "no repository that is switched on on this host has {packages}, so DKMS cannot build a module.",
    "A kernel that was replaced loses its headers: boot into the distribution's newest kernel, or "
    "switch on the repository that has them; then run again.",
)

LOGIN_FILE = Kind(
    "GF326",
    Severity.BLOCKER,
    "The file with logins cannot be used",
    "{path}, which {setting} names, cannot be used: {reason}.",
    "It has lines `machine HOST login USER password PASSWORD`; then chmod 600 {path}",
)

NOT_HELD = Kind(
    "GF327",
    Severity.BLOCKER,
    "Packages could not be held",
    "the packages are installed, and could not be held at their version; what the package manager "
    "said follows.",
    "Correct what it complains of (apt-mark hold, yum versionlock list), then run gpu_node again.",
)

NOT_RELEASED = Kind(
    "GF330",
    Severity.BLOCKER,
    "Packages stay held",
    "packages are held at their version by gpufleet, and could not be released; what the package "
    "manager said follows. No package was changed.",
    "Correct what it complains of (apt-mark unhold; yum versionlock delete, or by hand in "
    "versionlock.list), then run again: it goes on where it stopped.",
)
