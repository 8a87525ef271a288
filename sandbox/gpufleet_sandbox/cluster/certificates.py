"""The keys of one cluster: authorities, certificates and the service account key."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gpufleet_sandbox.cluster.access import write_private
from gpufleet_sandbox.cluster.control_plane import FRONT_PROXY

LIFETIME = timedelta(days=365)
CLUSTER_ADDRESS = "10.0.0.1"  # of the service `kubernetes`


def write_keys(folder: Path, address: str) -> None:
    """Write the certificates and keys of a cluster, readable only by their owner.

    ca.*, server.*, service-account.key, and for the aggregation layer front-proxy-ca.crt,
    front-proxy-client.crt, front-proxy-client.key. The aggregation layer has a separate authority,
    because its certificates allow impersonating any user.
    """
    authority = Authority.new("gpufleet sandbox")
    front_proxy = Authority.new("gpufleet sandbox front proxy")
    server_key, proxy_key = _key(), _key()
    server = authority.server("kube-apiserver", server_key, address)
    proxy = front_proxy.client(FRONT_PROXY, proxy_key)
    files = {
        "ca.crt": _public(authority.certificate),
        "ca.key": _private(authority.key),
        "server.crt": _public(server),
        "server.key": _private(server_key),
        "service-account.key": _private(_key()),
        "front-proxy-ca.crt": _public(front_proxy.certificate),
        "front-proxy-client.crt": _public(proxy),
        "front-proxy-client.key": _private(proxy_key),
    }
    for name, data in files.items():
        write_private(folder / name, data.decode())


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority; issues certificates."""

    certificate: x509.Certificate
    key: rsa.RSAPrivateKey

    @classmethod
    def new(cls, name: str) -> Authority:
        """A self-signed authority."""
        key, subject = _key(), _name(name)
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        certificate = (
            _dated(x509.CertificateBuilder())
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(own, critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    @classmethod
    def of_cluster(cls, folder: Path) -> Authority:
        """The authority of a cluster, from `folder`."""
        certificate = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
        key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
        return cls(certificate, cast(rsa.RSAPrivateKey, key))

    def node(self, name: str) -> tuple[str, str]:
        """(certificate, private key), both PEM, of the kubelet of the node `name`."""
        key = _key()
        certificate = self.client(f"system:node:{name}", key, "system:nodes")
        return _public(certificate).decode(), _private(key).decode()

    def server(self, name: str, key: rsa.RSAPrivateKey, address: str) -> x509.Certificate:
        """A certificate for a server at `address` and at the cluster's addresses."""
        hosts = ("localhost", "kubernetes", "kubernetes.default.svc")
        names = [x509.DNSName(host) for host in hosts]
        places = sorted({address, "127.0.0.1", CLUSTER_ADDRESS})
        addresses = [x509.IPAddress(ipaddress.ip_address(place)) for place in places]
        known_as = x509.SubjectAlternativeName([*names, *addresses])
        builder = self._issued(name, key, ExtendedKeyUsageOID.SERVER_AUTH)
        return builder.add_extension(known_as, critical=False).sign(self.key, hashes.SHA256())

    def client(self, name: str, key: rsa.RSAPrivateKey, group: str = "") -> x509.Certificate:
        """A certificate for the user `name`, with its group if not ""."""
        builder = self._issued(name, key, ExtendedKeyUsageOID.CLIENT_AUTH, group)
        return builder.sign(self.key, hashes.SHA256())

    def _issued(
        self, name: str, key: rsa.RSAPrivateKey, usage: x509.ObjectIdentifier, group: str = ""
    ) -> x509.CertificateBuilder:
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        return (
            _dated(x509.CertificateBuilder())
            .subject_name(_name(name, group))
            .issuer_name(self.certificate.subject)
            .public_key(key.public_key())
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(issuer_key, critical=False)
        )


def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _private(key: rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _public(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _name(common: str, organization: str = "") -> x509.Name:
    parts = [(NameOID.ORGANIZATION_NAME, organization), (NameOID.COMMON_NAME, common)]
    return x509.Name([x509.NameAttribute(kind, text) for kind, text in parts if text])


def _dated(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
    now = datetime.now(timezone.utc)
    return (
        builder.serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + LIFETIME)
    )
