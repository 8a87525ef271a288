"""Registered secrets are hidden in every spelling; all other text stays."""

from __future__ import annotations

import ast
import base64
import html
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpufleet.core.findings.settings import UNKNOWN_KEY
from gpufleet.core.secrets import (
    SecretRegister,
    hide_secrets,
    plain_urls,
    register_secret,
    register_secrets_of,
)
from gpufleet.run.report_file import write_file

ODD = "p,}]'q\"@/#$&<ü\\ 715"
FORMS: dict[str, tuple[Any, str]] = {
    "password": ({"_sudo_password": "hunter2s"}, "hunter2s"),
    "odd password": ({"basicAuth": {"users": {"scraper": ODD}}}, ODD),
    "slack": ({"global": {"slack_api_url": "https://h/T0/715"}}, "https://h/T0/715"),
    "pager": ({"pagerduty_configs": [{"routing_key": "k715k"}]}, "k715k"),
    "signature": ({"webhook_configs": [{"url": "https://a/?v=1&sig=s3c%2Fret"}]}, "s3c/ret"),
    "sigv4": ({"sigv4": {"secretKey": "a/b+715"}}, "a/b+715"),
    "line of a key": ({"privateKey": "-----BEGIN X-----\nMIIE715\n-----END X-----"}, "MIIE715"),
    "key of a certificate": (
        {"tls": {"key": "-----BEGIN PRIVATE KEY-----\nMIIE716\n-----END PRIVATE KEY-----"}},
        "MIIE716",
    ),
    "login": ({"http_proxy": "http://user:hun%40ter2@proxy:3128"}, "hun@ter2"),
    "token in a URL": ({"mirror": "https://ghp_0123456789abcde@m/x"}, "ghp_0123456789abcde"),
    "header": ({"headers": {"Authorization": ["Bearer a.b-715"]}}, "a.b-715"),
    "variable": ({"env": [{"name": "DB_PASSWORD", "value": "s3cret"}]}, "s3cret"),
    "argument": ({"extraArgs": ["--api-token=s3cret"]}, "s3cret"),
    "number": ({"token": 40715}, "40715"),
    "assignment in an assignment": ({"args": "args: --set=grafana.adminPassword=s3cret"}, "s3cret"),
    "query": ({"mirror": "https://m/x?token=s3cret"}, "s3cret"),
    "key of no field": ({"credentials": {"name": "mine", "key": "k715-k715"}}, "k715-k715"),
    "below": ({"extraSecretData": {"a": {"b": "s3cret"}}}, "s3cret"),
    "bytes": ({"token": b"s3cret"}, "s3cret"),
}  # fmt: skip
SPELLINGS = {
    "plain": lambda text: text,
    "json": json.dumps,
    "json with letters": lambda text: json.dumps(text, ensure_ascii=False),
    "json by Go": lambda text: json.dumps(text).replace("&", "\\u0026").replace("<", "\\u003c"),
    "python": repr,
    "shell": shlex.quote,
    "url": lambda text: quote(text, safe=""),
    "url path": quote,
    "query": quote_plus,
    "query in lower case": lambda text: re.sub("%..", lambda each: each[0].lower(), quote(text)),
    "html": html.escape,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "login in base64": lambda text: base64.b64encode(f"user:{text}".encode()).decode(),
    "urlsafe base64": lambda text: base64.urlsafe_b64encode(f"x:{text}".encode()).decode(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_registered_secret_is_hidden(form: str, spelling: str) -> None:
    data, secret = FORMS[form]
    text = SPELLINGS[spelling](secret)
    register_secrets_of(data)
    shown = hide_secrets(f"before {text} after")
    assert shown.startswith("before ")
    assert "***" in shown
    inner = text.strip("'\"=")[3:-3] if "base64" in spelling else text.strip("'\"")
    assert inner not in shown


@pytest.mark.parametrize("secret", ["16384", "10.25", 'a"b\\c', "x\nnginx", '{"a": 12345}'])
def test_json_stays_json(secret: str) -> None:
    """Also if a harmless number or word is below a key such as MAX_TOKENS."""
    register_secrets_of({"MAX_TOKENS": secret})
    data = {"false": False, "n": [16384, 116384, 10.25, -1], secret: f"x {secret} y", "nginx": 1}
    shown = hide_secrets(json.dumps(data, indent=1))
    assert json.loads(shown)["false"] is False
    assert 116384 in json.loads(shown)["n"]
    assert json.dumps(secret)[1:-1] not in shown.replace("116384", "")


@pytest.mark.parametrize("secret", ['{"pin": "12345678"}', '{"key": "-----BEGIN X-----\\n715"}'])
def test_a_secret_that_is_json_is_hidden_in_json(secret: str) -> None:
    register_secrets_of({"app_secret": secret})
    text = f'{{"a": {secret}, "n": 12345678}}'
    assert hide_secrets(text) == '{"a": ***, "n": 12345678}'
    deep = "[" * 5000 + secret
    assert hide_secrets(deep) == "[" * 5000 + "***"


@pytest.mark.parametrize("form", FORMS)
def test_an_error_that_quotes_the_data_hides_it(form: str) -> None:
    data, secret = FORMS[form]
    register_secrets_of(data)
    as_text = {"token": "s3cret"} if form == "bytes" else data
    for text in (json.dumps(as_text), str(as_text), yaml.safe_dump(as_text, width=1000)):
        assert secret not in hide_secrets(text)


@pytest.mark.parametrize(
    "data",
    [
        {"imagePullSecrets": [{"name": "registry"}]},
        {"monitoring_grafana_existing_secret": "grafana-login"},
        {"passwordKey": "admin-password", "secretName": "tls-of-grafana"},
        {"env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "own", "key": "token"}}}]},
        {
            "basicAuth": {
                "username": {"name": "rw", "key": "username"},
                "password": {"name": "rw", "key": "password", "optional": False},
            }
        },
        {"tokenFile": "/var/run/token", "authorization": {"mode": "Webhook"}},
        {"driver_repo_url": "https://mirror.example.com/nvidia?x=abcdef", "bypass_mode": "plain"},
        {"token": "abcd", "ssh_password": True},
        {"TOKENIZERS_PARALLELISM": "false", "SECRET_SCAN": "TRUE", "one": False, "two": True},
        {"url": "ssh://core@host.example.com"},
        {"url": "https://token-service.example.com:8443/v1", "a": "image=x/secrets:v0.9.1"},
    ],
)
def test_what_is_no_secret_stays(data: dict[str, Any]) -> None:
    register_secrets_of(data)
    assert hide_secrets(json.dumps(data)) == json.dumps(data)


def test_overlapping_secrets_are_hidden_whole() -> None:
    for secret in ("abcdefg", "abcdefghij", "efghijklmn"):
        register_secret(secret)
    assert hide_secrets("an abcdefghijklmn, abcdefg.") == "an ***, ***."


SECRETS = st.lists(  # no line that frames a key, such as "-----", and not the word `false`
    st.text(min_size=5, max_size=12).filter(
        lambda text: (
            text == text.strip() and not text.startswith("-----") and text.lower() != "false"
        )
    )
)


@given(SECRETS, st.text(max_size=30))
def test_no_registered_secret_is_left(secrets: list[str], text: str) -> None:
    register = SecretRegister()
    for secret in secrets:
        register.add(secret)
    shown = register.hide(text.join(["", *secrets, ""]))
    parts = shown.split("***")
    assert not [secret for secret in secrets if any(secret in part for part in parts)]


def test_a_finding_and_a_report_hide_secrets(tmp_path: Path) -> None:
    register_secret("s3cret/715")
    unknown = UNKNOWN_KEY(key="s3cret/715", place="--data", suggestion="s3cret%2F715")
    assert "s3cret" not in str(unknown)
    report = tmp_path / "report.json"
    assert write_file(report, lambda: '{"errors": "s3cret/715"}')
    assert report.read_text() == '{"errors": "***"}'


PROGRAM = """
import sys, click
from rich.console import Console
from gpufleet.core.secrets import register_secret
from gpufleet.core.streams import prepare_streams
prepare_streams()
prepare_streams()
register_secret("hunter2s")
print("hunter2s"); print("hunter2s", file=sys.stderr)
click.echo("a hunter2s"); click.echo("a hunter2s", err=True)
Console().print("b hunter2s"); sys.stdout.writelines(["hunter2s"])
raise SystemExit("hunter2s")
"""


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_everything_that_a_process_prints_is_filtered(encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert done.stdout == "***\na ***\nb ***\n***"
    assert done.stderr == "***\na ***\n***\n"


def test_a_login_of_a_proxy_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpufleet.core.secrets import register_secrets_of_environment

    monkeypatch.setenv("HTTPS_PROXY", "http://me:hunter2s@proxy:3128")
    register_secrets_of_environment()
    assert hide_secrets("no route to http://me:hunter2s@proxy") == "no route to http://me:***@proxy"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:p@w@m.example:8443/x?sig=1", "https://***@m.example:8443/x?***"),
        ("https://m.example/x", "https://m.example/x"),
        ("[cuda] a@b", "[cuda] a@b"),
    ],
)
def test_a_url_of_others_is_shown_without_its_login(url: str, shown: str) -> None:
    assert plain_urls(url) == shown


def test_nothing_else_writes_to_the_standard_streams() -> None:
    """`sys.__stdout__` and file descriptors would bypass the filter."""
    for path in Path("gpufleet").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            assert getattr(node, "attr", "") not in ("__stdout__", "__stderr__"), path
