"""Files and sections of hosts and users: valid inputs, and invariants of their parsers."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from gpufleet.facts.model import ManagedFile
from gpufleet.kube.kubeconfig import impersonation_headers, read_kubeconfig
from gpufleet.packages.apt_sources import read_entries
from gpufleet.packages.operations.logins import package_logins
from gpufleet.packages.trial import apt_refusal
from gpufleet.packages.yum_files import read_sections, switch_off, switched_off
from gpufleet.verify import probe
from tests.unit.hosts import bare_host, resolved_transaction


def text_of(data: bytes) -> str:
    """Decode a host's output as pyinfra does."""
    return data.decode("utf-8", "replace")


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="gpufleet-fuzz-")


def _file(name: str, data: bytes) -> str:
    """Write a file that only this user can read, one per process. Returns its path."""
    path = Path(_folder().name) / f"{name}-{os.getpid()}"
    path.touch(0o600)
    path.write_bytes(data)
    return str(path)


SECTIONS = (
    b"\n@@x begin dpkg\nbash\t5.2\tamd64\tinstall ok installed\n\n@@x end 0\n"
    b"\n@@x begin kernel\n6.1.0\n\n@@x end 0\n",
    b"\n@@x begin \n@@x begin a\n\n@@x end 99999999999\n",
)


def parse_sections(data: bytes) -> None:
    for name, output in probe.parse_sections(text_of(data), "@@x").items():
        assert "\n" not in name
        assert output.last


KUBECONFIG = b"""apiVersion: v1
current-context: a
clusters: [{name: a, cluster: {server: 'https://a.example', certificate-authority: ca.crt}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
users:
- name: a
  user: {token: x, as: ada, as-groups: [ops], exec: {command: ./login, args: [a]}}
"""


def parse_kubeconfig(data: bytes) -> None:
    found = read_kubeconfig(_file("kubeconfig", data))
    impersonation_headers(found.user)
    assert isinstance(found.context, str)


LOGINS = (
    b"machine mirror.example login ada password s3cret\n",
    b"# ours\nmachine a:8443\nlogin ada\naccount b\npassword 'x y'\ndefault login n password m\n",
    b"macdef init\nls\n\nmachine b login c password d",
)


def parse_logins(data: bytes) -> None:
    package_logins(_file("netrc", data))


APT_SOURCES = (
    b"deb [arch=amd64 signed-by=/k.gpg] https://a.example/debian trixie main non-free\n"
    b"# deb-src x y z\ndeb cdrom:[Debian 12]/ bookworm main\n",
    b"Types: deb\nURIs: https://a.example\n https://b.example\nSuites: trixie\nComponents: main\n"
    b"Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n\nTypes: deb-src\nEnabled: no\n",
)


def parse_apt_sources(data: bytes) -> None:
    for name in ("a.list", "a.sources"):
        file = ManagedFile(f"/etc/apt/sources.list.d/{name}", text_of(data))
        for entry in read_entries({file.path: file}):
            assert entry.url
            entry.option("Signed-By").split()


APT_TRIAL = (
    b"Reading package lists...\nInst nvidia-driver-580 (580.95.05-1 nvidia [amd64])\n"
    b"Remv libfoo [1.0]\nInst linux-image-6.1 (6.1 Debian:12 [amd64])\n",
    b"The following packages have unmet dependencies:\n nvidia-driver : Depends: dkms\n"
    b"E: Unable to locate package dkms\nE: Package 'a' has no installation candidate\n",
)
TRANSACTION = resolved_transaction(
    install=(("nvidia-driver-580", "580.95.05-1"),),
    prerequisites=("dkms",),
    patterns=("nvidia-.*",),
)


def parse_apt_trial(data: bytes) -> None:
    apt_refusal(text_of(data).splitlines(), TRANSACTION, "apt-get -s install")


YUM_FILE = b"""# CentOS
[base]
name=CentOS-$releasever - Base
mirrorlist=http://mirrorlist.example/?release=$releasever
#baseurl=http://mirror.example/centos/
gpgcheck=1
enabled = 1
[updates]
baseurl: http://a.example/
  http://b.example/, http://c.example/
"""


def parse_yum_file(data: bytes) -> None:
    """The disabled section is disabled, and no other section changes."""
    file = ManagedFile("/etc/yum.repos.d/a.repo", text_of(data))
    facts = bare_host(files={file.path: file})
    sections, unreadable = read_sections(facts)
    switched_off(facts)
    if unreadable:
        return
    off = switch_off(file.content or "", {"base"}, "for a test")
    after, _ = read_sections(bare_host(files={file.path: replace(file, content=off)}))
    others = [section for section in sections if section.name != "base"]
    assert [section for section in after if section.name != "base"] == others
