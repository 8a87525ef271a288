"""Faults on demand. Each is a small object with `on(host)` and `off(host)`; both may be repeated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gpufleet.sandbox.errors import SandboxError, kinds
from gpufleet.sandbox.kinds import MIRROR
from gpufleet.sandbox.waiting import wait_until

if TYPE_CHECKING:
    from gpufleet.sandbox.host import Host


class Fault(Protocol):
    """Something that can go wrong. `where`: host, apt, rpm, gpu, efi or mirror."""

    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def where(self) -> str: ...
    def on(self, host: Host) -> None: ...
    def off(self, host: Host) -> None: ...


@dataclass(frozen=True, slots=True)
class ScriptFault:
    """A fault made and undone by shell commands on the host."""

    name: str
    summary: str
    make: str
    undo: str
    where: str = "host"

    def on(self, host: Host) -> None:
        host.run(self._filled(self.make, host))

    def off(self, host: Host) -> None:
        host.run(self._filled(self.undo, host))

    @staticmethod
    def _filled(script: str, host: Host) -> str:
        words = {
            "@KERNEL@": host.kind.kernel,
            "@NEXT_KERNEL@": host.kind.next_kernel,
            "@GATEWAY@": host.address.rsplit(".", 1)[0] + ".1",
        }
        for word, value in words.items():
            script = script.replace(word, value)
        return "set -eu\n" + script


@dataclass(frozen=True, slots=True)
class Frozen:
    """The machine hangs: connections are accepted by its kernel and never answered."""

    name: str = "frozen"
    summary: str = "the host hangs: connections open, nothing answers"
    where: str = "host"

    def on(self, host: Host) -> None:
        host.engine("pause", host.state.container)

    def off(self, host: Host) -> None:
        host.engine("unpause", host.state.container, check=False)


@dataclass(frozen=True, slots=True)
class Unplugged:
    """The host's network is down. It is switched from outside: the host cannot be asked then."""

    name: str = "unreachable"
    summary: str = "the host's network is down"
    where: str = "host"

    def on(self, host: Host) -> None:
        host.run("ip link set eth0 down")

    def off(self, host: Host) -> None:
        gateway = host.address.rsplit(".", 1)[0] + ".1"
        host.run(f"ip link set eth0 up && ip route replace default via {gateway}")
        wait_until(host.boot_id, 20)


@dataclass(frozen=True, slots=True)
class Served:
    """The mirror serves something else than it should; `detail` is an entry of serve.py's file."""

    name: str
    summary: str
    detail: Mapping[str, object]
    where: str = "mirror"

    def on(self, host: Host) -> None:
        (host.scenario / "faults.json").write_text(json.dumps(dict(self.detail)))

    def off(self, host: Host) -> None:
        (host.scenario / "faults.json").unlink(missing_ok=True)


