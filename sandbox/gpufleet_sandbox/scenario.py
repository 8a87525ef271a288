"""The scenario folder of a host (/etc/sim there): its hardware, firmware, keys and files."""

from __future__ import annotations

import shutil
from pathlib import Path

from gpufleet_sandbox.kinds import MIRROR, HostKind
from gpufleet_sandbox.machine.pci import write_device

MIRROR_UNIT = """\
[Unit]
Description=Package mirror of the sandbox
After=network.target

[Service]
ExecStart=/usr/bin/python3 /srv/serve.py /srv/mirror/tree --also /srv/mirror/kubernetes \\
    --port 80 --faults /etc/sim/faults.json
Restart=on-failure

[Install]
WantedBy=multi-user.target
"""
KUBELET = """\
[Service]
ExecStartPre=/bin/ln -sf /dev/null /dev/kmsg
# first on systemd's PATH: containers of pods see the GPUs
ExecStartPre=/bin/ln -sf /usr/lib/sim/runc /usr/local/sbin/runc
ExecStopPost=/bin/rm -f /usr/local/sbin/runc
"""
OLD_GROUPS = """\
Environment=KUBELET_EXTRA_ARGS=--cgroup-root=/node-%H
ExecStartPre=/bin/sh -c 'for f in /sys/fs/cgroup/*/tasks; do mkdir -p $${f%%/*}/node-%H; done'
"""
ARCHIVE_KEY = "/usr/share/keyrings/distribution-archive-keyring"


def write_scenario(folder: Path, kind: HostKind, mirror_home: Path | None) -> None:
    """Write the scenario of a fresh host of this kind, without keys.

    `mirror_home`: the folder of the mirror (with archive-key.gpg and archive-key.asc). None if the
    sandbox has no mirror; the host then has no package sources.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("fail", "refcnt", "pci", "root"):
        (folder / name).mkdir(parents=True)
    for device in kind.devices:
        write_device(folder / "pci", device)
    if kind.devices:
        _kubelet(folder / "root")
    if kind.efi:
        (folder / "secure-boot").write_text("0")
    if kind.name == MIRROR:
        _mirror_unit(folder / "root")
    elif mirror_home is not None and kind.is_rpm:
        _yum_source(folder / "root", kind, mirror_home)
    elif mirror_home is not None:
        _apt_source(folder / "root", kind, mirror_home)


def _put(root: Path, path: str, text: str) -> None:
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def _mirror_unit(root: Path) -> None:
    _put(root, "/etc/systemd/system/mirror.service", MIRROR_UNIT)
    wants = root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir()
    (wants / "mirror.service").symlink_to("../mirror.service")


def _kubelet(root: Path) -> None:
    """Give a kubelet its needs in a container: no kernel messages, and separate control groups,
    which podman does not give hosts on version 1 in every hierarchy."""
    unified = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    text = KUBELET if unified else KUBELET + OLD_GROUPS
    _put(root, "/etc/systemd/system/kubelet.service.d/sandbox.conf", text)


def _apt_source(root: Path, kind: HostKind, mirror_home: Path) -> None:
    key = f"{ARCHIVE_KEY}.gpg"
    (root / key.lstrip("/")).parent.mkdir(parents=True)
    shutil.copy(mirror_home / "archive-key.gpg", root / key.lstrip("/"))
    line = f"deb [signed-by={key}] http://{MIRROR}/archive/{kind.archive}/ ./\n"
    _put(root, "/etc/apt/sources.list", line)


def _yum_source(root: Path, kind: HostKind, mirror_home: Path) -> None:
    key = "/etc/pki/rpm-gpg/RPM-GPG-KEY-CentOS-7"
    (root / key.lstrip("/")).parent.mkdir(parents=True)
    shutil.copy(mirror_home / "archive-key.asc", root / key.lstrip("/"))
    _put(
        root,
        "/etc/yum.repos.d/CentOS-Base.repo",
        f"[base]\nname=CentOS-7 - Base\nbaseurl=http://{MIRROR}/archive/{kind.archive}/\n"
        f"gpgcheck=1\nenabled=1\ngpgkey=file://{key}\n",
    )
