"""A node with a fake kubelet: the test sets the status of its pods and serves their logs."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from kubernetes import client

from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.cluster.certificates import Authority
from gpufleet_sandbox.cluster.nodes import node
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.pods import SECONDS


def now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(slots=True)
class FakeNode:
    """A node that kwok ignores. `log`: the log of every container on it."""

    cluster: Cluster
    name: str
    log: str = ""

    @property
    def core(self) -> Any:
        return client.CoreV1Api(self.cluster.api)

    def ready(self) -> None:
        """Report the node ready, as a kubelet does periodically; wait until it accepts pods."""
        condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": now()}
        self.core.patch_node_status(self.name, {"status": {"conditions": [condition]}})
        assert wait_until(lambda: not self.core.read_node(self.name).spec.taints, SECONDS)

    def pod(self) -> Any:
        """Wait for the next pod that is scheduled to the node."""

        def found() -> Any:
            chosen = f"spec.nodeName={self.name},status.phase=Pending"
            pods = self.core.list_pod_for_all_namespaces(field_selector=chosen).items
            return pods[0] if pods else None

        pod = wait_until(found, SECONDS)
        assert pod, "no pod was scheduled to the node"
        return pod

    def set_status(self, pod: Any, phase: str, **state: Any) -> None:
        """Set the phase of a pod and the `state` of its container."""
        container = pod.spec.containers[0]
        status = {
            "name": container.name, "image": container.image, "imageID": "", "ready": False,
            "restartCount": 0, "state": state,
        }  # fmt: skip
        body = {"status": {"phase": phase, "containerStatuses": [status]}}
        self.core.patch_namespaced_pod_status(pod.metadata.name, pod.metadata.namespace, body)

    def start(self, pod: Any) -> str:
        """Set its container to running; the time of its start."""
        began = now()
        self.set_status(pod, "Running", running={"startedAt": began})
        return began

    def end(self, pod: Any, began: str, status: int = 0) -> None:
        """Set its container to terminated."""
        state = {"exitCode": status, "startedAt": began, "finishedAt": now()}
        self.set_status(pod, "Failed" if status else "Succeeded", terminated=state)


@contextmanager
def fake_node(
    cluster: Cluster, folder: Path, address: str, name: str, gpus: int, labels: dict[str, str]
) -> Iterator[FakeNode]:
    """A node at an address of this machine, where its kubelet serves the API server."""
    fake = FakeNode(cluster, name)
    server = _kubelet(fake, folder, address)
    body = node(name, gpus=gpus, version=cluster.version)
    own = {key: text for key, text in body["metadata"]["labels"].items() if key != "type"}
    body["metadata"]["labels"] = own | labels
    body["status"] |= {
        "addresses": [{"type": "InternalIP", "address": address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": server.server_port}},
    }
    fake.core.create_node(body)
    try:
        yield fake
    finally:
        fake.core.delete_node(name)
        server.shutdown()
        server.server_close()


def _kubelet(fake: FakeNode, folder: Path, address: str) -> ThreadingHTTPServer:
    """Serve the part of its API that tests need: /containerLogs/NAMESPACE/POD/CONTAINER."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path.startswith("/containerLogs/")
            body = fake.log.encode() if known else b""
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Do not log each request."""

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    certificate = Authority.of_cluster(fake.cluster.folder).server("kubelet", key, address)
    file = folder / "kubelet.pem"
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.TraditionalOpenSSL
    encoding = serialization.Encoding.PEM
    text = key.private_bytes(encoding, form, plain) + certificate.public_bytes(encoding)
    file.write_bytes(text)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server = ThreadingHTTPServer((address, 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, daemon=True).start()
    return server
