"""Values and files are shown with their structure, but without text that may be a secret."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from gpufleet.core.masks import file_difference, mask_value
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
        "image": ({"image": f"https://user:{plain}@host/image"}, [plain]),
    }


OLD, NEW = "71524", "71535"
NAMES = sorted(forms(OLD))


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
        ({"additionalLabels": {"release": "kps"}}, "+additionalLabels.release: kps"),
        ({"matchLabels": {"app": "x"}}, "+matchLabels.app: x"),
        ({"labels": {"password": "x"}}, "+labels.password: ***"),
        ({"config": {"map": {"mig-4": "version: v1"}}}, "+config.map.mig-4: version: v1"),
        ({"x": {"config": {"data": {"whole": "{}"}}}}, "+x.config.data.whole: {}"),
        ({"podAnnotations": {"gpufleet/counters": "x"}}, '+podAnnotations."gpufleet/counters": x'),
    ],
)
def test_what_gpufleet_sets_is_shown(values: dict[str, Any], line: str) -> None:
    assert line in file_difference("/etc/x.json", "{}", json.dumps(values))


def test_a_path_of_something_else_is_masked() -> None:
    assert mask_value({"hook": {"path": "/T0/s3cret"}}) == {"hook": {"path": "***"}}
    assert mask_value({"data": {"config": "s3cret"}}) == {"data": {"config": "***"}}


def test_lines_of_other_files_are_shown() -> None:
    shown = file_difference("/etc/x.repo", "a=1\n", "a=2\n")
    assert shown[-2:] == ["-a=1", "+a=2"]


@pytest.mark.parametrize(
    "line",
    [
        "proxy_password=s3cret",
        "deb https://user:s3cret@repository.example/ stable main",
        "URIs: https://user:s3cret@repository.example/",
    ],
)
def test_logins_in_lines_of_other_files_are_masked(line: str) -> None:
    shown = file_difference("/etc/x", f"{line}\nenabled=1\n", f"{line}\nenabled=0\n")
    assert shown[-2:] == ["-enabled=1", "+enabled=0"]
    assert "s3cret" not in "".join(shown)
    assert "s3cret" not in "".join(file_difference("/etc/x", f"{line}\n", ""))
    assert file_difference("/etc/x", line, line.replace("s3cret", "s4cret"))


def test_a_file_with_a_login_is_not_shown() -> None:
    (line,) = file_difference("/etc/apt/auth.conf.d/x", "password s3cret", "", secret=True)
    assert "s3cret" not in line


KEYS = st.text("abcdefgh", min_size=1, max_size=6)


@given(st.recursive(st.just("s3cret"), lambda x: st.lists(x) | st.dictionaries(KEYS, x)))
def test_text_under_unknown_keys_is_never_shown(value: Any) -> None:
    assert "s3cret" not in json.dumps(mask_value({"x": value}))
