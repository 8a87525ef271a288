"""A fake of pyinfra for workers: takes its command line, leaves traces in the working directory,
and writes a report. What a host does is in its name.

`dies`: SIGKILL, always or (`dies-once`) the first time; `bad`: fails; `usage`: a wrong option;
`raises`: ends with status 1 and a report that says nothing of it; `slow`: until SIGTERM, in order;
`mute`: until SIGTERM, without a report; `apart`: names its session; `deaf`: until SIGKILL;
`shows`: prints its arguments in `ps`, and those that pyinfra gets.
"""

import json
import os
import re
import signal
import sys
import threading
from pathlib import Path

from gevent import monkey

assert "GPUFLEET_JUNIT" not in os.environ  # which each would overwrite
words = sys.argv[1:]
limits = [words[place + 1] for place, word in enumerate(words) if word == "--limit"]
names = [re.sub(r"\[(.)\]", r"\1", limit) for limit in limits]  # one host each
has = " ".join(names).__contains__


def traces(name: str) -> str:
    return name.replace("/", "-")


runs = {name: len(list(Path().glob(f"{traces(name)}.*"))) for name in names}
for name, count in runs.items():
    Path(f"{traces(name)}.{count}").write_text(" ".join(names))
print("at work\x1b[2J", flush=True)
if has("apart"):
    print("of its own session" if os.getsid(0) == os.getpid() else "of the caller's session")
if has("shows"):
    print(Path("/proc/self/cmdline").read_text().replace("\0", " "))
    print(*words, flush=True)
if has("usage"):
    print("Error: No such option '--sudoo'", file=sys.stderr)
    sys.exit(2)
if has("dies") and not any(name == "dies-once" and runs[name] for name in names):
    os.kill(os.getpid(), signal.SIGKILL)
status = "converged"
if has("slow"):  # as pyinfra does
    monkey.patch_all()
if has("slow") or has("mute") or has("deaf"):
    stopped = threading.Event()
    if not has("mute"):
        signal.signal(signal.SIGTERM, lambda number, frame: stopped.set())
    Path("waits").write_text(str(os.getpid()))
    while not stopped.wait(60):
        pass
    while has("deaf"):
        signal.pause()
    Path("stopped").touch()
    status = "not reached"


def part(name: str) -> dict[str, object]:
    state = "failed" if name.startswith("bad") else status
    moved = {"before": None, "after": None}
    return {
        "kind": "node", "status": state, "changed": 0, "failed": state != "converged",
        "driver": moved, "toolkit": moved, "exporter": moved, "runtimes": {}, "releases": {},
        "needs": [], "findings": [], "errors": [], "plan": {"steps": []}, "seconds": 0.1,
    }  # fmt: skip


hosts = {name: part(name) for name in names}
dry = "--dry" in words or any(word.endswith("preflight.py") for word in words)
code = 143 if status == "not reached" else int(has("bad"))
head = {"schema": 1, "dry": dry, "completed": code != 143, "exit_status": code}
Path(os.environ["GPUFLEET_REPORT"]).write_text(json.dumps({**head, "hosts": hosts}))
if has("raises"):  # as a deploy of the user's: pyinfra's own status is not in the report
    sys.exit("NameError: name 'x' is not defined")
sys.exit(code)
