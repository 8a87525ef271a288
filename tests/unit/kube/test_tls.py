"""TLS to servers whose certificates Python 3.13 rejects and kubectl, helm and curl accept."""

from __future__ import annotations

import base64
import ssl
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import urllib3
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from urllib3.util.ssl_ import create_urllib3_context

from gpufleet.core import tls
from gpufleet.core.limits import Limit
from gpufleet.kube.kubeconfig import Kubeconfig, KubeconfigError, open_client
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.packages.operations.download import download_url

LOOPBACK = ip_address("127.0.0.1")


def strict_context(**how: Any) -> ssl.SSLContext:
    """urllib3's context on Python 3.13 and newer."""
    context = create_urllib3_context(**how)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


class _Api(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        named = isinstance(self.connection, ssl.SSLSocket) and self.connection.getpeercert()
        self.wfile.write(b'{"named": true}' if named else b'{"named": false}')

    def log_message(self, *words: object) -> None:
        pass


def certificate(
    name: str, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey, *, ca: bool
) -> bytes:
    """A certificate for 127.0.0.1 without key identifiers, as EKS makes them, with its key."""
    common = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(common)
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(LOOPBACK)]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, form, plain)
    return made.public_bytes(serialization.Encoding.PEM) + private


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """The CA. Next to it is `leaf.pem`, which it signed."""
    own, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    file = tmp_path / "authority.pem"
    file.write_bytes(certificate("kubernetes", own, own, ca=True))
    (tmp_path / "leaf.pem").write_bytes(certificate("server", other, own, ca=False))
    return file


@pytest.fixture
def url(authority: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server of that CA, which asks for a client's certificate. Contexts as on Python 3.13."""
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tls, "create_urllib3_context", strict_context)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.with_name("leaf.pem"))
    context.load_verify_locations(authority)
    context.verify_mode = ssl.CERT_OPTIONAL
    server = HTTPServer(("127.0.0.1", 0), _Api)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def kubeconfig(url: str, authority: bytes, **user: str) -> Kubeconfig:
    data = base64.b64encode(authority).decode()
    cluster = {"server": url, "certificate-authority-data": data}
    return Kubeconfig("c", {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": user}],
    })  # fmt: skip


def test_the_rules_of_python_313_refuse_the_certificate(url: str, authority: Path) -> None:
    pool = urllib3.PoolManager(ssl_context=strict_context(), ca_certs=str(authority))
    with pytest.raises(urllib3.exceptions.SSLError, match=r"Identifier|key usage"):
        pool.request("GET", url, retries=False)


def test_a_cluster_with_that_certificate_is_read(url: str, authority: Path) -> None:
    file = str(authority.with_name("leaf.pem"))
    user = {"client-certificate": file, "client-key": file}
    api = ClusterApi(kubeconfig(url, authority.read_bytes(), **user))
    assert api.get("/api/v1/namespaces/kube-system") == {"named": True}
    api.close()


def test_a_download_from_a_host_with_that_certificate(
    url: str, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    assert download_url(f"{url}/x", Limit("a test", 1000, 20)) == b'{"named": false}'


def test_another_authority_is_still_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    pool = urllib3.PoolManager(ssl_context=tls.tls_context())
    with pytest.raises(urllib3.exceptions.SSLError, match="certificate verify failed"):
        pool.request("GET", url, retries=False)
    loose = urllib3.PoolManager(ssl_context=tls.tls_context(verified=False), cert_reqs="CERT_NONE")
    with pytest.warns(urllib3.exceptions.InsecureRequestWarning):
        assert loose.request("GET", url, retries=False).status == 200


@pytest.mark.parametrize("named", [True, False])
def test_the_remedy_for_an_unknown_issuer(url: str, named: bool) -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    found = kubeconfig(url, certificate("another", other, other, ca=True))
    if not named:
        del found.content["clusters"][0]["cluster"]["certificate-authority-data"]
    with pytest.raises(ClusterProblem) as caught:
        ClusterApi(found).get("/version")
    (finding,) = caught.value.findings
    assert finding.code == "GF864"
    assert ("fetch a new kubeconfig" in finding.remedy) is named
    assert ("SSL_CERT_FILE" in finding.remedy) is not named


def test_a_file_without_a_certificate_is_an_unusable_kubeconfig() -> None:
    with pytest.raises(KubeconfigError):
        open_client(kubeconfig("https://127.0.0.1:9", b"no certificate"))
