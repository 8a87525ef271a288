"""What `gpufleet verify` and the checks in tests/post_deploy report.

`host`, `expected` and `found` are filled in by the check; a remedy says what to do next.
"""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

_FOUND = "expected {expected}; found {found}"
_PROVISION = "run deploys/gpu_node.py for this host"
_COPIES = "copies from before each change: ls -d /var/lib/gpufleet/backup/*{path}"


def _check(code: str, title: str, remedy: str) -> Kind:
    return Kind(code, Severity.BLOCKER, title, _FOUND, remedy)


LIMIT = Kind(
    "GF702",
    Severity.BLOCKER,
    "--limit matches no host",
    "--limit {limit} matches no host or group of {path}. Hosts: {hosts}. Groups: {groups}",
    "correct the name",
)
NO_CHECK = Kind(
    "GF703",
    Severity.BLOCKER,
    "-k matches no check",
    "-k {expression} matches no check of these hosts",
    "docs/verify.md lists the checks; -k takes a part of a name, and `and`, `or`, `not` between "
    "several, as in -k 'driver and not held'",
)

REACHABLE = _check(
    "GF710",
    "Host not reachable",
    "try `ssh` to the host with the user, port and key of the inventory; correct what it reports",
)
PROVENANCE = _check("GF711", "No record of what was installed", _PROVISION)
AS_WANTED = _check(
    "GF712",
    "Not the driver that the inventory asks for",
    "where none is on record, run deploys/gpu_node.py for this host; else drain the node where it "
    "has work, then run deploys/gpu_node.py; or correct driver_branch and driver_version in the "
    "inventory",
)
PACKAGE_MANAGER = _check(
    "GF713",
    "Package manager left half way",
    "finish it: `dpkg --configure -a && apt-get -f install`, or `yum-complete-transaction` "
    "(`dnf history` shows the transaction), then " + _PROVISION,
)
NO_GPU = _check(
    "GF714",
    "Driver on a host without a GPU",
    "run deploys/remove.py for this host, or look for the GPU: `lspci -d 10de:`",
)

PACKAGES = _check("GF720", "Driver package at another version", _PROVISION)
STRAYS = _check(
    "GF721",
    "Driver packages of different versions",
    "remove the packages named, or install them at the driver's version: a mixed family ends in "
    "`API mismatch`",
)
HOLD = _check(
    "GF722",
    "Driver packages not held",
    _PROVISION + ", or hold them by hand: `apt-mark hold …`, `yum versionlock add …`",
)
UNATTENDED = _check(
    "GF723",
    "Unattended upgrades may move the driver",
    "add the packages to Unattended-Upgrade::Package-Blacklist, or " + _PROVISION,
)

MODULE_LOADED = _check(
    "GF730",
    "Loaded module is not the installed driver",
    "reload the modules (`modprobe -r nvidia_uvm nvidia_drm nvidia_modeset nvidia; modprobe "
    "nvidia`) or reboot; `modprobe nvidia` says why it cannot be loaded",
)
LIBRARY = _check(
    "GF731",
    "User-space library is not the loaded module's",
    "reload the modules or reboot; if the library is the odd one, " + _PROVISION,
)
MODULE_FILE = _check(
    "GF732",
    "Module on disk is not the installed driver",
    "build it again: `dkms install --force nvidia/VERSION -k $(uname -r)`, then `depmod`",
)
FLAVOUR = _check(
    "GF733",
    "Open instead of proprietary modules, or the reverse",
    "remove the other kernel module package, then " + _PROVISION,
)
DKMS = _check(
    "GF734",
    "DKMS has no module for the running kernel",
    "install the headers of the running kernel, then `dkms autoinstall`; the reason of a failure "
    "is in /var/lib/dkms/nvidia/VERSION/build/make.log",
)
NOUVEAU = _check(
    "GF735",
    "nouveau or nova is loaded",
    "reboot: it cannot be unloaded while it has the GPU; the blacklist keeps it away after that",
)
BLACKLIST = _check("GF736", "nouveau or nova not blacklisted", _PROVISION)
INITRAMFS = _check(
    "GF737",
    "Blacklist not in the initramfs",
    "rebuild it: `update-initramfs -u` or `dracut --force`",
)

