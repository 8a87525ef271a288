"""Calls of helm: words, never a shell; values on its standard input, so that neither a process list
nor a run that is killed shows them."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import yaml

from gpufleet.core.limits import HELM_SAYS, HELM_WARNS, MIB
from gpufleet.core.masks import without
from gpufleet.helm.chart_values import values_mark
from gpufleet.helm.operations.program import HelmProgram
from gpufleet.helm.plan import OWNER_LABEL, VALUES_LABEL
from gpufleet.helm.release import HelmStrategy, Release
from gpufleet.kube.kubeconfig import Kubeconfig, private_folder
from gpufleet.kube.operations.lease import HeldLease

LOOK_EVERY = 0.1  # seconds between two looks at a helm that runs
GRACE = 10  # seconds that helm has to end after SIGTERM, before SIGKILL
HELM_TALKS = (
    f"helm prints more than {HELM_SAYS // MIB} MiB, or errors of more than {HELM_WARNS // 1024} "
    "KiB, the most that is taken of it"
)
OVERRIDES = "HELM_KUBE"  # variables by which helm would go to another cluster or as another user

Tick = Callable[[float], None]  # called while helm runs, with the seconds it has run


@dataclass(frozen=True, slots=True)
class HelmResult:
    """What a helm said, its errors without the secrets among its values. `code`: its exit status;
    None where it did not end in time."""

    code: int | None
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        return self.code == 0


@dataclass(frozen=True, slots=True)
class Helm:
    """helm for one cluster. `controller`: what the label of our releases says. `lease`: the
    cluster's, which is kept as long as any helm lives."""

    program: HelmProgram
    kubeconfig: Kubeconfig = field(repr=False)
    controller: str
    lease: HeldLease | None = None

    def upgrade(
        self, release: Release, archive: Path, strategy: HelmStrategy, timeout: int, tick: Tick
    ) -> HelmResult:
        """Install or upgrade. Hooks are waited for, the rest is not: readiness is our own."""
        labels = (
            f"{OWNER_LABEL}={self.controller}",
            f"{VALUES_LABEL}={values_mark(release.values)}",
        )
        words = [
            *("upgrade", release.name, str(archive), "--install"),
            *("--namespace", release.namespace, "--values", "-", "--reset-values"),
            *("--skip-crds", "--labels", ",".join(labels)),
            *("--timeout", f"{timeout}s", *strategy.flags),
        ]
        limit = timeout + GRACE
        with self._cluster() as where:
            return self.run(
                words,
                timeout=limit,
                values=release.values,
                tick=tick,
                more={**where, **strategy.environment},
            )

    def rollback(
        self, release: Release, revision: int, strategy: HelmStrategy, timeout: int, tick: Tick
    ) -> HelmResult:
        """Take a release back to a revision; 0 is the one before."""
        words = [
            *("rollback", release.name, str(revision), "--namespace", release.namespace),
            *("--timeout", f"{timeout}s", *strategy.flags),
        ]
        with self._cluster() as where:
            return self.run(
                words,
                timeout=timeout + GRACE,
                tick=tick,
                more={**where, **strategy.environment},
            )

    @contextmanager
    def _cluster(self) -> Iterator[dict[str, str]]:
        """Variables by which helm reaches the cluster whose facts we have, and no other: a
        kubeconfig of that context alone, which this user alone can read while helm runs."""
        if self.lease:
            self.lease.confirm()
        path = private_folder() / f"kubeconfig-{secrets.token_hex(4)}"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            yaml.safe_dump(dict(self.kubeconfig.content), file)
        try:
            yield {"KUBECONFIG": str(path)}
        finally:
            path.unlink()

    def render(
        self, release: Release, archive: Path, server: str, apis: Sequence[str]
    ) -> HelmResult:
        """The objects of a release for a server of that version that serves these APIs; the
        cluster is not asked."""
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
    ) -> HelmResult:
        """Call helm and wait at most `timeout` seconds; `tick` is called meanwhile. `values`: what
        `--values -` reads. `more`: variables for this call; without a kubeconfig among them helm
        knows no cluster."""
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(OVERRIDES)
        }
        environment = {
            **inherited,
            "KUBECONFIG": os.devnull,
            "HELM_DRIVER": "secret",  # where ClusterFacts looks for releases
            **(more or {}),
        }
        command = [str(self.program.path), *words]
        with (
            tempfile.TemporaryFile() as given,  # without a name: nothing is left of it
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write(json.dumps(values or {}).encode())  # JSON: YAML without surprises
            given.seek(0)
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=given,
                stdout=out,
                stderr=err,
                pass_fds=[self.lease.lifeline] if self.lease else [],
            )
            try:
                code = _wait(process, timeout, tick, (out, err))
            finally:
                _end(process)
            if _is_too_long(out, HELM_SAYS) or _is_too_long(err, HELM_WARNS):
                return HelmResult(code or 1, "", f"Error: {HELM_TALKS}")
            return HelmResult(code, _text(out), without(_text(err), values or {}))


def _wait(
    process: subprocess.Popen[bytes], timeout: float, tick: Tick | None, said: Sequence[IO[bytes]]
) -> int | None:
    """The exit status; None where helm did not end in time, 1 where it says without an end."""
    began = time.monotonic()
    while True:
        try:
            return process.wait(LOOK_EVERY)
        except subprocess.TimeoutExpired:
            ran = time.monotonic() - began
        if any(map(_is_too_long, said, (HELM_SAYS, HELM_WARNS))):
            return 1
        if ran > timeout:
            return None
        if tick:
            tick(ran)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a helm that still runs; after SIGTERM it notes the release as failed, not as pending."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def _is_too_long(file: IO[bytes], most: int) -> bool:
    return os.fstat(file.fileno()).st_size > most
