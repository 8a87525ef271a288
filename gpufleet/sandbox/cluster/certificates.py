"""The keys of one cluster: its authority, its server certificate, its service account key."""

from __future__ import annotations

import ipaddress
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gpufleet.sandbox.cluster.access import write_private

LIFETIME = timedelta(days=365)
CLUSTER_ADDRESS = "10.0.0.1"  # of the service `kubernetes`


def write_keys(folder: Path, address: str) -> None:
    """ca.crt, server.crt, server.key, service-account.key; private keys are readable by one."""
    authority_key = _key()
    authority = _authority(authority_key)
    server_key = _key()
    server = _server(authority, authority_key, server_key, address)
    files = {
        "ca.crt": authority.public_bytes(serialization.Encoding.PEM),
        "server.crt": server.public_bytes(serialization.Encoding.PEM),
        "server.key": _private(server_key),
        "service-account.key": _private(_key()),
    }
    for name, data in files.items():
        write_private(folder / name, data.decode())


def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _private(key: rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _authority(key: rsa.RSAPrivateKey) -> x509.Certificate:
    name = _name("gpufleet sandbox")
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        _dated(x509.CertificateBuilder())
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(own, critical=False)
        .sign(key, hashes.SHA256())
    )


def _server(
    authority: x509.Certificate,
    authority_key: rsa.RSAPrivateKey,
    key: rsa.RSAPrivateKey,
    address: str,
) -> x509.Certificate:
    names = [x509.DNSName(name) for name in ("localhost", "kubernetes", "kubernetes.default.svc")]
    places = {address, "127.0.0.1", CLUSTER_ADDRESS}
    addresses = [x509.IPAddress(ipaddress.ip_address(place)) for place in sorted(places)]
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        _dated(x509.CertificateBuilder())
        .subject_name(_name("kube-apiserver"))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .add_extension(x509.SubjectAlternativeName([*names, *addresses]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer_key, critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _dated(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
    now = datetime.now(timezone.utc)
    return (
        builder.serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + LIFETIME)
    )
