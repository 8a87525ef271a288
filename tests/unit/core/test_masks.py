"""What is shown of values and files: of forty secrets in twenty forms none appears."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import tomlkit
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpufleet.core.masks import file_difference, hide, masked, secret_texts, without
from gpufleet.core.redact import redact
from gpufleet.helm.chart_values import values_diff


def forms(mark: str) -> dict[str, tuple[Any, list[str]]]:
    """Name of a form -> the value that holds secrets, and the secrets, all with `mark` in them."""
    plain, odd = f"s3cr{mark}", f"p,}}]'q@/#{mark}"
    basic = base64.b64encode(f"user:{plain}".encode()).decode()
    return {
        "password": ({"adminPassword": plain}, [plain]),
        "odd password": ({"auth": {"password": odd}}, [odd, mark]),
        "slack": ({"global": {"slack_api_url": f"https://hooks.example/T0/B0/{plain}"}}, [plain]),
        "pager": ({"pagerduty_configs": [{"routing_key": plain}]}, [plain]),
        "webhook": ({"webhook_configs": [{"url": f"https://a/?x={plain}"}]}, [plain]),
        "sigv4": ({"sigv4": {"accessKey": plain, "secretKey": odd}}, [plain, odd]),
        "tls": ({"tls": {"cert": "-----BEGIN", "key": f"-----BEGIN\n{plain}\n-----END"}}, [plain]),
        "login in an address": ({"http-proxy": f"http://user:{odd}@proxy:3128"}, [mark]),
        "token in an address": ({"registry-mirrors": [f"https://{plain}@mirror"]}, [plain]),
        "header": ({"headers": {"Authorization": [f"Basic {basic}"]}}, [basic]),
        "bearer": ({"config": f"curl -H 'X: Bearer {plain}'"}, [plain]),
        "environment": ({"env": [{"name": "DB_PASSWORD", "value": plain}]}, [plain]),
        "harmless environment": ({"env": [{"name": "DB", "value": plain}]}, [plain]),
        "arguments": ({"extraArgs": ["--password", plain, f"--token={odd}"]}, [plain, odd]),
        "number": ({"token": 40 * 10**9 + int(mark)}, [str(40 * 10**9 + int(mark))]),
        "map of anything": ({"extraSecretData": {"a": {"b": plain}}}, [plain]),
        "label": ({"labels": [f"api_token={plain}", f"x='{odd}'"]}, [plain, mark]),
        "text": ({"config": f"[smtp]\npassword = {odd}\n"}, [odd, mark]),
        "key": ({f"https://user:{plain}@host": {"endpoint": [f"https://{odd}@h"]}}, [plain, mark]),
        "image": ({"image": f"https://user:{plain}@host/image"}, [plain]),
    }


OLD, NEW = "71524", "71535"
NAMES = sorted(forms(OLD))


def test_there_are_forty_of_them() -> None:
    assert len(NAMES) == 20
    assert sum(len(secrets) for mark in (OLD, NEW) for _, secrets in forms(mark).values()) >= 40


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["values", "json", "toml"])
def test_no_form_of_secret_is_shown(name: str, kind: str) -> None:
    (old, secrets), (new, others) = forms(OLD)[name], forms(NEW)[name]
    for before, after in (({}, new), (old, {}), (old, new)):
        if kind == "values":
            shown = "\n".join(values_diff(before, after, "before", "after"))
        else:
            write = json.dumps if kind == "json" else tomlkit.dumps
            shown = "\n".join(file_difference(f"/etc/x.{kind}", write(before), write(after)))
        assert shown, "that something changes is seen"
        assert not [secret for secret in secrets + others if secret in shown], shown


def test_what_cannot_be_parsed_is_not_shown() -> None:
    for path in ("/etc/a.json", "/etc/a.toml", "/etc/crio/crio.conf"):
        (line,) = file_difference(path, "{ 'password' s3cret", "{}")
        assert "s3cret" not in line


def test_a_comment_is_not_shown() -> None:
    shown = file_difference("/etc/a.toml", "", "# password: s3cret\nversion = 2 # s3cret\n")
    assert shown[-1] == "+version: 2"


RUNTIMES = {"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (RUNTIMES, "+runtimes.nvidia.path: nvidia-container-runtime"),
        ({"features": {"cdi": True}}, "+features.cdi: True"),
        ({"plugins": {"a.b": {"runtime_type": "x"}}}, '+plugins."a.b".runtime_type: x'),
        ({"cdi_spec_dirs": ["/etc/cdi", "/run/cdi"]}, "+cdi_spec_dirs[1]: /run/cdi"),
        ({"tolerations": [{"key": "gpu", "value": "yes"}]}, "+tolerations[0].key: gpu"),
        ({"secretName": "tls"}, "+secretName: tls"),
        ({"metricLabelsAllowlist": ["nodes=[*]"]}, "+metricLabelsAllowlist[0]: nodes=[*]"),
        (
            {"relabelings": [{"sourceLabels": ["a"], "targetLabel": "node"}]},
            "+relabelings[0].targetLabel: node",
        ),
        ({"podAnnotations": {"gpufleet/counters": "x"}}, '+podAnnotations."gpufleet/counters": x'),
    ],
)
def test_what_gpufleet_sets_is_shown(values: dict[str, Any], line: str) -> None:
    assert line in file_difference("/etc/x.json", "{}", json.dumps(values))


def test_a_path_of_something_else_is_masked() -> None:
    assert masked({"hook": {"path": "/T0/s3cret"}}) == {"hook": {"path": "***"}}


@pytest.mark.parametrize(
    "text",
    [
        "password=s3cret, with } and ' in it",
        'password = "s3cret \\" s3cret"',
        "password='s3cret's3cret'",
        "baseurl=https://s3cret@host/x",
        "proxy=http://user:p@s3cret/s3cret@host/",
        "proxy_password=s3cret\nname=x",
        'Environment="API_TOKEN=s3cret s3cret"',
        "Authorization: Basic s3crets3cret",
        "-----BEGIN RSA PRIVATE KEY-----\ns3cret\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\ns3cret",
        "aws_access_key_id: s3cret",
    ],
)
def test_lines_of_other_files(text: str) -> None:
    assert "s3cret" not in redact(text)
    assert "s3cret" not in "\n".join(file_difference("/etc/x.conf", "", text))


@pytest.mark.parametrize(
    "text", ["http://host:5000/image@sha256:abc", "oci://host/charts", "see https://a/b, mail a@b"]
)
def test_addresses_without_a_login_stay(text: str) -> None:
    assert redact(text) == text


KEYS = st.text("abcdefgh", min_size=1, max_size=6)


@given(st.recursive(st.just("s3cret"), lambda x: st.lists(x) | st.dictionaries(KEYS, x)))
def test_text_under_unknown_keys_is_never_shown(value: Any) -> None:
    assert "s3cret" not in json.dumps(masked({"x": value}))


@pytest.mark.parametrize("name", NAMES)
def test_an_error_that_quotes_values_does_not_show_them(name: str) -> None:
    value, secrets = forms(OLD)[name]
    for quoted in (json.dumps(value), str(value), yaml.safe_dump(value, width=1000)):
        shown = without(f'Invalid value: {quoted}: must be "https"', value)
        assert not [secret for secret in secrets if secret in shown], shown
        assert shown.startswith("Invalid value: ")


def test_what_is_no_secret_stays_in_an_error() -> None:
    values = {"image": {"tag": "4.8.2"}, "replicas": 3, "env": [{"name": "LOG", "value": "on"}]}
    text = "env[0].name: LOG of image 4.8.2 with 3 replicas is on"
    assert without(text, values) == text


def test_a_word_is_hidden_where_its_key_says_that_it_is_a_secret() -> None:
    values = {
        "annotations": {"why": "ImagePullBackOff"},
        "env": [{"name": "PASSWORD", "value": "horse"}],
    }
    assert without("ImagePullBackOff: horse", values) == "ImagePullBackOff: ***"


def test_a_secret_that_begins_as_another_is_hidden_whole() -> None:
    values = {"password": "abcd1234", "token": "abcd1234efgh"}
    assert without("with abcd1234efgh and abcd1234", values) == "with *** and ***"


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("secret", "refused: client_secret: hunter2swordfish"),
        ("password", 'refused: {"password": "hunter2swordfish"}'),
        ("https", "GET https://bob:hunter2swordfish@host/"),
        ("x-api-key", "x-api-key: hunter2swordfish"),
        ("private", "private_key: hunter2swordfish"),
        ("Bearer", "with Bearer hunter2swordfish"),
        ("docker", "docker login -p hunter2swordfish"),
    ],
)
def test_a_secret_that_is_a_word_does_not_show_another(secret: str, text: str) -> None:
    data = {"admin": {"password": secret}}
    for shown in (without(text, data), hide(text, secret_texts(data))):
        assert "hunter2" not in shown
        assert secret not in shown


@pytest.mark.parametrize("key", ["ngc_key", "subscriptionKey", "X-JFrog-Art-Api", "db_pass_1"])
def test_what_an_inventory_has_below_a_secret_key_is_known(key: str) -> None:
    assert "hunter2swordfish" in secret_texts({key: "hunter2swordfish"})
    assert not secret_texts({"bypass_mode": "hunter2swordfish"})
