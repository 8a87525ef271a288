"""The parsers of external text, with valid inputs and the errors for invalid ones."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from gpufleet.core.openpgp import OpenPgpError, parse_certificate
from gpufleet.core.own_catalog import OwnFileRefused
from gpufleet.facts.parse import parse_node_facts
from gpufleet.facts.sections import FactsError
from gpufleet.facts.sections.answers import parse_answers
from gpufleet.facts.sections.health import parse_health
from gpufleet.helm.chart import BrokenChart, parse_chart
from gpufleet.helm.chart_index import BrokenIndex, parse_index
from gpufleet.helm.output import error_line
from gpufleet.kube.answers import cluster_facts
from gpufleet.kube.helm_releases import UndecodableRelease, decode_release
from gpufleet.kube.kubeconfig import KubeconfigError
from gpufleet.packages.operations.logins import LoginFileError
from gpufleet.packages.trial import read_rpm_trial
from gpufleet.toolkit.config import containerd, crio, docker
from gpufleet.toolkit.config.desired import DesiredRuntime
from gpufleet.upgrade.operations.alert_gate import firing_alerts
from gpufleet.verify import parse as verify
from tests.fuzz import catalog, files
from tests.fuzz.files import text_of
from tests.fuzz.inputs import damaged, odd_tree

UNIT = Path(__file__).resolve().parents[1] / "unit"
FINDS = Path(__file__).with_name("finds")
ALERTS = (
    b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"alertname":"A"}}]}}'
)
DESIRED = DesiredRuntime(file="/etc/x", binary="nvidia-container-runtime", default=True)


@dataclass(frozen=True, slots=True)
class Parser:
    """`parse` accepts any bytes: it returns, or raises one of `refusals`.

    `variant` derives an input from valid ones, deterministic for a state of the generator.
    """

    name: str
    parse: Callable[[bytes], object]
    variant: Callable[[Random], bytes]
    refusals: tuple[type[Exception], ...] = ()

    def broken_by(self, data: bytes) -> Exception | None:
        """The error that `data` causes; None if it is accepted or rejected."""
        try:
            self.parse(data)
        except self.refusals:
            return None
        except Exception as error:  # noqa: BLE001 any error is a find
            return error
        return None


def of_texts(*good: bytes) -> Callable[[Random], bytes]:
    return lambda rng: damaged(rng.choice(good), good, rng)


def of_files(folder: Path, pattern: str) -> Callable[[Random], bytes]:
    """Variants of the files, which are read on first use."""

    @cache
    def good() -> tuple[bytes, ...]:
        return tuple(path.read_bytes() for path in sorted(folder.glob(pattern)))

    return lambda rng: damaged(rng.choice(good()), good(), rng)


@cache
def _answers() -> tuple[dict[str, Any], ...]:
    """Responses of the captured clusters, with at most two objects of a kind, to save time."""
    found = []
    for path in sorted((UNIT / "kube" / "captures").glob("cluster-*.answers.json")):
        answers = json.loads(path.read_text())
        for name, part in answers.items():
            if isinstance(part, list):
                answers[name] = part[:2]
        answers["workloads"] = {kind: items[:1] for kind, items in answers["workloads"].items()}
        found.append(answers)
    return tuple(found)


def _odd_answers(rng: Random) -> bytes:
    answers = rng.choice(_answers())
    part = rng.choice([name for name in answers if answers[name]])
    one_release = {"releases": answers["releases"][:1]}  # decoding takes most of the time
    return json.dumps({**answers, **one_release, part: odd_tree(answers[part], rng)}).encode()


def _parse_answers(data: bytes) -> object:
    """Facts, or the error, which is a finding at the boundary of a host."""
    try:
        return cluster_facts("fuzzed", json.loads(data))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        return type(error).__name__


@cache
def _secrets() -> tuple[dict[str, Any], ...]:
    return tuple(secret for answers in _answers() for secret in answers["releases"])


def _odd_secret(rng: Random) -> bytes:
    """A Secret of a Helm release with odd metadata, compression or content."""
    secret = rng.choice(_secrets())
    packed = base64.b64decode(base64.b64decode(secret["data"]["release"]))
    way = rng.random()
    if way < 0.3:  # the API server validates the other fields
        labels = {name: rng.choice(("", "x", "9" * 40, "-1")) for name in ("name", "version")}
        metadata = {**secret["metadata"], "labels": {**secret["metadata"]["labels"], **labels}}
        odd = {"data": odd_tree(secret["data"], rng), "metadata": metadata}
        return json.dumps({**secret, **odd}).encode()
    content = gzip.decompress(packed)
    if way < 0.5:
        packed = damaged(packed, [packed, content], rng)
    else:
        packed = gzip.compress(json.dumps(odd_tree(json.loads(content), rng)).encode(), 1)
    text = base64.b64encode(base64.b64encode(packed)).decode()
    return json.dumps({**secret, "data": {"release": text}}).encode()


def _chart_files(data: bytes) -> dict[str, bytes]:
    """The files of an archive in bytes: each begins with a line `==> PATH`."""
    parts = [part.partition(b"\n") for part in data.split(b"==> ") if part]
    return {path.decode("utf-8", "replace"): text for path, _, text in parts}


CHART = b"""==> Chart.yaml
name: stack
version: 1.2.3
appVersion: v0.9
kubeVersion: '>=1.25.0-0'
dependencies:
  - {name: nfd, alias: discovery, condition: 'discovery.install, other.path'}
