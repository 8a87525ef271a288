"""A mirror of the catalog's sources on this machine: laid out as the real ones, with a folder for
each host, and at first with nothing that the catalog lacks."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from gpufleet.catalog.models import CATALOG_SUBJECTS, LiveSource, load_addresses
from gpufleet.catalog.sources import list_keys, list_sources
from gpufleet.core.versions import version_tuple
from gpufleet.driver.choice import branches_of, package_set
from gpufleet.helm.chart_choice import load_charts
from gpufleet.node.catalog import load_catalog
from gpufleet.status.support import load_runtimes

SOURCES = list_sources(load_catalog(), load_charts(), load_addresses())
MakeKey = Callable[..., tuple[str, bytes]]  # see make_key of conftest.py
PLANNED = {  # minors that the catalog has for charts, but not for kubeadm
    minor
    for minor in load_charts().kubernetes
    if version_tuple(minor) > version_tuple(load_catalog().kubernetes.newest)
}
KEY_NAMES = list(list_keys(load_catalog()))
Packages = dict[str, set[str]]  # name -> versions
COMPRESSED = "repodata/0123-primary.xml.gz"
RPM = (
    '<package type="rpm"><name>{name}</name><version epoch="3" ver="{version}" rel="1"/></package>'
)


class LiveMirror:
    """Files of the mirror, below a folder. Each method writes one source again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.charts = {
            name: sorted({*chart.installed, *(pick.version for pick in chart.picks)})
            for name, chart in load_charts().charts.items()
        }
        self.kubernetes = {minor: str(end) for minor, end in load_charts().kubernetes.items()}
        (runtime,) = load_runtimes().runtimes
        self.containerd = {each.minor: str(each.end_of_life) for each in runtime.minors}
        self.drivers = {
            place.code: driver_packages(place.code) for place in load_catalog().distributions
        }
        toolkit = load_catalog().toolkit
        self.toolkit: Packages = {name: {toolkit.newest} for name in toolkit.packages.names}
        self.kinds = {"580": "lts branch", "595": "production branch"}
        self.keys: dict[str, bytes] = {}

    def write(self, subjects: Collection[str] = CATALOG_SUBJECTS) -> None:
        for source in SOURCES:
            if source.subject in subjects:
                self.write_source(source)

    def write_source(self, source: LiveSource) -> None:
        if source.kind in ("deb", "rpm"):
            packages = self.drivers[source.about] if source.subject == "drivers" else self.toolkit
            self.put_packages(source, packages)
        elif source.kind == "key":
            self.put(source.url, self.keys.get(source.about, b""))
        elif source.kind == "index":
            self.put(source.url, yaml.safe_dump(self._index(source.about)).encode())
        elif source.kind == "chart":
            content = {"name": source.about, "version": self.charts[source.about][-1]}
            self.put(source.url, yaml.safe_dump(content).encode())
        elif source.kind == "schedule":
            rows = [
                {"release": minor, "endOfLifeDate": end}
                for minor, end in self.kubernetes.items()
                if minor not in PLANNED
            ]
            self.put(source.url, yaml.safe_dump({"schedules": rows}).encode())
        elif source.kind == "releases":
            kinds = {
                branch: {"type": kind, "driver_info": []} for branch, kind in self.kinds.items()
            }
            self.put(source.url, json.dumps(kinds).encode())
        else:
            ends = self.containerd if source.about == "containerd" else self.kubernetes
            rows = [{"cycle": minor, "eol": end} for minor, end in ends.items()]
            self.put(source.url, json.dumps(rows).encode())

    def _index(self, repository: str) -> dict[str, object]:
        entries = {
            name: [
                {"version": version.partition(" ")[0], "urls": [f"{name}.tgz"],
                 "kubeVersion": version.partition(" ")[2]}
                for version in reversed(self.charts[name])
            ]
            for name, chart in load_charts().charts.items()
            if chart.repository == repository
        }  # fmt: skip
        return {"apiVersion": "v1", "entries": entries}

    def put_packages(self, source: LiveSource, packages: Packages) -> None:
        pairs = [(name, each) for name, versions in packages.items() for each in sorted(versions)]
        if source.kind == "deb":
            lines = [f"Package: {name}\nVersion: {version}-1ubuntu1\n" for name, version in pairs]
            self.put(source.url, "\n".join(lines).encode())
            return
        rows = [RPM.format(name=name, version=version) for name, version in pairs]
        primary = gzip.compress(f"<metadata>{''.join(rows)}</metadata>".encode())
        digest = hashlib.sha256(primary).hexdigest()
        repomd = (
            f'<repomd><data type="primary"><checksum type="sha256">{digest}</checksum>'
            f'<location href="{COMPRESSED}"/></data></repomd>'
        )
        self.put(source.url, repomd.encode())
        self.put(source.url.replace("repodata/repomd.xml", COMPRESSED), primary)

    def put(self, url: str, data: bytes) -> None:
        path = self.path(url)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def path(self, url: str) -> Path:
        parts = urlsplit(url)
        return self.root / parts.netloc / parts.path.lstrip("/")


