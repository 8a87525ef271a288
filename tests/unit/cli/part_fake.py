"""A fake of the `gpufleet` process of a part: it takes the same command line, appends to `trace` in
the working directory, and writes a report. The name of a host selects how the process behaves.

`bad`: the host fails; `dies`: SIGKILL ends the process; `raises`: the exit status differs from the
one in the report; `mute`: no report; `slow`: runs until SIGTERM, then writes its report; `deaf`:
ignores SIGTERM.
"""

import json
import os
import re
import signal
import sys
from pathlib import Path

assert "GPUFLEET_JUNIT" not in os.environ  # each part would overwrite that file
words = sys.argv[1:]
limits = [words[place + 1] for place, word in enumerate(words) if word == "--limit"]
names = [re.sub(r"\[(.)\]", r"\1", limit) for limit in limits]
report = Path(words[words.index("--json") + 1])
with Path("trace").open("a") as trace:
    trace.write(f"{words[0]} {' '.join(names)} {' '.join(words[words.index('--') :])}\n")
print("at work\x1b[2J", flush=True)
if "dies" in names:
    os.kill(os.getpid(), signal.SIGKILL)
if "slow" in names or "deaf" in names:
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    Path("waits").write_text(str(os.getpid()))
    while not stopped or "deaf" in names:
        signal.pause()
status = "not reached" if "slow" in names else "converged"


def host(name: str) -> dict[str, object]:
    state = "failed" if name.startswith("bad") else status
    moved = {"before": None, "after": None}
    return {
        "kind": "node", "status": state, "changed": 0, "failed": state != "converged",
        "driver": moved, "toolkit": moved, "exporter": moved, "runtimes": {}, "releases": {},
        "needs": [], "findings": [], "accepted": [], "errors": [], "seconds": 0.1,
        "plan": {"steps": []},
    }  # fmt: skip


if "mute" in names:
    sys.exit("Error: no such thing")
code = 143 if "slow" in names else int(any(name.startswith("bad") for name in names))
hosts = {name: host(name) for name in names if name != "forgotten"}
head = {"schema": 1, "dry": words[0] == "plan", "completed": code != 143, "exit_status": code}
report.write_text(json.dumps({**head, "hosts": hosts}))
if "raises" in names:
    sys.exit("NameError: name 'x' is not defined")
sys.exit(code)