==> values.yaml
discovery: {install: false, image: ours}
==> crds/own.yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: a.example}
spec: {group: example.com, names: {kind: Thing}}
==> templates/x.yaml
{{ .Values.discovery.image }}
==> charts/nfd/Chart.yaml
name: nfd
version: 0.19.0
==> charts/nfd/values.yaml
worker: {config: {}}
"""
INDEX = b"""apiVersion: v1
entries:
  other: [{version: 1.0.0, urls: [other-1.0.0.tgz]}]
  dcgm-exporter:
    - version: 4.8.2
      urls: [https://charts.example/dcgm-exporter-4.8.2.tgz]
      digest: 0000000000000000000000000000000000000000000000000000000000000000
    - {version: 2.6.10, urls: ["dcgm-exporter-2.6.10.tgz"]}
generated: "2026-01-01T00:00:00Z"
"""
DAEMON = (
    b'{"log-driver": "json-file", "runtimes": {"kata": {"path": "/x"}}, "features": {"cdi": true}}',
    b'{"default-runtime": "nvidia", "runtimes": {"nvidia": {"args": [], "path": "/x"}}}',
)
CONTAINERD = (
    b"""version = 2
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = true
""",
    b"""version = 3
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins.'io.containerd.cri.v1.runtime'.containerd]
default_runtime_name = 'runc'
""",
)
CRIO = (
    b"""[crio.runtime]
default_runtime = "runc"
[crio.runtime.runtimes.runc]
runtime_path = "/usr/bin/runc"
""",
)
TRIAL = (
    b"Resolving Dependencies\n--> Running transaction check\nError: Package: a-1 (repo)\n"
    b"           Requires: b >= 2\nError: Unable to find a match: nvidia-driver\n",
)
LISTS = (
    b"nvidia-driver-580\t580.95.05-1\tamd64\thold ok installed\n(none)\t1\n",
    b'version = "1.0"\n[[packages]]\nname = "nvidia-driver"\n[[packages.conditions]]\nkey = "evr"\n'
    b'comparator = "="\nvalue = "3:580.95.05-1.fc41"\n',
    b"nvidia/580.95.05, 5.15.0-122-generic, x86_64: installed\n",
    b"0100007F:24B8\n00000000000000000000000001000000:1F90\n",
    b"Id=docker.service\nActiveState=active\n\nId=x\n",
)


def _parse_lists(data: bytes) -> None:
    text = text_of(data)
    verify.dpkg_packages(text)
    verify.rpm_packages(text, verify.lock_lines(text))
    verify.parse_units(text)
    verify.dkms_states(text, "5.15.0-122-generic")
    verify.listening_addresses(text)


PARSERS: Sequence[Parser] = (
    Parser(
        "facts",
        lambda data: parse_node_facts(text_of(data).splitlines()),
        of_files(UNIT / "facts" / "captures", "*-handwritten.txt"),
        (FactsError,),
    ),
    Parser(
        "health",
        lambda data: parse_health(text_of(data).splitlines(), 0),
        of_files(UNIT / "facts" / "health", "*"),
    ),
    Parser(
        "answers",
        lambda data: parse_answers(text_of(data).splitlines()),
        of_files(UNIT / "facts" / "health", "*"),
    ),
    Parser("openpgp", parse_certificate, of_files(FINDS.with_name("keys"), "*"), (OpenPgpError,)),
    Parser("cluster-answers", _parse_answers, _odd_answers),
    Parser(
        "helm-release",
        lambda data: decode_release(json.loads(data)),
        _odd_secret,
        (UndecodableRelease,),
    ),
    Parser(
        "chart-index",
        lambda data: parse_index(data, "dcgm-exporter"),
        of_texts(INDEX),
        (BrokenIndex,),
    ),
    Parser("chart", lambda data: parse_chart(_chart_files(data)), of_texts(CHART), (BrokenChart,)),
    Parser(
        "daemon-json", lambda data: docker.merge_docker(text_of(data), DESIRED), of_texts(*DAEMON)
    ),
    Parser(
        "containerd-toml",
        lambda data: containerd.merge_containerd(text_of(data), DESIRED),
        of_texts(*CONTAINERD),
    ),
    Parser("crio-toml", lambda data: crio.merge_crio(text_of(data), DESIRED), of_texts(*CRIO)),
    Parser("yum-trial", lambda data: read_rpm_trial(text_of(data).splitlines()), of_texts(*TRIAL)),
    Parser(
        "helm-output",
        lambda data: error_line(text_of(data)),
        of_files(UNIT / "helm" / "helm_output", "*"),
    ),
    Parser("alerts", lambda data: firing_alerts(data, "A|B"), of_texts(ALERTS), (ValueError,)),
    Parser("verify-lists", _parse_lists, of_texts(*LISTS), (verify.UnreadableLocks,)),
    Parser("verify-sections", files.parse_sections, of_texts(*files.SECTIONS)),
    Parser("kubeconfig", files.parse_kubeconfig, of_texts(files.KUBECONFIG), (KubeconfigError,)),
    Parser("logins", files.parse_logins, of_texts(*files.LOGINS), (LoginFileError,)),
    Parser("apt-sources", files.parse_apt_sources, of_texts(*files.APT_SOURCES)),
    Parser("apt-trial", files.parse_apt_trial, of_texts(*files.APT_TRIAL)),
    Parser("catalog-sources", catalog.parse_catalog_source, of_texts(*catalog.SOURCES)),
    Parser("own-catalog", catalog.parse_own_branches, of_texts(*catalog.OWN), (OwnFileRefused,)),
    Parser("yum-files", files.parse_yum_file, of_texts(files.YUM_FILE)),
)
