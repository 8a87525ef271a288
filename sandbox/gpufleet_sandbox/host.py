"""One host of a sandbox: commands, files, reboots, faults."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpufleet_sandbox import faults
from gpufleet_sandbox.addresses import gateway
from gpufleet_sandbox.engine import Engine
from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.gpus import with_gpus
from gpufleet_sandbox.kinds import KINDS, HostKind
from gpufleet_sandbox.paths import state_dir
from gpufleet_sandbox.process import run
from gpufleet_sandbox.state import HostState
from gpufleet_sandbox.waiting import wait_until

BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
STARTED = "systemctl is-system-running --wait"


@dataclass(frozen=True, slots=True)
class Host:
    """A running host. `run` bypasses SSH, so that sshd logs only the product's sessions."""

    state: HostState
    sandbox: str
    subnet: str
    engine: Engine
    recreate: Callable[[HostState], None]

    @property
    def name(self) -> str:
        return self.state.name

    @property
    def kind(self) -> HostKind:
        return with_gpus(KINDS[self.state.kind], self.state.gpus)

    @property
    def address(self) -> str:
        return self.state.address

    @property
    def gateway(self) -> str:
        """The address of this machine in the host's network."""
        return gateway(self.subnet)

    @property
    def scenario(self) -> Path:
        """The folder mounted on the host at /etc/sim."""
        return state_dir(self.sandbox) / "hosts" / self.name

    @property
    def is_paused(self) -> bool:
        return bool(self.engine.inspect(self.state.container)["State"]["Status"] == "paused")

    def run(
        self, command: str, *, check: bool = True, timeout: float = 900, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command as root. With `check`, a non-zero status raises SandboxError."""
        return self.engine.shell(
            self.state.container, command, check=check, timeout=timeout, stdin=stdin
        )

    def output(self, command: str, *, timeout: float = 900) -> str:
        """The command's standard output, stripped."""
        return self.run(command, timeout=timeout).stdout.strip()

    def put(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file on the host; creates missing folders."""
        quoted = shlex.quote(path)
        command = f'mkdir -p "$(dirname {quoted})" && cat > {quoted} && chmod {mode:o} {quoted}'
        self.run(command, stdin=text)

    def get(self, path: str) -> str:
        """The text of a file on the host."""
        return self.run(f"cat {shlex.quote(path)}").stdout

    def ssh_command(self, *words: str) -> list[str]:
        """The ssh command line for this host, with its key and strict host key checking."""
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": "3",
            "IdentitiesOnly": "yes",
            "IdentityFile": self.state.key,
            "LogLevel": "ERROR",
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": self.state.known_hosts,
        }
        flags = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        return ["ssh", "-F", "/dev/null", *flags, f"{self.state.user}@{self.address}", *words]

    def ssh(
        self, command: str, *, check: bool = True, timeout: float = 900
    ) -> subprocess.CompletedProcess[str]:
        """Run a command over SSH, as the product does."""
        return run(self.ssh_command(command), check=check, timeout=timeout)

    def boot_id(self) -> str:
        """The boot ID over SSH; "" while the host does not respond."""
        done = run(self.ssh_command(BOOT_ID), check=False, timeout=10)
        return done.stdout.strip() if done.returncode == 0 else ""

    def wait_started(self, *, not_boot: str = "", seconds: float = 60) -> str:
        """Wait until SSH responds on a boot other than `not_boot`, and systemd has started.

        Returns the boot ID. SandboxError GF606 after `seconds`.
        """

        def new_boot() -> str:
            seen = self.boot_id()
            return "" if seen == not_boot else seen

        seen = wait_until(new_boot, seconds)
        if not seen:
            log = f"{self.engine.name} exec {self.state.container} journalctl -b"
            reason = self.engine("logs", "--tail", "5", self.state.container, check=False).stdout
            raise SandboxError(
                kinds.HOST_SILENT(
                    host=self.name, seconds=seconds, reason=reason.strip() or "no log", log=log
                )
            )
        self.run(STARTED, check=False, timeout=seconds)
        return seen

    def reboot(self, *, wait: bool = True, seconds: float = 90) -> None:
        """`systemctl reboot`; with `wait`, returns when the new boot responds over SSH."""
        before = self.output(BOOT_ID)
        self.run("systemctl reboot", check=False)
        if wait:
            self.wait_started(not_boot=before, seconds=seconds)

    def reset(self) -> None:
        """Reset to the bare image: recreate the container and its scenario."""
        self.recreate(self.state)

    def sessions(self) -> list[str]:
        """SSH sessions of this boot from sshd's log, oldest first."""
        log = self.output("journalctl -b -o cat -t sshd --grep 'Starting session' || test $? = 1")
        return [line for line in log.splitlines() if line.startswith("Starting session")]

    def set_fault(self, name: str, on: bool) -> None:
        """Switch a fault on or off; `gpufleet sandbox fault --list` lists them."""
        fault = faults.find(name, self)
        (fault.on if on else fault.off)(self)

    @contextmanager
    def fault(self, name: str) -> Iterator[None]:
        """The fault is on during the `with` block."""
        self.set_fault(name, True)
        try:
            yield
        finally:
            self.set_fault(name, False)
