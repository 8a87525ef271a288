"""No setting accepts a name or password in a URL; the finding says where to set them."""

from __future__ import annotations

import pytest

from gpufleet.gpu_stack.settings import CLUSTER_ROLES, load_cluster_settings
from gpufleet.node.settings import load_node_settings
from gpufleet.role.listing import node_settings

URLS = [
    role.prefix + name
    for role in (*node_settings(), *CLUSTER_ROLES)
    for name in role.model_fields
    if name.endswith("url") or name == "chart_repository"
]
INSTEAD = {
    "driver_repo_url": "driver_repo_logins",
    "node_archives_url": "driver_repo_logins",
    "toolkit_repo_url": "toolkit_repo_logins",
    "cluster_chart_repository": "cluster_chart_logins",
}


@pytest.mark.parametrize(
    "login", ["user:s3cret", "s3cret", "user:s3/cret", "user:s3@cret", "us:$s3"]
)
@pytest.mark.parametrize("key", URLS)
def test_an_address_with_a_login_is_refused_and_not_repeated(key: str, login: str) -> None:
    data = {key: f"https://{login}@mirror.example/x"}
    node = key.startswith(tuple(role.prefix for role in node_settings()))
    settings, problems = load_node_settings(data) if node else load_cluster_settings(data)
    assert settings is None
    (problem,) = problems
    assert key in problem.message
    said = problem.message + problem.remedy
    assert "s3" not in said
    if "$" not in login and "/" not in login:
        assert INSTEAD.get(key, "") in said
    assert load_node_settings({"driver_repo_url": "https://mirror.example:8443/x"})[0]


@pytest.mark.parametrize("end", ["?sv=1&sig=s3cret", "/x?X-Amz-Signature=s3cret", "#s3cret"])
@pytest.mark.parametrize("key", URLS)
def test_an_address_with_a_token_behind_it_is_refused_and_not_repeated(key: str, end: str) -> None:
    data = {key: f"https://mirror.example/repos{end}"}
    node = key.startswith(tuple(role.prefix for role in node_settings()))
    settings, problems = load_node_settings(data) if node else load_cluster_settings(data)
    assert settings is None
    (problem,) = problems
    assert "https://mirror.example/repos" in problem.message
    assert "s3cret" not in problem.message + problem.remedy


@pytest.mark.parametrize(
    "data",
    [
        {"monitoring_values": "grafana: {password: s3cret}"},
        {"monitoring_enabled": {"adminPassword": "s3cret"}},
        {"cluster_context": {"x": ["s3cret"]}},
    ],
)
def test_a_wrong_value_is_repeated_without_its_secrets(data: dict[str, object]) -> None:
    settings, problems = load_cluster_settings(data)
    assert settings is None
    (problem,) = problems
    assert "s3cret" not in problem.message + problem.remedy
