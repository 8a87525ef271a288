"""Choose the programs of a control plane: KUBEBUILDER_ASSETS, official binaries, or built."""

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
OTHER_PROGRAMS = ("etcd", "kwok")
ASSETS = "KUBEBUILDER_ASSETS"  # the variable of controller-runtime's envtest


@dataclass(frozen=True, slots=True)
class Choice:
    """A release, and the user's programs for it (name -> path)."""

    version: str  # 1.36.3
    given: Mapping[str, Path]

    def programs(self, progress: Progress) -> Mapping[str, Path]:
        """Every program of a control plane; fetches or builds those that are not given."""
        home = cache_dir() / "go"
        missing = [name for name in SERVERS if name not in self.given]
        built = kubernetes_servers(missing, self.version, home, progress) if missing else {}
        for name in OTHER_PROGRAMS:
            if name not in self.given:
                built[name] = program(name, home, progress)
        return {**built, **self.given}


def choose(wanted: str, progress: Progress) -> Choice:
    """The release for a minor (1.36) or a release; KUBEBUILDER_ASSETS if its version matches.

    setup-envtest installs only etcd, kube-apiserver and kubectl; the rest is built at the API
    server's version. SandboxError if the minor is unknown or the folder unusable.
    """
    if not os.environ.get(ASSETS):
        return Choice(versions().kubernetes.release(wanted), {})
    folder = Path(os.environ[ASSETS])
    version = _version(folder)
    if wanted.removeprefix("v") in (version, version.rpartition(".")[0]):
        names = (*SERVERS, *OTHER_PROGRAMS)
        given = {name: folder / name for name in names if (folder / name).exists()}
        progress(f"using {', '.join(given)} from {folder}")
        return Choice(version, given)
    progress(f"{folder} holds Kubernetes {version}, not used for {wanted}")
    return Choice(versions().kubernetes.release(wanted), {})


def helm(major: int, progress: Progress) -> Path:
    """helm 3 or helm 4, fetched or built."""
    return program("helm" if major == 3 else f"helm{major}", cache_dir() / "go", progress)


def _version(folder: Path) -> str:
    """1.36.3, of the API server in a folder."""
    server = folder / "kube-apiserver"
    if not server.exists():
        raise SandboxError(kinds.BAD_ASSETS(folder=folder, reason="it has no kube-apiserver"))
    printed = run([server, "--version"], check=False, timeout=30).stdout.strip()
    found = re.search(r"v(\d+\.\d+\.\d+)", printed)
    if not found:
        reason = f"its kube-apiserver prints {printed!r} instead of a version"
        raise SandboxError(kinds.BAD_ASSETS(folder=folder, reason=reason))
    return found[1]
