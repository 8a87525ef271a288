"""Findings of `gpufleet verify` and of the host checks in tests/post_deploy.

The check fills in `host`, `expected` and `found`. A remedy says what to do next.
"""

from __future__ import annotations

from gpufleet.core.findings import blocker
from gpufleet.verify.findings import check

LIMIT_MATCHES_NOTHING = blocker(
    "GF702",
    "--limit matches no host",
    "{wrong} of {path}. Hosts: {hosts}. Groups: {groups}.",
    "Correct the name{meant}",
    advice="Correct the name. Shell wildcards match several: --limit 'gpu-0*'.",
)
NO_CHECK = blocker(
    "GF703",
    "-k matches no check",
    "-k {expression} matches no check of these hosts.",
    "docs/reference/checks.md lists the checks. -k takes part of a name, and `and`, `or`, `not` "
    "between several, as in -k 'driver and not held'.",
)
OUTPUT_LIMIT = blocker(
    "GF704",
    "Command exceeded its limit",
    "The output of a command on the host was cut off: {why}.",
    "Find out what prints without an end or does not finish: `ssh` to the host with `true | head` "
    "shows what a login prints; then run the checks again with -k for each part. The other checks "
    "of this host were skipped where they need that answer.",
    "A command on the host exceeded the limit of output or time. The checks of other hosts "
    "continue.",
)
SETTINGS = check(
    "GF705",
    "Invalid settings in the inventory",
    "A host or cluster has settings that `gpufleet apply` rejects. Other checks read the same "
    "settings, so with a misspelt key they may check the wrong thing.",
    "Correct the inventory, then check again.",
)
NEEDS_ROOT = check(
    "GF706",
    "The checks need root",
    "The commands of the checks do not run as root on the host. Its other checks were skipped.",
    "Log in as root, or set _sudo = True (with _sudo_password, if sudo asks for one).",
)

REACHABLE = check(
    "GF710",
    "Host unreachable",
    "The host must accept the connection that the inventory describes, and run a command.",
    "Try `ssh` to the host with the user, port and key from the inventory; correct what it "
    "reports.",
)
RECORD_CHECK = check(
    "GF711",
    "No installation record",
    "A host with a driver must have gpufleet's record of what was installed, "
    "/var/lib/gpufleet/provenance.json, and it must be readable.",
    "Run `gpufleet apply` for this host.",
)
AS_WANTED = check(
    "GF712",
    "Installed driver does not match the inventory",
    "A driver must be recorded where the inventory enables one, or one of another source must be "
    "loaded, with the branch or version that the inventory sets.",
    "If there is no record, run `gpufleet apply` for this host. Otherwise run `gpufleet upgrade "
    "INVENTORY`, which drains it first; or correct driver_branch and driver_version in the "
    "inventory.",
)
PACKAGE_MANAGER = check(
    "GF713",
    "Interrupted package transaction",
    "No package may be partially installed, and no transaction incomplete.",
    "Finish it: `dpkg --configure -a && apt-get -f install`, or `yum-complete-transaction` (`dnf "
    "history` shows the transaction), then run `gpufleet apply` for this host.",
)
NO_GPU = check(
    "GF714",
    "Driver on a host without a GPU",
    "A host without an NVIDIA device on the PCI bus, and without a record of a driver, must have "
    "no driver.",
    "Run `gpufleet remove` for this host, or check the GPU: `lspci -d 10de:`.",
)

PACKAGES = check(
    "GF720",
    "Package at another version, or not held",
    "The packages of driver, fabric manager, container toolkit and exporter must be installed at "
    "the recorded version, as the inventory sets it, and held at it where they were (apt-mark "
    "hold, versionlock); an exporter's container must run the recorded image.",
    "Run `gpufleet apply` for this host. If the inventory sets another toolkit_version, run "
    "`gpufleet upgrade INVENTORY --toolkit`.",
)
STRAYS = check(
    "GF721",
    "Driver packages of different versions",
    "All installed packages of the driver family must have one version.",
    "Remove the packages listed, or install them at the driver's version: a mixed family fails "
    "with `API mismatch`.",
)
UNATTENDED = check(
    "GF723",
    "Unattended upgrades may change the driver",
    "If unattended upgrades are enabled, the driver packages must be excluded from them.",
    "Add the packages to Unattended-Upgrade::Package-Blacklist, or run `gpufleet apply` for "
    "this host.",
)

