"""kubeconfig files, merged and minified to one context, like kubectl."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import urllib3

from gpufleet.kube.kubeconfig import (
    KubeconfigError,
    impersonation_headers,
    kubeconfig_paths,
    open_client,
    read_kubeconfig,
)

pytestmark = pytest.mark.claim("Several kubeconfig files are one, as with kubectl.", level=1)


def config(name: str, **user: Any) -> dict[str, Any]:
    return {
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "users": [{"name": name, "user": {"token": f"of-{name}", **user}}],
    }


def files(folder: Path, *configs: dict[str, Any]) -> str:
    """The configs as files, separated as in KUBECONFIG."""
    paths = []
    for number, content in enumerate(configs):
        path = folder / f"{number}" / "config"
        path.parent.mkdir()
        path.write_text(json.dumps(content))
        paths.append(str(path))
    return os.pathsep.join(paths)


def server(paths: str, context: str = "") -> str:
    return str(read_kubeconfig(paths, context).content["clusters"][0]["cluster"]["server"])


def test_the_first_file_with_a_value_applies(tmp_path: Path) -> None:
    silent = {**config("c"), "current-context": ""}
    other = config("b")
    other["clusters"].append({"name": "a", "cluster": {"server": "https://evil.example"}})
    paths = files(tmp_path, silent, config("a"), other)
    assert server(paths) == "https://a.example"
    assert server(paths, "b") == "https://b.example"
    assert server(paths, "c") == "https://c.example"
    none, empty = str(tmp_path / "none"), tmp_path / "empty"
    empty.touch()
    assert server(os.pathsep.join([none, str(empty), paths, none])) == "https://a.example"


def test_other_contexts_are_omitted(tmp_path: Path) -> None:
    found = read_kubeconfig(files(tmp_path, config("a"), config("b")), "b")
    assert "of-a" not in json.dumps(found.content)
    assert "of-b" not in repr(found)


def test_paths_are_relative_to_their_file(tmp_path: Path) -> None:
    inner = config("a", **{"client-certificate": "a.crt", "client-key": "/k/a.key"})
    inner["clusters"][0]["cluster"]["certificate-authority"] = "../ca.crt"
    inner["users"][0]["user"]["exec"] = {"command": "./bin/login"}
    found = read_kubeconfig(files(tmp_path, inner))
    assert found.user["client-certificate"] == f"{tmp_path}/0/a.crt"
    assert found.user["client-key"] == "/k/a.key"
    assert found.user["exec"]["command"] == f"{tmp_path}/0/bin/login"
    authority = found.content["clusters"][0]["cluster"]["certificate-authority"]
    assert Path(authority).resolve() == tmp_path / "ca.crt"
    on_path = files(tmp_path / "0", config("a", exec={"command": "aws"}))
    assert read_kubeconfig(on_path).user["exec"]["command"] == "aws"


BROKEN: dict[str, tuple[Any, str]] = {
    "no mapping": ([], "is not a kubeconfig"),
    "no current context": ({**config("a"), "current-context": None}, "it has no current-context"),
    "no contexts": (
        {**config("a"), "contexts": [], "current-context": None},
        "it has no contexts",
    ),
    "a context of no other file": ({**config("a"), "contexts": []}, "it has no context 'a'"),
    "no such cluster": ({**config("a"), "clusters": []}, "names the cluster 'a', which it lacks"),
    "no such user": ({**config("a"), "users": None}, "names the user 'a', which it lacks"),
    "entries that are text": ({**config("a"), "users": ["a"]}, "an entry of users has no name"),
    "a list that is a number": ({**config("a"), "clusters": 7}, "clusters is not a list"),
    "one name twice": ({**config("a"), "users": config("a")["users"] * 2}, "users has 'a' twice"),
    "groups without a user": (
        config("a", **{"as-groups": ["system:masters"]}),
        "its user has as-groups and no as",
    ),
    "extra fields of impersonation": (
        config("a", **{"as": "b", "as-user-extra": {"x": ["y"]}}),
        "its user has as-user-extra",
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_an_invalid_one_says_why(how: str, tmp_path: Path) -> None:
    broken, why = BROKEN[how]
    with pytest.raises(KubeconfigError, match=re.escape(why)):
        read_kubeconfig(files(tmp_path, broken))


def test_the_place_of_an_error_is_shown_without_what_stands_there(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("users:\n- user: {token: !Sup3rS3cret x}\n")
    with pytest.raises(KubeconfigError) as refused:
        read_kubeconfig(str(path))
    assert str(refused.value) == f"{path}: line 2, column 17: not valid YAML"


def test_none_and_an_unknown_context(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError):
        read_kubeconfig(str(tmp_path / "none"))
    with pytest.raises(KubeconfigError, match=r"no context 'c' \(available: a, b\)"):
        read_kubeconfig(files(tmp_path, config("b"), config("a")), "c")


def test_default_locations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert kubeconfig_paths() == f"{tmp_path}/.kube/config"
    monkeypatch.setenv("KUBECONFIG", "/a::~/b")
    assert kubeconfig_paths() == f"/a:{tmp_path}/b"
    assert kubeconfig_paths("~/c") == f"{tmp_path}/c"


def test_requests_impersonate_the_user_of_the_kubeconfig(tmp_path: Path) -> None:
    user = {"as": "ada", "as-groups": ["ops", "gpus"], "as-uid": "7"}
    found = read_kubeconfig(files(tmp_path, config("a", **user)))
    assert impersonation_headers(found.user) == [
        ("Impersonate-User", "ada"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Group", "gpus"),
    ]
    seen: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.extend(self.headers.items())
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing, so that the output of the tests stays readable."""

    with HTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.handle_request)
        thread.start()
        client: Any = open_client(found)
        url = f"http://127.0.0.1:{listening.server_port}/x"
        client.rest_client.request("GET", url, headers={"Accept": "a"}).read()
        thread.join()
    assert [
        header for header in seen if header[0].startswith("Impersonate")
    ] == impersonation_headers(found.user)
    assert ("Accept", "a") in seen
    plain: Any = open_client(read_kubeconfig(files(tmp_path / "0", config("a"))))
    assert plain.configuration.api_key["BearerToken"] == "Bearer of-a"


