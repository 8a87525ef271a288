"""Where the programs of a control plane come from: a folder of the user's, or built here."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpufleet_sandbox.cluster.build import Progress, kubernetes_servers, program
from gpufleet_sandbox.cluster.versions import versions
from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.paths import cache_dir
from gpufleet_sandbox.process import run

SERVERS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
BESIDE = ("etcd", "kwok")
ASSETS = "KUBEBUILDER_ASSETS"  # as controller-runtime's envtest calls it


@dataclass(frozen=True, slots=True)
class Choice:
    """A release, and the programs that the user has for it (name -> path)."""

    version: str  # 1.36.3
    given: Mapping[str, Path]

    def programs(self, progress: Progress) -> Mapping[str, Path]:
        """Every program that a control plane runs; those not given are fetched or built."""
        home = cache_dir() / "go"
        missing = [name for name in SERVERS if name not in self.given]
        built = kubernetes_servers(missing, self.version, home, progress) if missing else {}
        for name in BESIDE:
            if name not in self.given:
                built[name] = program(name, home, progress)
        return {**built, **self.given}


def choose(wanted: str, progress: Progress) -> Choice:
    """The release for a minor (1.36) or a release: that of KUBEBUILDER_ASSETS where it fits.

    setup-envtest puts only etcd, kube-apiserver and kubectl there; the rest is built at the API
    server's version. SandboxError where the minor is unknown, or the folder of no use.
    """
    if not os.environ.get(ASSETS):
        return Choice(versions().kubernetes.release(wanted), {})
    folder = Path(os.environ[ASSETS])
    version = _version(folder)
    if wanted.removeprefix("v") in (version, version.rpartition(".")[0]):
        given = {name: folder / name for name in (*SERVERS, *BESIDE) if (folder / name).exists()}
        progress(f"{', '.join(given)}: those in {folder}")
        return Choice(version, given)
    progress(f"{folder} holds Kubernetes {version}, so it is not used for {wanted}")
    return Choice(versions().kubernetes.release(wanted), {})


def helm(major: int, progress: Progress) -> Path:
    """helm 3 or helm 4, built from its module."""
    return program("helm" if major == 3 else f"helm{major}", cache_dir() / "go", progress)


def _version(folder: Path) -> str:
    """1.36.3, of the API server in a folder."""
    server = folder / "kube-apiserver"
    if not server.exists():
        raise SandboxError(kinds.BAD_ASSETS(folder=folder, reason="there is no kube-apiserver"))
    said = run([server, "--version"], check=False, timeout=30).stdout.strip()
    found = re.search(r"v(\d+\.\d+\.\d+)", said)
    if not found:
        reason = f"its kube-apiserver says {said!r} instead of a version"
        raise SandboxError(kinds.BAD_ASSETS(folder=folder, reason=reason))
    return found[1]