MODULE_LOADED = check(
    "GF730",
    "Loaded module or library does not match the installed driver",
    "The loaded nvidia module must have the version of the installed packages, and libnvidia-ml "
    "and nvidia-smi that of the loaded module.",
    "Run `gpufleet apply` for this host, which reloads the modules or reports what uses them; or "
    "reboot. `modprobe nvidia` reports why a module cannot be loaded.",
)
MODULE_FILE = check(
    "GF732",
    "Module on disk does not match the installed driver",
    "The nvidia module on disk for the running kernel must have the version of the installed "
    "packages.",
    "Rebuild it: `dkms install --force nvidia/VERSION -k $(uname -r)`, then `depmod`.",
)
FLAVOUR = check(
    "GF733",
    "Wrong kernel module flavor",
    "The loaded modules must be open or proprietary, as recorded.",
    "Remove the other kernel module package, then run `gpufleet apply` for this host.",
)
DKMS = check(
    "GF734",
    "No DKMS module for the running kernel",
    "If the driver uses DKMS, it must have built and installed the module for the running kernel.",
    "Install the headers of the running kernel, then run `dkms autoinstall`; "
    "/var/lib/dkms/nvidia/VERSION/build/make.log has the reason of a failure.",
)
NOUVEAU = check(
    "GF735",
    "nouveau or nova is loaded",
    "Neither nouveau nor nova may be loaded.",
    "Reboot: it cannot be unloaded while bound to the GPU; the blacklist prevents it from loading "
    "afterwards.",
)
BLACKLIST = check(
    "GF736",
    "nouveau or nova not blacklisted",
    "modprobe must be configured to load neither nouveau nor nova.",
    "Run `gpufleet apply` for this host.",
)
INITRAMFS = check(
    "GF737",
    "Blacklist missing from the initramfs",
    "The initramfs of the running kernel must contain the blacklist.",
    "Rebuild it: `update-initramfs -u` or `dracut --force`.",
)

DEVICE_NODES = check(
    "GF740",
    "Device nodes missing",
    "/dev/nvidiactl, /dev/nvidia-uvm and one /dev/nvidiaN per GPU must exist.",
    "Run `nvidia-smi -L && nvidia-modprobe -u -c 0`; if that does not help, reboot.",
)
GPU_COUNT = check(
    "GF741",
    "GPU missing or failed",
    "nvidia-smi must list every GPU on the PCI bus.",
    "Look for `NVRM: Xid` in `dmesg`; compare `nvidia-smi -L` with `lspci -d 10de:`. A GPU that "
    "fell off the bus requires a cold reboot, or service.",
)
GPU_LAYOUT = check(
    "GF722",
    "MIG layout not as recorded",
    "Each GPU must have the MIG instances of its layout, and no MIG mode that waits for a reset.",
    "Run `gpufleet apply` for this host while no program uses the GPU; reboot if the mode waits.",
)
GPU_LIMITS = check(
    "GF731",
    "GPU settings not as recorded",
    "Power limit, compute mode and ECC of each GPU must be those of the inventory's last run.",
    "Run `gpufleet apply` for this host. If they change again, look for a program that sets them.",
)

SERVICE_CHECK = check(
    "GF750",
    "Service not running or not enabled",
    "nvidia-persistenced, the exporter and each configured container runtime must be active, "
    "nvidia-fabricmanager on a host with an NVSwitch, and gpufleet-gpus on one with a GPU layout; "
    "all but runtimes must be enabled.",
    "`journalctl -u {unit}` has the reason it stopped. Run `systemctl --no-reload enable --now "
    "{unit}`, or `gpufleet apply` for this host if there is no such unit.",
)

EXPORTER_METRICS = check(
    "GF786",
    "No metrics for a GPU",
    "/metrics must report every GPU of the host.",
    "Restart the exporter (`systemctl restart nvidia-dcgm nvidia-dcgm-exporter`, or "
    "gpufleet-dcgm-exporter) and read its journal.",
)
EXPORTER_LISTENS = check(
    "GF788",
    "Exporter listens on another address",
    "The exporter must listen on exporter_listen and exporter_port, and nowhere else.",
    "Compare exporter_listen and exporter_port with `systemctl cat` of the unit, then run "
    "`gpufleet apply` for this host.",
)
