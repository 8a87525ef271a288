"""`gpufleet verify` in a separate process, with a fake `ssh` that answers as fake_host does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from fake_host import KERNEL, healthy

from tests import warm

ROOT = Path(__file__).parents[3]
SSH = """\
#!{python}
import json, re, sys
folder = {folder!r}
command, words = sys.argv[-1], sys.argv
with open(folder + "/log", "a") as log:
    log.write(words[-2] + "\\n")
if words[-2] == "down":
    print("ssh: connect to host down port 22: Connection refused", file=sys.stderr)
    sys.exit(255)
if words[-2] == "endless" or "without-end" in command:
    while True:
        sys.stdout.write("x" * 65536)
mark = re.search("mark=(@@[0-9a-f]+)", command)
if mark is None:
    print({kernel!r} if "uname" in command else "")
    sys.exit(0)
scripts = {{"docker_sections": "runtimes", "list_docker": "container"}}
script = next((name for part, name in scripts.items() if part in command), "host")
with open(folder + "/" + words[-2] + "." + script) as file:
    for name, (status, text) in json.load(file).items():
        print("\\n%s begin %s\\n%s\\n%s end %d" % (mark[1], name, text, mark[1], status))
"""


def fake_ssh(folder: Path) -> None:
    """Put a fake `ssh` into a folder, which `command` has first in PATH."""
    ssh = folder / "ssh"
    ssh.write_text(SSH.format(python=sys.executable, kernel=KERNEL, folder=str(folder)))
    ssh.chmod(0o755)


def answer(folder: Path, host: str, *, loaded: str) -> None:
    fake_host = healthy()
    fake_host.set("loaded-version", loaded)
    fake_host.set("provenance", json.dumps(fake_host.provenance))
    container = {"container": fake_host.containers["docker", ""]}
    scripts = {"host": fake_host.sections, "runtimes": fake_host.runtimes, "container": container}
    for script, sections in scripts.items():
        shape = {name: (output.status, output.text) for name, output in sections.items()}
        (folder / f"{host}.{script}").write_text(json.dumps(shape))


def command(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "120",
    }
    gpufleet = Path(sys.executable).with_name("gpufleet")
    return warm.completed([gpufleet, "verify", *arguments], folder, environment)
