"""Access to a cluster and its facts, and every failure, on real control planes."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gpufleet.core.findings import Finding
from gpufleet.kube.facts import ClusterFacts, ReleaseRef, ServerVersion
from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.gather import gather_cluster
from gpufleet_sandbox.cluster import Cluster
from tests.cluster.tiny import Site
from tests.cluster.users import Rules, kubeconfig_of

pytestmark = pytest.mark.claim(
    "API down, wrong context, expired certificate, missing permission: each is reported "
    "with what is missing.",
    level=5,
)

LOOPBACK = ip_address("127.0.0.1")
Edit = Callable[[dict[str, Any]], None]


@pytest.fixture
def variant(cluster: Cluster, tmp_path: Path) -> Callable[[Edit], KubeAccess]:
    """The cluster's kubeconfig with one change."""

    def make(edit: Edit) -> KubeAccess:
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        edit(config)
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return KubeAccess(str(path))

    return make


OURS = [ReleaseRef("monitoring", "dcgm-exporter")]


def problem(access: KubeAccess) -> Finding:
    """The one finding of a cluster that cannot be read."""
    with pytest.raises(ClusterProblem) as caught:
        gather_cluster(ClusterApi(access), releases=OURS)
    assert len(caught.value.findings) == 1
    return caught.value.findings[0]


def test_the_facts_of_a_cluster(place: Site) -> None:
    values = {"daemonset": {"enabled": True, "hostPort": 9400}, "service": {"nodePort": 30280}}
    assert place.apply(values).ok
    facts = place.open().facts
    assert f"v{place.cluster.version}" == facts.server.full
    nodes = {node.name: node for node in facts.nodes}
    assert nodes.keys() == {"gpu-1", "gpu-2", "gpu-3"}
    assert nodes["gpu-1"].allocatable == {"nvidia.com/gpu": 8}
    release = facts.release(place.namespace, "one")
    assert release
    assert [ref.kind for ref in release.workloads] == ["DaemonSet", "Deployment"]
    (daemon,) = [w for w in facts.workloads if 9400 in w.host_ports and w.release == release.ref]
    assert (daemon.kind, daemon.wanted, daemon.ready) == ("DaemonSet", 3, 3)
    assert (daemon.image_names, daemon.ports) == (("tiny-daemon",), (9400,))
    assert [p.service for p in facts.node_ports if p.port == 30280] == ["one"]
    assert facts.serves("widgets.tiny.example")


def test_a_lone_pod_is_found_and_pods_of_workloads_are_not(place: Site) -> None:
    assert place.apply({}).ok
    body = {
        "metadata": {"name": "alone"},
        "spec": {
            "hostNetwork": True,
            "containers": [
                {"name": "c", "image": "r/nvidia/dcgm-exporter:4.5.1-4.8.2-ubuntu22.04",
                 "ports": [{"containerPort": 9400}]}
            ],
        },
    }  # fmt: skip
    place.core.create_namespaced_pod(place.namespace, body)
    facts = place.open().facts
    ours = [work for work in facts.workloads if work.namespace == place.namespace]
    assert sorted(work.kind for work in ours) == ["Deployment", "Pod"]
    (pod,) = [work for work in ours if work.kind == "Pod"]
    assert (pod.name, pod.host_ports, pod.image_names) == ("alone", (9400,), ("dcgm-exporter",))


def test_gathering_facts_takes_less_than_a_second(cluster: Cluster) -> None:
    api = ClusterApi(KubeAccess(str(cluster.kubeconfig)))
    gather_cluster(api)
    began = time.monotonic()
    facts = gather_cluster(api)
    took = time.monotonic() - began
    assert isinstance(facts, ClusterFacts)
    assert took < 1.0, f"one pass took {took:.2f} s"


def test_a_server_that_is_too_old(cluster: Cluster) -> None:
    api = ClusterApi(KubeAccess(str(cluster.kubeconfig)))
    with pytest.raises(ClusterProblem) as caught:
        gather_cluster(api, ServerVersion(1, 99))
    (found,) = caught.value.findings
    assert found.code == "GF867"
    assert cluster.version in found.message


def test_no_kubeconfig(tmp_path: Path) -> None:
    found = problem(KubeAccess(str(tmp_path / "none")))
    assert found.code == "GF861"
    assert str(tmp_path / "none") in found.message


