"""TLS that accepts the certificates that kubectl, helm and curl accept."""

from __future__ import annotations

import ssl

from urllib3.util.ssl_ import create_urllib3_context


def tls_context(authority: str | None = None, *, verified: bool = True) -> ssl.SSLContext:
    """A context for urllib3 without the strict rules of Python 3.13, by which CAs of EKS, MicroK8s
    and proxies that inspect TLS are invalid. `authority`: file of the CA, None for the machine's.

    Source: https://github.com/kubernetes-client/python/issues/2394 (read 2026-11-28)
    """
    context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if verified else ssl.CERT_NONE)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if authority:
        context.load_verify_locations(authority)
    else:
        context.load_default_certs()
    return context
