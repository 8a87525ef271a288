"""Runs helm without a shell and with values on standard input, so that neither a process list nor a
killed run exposes them."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from gpufleet.core.private_file import write_private
from gpufleet.core.process import GRACE, Process, ProgramResult, Tick
from gpufleet.helm.chart_values import values_mark
from gpufleet.helm.operations.program import HelmProgram
from gpufleet.helm.release import VALUES_LABEL, HelmStrategy, Release
from gpufleet.kube.facts import ReleaseRef
from gpufleet.kube.helm_releases import ADOPTED_LABEL, OWNER_LABEL
from gpufleet.kube.kubeconfig import Kubeconfig
from gpufleet.kube.operations.lease import Lease
from gpufleet.kube.private_folder import private_folder

OVERRIDES = "HELM_KUBE"  # variables that would select another cluster or user


@dataclass(frozen=True, slots=True)
class Helm:
    """helm for one cluster. `controller`: label value of our releases. `lease`: the cluster's
    lease, held while helm runs."""

    program: HelmProgram
    kubeconfig: Kubeconfig = field(repr=False)
    controller: str
    lease: Lease | None = None

    def upgrade(
        self,
        release: Release,
        archive: Path,
        strategy: HelmStrategy,
        timeout: int,
        *,
        adopted: bool = False,
    ) -> ProgramResult:
        """Install or upgrade. helm waits only for hooks; gpufleet waits for readiness. `adopted`:
        gpufleet adopted the release; helm copies the label to later revisions."""
        labels = f"{OWNER_LABEL}={self.controller},{VALUES_LABEL}={values_mark(release.values)}"
        if adopted:
            labels += f",{ADOPTED_LABEL}=true"
        words = [
            *("upgrade", release.name, str(archive), "--install"),
            *("--namespace", release.namespace, "--values", "-", "--reset-values"),
            *("--skip-crds", "--labels", labels),
            *("--timeout", f"{timeout}s", *strategy.flags),
        ]
        return self._in_cluster(words, strategy, timeout, release.values)

    def rollback(
        self, release: Release, revision: int, strategy: HelmStrategy, timeout: int
    ) -> ProgramResult:
        """Roll a release back to a revision. 0 is the previous one."""
        words = [
            *("rollback", release.name, str(revision), "--namespace", release.namespace),
            *("--timeout", f"{timeout}s", *strategy.flags),
        ]
        return self._in_cluster(words, strategy, timeout, {})

    def uninstall(
        self, ref: ReleaseRef, strategy: HelmStrategy, timeout: int, *, debug: bool = False
    ) -> ProgramResult:
        """Uninstall a release, and wait until its objects are deleted. Only with `debug`, helm
        names the object that it could not delete."""
        # helm 4.1.0 and 4.2.1 else wait for objects that are gone: helm/helm#31766, helm/helm#32214
        wait = "--wait=legacy" if self.program.version.major >= 4 else "--wait"
        words = [
            *("uninstall", ref.name, "--namespace", ref.namespace),
            *("--cascade", "foreground", wait, "--timeout", f"{timeout}s"),
            *(["--debug"] if debug else []),
        ]
        return self._in_cluster(words, strategy, timeout, {})

    def _in_cluster(
        self, words: Sequence[str], strategy: HelmStrategy, timeout: int, values: Mapping[str, Any]
    ) -> ProgramResult:
        """Run helm against the cluster of our facts, with a temporary kubeconfig of only that
        context, which only this user can read."""
        if self.lease:
            self.lease.confirm()
        path = private_folder() / f"kubeconfig-{secrets.token_hex(4)}"
        write_private(path, yaml.safe_dump(dict(self.kubeconfig.content)))
        more = {"KUBECONFIG": str(path), **strategy.environment}
        try:
            return self.run(words, timeout=timeout + GRACE, values=values, more=more)
        finally:
            path.unlink()

    def render(
        self, release: Release, archive: Path, server: str, apis: Sequence[str]
    ) -> ProgramResult:
        """Render the objects of a release for a server of that version with these APIs, without
        access to the cluster."""
        words = [
            *("template", release.name, str(archive), "--namespace", release.namespace),
            *("--values", "-", "--kube-version", server, "--skip-crds"),
            *(word for api in apis for word in ("--api-versions", api)),
        ]
        return self.run(words, timeout=120, values=release.values)

    def run(
        self,
        words: Sequence[str],
        *,
        timeout: float,
        values: Mapping[str, Any] | None = None,
        tick: Tick | None = None,
        more: Mapping[str, str] | None = None,
    ) -> ProgramResult:
        """Run helm for at most `timeout` seconds, calling `tick` from time to time. `values`: input
        of `--values -`. `more`: variables for this call; without a kubeconfig in them, helm has no
        cluster."""
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(OVERRIDES)
        }
        environment = {
            **inherited,
            "KUBECONFIG": os.devnull,
            "HELM_DRIVER": "secret",  # ClusterFacts reads releases there
            **(more or {}),
        }
        result = Process(
            [str(self.program.path), *words],
            timeout=timeout,
            environment=environment,
            given=json.dumps(values or {}).encode(),  # JSON: YAML without surprises
            bound=True,
        ).wait(tick)
        if result.why and result.code is not None:
            return replace(result, stdout="", stderr=f"Error: helm was ended: {result.why}")
        return result