def test_one_that_is_nested_too_deep_is_refused(tmp_path: Path) -> None:
    """PyYAML's C code would crash the whole process."""
    path = tmp_path / "config"
    path.write_text("clusters: " + "[" * 100_000)
    with pytest.raises(KubeconfigError, match="nested more than"):
        read_kubeconfig(str(path))


UNUSABLE: dict[str, dict[str, Any]] = {
    "a proxy that is a number": {"cluster": {"proxy-url": 1080}},
    "a provider that the library does not know": {"user": {"auth-provider": {"name": "gcp"}}},
    "a server that is a number": {"cluster": {"server": 5}},
}


@pytest.mark.parametrize("how", UNUSABLE)
def test_one_that_the_library_fails_on_is_unusable(how: str, tmp_path: Path) -> None:
    """A KubeconfigError lets callers try other contexts and continue with other clusters."""
    content = config("a")
    content["clusters"][0]["cluster"] |= UNUSABLE[how].get("cluster", {})
    content["users"][0]["user"] = UNUSABLE[how].get("user", {"token": "t"})
    found = read_kubeconfig(files(tmp_path, content))
    with pytest.raises(KubeconfigError, match=r"\w+Error: "):
        open_client(found)


@pytest.mark.parametrize("named", [True, False])
def test_no_proxy_of_the_environment_is_for_its_proxy(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy-url of a private cluster on GKE is used for each address, as by kubectl."""
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "10.0.0.0/8,.example")
    content = config("a")
    content["clusters"][0]["cluster"] |= {"proxy-url": "http://127.0.0.1:8888"} if named else {}
    client: Any = open_client(read_kubeconfig(files(tmp_path, content)))
    assert isinstance(client.rest_client.pool_manager, urllib3.ProxyManager) is named


def test_a_socks_proxy_resolves_the_names_of_private_clusters(tmp_path: Path) -> None:
    pytest.importorskip("socks")
    content = config("a")
    content["clusters"][0]["cluster"]["proxy-url"] = "socks5://127.0.0.1:1080"
    client: Any = open_client(read_kubeconfig(files(tmp_path, content)))
    manager = client.rest_client.pool_manager
    assert type(manager).__name__ == "SOCKSProxyManager"
    assert manager.connection_pool_kw["_socks_options"]["rdns"] is True


def id_token(expires: int) -> str:
    parts = ({"alg": "none"}, {"exp": expires}, {})
    words = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts]
    return ".".join(word.rstrip("=") for word in words)


def test_an_expired_id_token_is_left_to_kubectl(tmp_path: Path) -> None:
    """kubectl saves the next refresh token; a provider may accept each only once."""
    about = {"refresh-token": "r", "idp-issuer-url": "https://a.invalid"}
    user = {"auth-provider": {"name": "oidc", "config": about}}
    about["id-token"] = id_token(10**10)
    valid: Any = open_client(read_kubeconfig(files(tmp_path, config("a", **user))))
    assert valid.configuration.api_key["BearerToken"] == f"Bearer {about['id-token']}"
    about["id-token"] = id_token(1)
    expired = read_kubeconfig(files(tmp_path / "0", config("a", **user)))
    with pytest.raises(KubeconfigError, match=r"ID token has expired; `kubectl get nodes` renews"):
        open_client(expired)


def test_one_in_a_folder_that_may_not_be_read_is_unusable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, **how: Any) -> os.stat_result:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refused)
    with pytest.raises(KubeconfigError, match="Permission denied"):
        read_kubeconfig(str(tmp_path / "config"))


LOGS_IN = """\
import sys
from gpufleet.kube.kubeconfig import KubeconfigError, open_client, read_kubeconfig
try:
    open_client(read_kubeconfig(sys.argv[1]))
except KubeconfigError as error:
    print(error)
"""


def test_what_a_login_program_prints_is_shown_on_a_line(tmp_path: Path) -> None:
    """In a separate process, because pytest has the root logger in this one."""
    program = tmp_path / "login"
    program.write_text("#!/bin/sh\nprintf '\\033[2Jexpired: log in\\n' >&2; exit 1\n")
    program.chmod(0o755)
    api = "client.authentication.k8s.io/v1"
    about = {"apiVersion": api, "command": str(program), "interactiveMode": "Never"}
    found = config("a", exec=about)
    del found["users"][0]["user"]["token"]
    words = [sys.executable, "-c", LOGS_IN, files(tmp_path, found)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "expired: log in" in done.stderr
    assert done.stdout == "the user's log-in program gave no credentials, as printed before\n"
    assert "\x1b" not in done.stderr
