"""podman or docker: the few commands that the sandbox needs, the same for both.

Everything created here has the label LABEL; nothing else is stopped or removed.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gpufleet.core.identity import user_name
from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.process import checked, run

LABEL = "gpufleet.sandbox"
RUNC = ("--runtime", "runc")
RUNC_STATE = "/run/runc"  # podman's default for root
_GONE = re.compile("container does not exist|cannot exec in a stopped container")
_IDENTITIES: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Engine:
    """One container engine. `name` is podman or docker, `options` precede each command."""

    name: str
    options: tuple[str, ...] = ()

    def __call__(
        self,
        *words: str | Path,
        check: bool = True,
        timeout: float | None = None,
        stdin: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        return run([self.name, *self.options, *words], check=check, timeout=timeout, stdin=stdin)

    def shell(
        self, container: str, command: str, *, check: bool, timeout: float, stdin: str | None
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command in a container.

        With podman and runc it calls runc, because podman's part of an `exec` takes five times as
        long. A container that was recreated since has another identity.
        """
        words = ["exec"] if stdin is None else ["exec", "-i"]
        if self.options != RUNC:
            return self(
                *words, container, "sh", "-c", command, check=check, timeout=timeout, stdin=stdin
            )
        for known in (True, False):
            identity = self._identity(container, known=known)
            call = ["runc", "--root", RUNC_STATE, "exec", identity, "sh", "-c", command]
            done = run(call, check=False, timeout=timeout, stdin=stdin)
            if not (done.returncode == 255 and _GONE.search(done.stderr)):
                break
        return checked(call, done) if check else done

    def _identity(self, container: str, *, known: bool) -> str:
        """The container's ID for runc; `known`: the cached one is enough."""
        if container not in _IDENTITIES or not known:
            found = self("inspect", "-f", "{{.Id}}", container).stdout.strip()
            _IDENTITIES[container] = found
        return _IDENTITIES[container]

    def containers(self, sandbox: str) -> list[str]:
        """Names of the containers of one sandbox, running or not."""
        filters = ["--filter", f"label={LABEL}={sandbox}"]
        return self("ps", "-a", *filters, "--format", "{{.Names}}").stdout.split()

    def inspect(self, container: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = json.loads(self("inspect", container).stdout)
        return found[0]

    def is_running(self, container: str) -> bool:
        done = self("inspect", "-f", "{{.State.Status}}", container, check=False)
        return done.stdout.strip() == "running"

    def is_lost(self, container: str) -> bool:
        """True if the engine lists it as running although its first process is gone.

        This happens if a container is killed together with its monitor (podman's conmon), which
        records the exit. The engine can then only remove it, neither start nor stop it.
        """
        form = "{{.State.Status}} {{.State.Pid}} {{.Id}}"
        done = self("inspect", "-f", form, container, check=False)
        status, pid, identity = done.stdout.split() if done.returncode == 0 else ("", "", "")
        return status in ("running", "stopping") and identity not in _control_groups(pid)

    def has_image(self, image: str) -> bool:
        return self("image", "inspect", image, check=False).returncode == 0

    def network(self, name: str, sandbox: str) -> str:
        """Create the network if it is missing. Returns its subnet, as 10.89.1.0/24."""
        if self("network", "inspect", name, check=False).returncode != 0:
            words = ["--label", f"{LABEL}={sandbox}"]
            if self.name == "podman":
                words.append("--disable-dns")
            self("network", "create", *words, name)
        found = json.loads(self("network", "inspect", name).stdout)[0]
        if self.name == "docker":
            return str(found["IPAM"]["Config"][0]["Subnet"])
        return str(found["subnets"][0]["subnet"])

    def host_options(self) -> list[str]:
        """Options for a container with systemd that cannot load real modules.

        Not --privileged: it grants CAP_SYS_MODULE in spite of --cap-drop, and access to disks.
        """
        words = ["--cap-add=ALL", "--cap-drop=SYS_MODULE", "--device-cgroup-rule=a *:* rwm"]
        words += ["--security-opt", "seccomp=unconfined", "--security-opt", "label=disable"]
        words += ["--security-opt", "apparmor=unconfined", "--restart=always"]
        words += self.limit_options()
        if self.name == "podman":
            return [*words, "--security-opt", "unmask=ALL", "--systemd=always"]
        # If the cgroup namespace (v1) were private, all hosts would share /system.slice.
        words += ["--security-opt", "systempaths=unconfined", "--cgroupns=host"]
        words += ["-v", "/sys/fs/cgroup:/sys/fs/cgroup:rw", "--stop-signal=SIGRTMIN+3"]
        return [*words, "--tmpfs", "/run:exec", "--tmpfs", "/run/lock"]

    def limit_options(self) -> list[str]:
        """Limits within this machine's limits, which the engine's defaults may exceed."""
        allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        files = 65536 if allowed == resource.RLIM_INFINITY else min(allowed, 65536)
        return ["--ulimit", f"nofile={files}:{files}", "--ulimit", "nproc=4096:4096"]

    def remove(self, *containers: str) -> None:
        """Stop and remove containers with their anonymous volumes."""
        if containers:
            self("rm", "-f", "-v", *containers)


def _control_groups(pid: str) -> str:
    """The control groups of a process, "" without one; they contain the container's ID."""
    try:
        return Path("/proc", pid, "cgroup").read_text()
    except OSError:
        return ""


@cache
def find_engine() -> Engine:
    """podman if it works, else docker. SandboxError GF601 with the reasons if neither does."""
    if os.geteuid() != 0:
        raise SandboxError(kinds.NOT_ROOT(user=user_name()))
    reasons = []
    for name in ("podman", "docker"):
        if shutil.which(name) is None:
            reasons.append(f"{name} is not installed")
            continue
        engine = Engine(name, _runtime() if name == "podman" else ())
        done = engine("ps", "-q", check=False, timeout=60)
        if done.returncode == 0:
            return engine
        reasons.append(f"{name} failed: {done.stderr.strip().splitlines()[-1]}")
    raise SandboxError(kinds.NO_ENGINE(reason="; ".join(reasons)))


def _runtime() -> tuple[str, ...]:
    """runc on cgroup v1, where hosts with systemd do not start under crun."""
    unified = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    return () if unified or shutil.which("runc") is None else RUNC