DEVICE_NODES = _check(
    "GF740",
    "Device nodes missing",
    "run `nvidia-modprobe -c0 -u`; if that does not help, reboot",
)
GPU_COUNT = _check(
    "GF741",
    "Not every GPU works",
    "look for `NVRM: Xid` in `dmesg`; compare `nvidia-smi -L` with `lspci -d 10de:`; a GPU that "
    "fell off the bus comes back with a cold reboot, or needs service",
)

PERSISTENCE = _check(
    "GF750",
    "Persistence daemon not running or not enabled",
    "run `systemctl enable --now nvidia-persistenced`; `journalctl -u nvidia-persistenced` says "
    "why it stopped",
)
FABRIC_MANAGER = _check(
    "GF751",
    "Fabric manager not running where an NVSwitch is, or running where none is",
    "with an NVSwitch: `systemctl enable --now nvidia-fabricmanager`; without one: remove its "
    "package",
)
FABRIC_VERSION = _check(
    "GF752",
    "Fabric manager at another version than the driver",
    "install it at exactly the driver's version: " + _PROVISION,
)

TOOLKIT_PACKAGES = _check("GF760", "Container toolkit missing or at another version", _PROVISION)
TOOLKIT_BINARY = _check(
    "GF761",
    "nvidia-ctk is not the packaged one",
    "look for a second one with `which -a nvidia-ctk`; install the package again",
)
TOOLKIT_PROGRAMS = _check(
    "GF763",
    "A program of the container toolkit cannot be run",
    "install its package again: `dpkg -S` or `rpm -qf` with the path names it",
)
TOOLKIT_HOLD = _check("GF762", "Container toolkit packages not held", _PROVISION)

RUNTIME_UP = _check(
    "GF770",
    "Container runtime not running",
    "`systemctl status {unit}` and `journalctl -u {unit}` say why; then start it",
)
RUNTIME_VALID = _check(
    "GF771",
    "Configuration refused by the runtime",
    "correct {path}; " + _COPIES,
)
RUNTIME_OURS = _check("GF772", "nvidia runtime not in the runtime's configuration", _PROVISION)
RUNTIME_USER_KEYS = _check(
    "GF773",
    "The user's settings are gone from the runtime's configuration",
    "put the keys back into {path}; " + _COPIES,
)
RUNTIME_KNOWS = _check(
    "GF774",
    "The running runtime does not know the nvidia runtime",
    "restart it when its containers may stop: `systemctl restart {unit}`",
)

CDI = _check(
    "GF780",
    "CDI spec missing or stale",
    "run `nvidia-ctk cdi generate --output={path}`",
)
CONTAINER = _check(
    "GF781",
    "A container does not see the GPUs",
    "run the command by hand and read its error; `nvidia-ctk cdi list` and /etc/"
    "nvidia-container-runtime/config.toml are the next places to look",
)

EXPORTER_SERVICE = _check(
    "GF785",
    "Exporter not running or not enabled",
    "`systemctl status` and `journalctl -u` of the unit say why it stopped; " + _PROVISION,
)
EXPORTER_METRICS = _check(
    "GF786",
    "No metrics of a GPU",
    "restart the exporter (`systemctl restart nvidia-dcgm nvidia-dcgm-exporter`, or "
    "gpufleet-dcgm-exporter) and read its journal",
)
EXPORTER_VERSION = _check("GF787", "Exporter of another version", _PROVISION)
EXPORTER_LISTENS = _check(
    "GF788",
    "Exporter listens elsewhere than asked",
    "compare exporter_listen and exporter_port with `systemctl cat` of the unit, then "
    + _PROVISION,
)
EXPORTER_PACKAGES = _check(
    "GF789", "Exporter's packages at another version, or not held", _PROVISION
)