def test_an_unknown_context(cluster: Cluster) -> None:
    found = problem(KubeAccess(str(cluster.kubeconfig), "sandbx"))
    assert found.code == "GF861"
    assert "available: sandbox" in found.message
    assert "did you mean 'sandbox'?" in found.message


def test_a_server_that_is_down(variant: Callable[[Edit], KubeAccess]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{free.getsockname()[1]}"
    found = problem(variant(lambda config: config["clusters"][0]["cluster"].update(server=url)))
    assert found.code == "GF863"
    assert url in found.message
    assert "refused" in found.message


def test_a_token_that_is_not_valid(variant: Callable[[Edit], KubeAccess]) -> None:
    found = problem(variant(lambda config: config["users"][0]["user"].update(token="wrong")))
    assert found.code == "GF865"


def test_a_wrong_certificate_authority(
    variant: Callable[[Edit], KubeAccess], tmp_path: Path
) -> None:
    other, _ = certificate(tmp_path, days=1)
    authority = {"certificate-authority": str(other)}
    found = problem(variant(lambda config: config["clusters"][0]["cluster"].update(authority)))
    assert found.code == "GF864"
    assert "The API server's certificate" in found.message


def test_a_client_certificate_that_has_expired(
    variant: Callable[[Edit], KubeAccess], tmp_path: Path
) -> None:
    file, key = certificate(tmp_path, days=-1)

    def edit(config: dict[str, Any]) -> None:
        config["users"][0]["user"] = {"client-certificate": str(file), "client-key": str(key)}

    access = variant(edit)
    with pytest.raises(ClusterProblem) as caught:
        ClusterApi(access).get("/api/v1/nodes")
    (found,) = caught.value.findings
    assert found.code == "GF864"
    assert "The client certificate" in found.message
    assert "expired on" in found.message


def test_a_server_certificate_that_has_expired(
    variant: Callable[[Edit], KubeAccess], tmp_path: Path
) -> None:
    file, key = certificate(tmp_path, days=-1)
    with tls_server(file, key) as url:
        where = {"server": url, "certificate-authority": str(file)}
        found = problem(variant(lambda config: config["clusters"][0]["cluster"].update(where)))
    assert found.code == "GF864"
    assert "certificate has expired" in found.message


def certificate(folder: Path, *, days: int) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1 that expires that many days from now."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(LOOPBACK)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file, key_file = folder / "made.crt", folder / "made.key"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return file, key_file


@contextmanager
def tls_server(file: Path, key: Path) -> Iterator[str]:
    """A server that only presents its certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return  # closed: the test is over
                try:
                    context.wrap_socket(connection, server_side=True).close()
                except OSError:
                    connection.close()  # the client rejected the certificate

        threading.Thread(target=serve, daemon=True).start()
        yield f"https://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def as_user(place: Site, tmp_path: Path) -> Callable[[Rules], KubeAccess]:
    """A kubeconfig of a user with these cluster-wide rules only."""
    return lambda rules: KubeAccess(
        str(kubeconfig_of(place.cluster, place.namespace, rules, tmp_path / "limited"))
    )


READ = [
    {"apiGroups": [""], "resources": ["nodes", "namespaces", "services", "pods", "secrets"],
     "verbs": ["get", "list"]},
    {"apiGroups": ["apps"], "resources": ["daemonsets", "deployments", "statefulsets"],
     "verbs": ["get", "list"]},
    {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
     "verbs": ["get", "list"]},
    {"apiGroups": ["apiregistration.k8s.io"], "resources": ["apiservices"], "verbs": ["list"]},
]  # fmt: skip


def test_every_missing_permission_is_named(
    as_user: Callable[[Rules], KubeAccess],
) -> None:
    rules = [dict(READ[0], resources=["nodes", "namespaces", "services", "pods"]), READ[1]]
    found = problem(as_user(rules))
    assert found.code == "GF866"
    assert "list secrets in namespace monitoring" in found.message
    assert "list customresourcedefinitions.apiextensions.k8s.io anywhere" in found.message
    assert "nodes" not in found.message
    assert "kubectl auth can-i list" in found.remedy


def test_a_user_with_read_access_only(place: Site, as_user: Callable[[Rules], KubeAccess]) -> None:
    access = as_user(READ)
    place.cluster = Cluster.find(place.cluster.name) or place.cluster
    place.cluster.kubeconfig = Path(access.kubeconfig)
    run = place.apply({})
    assert run.plan.action == "install"
    assert not run.ok
    found = run.finding("GF866")
    assert "get configmaps in namespace" in found.message
