"""Sandbox hosts that become a kubeadm cluster: the hosts, `gpufleet cluster` on them, the API."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from checking import GPUFLEET
from killing import killed
from kubernetes import client, config

from gpufleet_sandbox import Sandbox
from gpufleet_sandbox.cluster.versions import versions
from gpufleet_sandbox.inventory import NEWEST
from gpufleet_sandbox.kubernetes.cluster import mark, placed, prepare

PHASES = ("Preflight", "Hosts", "Nodes", "GPU stack", "Checks")  # of a creation
MINORS = tuple(reversed(versions().kubernetes.kubeadm))  # the newest first
SECONDS = 600
LONGEST = 1800  # of one command
LEFT = ("/boot/initr", "/etc/machine-id")  # files that a removal changes


@contextmanager
def bare_hosts(
    name: str, hosts: Mapping[str, int], minor: str = NEWEST, gpus: str = ""
) -> Iterator[Sandbox]:
    """A sandbox with the given number of hosts per kind, and a mirror with the packages and images
    that kubeadm of a minor installs. `gpus`: of each node, in their order in the cluster."""
    box = Sandbox(name, progress=print, images="imitation")
    box.down()
    prepare(minor, print)
    try:
        for kind, copies in hosts.items():
            box.up([kind], copies=copies, gpus=placed(sum(hosts.values()), gpus))
        mark(box, minor)
        yield box
    finally:
        if os.environ.get("GPUFLEET_KEEP_SANDBOX") != "1":
            box.down()


class Api:
    """Clients of the API of a sandbox's cluster."""

    box: Sandbox

    @property
    def kubeconfig(self) -> Path:
        return self.box.folder / "kubeconfig"

    @property
    def core(self) -> Any:
        return client.CoreV1Api(self._client)

    @property
    def apps(self) -> Any:
        return client.AppsV1Api(self._client)

    @property
    def batch(self) -> Any:
        return client.BatchV1Api(self._client)

    @property
    def policy(self) -> Any:
        return client.PolicyV1Api(self._client)

    @property
    def _client(self) -> Any:
        return config.new_client_from_config(str(self.kubeconfig))


@dataclass(frozen=True)
class Site(Api):
    """The hosts, a folder for reports, their inventory and its environment."""

    box: Sandbox
    folder: Path
    inventory: Path
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def words(self, verb: str, *options: str) -> list[str]:
        """`gpufleet cluster VERB` on the inventory."""
        return [str(GPUFLEET), "cluster", verb, str(self.inventory), *options]

    def run(self, verb: str, *options: str) -> subprocess.CompletedProcess[str]:
        return self.command(self.words(verb, *options))

    def command(self, words: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        """Run something in the site's environment."""
        return subprocess.run(
            words, env={**self.environment, **more}, capture_output=True, text=True, check=False,
            timeout=LONGEST,
        )  # fmt: skip

    def kill(self, verb: str, seconds: float) -> None:
        """SIGKILL to a run some seconds after its start."""
        options = ["--ignore-gpu-pods"] if verb == "destroy" else []
        killed(self.words(verb, "--yes", *options), seconds, self.environment)

    def members(self) -> list[dict[str, Any]]:
        """The nodes that `gpufleet cluster status` reports."""
        done = self.run("status", "--json")
        found: list[dict[str, Any]] = json.loads(done.stdout)["nodes"] if done.stdout else []
        return found
