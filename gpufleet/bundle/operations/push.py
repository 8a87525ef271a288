"""Pushes the images and charts of a bundle to a registry. Images keep their digests."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpufleet.bundle import findings
from gpufleet.bundle.compare import mirror_lines
from gpufleet.bundle.images import REGISTRY_FOLDER, parse_image
from gpufleet.bundle.models import CHARTS, BundleFile, BundleManifest, place_of
from gpufleet.bundle.operations.images import COPY, COPY_SECONDS, SKOPEO
from gpufleet.bundle.operations.serve import bundle_server
from gpufleet.core.findings import Finding
from gpufleet.core.process import Process
from gpufleet.core.quoting import quote_last_line
from gpufleet.core.visible import one_line
from gpufleet.helm.operations.cluster import helm_cache
from gpufleet.helm.operations.program import find_helm
from gpufleet.helm.strategy import helm_catalog
from gpufleet.kube.operations.access import ClusterProblem


@dataclass(frozen=True, slots=True)
class PushTarget:
    """`registry`: HOST[:PORT][/FOLDER]. `plain_http`: without TLS."""

    registry: str
    plain_http: bool

    @property
    def api(self) -> str:
        """The URL of its API, with the folder as a part of the names of images."""
        host, slash, folder = self.registry.partition("/")
        return f"{'http' if self.plain_http else 'https'}://{host}/{REGISTRY_FOLDER}{slash}{folder}"

    def key_lines(self, made: BundleManifest) -> Iterator[str]:
        """How an inventory uses the registry."""
        if any(file.sort == "chart" for file in made.files):
            yield f'"cluster_chart_repository": "oci://{one_line(self.registry)}/{CHARTS}",'
            if self.plain_http:
                yield '"cluster_chart_plain_http": True,'
        yield from mirror_lines(made, self.api)


def push_bundle(
    folder: Path, made: BundleManifest, target: PushTarget
) -> Iterator[tuple[BundleFile, Finding | None]]:
    """Push one image or chart after the other: each with None, or with the finding of its
    failure."""
    images = [file for file in made.files if file.sort == "image"]
    charts = [file for file in made.files if file.sort == "chart"]
    with _serving(folder, made) as source:
        helm = _find_helm(made, source) if charts else ""
        for file in images:
            yield file, _run(file, _image_command(file, source, target))
    for file in charts:
        words = [str(folder / file.path), f"oci://{target.registry}/{CHARTS}"]
        words += ["--plain-http"] * target.plain_http
        yield file, helm if isinstance(helm, Finding) else _run(file, [helm, "push", *words])


def _find_helm(made: BundleManifest, source: str) -> str | Finding:
    """The helm on PATH, or that of the bundle."""
    has = any(file.sort == "helm" for file in made.files)
    site = f"http://{source}/{place_of(helm_catalog().download.site)}" if has else ""
    try:
        return str(find_helm("", helm_catalog(), helm_cache(), site).path)
    except ClusterProblem as problem:
        return problem.findings[0]


@contextmanager
def _serving(folder: Path, made: BundleManifest) -> Iterator[str]:
    """HOST:PORT of a server that has the bundle, on this machine alone."""
    server = bundle_server(folder, made, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _image_command(file: BundleFile, source: str, target: PushTarget) -> list[str]:
    name = parse_image(file.name)
    path = f"{name.place}/{name.repository}"
    mark = "@" if ":" in name.reference else ":"
    tls = ["--dest-tls-verify=false"] * target.plain_http
    return [
        *(shutil.which(SKOPEO) or SKOPEO, *COPY, "--src-tls-verify=false", *tls),
        f"docker://{source}/{path}@{file.version}",
        f"docker://{target.registry}/{path}{mark}{name.reference}",
    ]


def _run(file: BundleFile, command: list[str]) -> Finding | None:
    try:
        done = Process(command, timeout=COPY_SECONDS, bound=True).wait()
    except OSError as error:
        return findings.NOT_PUSHED(what=file.name, why=f"{command[0]}: {error.strerror}")
    if done.ok:
        return None
    why = done.why or quote_last_line(done.stderr) or f"{command[0]} failed"
    return findings.NOT_PUSHED(what=file.name, why=why)
