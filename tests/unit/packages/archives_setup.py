"""Shared by the tests of archives."""

from __future__ import annotations

from gpufleet.facts.model import Kernel, ManagedFile, NodeFacts, OsRelease, PciDevice
from tests.unit.hosts import bare_host

STOCK = """\
# CentOS-Base.repo
[base]
name=CentOS-$releasever - Base
mirrorlist=http://mirrorlist.centos.org/?release=$releasever&arch=$basearch&repo=os&infra=$infra
#baseurl=http://mirror.centos.org/centos/$releasever/os/$basearch/
gpgcheck=1
gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-CentOS-7

[updates]
name=CentOS-$releasever - Updates
mirrorlist=http://mirrorlist.centos.org/?release=$releasever&arch=$basearch&repo=updates
gpgcheck=1
enabled = 1

[centosplus]
name=CentOS-$releasever - Plus
mirrorlist=http://mirrorlist.centos.org/?release=$releasever&arch=$basearch&repo=centosplus
enabled=0
"""


def el7(os: str = "centos", **repositories: str) -> NodeFacts:
    """A bare EL 7 host with these .repo files: name -> text."""
    paths = {
        f"/etc/yum.repos.d/{name.replace('_', '-')}.repo": t for name, t in repositories.items()
    }
    return bare_host(
        os=OsRelease(os, "7", ("rhel", "fedora")),
        package_manager="yum",
        kernel=Kernel("3.10.0-1160.119.1.el7.x86_64", "x86_64", headers=False),
        pci=(PciDevice("0000:3b:00.0", 0x1EB8, 0x030200),),
        files={path: ManagedFile(path, text, sha256="0") for path, text in paths.items()},
    )
