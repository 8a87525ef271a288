"""Runs `gpufleet upgrade` as users do, and reads its log without product code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from checking import GPUFLEET
from deploying import ROOT, deploy_command
from killing import killed

from gpufleet_sandbox import Host

LONGEST = 900  # seconds
PHASES = "prepared|draining|changing|restoring|done|reverted|passed|stuck"
EVENT = re.compile(rf"\S+ [\d:]+ (\S+): ((?:{PHASES})(?:, in service)?)(?:: .*)?")


@dataclass
class Fleet:
    """Hosts of one inventory, and the folder of their logs."""

    hosts: Sequence[Host]
    folder: Path
    data: Mapping[str, Any] = field(default_factory=dict)

    def words(self, verb: str, *options: str) -> list[str]:
        """The command, with the inventory."""
        return [str(GPUFLEET), "upgrade", verb, self.inventory(), *options]

    def inventory(self) -> str:
        """The path of the inventory, which is written."""
        return deploy_command("gpu_node", self.hosts, self.folder, data=self.data)[-2]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "XDG_STATE_HOME": str(self.folder)}

    def run(self, verb: str, *options: str) -> subprocess.CompletedProcess[str]:
        """`gpufleet upgrade VERB`."""
        return self.gpufleet(*self.words(verb, *options)[1:])

    def gpufleet(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`gpufleet`, with the logs of this fleet."""
        return subprocess.run(
            [str(GPUFLEET), *words], cwd=ROOT, env=self.environment, text=True, timeout=LONGEST,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip

    def killed(self, seconds: float, verb: str, *options: str, events: int = 0) -> bool:
        """Kill the run and all of its processes, some seconds after its start or after its log has
        a number of events."""

        def begun() -> bool:
            return len(self.events()) >= events

        return killed(self.words(verb, *options), seconds, self.environment, ROOT, begun)

    def interrupted(
        self, event: str, act: Callable[[subprocess.Popen[str]], object], *words: str
    ) -> subprocess.CompletedProcess[str]:
        """A run to which something is done at the first event of this kind, of any host."""
        command = self.words(*words)
        with subprocess.Popen(
            command, cwd=ROOT, env=self.environment, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as started:  # fmt: skip
            assert started.stdout
            lines = []
            acted = False
            for line in started.stdout:
                lines.append(line)
                if not acted and line.rstrip().endswith(f": {event}"):
                    acted = True
                    act(started)
        return subprocess.CompletedProcess(command, started.returncode, "".join(lines))

    def status(self) -> dict[str, Any]:
        done = self.run("status", "--json")
        assert done.returncode == 0, done.stdout
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def states(self) -> dict[str, str]:
        """The states of the hosts of the newest run. Other hosts keep the state of an earlier
        run."""
        hosts = self.status()["hosts"]
        newest = max((host["run"] or "" for host in hosts), default="")
        return {host["name"]: host["state"] for host in hosts if newest and host["run"] == newest}

    def reason(self, host: str) -> str:
        found: str = next(each["reason"] for each in self.status()["hosts"] if each["name"] == host)
        return found

    def events(self) -> list[tuple[str, str]]:
        """Host and phase of the newest run, in their order."""
        lines = self.log().splitlines()
        return [(found[1], found[2]) for found in map(EVENT.fullmatch, lines) if found]

    def log(self) -> str:
        """The log of the newest run."""
        logs = sorted(self.folder.glob("gpufleet/upgrades/*.log"), key=lambda path: path.name)
        return logs[-1].read_text(errors="replace") if logs else ""

    def at(self, host: str, event: str, act: Callable[[], object]) -> threading.Thread:
        """Start a thread that acts once the log has the event."""

        def wait() -> None:
            ends = time.monotonic() + LONGEST
            while time.monotonic() < ends:
                if (host, event) in self.events():
                    act()
                    return
                time.sleep(0.1)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        return thread


def break_unit(host: Host, unit: str) -> None:
    """Stop a service, which cannot be started again until it is repaired."""
    folder = f"/etc/systemd/system/{unit}.service.d"
    lines = "[Service]\\nExecStart=\\nExecStart=/bin/false\\n"
    host.run(f"mkdir -p {folder} && printf '{lines}' >{folder}/zz-broken.conf")
    host.run(f"systemctl daemon-reload && systemctl stop {unit}")


def repair_unit(host: Host, unit: str) -> None:
    """Take back what `break_unit` did."""
    host.run(f"rm -f /etc/systemd/system/{unit}.service.d/zz-broken.conf")
    host.run(f"systemctl daemon-reload && systemctl reset-failed {unit}; systemctl start {unit}")