# A process that holds the locks of apt and dpkg, as an unattended upgrade does.
_HOLD_APT = """
systemd-run -q --collect --unit=sim-lock --property=Type=notify --property=NotifyAccess=all python3 -c '
import fcntl, subprocess, signal
held = [open("/var/lib/dpkg/" + name, "w") for name in ("lock-frontend", "lock")]
for file in held:
    fcntl.lockf(file, fcntl.LOCK_EX)
subprocess.run(["systemd-notify", "--ready"])
signal.pause()
'
"""
_STOP_LOCK = "systemctl stop sim-lock 2>/dev/null || ! systemctl -q is-active sim-lock\n"
_HOLD_YUM = """
systemd-run -q --collect --unit=sim-lock sleep infinity
pid=$(systemctl show -P MainPID sim-lock)
mkdir -p /var/cache/dnf /var/lib/dnf
for file in /var/run/yum.pid /var/run/dnf.pid /var/cache/dnf/metadata_lock.pid \
    /var/cache/dnf/download_lock.pid /var/lib/dnf/rpmdb_lock.pid; do printf %s "$pid" > $file; done
"""
_FREE_YUM = (
    _STOP_LOCK
    + "rm -f /var/run/yum.pid /var/run/dnf.pid /var/cache/dnf/*_lock.pid /var/lib/dnf/*_lock.pid"
)
# /var becomes a small file system that is full; docker keeps its own below it.
_FILL_VAR = """
mountpoint -q /var && exit 0
mkdir -p /run/sim/var-full /run/sim/var-old
mount --rbind /var /run/sim/var-old
mount -t tmpfs -o size=4m tmpfs /run/sim/var-full
mkdir /run/sim/var-full/upper /run/sim/var-full/work
mount -t overlay overlay -o lowerdir=/var,upperdir=/run/sim/var-full/upper,workdir=/run/sim/var-full/work /var
for name in docker containerd; do
    if mountpoint -q /run/sim/var-old/lib/$name; then mount --bind /run/sim/var-old/lib/$name /var/lib/$name; fi
done
dd if=/dev/zero of=/var/ballast bs=64k 2>/dev/null || test -s /var/ballast
"""
_EMPTY_VAR = """
mountpoint -q /var || exit 0
umount -R -l /var
umount -l /run/sim/var-full
umount -R -l /run/sim/var-old
"""
_FILL_BOOT = """
mountpoint -q /boot && exit 0
size=$(du -sk /boot | cut -f1)
mkdir -p /run/sim/boot
cp -a /boot/. /run/sim/boot/
mount -t tmpfs -o size=$((size + 512))k tmpfs /boot
cp -a /run/sim/boot/. /boot/
rm -rf /run/sim/boot
dd if=/dev/zero of=/boot/ballast bs=64k 2>/dev/null || test -s /boot/ballast
"""
# As after a power cut: a journal file of dpkg, and a package that is unpacked only.
_INTERRUPT = """
mkdir -p /var/lib/dpkg/updates
dpkg-query -s psmisc | sed 's/^Status:.*/Status: install ok unpacked/' > /var/lib/dpkg/updates/0000
"""
_NOUVEAU_FOLDER = "/lib/modules/@KERNEL@/kernel/drivers/gpu/drm/nouveau"
_INITRAMFS = """
if command -v dracut > /dev/null; then dracut --force; else update-initramfs -u > /dev/null; fi
"""
_ADD_NOUVEAU = f"""
mkdir -p {_NOUVEAU_FOLDER}
cp /usr/lib/sim/kernels/extra/@KERNEL@/nouveau.ko {_NOUVEAU_FOLDER}/
depmod @KERNEL@
{_INITRAMFS}
echo 1 > /etc/sim/refcnt/nouveau
if [ ! -d /sys/module/nvidia ]; then modprobe nouveau; fi
"""
_DROP_NOUVEAU = f"""
rm -f /etc/sim/refcnt/nouveau
modprobe -r nouveau
if [ @KERNEL@ != 6.8.0-45-generic ]; then
    rm -rf {_NOUVEAU_FOLDER}
    depmod @KERNEL@
    {_INITRAMFS}
fi
"""
_EFIVAR = (
    "/run/sim/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
)


def _secure_boot(value: int) -> str:
    return f"""
printf {value} > /etc/sim/secure-boot
printf {value} > /run/sim/secure-boot
mkdir -p /run/sim/firmware/efi/efivars
printf '\\006\\000\\000\\000\\00{value}' > {_EFIVAR}
"""


_USE_GPU = """
test -e /dev/nvidia0 || { echo 'no /dev/nvidia0: load the driver first' >&2; exit 1; }
test -e /dev/nvidia-uvm || modprobe nvidia-uvm
systemd-run -q --collect --unit=gpu-job bash -c 'exec -a train sleep infinity 3<>/dev/nvidia0 4<>/dev/nvidia-uvm'
"""
_FIRST_GPU = r"""
slot=$(grep -l 0x10de /run/sim/pci/*/vendor | head -1 | xargs dirname)
test -n "$slot"
mkdir -p /run/sim/lost
mv "$slot" /run/sim/lost/
"""
_HIDE_HEADERS_APT = """
printf 'Package: linux-headers-*\\nPin: release *\\nPin-Priority: -1\\n' > /etc/apt/preferences.d/00-no-headers
rm -f /lib/modules/@KERNEL@/build
"""
_HIDE_HEADERS_RPM = """
grep -q '^exclude=kernel-devel' /etc/dnf/dnf.conf || echo 'exclude=kernel-devel*' >> /etc/dnf/dnf.conf
rm -f /lib/modules/@KERNEL@/build
"""

