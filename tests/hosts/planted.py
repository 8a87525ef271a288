"""Plant secrets in the configurations of container runtimes, then search for leaks of a run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

from gpufleet_sandbox import Host
from tests.planting.marks import Marks

# The record, all logs, and the journal without docker and containerd, which log their settings.
LOGS = (
    'cd /var/lib/gpufleet && grep -rlaF -e "$patterns" /var/log provenance.json runtimes;'
    ' journalctl --no-pager -a -o json | grep -vE \'"_SYSTEMD_UNIT":"(containerd|docker).service"\''
    ' | grep -qaF -e "$patterns" && echo journal'
)
OTHERS = (
    "find / -path /proc -prune -o -path /sys -prune -o -path /etc/sim -prune -o -type f"
    ' -size -4096k -newermt @{since} -readable -exec grep -laF -e "$patterns" {{}} +'
)
CONTROL = "/var/tmp/planted-control"
# Path -> text; <FORM> is replaced by the secret of that form.
RUNTIME_FILES = {
    "/etc/docker/daemon.json": """{"labels":
  ["api_token=<label of docker>", "feed=https://<feed>@h.example/"]}
""",
    "/etc/containerd/config.toml": """version = 2
[plugins."io.containerd.grpc.v1.cri".registry.configs."registry.example".auth]
  password = "<registry of containerd>"
[plugins."io.containerd.grpc.v1.cri".registry.headers]
  Authorization = ["Bearer <header of containerd>"] # <comment of containerd>
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
  endpoint = ["https://a.example/v2?sv=1&sig=<address with a signature>"]
# -----BEGIN RSA PRIVATE KEY-----
# <private key>
# -----END RSA PRIVATE KEY-----
""",
    "/etc/containerd/certs.d/r.example/hosts.toml": """server = "https://r.example"
[host."https://r.example".header]
authorization = "Basic <hosts.toml>"
""",
}
FORM = re.compile(r"<([a-z][^<>]*)>")


def plant(host: Host, marks: Marks) -> None:
    """Plant a secret of each form on a bare host; its docker and containerd run with them."""
    for path, text in RUNTIME_FILES.items():
        host.put(path, FORM.sub(lambda found: marks[found[1]], text), 0o600)
    host.run("systemctl daemon-reload && systemctl restart containerd docker")


def add_user(host: Host, marks: Marks, folder: Path) -> dict[str, Any]:
    """Add a user with a sudo password and a key with a passphrase; the host data to log in."""
    key = folder / "key"
    key.write_bytes(Path(host.state.key).read_bytes())
    key.chmod(0o600)
    phrase = marks["passphrase"]
    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-P", "", "-N", phrase, "-f", key],
        check=True,
        capture_output=True,
    )
    host.run("id asked || useradd -m -s /bin/bash asked")
    host.put("/etc/sudoers.d/asked", "asked ALL=(ALL) ALL\n", 0o440)
    host.run("chpasswd", stdin=f"asked:{marks['sudo']}\n")
    return {
        "ssh_user": "asked",
        "ssh_key": str(key),
        "ssh_key_password": phrase,
        "_sudo": True,
        "_sudo_password": marks["sudo"],
    }


def leaks(host: Host, patterns: dict[str, str], since: float) -> list[str]:
    """World-readable files written after `since`, logs and records that contain a secret.

    A control file proves that the search works.
    """
    host.put(CONTROL, next(iter(patterns)))
    find = f"patterns=$(cat); {OTHERS.format(since=int(since))} 2>/dev/null"
    texts = "\n".join(patterns)
    files = host.run(f"su nobody -s /bin/sh -c '{escaped(find)}'", stdin=texts, check=False).stdout
    logs = host.run(f"patterns=$(cat); {LOGS} 2>/dev/null", stdin=texts, check=False).stdout
    host.run(f"rm {CONTROL}")
    found = {*files.split("\n"), *logs.split("\n")} - {""}
    assert CONTROL in found, "the search misses its control file"
    return sorted(found - {CONTROL})


def escaped(text: str) -> str:
    return text.replace("'", "'\\''")
