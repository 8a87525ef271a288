"""The administrator's kubeconfig of a cluster, as text. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

import yaml

from gpufleet.facts.sections.kubernetes import certificate_digest

MAX_KUBECONFIG_CHARS = 100_000  # characters; kubeadm's has some 5,600
CLUSTER = ("server", "certificate-authority-data")
USER_FIELDS = ("client-certificate-data", "client-key-data")


def administrator_kubeconfig(text: str) -> str:
    """A kubeconfig of the one cluster and user in what kubeadm wrote on a host.

    It has a server and inline certificates alone: a host must not name programs to run or files to
    read on this machine. Raises ValueError, which says what is wrong with the text.
    """
    if len(text) > MAX_KUBECONFIG_CHARS:
        raise ValueError(f"it is longer than {MAX_KUBECONFIG_CHARS} characters")
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text)):
            raise ValueError("it has a YAML alias")  # a few of them grow without bound
        data = yaml.safe_load(text)
        cluster, user = data["clusters"][0]["cluster"], data["users"][0]["user"]
        alone = len(data["clusters"]) == len(data["users"]) == 1
        server = cluster["server"]
    except (yaml.YAMLError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise ValueError("it has not one cluster and one user") from error
    if not alone:
        raise ValueError("it has more than one cluster or user")
    if not isinstance(server, str) or not server.startswith("https://"):
        raise ValueError("its server has no https:// address")
    name, context = "kubernetes-admin", "kubernetes-admin@kubernetes"
    made = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kubernetes", "cluster": _only(cluster, CLUSTER)}],
        "users": [{"name": name, "user": _only(user, USER_FIELDS)}],
        "contexts": [{"name": context, "context": {"cluster": "kubernetes", "user": name}}],
        "current-context": context,
    }
    return yaml.safe_dump(made, sort_keys=False)


def authority_digests(text: str) -> frozenset[str]:
    """Digests of the certificate authorities that a kubeconfig trusts, as in a host's facts.

    Empty if it contains no certificates."""
    try:
        clusters = [each["cluster"] for each in yaml.safe_load(text)["clusters"]]
        data = [str(each.get("certificate-authority-data", "")) for each in clusters]
        pem = "".join(base64.b64decode(each).decode() for each in data)
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, RecursionError, ValueError):
        return frozenset()
    bodies = re.findall(r"-----BEGIN [^\n]*-----\n(.*?)-----END", pem, re.DOTALL)
    return frozenset(certificate_digest("".join(body.split())) for body in bodies)


def leads_elsewhere(text: str, known: frozenset[str]) -> bool:
    """True if a kubeconfig trusts certificate authorities, but no `known` one of a cluster."""
    trusted = authority_digests(text)
    return bool(known and trusted) and trusted.isdisjoint(known)


def may_replace(there: str, new: str) -> bool:
    """True if the text of a kubeconfig file is empty, or has access to the same server and to no
    other."""
    if not there.strip():
        return True
    servers = _servers(there)
    return len(servers) == 1 and servers == _servers(new)


def _only(part: Any, names: tuple[str, ...]) -> dict[str, str]:
    """These entries of a part, and no others. Raises ValueError."""
    if not isinstance(part, dict) or set(part) != set(names):
        raise ValueError(f"it must have {' and '.join(names)} alone")
    if not all(isinstance(value, str) for value in part.values()):
        raise ValueError(f"it must have {' and '.join(names)} as text")
    for name in names:
        if name.endswith("-data"):
            try:
                base64.b64decode(part[name], validate=True)
            except binascii.Error as error:
                raise ValueError(f"{name} is not base64") from error
    return {name: part[name] for name in names}


def _servers(text: str) -> list[str]:
    """The servers that a kubeconfig names. Empty if the text is not a kubeconfig."""
    try:
        data = yaml.safe_load(text)
        return [str(each["cluster"]["server"]) for each in data["clusters"]]
    except (yaml.YAMLError, KeyError, TypeError, RecursionError):
        return []
