"""Steps of scripts/demo_upgrade.sh: python -m scripts.demo_upgrade VERB

+ requests ADDRESS...: send requests to the Service through every node until SIGTERM
+ driver-works: wait until the canary failed, then let its driver build succeed
+ note NAME: record the driver of each node and the steps of the training
+ report: print the results; exit status 1 if they differ from the expected ones

Results are in the folder GPUFLEET_DEMO. GPUFLEET_SANDBOX names the sandbox.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpufleet_sandbox import Sandbox
from gpufleet_sandbox.waiting import wait_until
from scripts.demo_upgrade_seen import Requests, Seen, entries_of, events, goes_on, judge, lines

PORT, PATH = 30080, "/cgi-bin/infer"
PATIENCE = 30.0  # seconds, of a user with one request
PAUSE = 0.25  # seconds between two requests through one node
LONGEST = 3600  # seconds, of a try


def folder() -> Path:
    return Path(os.environ["GPUFLEET_DEMO"])


def ask(address: str, requests: Requests, lock: threading.Lock, over: threading.Event) -> None:
    """One request after the other through one node."""
    while not over.wait(PAUSE):
        began = time.monotonic()
        connection = http.client.HTTPConnection(address, PORT, timeout=PATIENCE)
        try:
            connection.request("GET", PATH)
            response = connection.getresponse()
            status, body = response.status, response.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            with lock:
                requests.add_lost(f"{type(error).__name__}: {error}, through {address}")
        else:
            with lock:
                requests.add(status, body, time.monotonic() - began)
        finally:
            connection.close()


def count_requests(addresses: Sequence[str]) -> None:
    """Send requests until SIGTERM, then wait for pending ones."""
    requests, lock, over = Requests(), threading.Lock(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    threads = [
        threading.Thread(target=ask, args=(address, requests, lock, over)) for address in addresses
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (folder() / "requests.json").write_text(json.dumps(asdict(requests)))


def records() -> list[list[dict[str, Any]]]:
    """The entries about hosts in the log of each run, oldest first."""
    paths = sorted(folder().glob("gpufleet/upgrades/*.log"), key=lambda path: path.name)
    return [entries_of(path.read_text(errors="replace")) for path in paths]


def let_driver_work(box: Sandbox, canary: str) -> None:
    """Once its change failed, modules can be built on the canary, so also the earlier ones."""
    failed = wait_until(
        lambda: any("restoring" in events(each).get(canary, ()) for each in records()), LONGEST
    )
    if not failed:
        raise SystemExit(f"{canary} did not fail in {LONGEST} s")
    box.host(canary).set_fault("dkms-failure", False)


def note(box: Sandbox, name: str, canary: str) -> None:
    """Record the state once the training continues. It is read from the nodes, not from
    gpufleet."""
    wait_until(lambda: goes_on(*_training_of(box, canary)), PATIENCE * 10)
    drivers = {
        host.name: host.output("cat /sys/module/nvidia/version")
        for host in box.hosts.values()
        if host.kind.devices
    }
    history, steps = _training_of(box, canary)
    found = {"drivers": drivers, "steps": steps, "training": history}
    (folder() / f"{name}.json").write_text(json.dumps(found))


def _training_of(box: Sandbox, node: str) -> tuple[list[str], int]:
    """Starts and ends of its pods, and the steps in its checkpoint."""
    text = box.host(node).run("cd /var/lib/training && cat step history", check=False).stdout
    steps, *history = text.splitlines() or ["0"]
    return history, int(steps) if steps.isdecimal() else 0


def seen(canary: str, target: str) -> Seen:
    """The recorded results."""
    notes = {
        name: json.loads((folder() / f"{name}.json").read_text())
        for name in ("before", "between", "after")
    }
    data = json.loads((folder() / "requests.json").read_text())
    return Seen(
        **{name: found["drivers"] for name, found in notes.items()},
        requests=Requests(**data), training=notes["after"]["training"],
        steps={name: found["steps"] for name, found in notes.items()},
        tries=records(), canary=canary, target=target,
    )  # fmt: skip


def main(verb: str, *words: str) -> int:
    box = Sandbox(os.environ["GPUFLEET_SANDBOX"])
    canary, target = os.environ["CANARY"], os.environ["TARGET"]
    if verb == "requests":
        count_requests(words)
    elif verb == "driver-works":
        let_driver_work(box, canary)
    elif verb == "note":
        note(box, words[0], canary)
    elif verb == "report":
        found = seen(canary, target)
        problems = judge(found)
        print("\n".join([*lines(found), *(f"NOT AS PROMISED: {each}" for each in problems)]))
        return 1 if problems else 0
    else:
        raise SystemExit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
