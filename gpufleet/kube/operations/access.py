"""Access to a cluster: a kubeconfig, a context, and the API client."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509

from gpufleet.core.findings import Finding
from gpufleet.core.stopped import Stopped
from gpufleet.kube import findings
from gpufleet.kube.kubeconfig import (
    Kubeconfig,
    KubeconfigError,
    kubeconfig_paths,
    open_client,
    read_kubeconfig,
)

if TYPE_CHECKING:  # imported when needed: takes a quarter of a second
    from kubernetes.client import ApiClient

# OpenSSL's error code for a certificate -> remedy
_ADVICE = {
    10: "Renew it on the control plane (kubeadm certs renew apiserver).",  # it has expired
    62: "Use the name in the certificate, or set tls-server-name in the kubeconfig.",
    64: "Use a name or address in the certificate, or set tls-server-name in the kubeconfig.",
}
_NOT_OURS = "The kubeconfig's certificate-authority did not issue it: fetch a new kubeconfig."
# Python of uv on EL 8: https://github.com/astral-sh/uv/issues/16703 (read 2026-11-29)
_UNKNOWN = (
    "The kubeconfig has no certificate-authority, and Python does not find its issuer on this "
    "machine: set SSL_CERT_FILE to a file of authorities, /etc/pki/tls/cert.pem on RHEL."
)


class ClusterProblem(Stopped):
    """An unreachable or unusable cluster."""


@dataclass(frozen=True, slots=True)
class KubeAccess:
    """The location of a cluster. `kubeconfig`: a path, or "" for KUBECONFIG or ~/.kube/config.
    `context`: "" for the current one."""

    kubeconfig: str = ""
    context: str = ""

    def read(self) -> Kubeconfig:
        """Read the context with its cluster and user. Raises ClusterProblem."""
        paths = kubeconfig_paths(self.kubeconfig)
        try:
            return read_kubeconfig(paths, self.context)
        except KubeconfigError as error:
            reason = str(error).rstrip(".")
            raise ClusterProblem(findings.KUBECONFIG_INVALID(path=paths, reason=reason)) from error


def client_of(kubeconfig: Kubeconfig) -> ApiClient:
    """A client for the cluster of a context. Raises ClusterProblem."""
    try:
        return open_client(kubeconfig)
    except KubeconfigError as error:
        path, reason = f"of context {kubeconfig.context}", str(error).rstrip(".")
        raise ClusterProblem(findings.KUBECONFIG_INVALID(path=path, reason=reason)) from error


def refused_certificate(
    error: ssl.SSLError, context: str, url: str, authority: str | None
) -> Finding:
    """The finding for a rejected server certificate. `authority`: of the kubeconfig."""
    reason = getattr(error, "verify_message", "") or str(error)
    return findings.CERTIFICATE_REFUSED(
        whose="The API server's certificate",
        context=context,
        url=url,
        reason=reason.rstrip("."),
        advice=_ADVICE.get(getattr(error, "verify_code", 0), _NOT_OURS if authority else _UNKNOWN),
    )


def expired_client_certificate(client: ApiClient, context: str, url: str) -> Finding | None:
    """The finding for an expired client certificate of the kubeconfig."""
    file = client.configuration.cert_file
    if not file or not Path(file).is_file():
        return None
    end = x509.load_pem_x509_certificate(Path(file).read_bytes()).not_valid_after_utc
    if end > datetime.now(timezone.utc):
        return None
    return findings.CERTIFICATE_REFUSED(
        whose="The client certificate",
        context=context,
        url=url,
        reason=f"it expired on {end:%Y-%m-%d %H:%M} UTC",
        advice="Fetch a new kubeconfig (kubeadm certs renew admin.conf, or your provider's tool). "
        "If kubernetes_kubeconfig names this file, delete it: the next run writes it again.",
    )
