"""Reads kubeconfig files as kubectl does: merges several files, and selects one context.

Rules: https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/
Deploys and checks share it, so that both use the same cluster.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from urllib3 import HTTPHeaderDict

from gpufleet.core.paths import expand_user_path
from gpufleet.core.responses import bound_answers
from gpufleet.core.secrets import hide_secrets, register_secrets_of
from gpufleet.core.tls import tls_context
from gpufleet.core.visible import one_line
from gpufleet.core.yaml_events import LOADER, parse_yaml_events
from gpufleet.kube.private_folder import private_folder

if TYPE_CHECKING:  # imported when needed: takes a quarter of a second
    from kubernetes.client import ApiClient, Configuration

DEFAULT_KUBECONFIG = "~/.kube/config"
KUBECONFIG_LISTS = {"clusters": "cluster", "contexts": "context", "users": "user"}
FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
MAX_CONNECTIONS = 32  # kept open to a cluster; each further connection begins with TLS
IMPERSONATION = ("as", "as-uid", "as-groups", "as-user-extra")


class KubeconfigError(Exception):
    """An unusable kubeconfig. The text says why."""


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """One context with its cluster and user. It works from any working directory."""

    context: str
    content: Mapping[str, Any] = field(repr=False)  # contains keys and tokens

    @property
    def user(self) -> Mapping[str, Any]:
        """The entry of the context's user, or {}."""
        users = self.content["users"]
        return users[0]["user"] if users else {}


def kubeconfig_paths(chosen: str = "") -> str:
    """The files, separated as in KUBECONFIG: `chosen`, else KUBECONFIG, else kubectl's default."""
    named = chosen or os.environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG
    parts = (part for part in named.split(os.pathsep) if part)
    return os.pathsep.join(str(expand_user_path(part)) for part in parts)


def read_kubeconfig(paths: str, context: str = "") -> Kubeconfig:
    """Read one context, or the current one for "", from files separated as in KUBECONFIG.

    The first entry with a name wins, without merging. The current context is that of the first file
    that sets one. Raises KubeconfigError.
    """
    try:
        files = [path for path in map(Path, paths.split(os.pathsep)) if path.is_file()]
    except OSError as error:  # in a folder of another user
        raise KubeconfigError(str(error)) from error
    if not files:
        raise KubeconfigError("no file exists")
    merged: dict[str, dict[str, Any]] = {kind: {} for kind in KUBECONFIG_LISTS}
    current = ""
    for path in files:
        content = _content(path)
        current = current or _text(content.get("current-context"))
        for kind, entries in _entries(path, content).items():
            merged[kind] = {**entries, **merged[kind]}
    return _only(context or current, merged)