def driver_packages(code: str) -> Packages:
    """The packages of every branch of a distribution, at the newest version of each."""
    catalog = load_catalog()
    place = catalog.distribution(code)
    assert place is not None
    found: Packages = {}
    for branch in catalog.branches.branches:
        packages = package_set(catalog, place, "nvidia", "dkms", branch.branch)
        if packages is None or not branch.newest or not branches_of(place).covers(branch.branch):
            continue
        for group in packages.groups:
            if group.covers(branch.branch) and group.modules in (None, *branch.modules):
                for name in group.names:
                    name = name.replace("{branch}", str(branch.branch))
                    found.setdefault(name, set()).add(branch.newest)
    return found


def source_of(about: str, subject: str = "", kind: str = "") -> LiveSource:
    return next(
        each for each in SOURCES
        if each.about == about and subject in ("", each.subject) and kind in ("", each.kind)
    )  # fmt: skip


@contextmanager
def served(root: Path, login: str = "") -> Iterator[str]:
    """Serve a folder on loopback. `login`: name and password that every request must have."""
    expected = f"Basic {base64.b64encode(login.encode()).decode()}" if login else ""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            if self.headers.get("Authorization", "") == expected:
                super().do_GET()
            else:
                self.send_error(401)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def change_everything(
    mirror: LiveMirror, make_key: MakeKey
) -> tuple[LiveMirror, list[tuple[str, str]]]:
    """Change the mirror; returns it, and code and a part of the message of each gap."""
    for code in ("ubuntu2404", "rhel9"):
        for versions in mirror.drivers[code].values():
            if "615.71.09" in versions:
                versions.add("625.10.01")
    for versions in mirror.drivers["ubuntu2204"].values():
        if "580.178.04" in versions:
            versions.add("580.200.01")
    for versions in mirror.drivers["rhel10"].values():
        if "615.71.09" in versions:
            versions.add("620.20.02")
    mirror.kinds["625"] = "production branch"
    renamed = mirror.drivers["debian13"]
    renamed["nvidia-persistence"] = {"595.91.07"}
    renamed["nvidia-persistenced"].remove("595.91.07")
    for versions in mirror.toolkit.values():
        versions.add("1.21.0")
    changed, mirror.keys["container toolkit"] = make_key("never")
    expiring, mirror.keys["Docker, debian"] = make_key("60d")
    mirror.charts["gpu-operator"].append("v27.1.0 >= 1.31.0-0")
    mirror.charts["dcgm-exporter"].remove("3.1.5")
    mirror.charts["node-problem-detector"].append("2.5.0")
    mirror.kubernetes |= {"1.38": "2028-02-28", "1.36": "2027-07-28"}
    mirror.containerd |= {"2.4": "2028-11-06", "2.2": "2026-12-31"}
    return [
        ("GF680", "driver branch 625 (625.10.01, in rhel9, ubuntu2404, a production branch by"),
        ("GF680", "Driver 580 580.200.01 is available in ubuntu2204"),
        (
            "GF680",
            "Driver 620 620.20.02 is available in rhel10; the newest in the catalog is not known",
        ),
        ("GF683", "nvidia-persistenced 595.91.07 is not in the repository of debian13; it has"),
        ("GF680", "Container toolkit 1.21.0"),
        ("GF685", f"The key of container toolkit is {changed}"),
        ("GF685", f"The key of Docker, debian is {expiring}"),
        ("GF686", f"The key {expiring} of Docker, debian expires on 20"),
        ("GF682", "gpu-operator v27.1.0 is available, for Kubernetes >= 1.31.0-0"),
        ("GF683", "dcgm-exporter 3.1.5"),
        ("GF682", "node-problem-detector 2.5.0"),
        ("GF682", "Kubernetes 1.38 is available"),
        ("GF680", "Kubernetes 1.38 (end of life 2028-02-28)"),
        ("GF680", "Kubernetes 1.36 is 2027-07-28; the catalog has 2027-06-28"),
        ("GF680", "containerd 2.4 (end of life 2028-11-06)"),
        ("GF680", "containerd 2.2 is 2026-12-31; the catalog has 2026-11-06"),
    ]