_ALL: tuple[Fault, ...] = (
    ScriptFault("apt-lock", "another process holds apt's locks", _HOLD_APT, _STOP_LOCK, "apt"),
    ScriptFault("yum-lock", "another process holds yum's locks", _HOLD_YUM, _FREE_YUM, "rpm"),
    ScriptFault("disk-full", "/var has no space left", _FILL_VAR, _EMPTY_VAR),
    ScriptFault("boot-full", "/boot has no space left", _FILL_BOOT, "umount -l /boot || ! mountpoint -q /boot"),
    ScriptFault(
        "dpkg-interrupted",
        "dpkg was interrupted, a package is unpacked only",
        _INTERRUPT,
        "dpkg --configure -a",
        "apt",
    ),
    ScriptFault(
        "dkms-failure",
        "building the driver's modules fails",
        "touch /etc/sim/fail/dkms",
        "rm -f /etc/sim/fail/dkms",
        "gpu",
    ),
    ScriptFault(
        "missing-headers",
        "the archive has no headers for the running kernel",
        _HIDE_HEADERS_APT,
        "rm -f /etc/apt/preferences.d/00-no-headers",
        "apt",
    ),
    ScriptFault(
        "missing-headers",
        "the archive has no headers for the running kernel",
        _HIDE_HEADERS_RPM,
        "sed -i '/^exclude=kernel-devel/d' /etc/dnf/dnf.conf",
        "rpm",
    ),
    ScriptFault(
        "nouveau", "nouveau is loaded and in use by the console", _ADD_NOUVEAU, _DROP_NOUVEAU, "gpu"
    ),
    ScriptFault("gpu-busy", "a process computes on GPU 0", _USE_GPU, "systemctl stop gpu-job", "gpu"),
    ScriptFault(
        "module-busy",
        "the module nvidia cannot be unloaded, and no process says why",
        "echo 1 > /etc/sim/refcnt/nvidia",
        "rm -f /etc/sim/refcnt/nvidia",
        "gpu",
    ),
    ScriptFault(
        "secure-boot",
        "Secure Boot is on: unsigned modules are refused",
        _secure_boot(1),
        _secure_boot(0),
        "efi",
    ),
    ScriptFault(
        "gpu-lost",
        "the first GPU has fallen off the bus",
        _FIRST_GPU,
        "if [ -d /run/sim/lost ]; then mv /run/sim/lost/* /run/sim/pci/; rmdir /run/sim/lost; fi",
        "gpu",
    ),
    Unplugged(),
    Frozen(),
    ScriptFault(
        "slow-reboot",
        "the next boots take 20 seconds longer",
        "echo 20 > /etc/sim/slow-boot",
        "rm -f /etc/sim/slow-boot",
    ),
    ScriptFault(
        "new-kernel",
        "the next boot is into a newer kernel",
        "/usr/lib/sim/install-kernel @NEXT_KERNEL@",
        "rm -rf /lib/modules/@NEXT_KERNEL@ /boot/*@NEXT_KERNEL@*",
    ),
    ScriptFault(
        "clock-skew",
        "the clock is a day behind",
        "echo -86400 > /etc/sim/clock-offset",
        "rm -f /etc/sim/clock-offset",
    ),
    ScriptFault(
        "down", "the mirror does not answer", "systemctl stop mirror", "systemctl start mirror", MIRROR
    ),
    Served("404", "every file of the mirror is missing", {"mode": "404"}),
    Served("slow", "every answer of the mirror takes 5 s longer", {"mode": "slow", "delay": 5}),
    Served("wrong-signature", "signed by a stranger's key", {"mode": "wrong-signature"}),
    Served("expired-key", "signed by a key that has expired", {"mode": "expired-key"}),
)


def available(host: Host) -> dict[str, Fault]:
    """The faults that this host can have, by name."""
    kind = host.kind
    if kind.name == MIRROR:
        allowed = {"mirror"}
    else:
        allowed = {"host", "rpm" if kind.is_rpm else "apt"} | ({"gpu"} if kind.devices else set())
        allowed |= {"efi"} if kind.efi else set()
    return {fault.name: fault for fault in _ALL if fault.where in allowed}


def find(name: str, host: Host) -> Fault:
    """The fault `name` for this host; GF605 when there is none."""
    known = available(host)
    if name not in known:
        raise SandboxError(
            kinds.UNKNOWN_FAULT(fault=name, host=host.name, known=", ".join(sorted(known)))
        )
    return known[name]


def catalogue() -> list[tuple[str, str, str]]:
    """(where, name, summary) of every fault, for `fault --list`."""
    return sorted({(fault.where, fault.name, fault.summary) for fault in _ALL})