def _content(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_bytes()
        # raises for deep nesting, which C code must not read
        deque(parse_yaml_events(text), maxlen=0)
        content = yaml.load(text, Loader=LOADER)
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise KubeconfigError(f"{path}: {_why_unreadable(error)}") from error
    if not isinstance(content, Mapping | None):
        raise KubeconfigError(f"{path} is not a kubeconfig")
    return content or {}  # kubectl accepts empty files


def _why_unreadable(error: Exception) -> str:
    """The reason without the text at an error's position, which may be a secret."""
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    if mark is not None:
        return f"line {mark.line + 1}, column {mark.column + 1}: not valid YAML"
    return " ".join(str(error).split()) or type(error).__name__


def _entries(path: Path, content: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The clusters, contexts and users of one file by name, with absolute paths."""
    found: dict[str, dict[str, Any]] = {}
    for kind, word in KUBECONFIG_LISTS.items():
        listed = content.get(kind) or []
        if not isinstance(listed, list):
            raise KubeconfigError(f"{path}: {kind} is not a list")
        found[kind] = {}
        for entry in listed:
            name = _text(entry.get("name")) if isinstance(entry, Mapping) else ""
            inner = (entry.get(word) or {}) if name else None
            if not isinstance(inner, Mapping):
                raise KubeconfigError(f"{path}: an entry of {kind} has no name, or no {word}")
            if name in found[kind]:
                raise KubeconfigError(f"{path}: {kind} has {name!r} twice")
            found[kind][name] = _absolute(path, inner)
    return found


def _absolute(path: Path, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Make an entry's paths absolute, a plugin's too. They are relative to their file's folder."""
    folder = path.parent.absolute()
    found = dict(entry)
    for key in FILES:
        if _text(found.get(key)):
            found[key] = str(folder / found[key])
    plugin = found.get("exec")
    if isinstance(plugin, Mapping) and os.sep in _text(plugin.get("command")):
        found["exec"] = {**plugin, "command": str(folder / plugin["command"])}
    return found


def _only(name: str, merged: Mapping[str, Mapping[str, Any]]) -> Kubeconfig:
    """A kubeconfig of only that context."""
    if not name and not merged["contexts"]:
        raise KubeconfigError("it has no contexts")
    if not name:
        raise KubeconfigError("it has no current-context")
    context = merged["contexts"].get(name)
    if context is None:
        close = get_close_matches(name, merged["contexts"], n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        known = ", ".join(sorted(merged["contexts"])) or "none"
        raise KubeconfigError(f"it has no context {name!r} (available: {known}{meant})")
    cluster, user = _text(context.get("cluster")), _text(context.get("user"))
    if cluster not in merged["clusters"]:
        raise KubeconfigError(f"context {name!r} names the cluster {cluster!r}, which it lacks")
    if user and user not in merged["users"]:
        raise KubeconfigError(f"context {name!r} names the user {user!r}, which it lacks")
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": cluster, "cluster": merged["clusters"][cluster]}],
        "contexts": [{"name": name, "context": dict(context)}],
        "users": [{"name": user, "user": merged["users"][user]}] if user else [],
    }
    found = Kubeconfig(name, content)
    register_secrets_of(found.user)
    impersonation_headers(found.user)
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def impersonation_headers(user: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The headers that impersonate another user. Raises KubeconfigError.

    Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
    """
    given = [key for key in IMPERSONATION if user.get(key)]
    if not given:
        return []
    groups, extra = user.get("as-groups") or [], user.get("as-user-extra") or {}
    if not _text(user.get("as")):
        raise KubeconfigError(f"its user has {given[0]} and no as")
    if not isinstance(groups, list) or not isinstance(extra, Mapping):
        raise KubeconfigError("as-groups is not a list, or as-user-extra not a mapping")
    if extra:
        raise KubeconfigError("its user has as-user-extra, which gpufleet does not support")
    uid = [("Impersonate-Uid", str(user["as-uid"]))] if user.get("as-uid") else []
    return [
        ("Impersonate-User", user["as"]),
        *uid,
        *(("Impersonate-Group", str(group)) for group in groups),
    ]


def open_client(kubeconfig: Kubeconfig) -> ApiClient:
    """A client for the context's cluster, with its user and the user's impersonation. It raises
    ResponseRefused for responses that are too large or too slow.

    Raises KubeconfigError for any error of the library: values may have any type, and a proxy or
    provider may need a package that is not installed.
    """
    from kubernetes import config
    from kubernetes.client import ApiClient, Configuration

    settings = Configuration()
    _mask_log()
    try:
        _log_in(kubeconfig, settings)
        settings.retries = False  # each retry of urllib3 prints a warning, and waits
        settings.connection_pool_maxsize = MAX_CONNECTIONS
        client = ApiClient(settings)
        _check_as_kubectl(client)
    except (config.ConfigException, OSError, ValueError) as error:
        raise KubeconfigError(" ".join(str(error).split()) or type(error).__name__) from error
    except Exception as error:
        text = " ".join(str(error).split())
        raise KubeconfigError(f"{type(error).__name__}: {text}") from error
    bound_answers(client.rest_client)
    if headers := impersonation_headers(kubeconfig.user):
        _act_as(client, headers)
    return client


def _log_in(kubeconfig: Kubeconfig, settings: Configuration) -> None:
    """Set the server and the user's credentials. An expired ID token is not renewed: providers such
    as Dex accept a refresh token once, and only kubectl writes the next one into the user's file.

    Sources (read 2026-11-28): https://github.com/dexidp/dex/issues/2360,
    https://github.com/kubernetes-client/python/issues/2034 (without verified TLS)
    """
    from kubernetes.config import ConfigException
    from kubernetes.config.kube_config import KubeConfigLoader

    class Loader(KubeConfigLoader):
        def _refresh_oidc(self, provider: object) -> None:
            raise ConfigException("the user's ID token has expired; `kubectl get nodes` renews it")

    place = str(private_folder())
    content: dict[str, Any] = dict(kubeconfig.content)
    loader: Any = Loader(content, kubeconfig.context, config_base_path=None, temp_file_path=place)  # type: ignore[no-untyped-call]
    loader.load_and_set(settings)
    if proxy := kubeconfig.content["clusters"][0]["cluster"].get("proxy-url"):
        settings.no_proxy = None  # kubectl applies it only to the proxy of the environment
        settings.proxy = proxy
    if settings.proxy:  # it resolves names, as in Go
        settings.proxy = settings.proxy.replace("socks5://", "socks5h://")
    if kubeconfig.user.get("exec") and not (settings.api_key or settings.cert_file):
        raise ConfigException("the user's log-in program gave no credentials, as printed before")


def _check_as_kubectl(client: ApiClient) -> None:
    """Check the server's certificate as kubectl does. All connections share one TLS context."""
    settings = client.configuration
    context = tls_context(settings.ssl_ca_cert, verified=settings.verify_ssl)
    if settings.cert_file:
        context.load_cert_chain(settings.cert_file, settings.key_file, password=_passphrase)
    own: dict[str, Any] = {"ca_certs": None, "cert_file": None, "key_file": None}
    client.rest_client.pool_manager.connection_pool_kw.update(own, ssl_context=context)


def _passphrase() -> str:
    """OpenSSL would ask for it at the terminal."""
    raise ValueError("the client key has a passphrase, which kubectl cannot use, either")


class _Masked(logging.Formatter):
    """Prints log records on one line, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        return one_line(hide_secrets(super().format(record)))


def _mask_log() -> None:
    """Mask the library's log: it quotes the output of log-in programs, even at later requests."""
    root = logging.getLogger()
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(_Masked())
        root.addHandler(handler)


def _act_as(client: ApiClient, headers: Sequence[tuple[str, str]]) -> None:
    """Add headers to every request. The client accepts each name only once, but groups repeat."""
    rest: Any = client.rest_client
    send = rest.request

    def request(method: str, url: str, **more: Any) -> Any:
        whole = HTTPHeaderDict(more.pop("headers", None) or {})
        for name, value in headers:
            whole.add(name, value)
        return send(method, url, headers=whole, **more)

    rest.request = request
