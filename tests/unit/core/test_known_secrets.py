"""Secrets of an inventory that stand in another key too: no error of its settings shows them."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.gpu_stack.settings import load_cluster_settings
from gpufleet.node.settings import load_settings

SECRET = "correct horse/77"
URL = "https://carrier:s3same.open@mirror.example.com/nvidia"
# Data of a host -> the secret in it, which another key repeats.
HOLDERS: dict[str, tuple[dict[str, Any], str]] = {
    "a password": ({"ssh_password": SECRET}, SECRET),
    "a password of privileges": ({"_sudo_password": SECRET}, SECRET),
    "a token of the user's": ({"wandb_token": SECRET}, SECRET),
    "a further name of one": ({"smtp_pwd": SECRET}, SECRET),
    "a short one": ({"bmc_password": "k7"}, "k7"),
    "a number": ({"bmc_password": 4711}, "4711"),
    "bytes": ({"bmc_password": b"s3same.open"}, "s3same.open"),
    "one of a mapping": ({"vault": {"registry": {"password": SECRET}}}, SECRET),
    "one of a list": ({"tokens": ["none", SECRET]}, SECRET),
    "one of a set": ({"tokens": {SECRET}}, SECRET),
    "a variable": ({"env": [{"name": "API_TOKEN", "value": SECRET}]}, SECRET),
    "a line of several": ({"registry_secret": f"first line\n{SECRET}\n"}, SECRET),
    "with a quote": ({"ssh_password": "it's\\fine"}, "it's\\fine"),
    "a login of a URL": ({"proxy": URL}, "s3same.open"),
    "an encoded login of a URL": ({"proxy": URL.replace("s3same.", "s3same%2F")}, "s3same/open"),
    "a token in a URL": ({"proxy": "https://abcd1234efgh@mirror.example.com/"}, "abcd1234efgh"),
    "a token in a command": ({"start": "run --api-key abcd1234 now"}, "abcd1234"),
    "one of an object in a text": (
        {"hub": '{\n "auths": {\n  "password": "abcd1234"\n }\n}'},
        "abcd1234",
    ),
    "one of a table in a text": ({"conf": 'auth = {\n  password = "abcd1234"\n}\n# x'}, "abcd1234"),
    "one of a list in a text": ({"conf": 'tokens: [\n  "abcd1234"\n]'}, "abcd1234"),
    "one without quotes": ({"conf": "tokens: [\n  abcd0000,\n  abcd1234\n]"}, "abcd1234"),
    "one of an object in a list": ({"conf": 'x_auth: [\n  {"n": "b", "token": "fish"}\n]'}, "fish"),
    "one of an object alone": ({"conf": 'auth: {\n  "bob": "swordfish12"\n}'}, "swordfish12"),
    "one of a key of an object": (
        {"conf": "auth: {\n password: correct horse\n}"},
        "correct horse",
    ),
    "one with a quote": ({"conf": 'tokens: [\n  "it\'s-abcd"\n]'}, "it's-abcd"),
    "a query": ({"bucket": "https://mirror.example.com/a?token=abcd1234"}, "abcd1234"),
}
# Key -> a wrong value that repeats the secret.
REPEATS: dict[str, Any] = {
    "driver_branch": "{}",
    "driver_source": "{}",
    "toolkit_version": "v-{}",
    "toolkit_runtimes": ["docker", "{}"],
    "driver_repo_url": "ftp://mirror.example.com/ {}/x",
    "node_lock_timeout": ["{}"],
    "exporter_counters": "DCGM_FI_DEV_GPU_UTIL, gauge, help\n{}",
    "exporter_listen": "{}",
    "toolkit_containerd_config": "{} /etc",
}


def filled(value: Any, secret: str) -> Any:
    if isinstance(value, list):
        return [filled(each, secret) for each in value]
    return value.replace("{}", secret)


@pytest.mark.parametrize("holder", HOLDERS)
def test_an_error_of_a_host_repeats_no_secret(holder: str) -> None:
    data, secret = HOLDERS[holder]
    wrong = {key: filled(value, secret) for key, value in REPEATS.items()}
    settings, found = load_settings({**data, **wrong})
    assert settings is None
    assert sorted(finding.message.split(" ")[0] for finding in found) == sorted(REPEATS)
    for finding in found:
        assert secret not in str(finding)
        assert repr(secret)[1:-1] not in str(finding)
        assert "***" in finding.message


def test_a_secret_counts_within_a_word_unless_it_is_very_short() -> None:
    _, (found,) = load_settings({"bmc_password": 4711, "driver_branch": "R4711"})
    assert found.message.startswith("driver_branch = 'R***' must")
    _, (found,) = load_settings({"bmc_password": 7, "driver_branch": "R570"})
    assert found.message.startswith("driver_branch = 'R570' must")


def test_an_error_of_a_cluster_repeats_no_secret() -> None:
    data = {"grafana_admin_password": SECRET, "registry_token": "s3same-open"}
    wrong = {
        "cluster_chart_versions": {SECRET: "1.2.3"},
        "cluster_charts": SECRET,
        "cluster_chart_dir": f"/charts/{SECRET}",
        "cluster_chart_repository": "http://charts.example.com/s3same-open",
    }
    settings, found = load_cluster_settings(data | wrong)
    assert settings is None
    _, both = load_cluster_settings(data | dict(list(wrong.items())[2:]))
    assert {finding.code for finding in both} == {"GF203"}
    for finding in (*found, *both):
        assert SECRET not in str(finding)
        assert "s3same-open" not in str(finding)


def test_a_value_without_one_is_shown_as_it_is() -> None:
    data = {"ssh_password": "driver", "bmc_password": "80", "proxy": "https://git@mirror/x"}
    _, (found,) = load_settings({**data, "driver_branch": "R580-git"})
    assert found.message.startswith("driver_branch = 'R580-git' must be three digits")
    assert "driver_version takes a whole version" in found.message
    _, (found,) = load_settings({"bmc_password": "a", "driver_version": "a b"})
    assert found.message.startswith("driver_version = '*** b' must be a whole version, such as")
    _, (found,) = load_cluster_settings({"monitoring_grafana_existing_secret": 12345})
    assert found.message.startswith("monitoring_grafana_existing_secret = 12345 must be text")
