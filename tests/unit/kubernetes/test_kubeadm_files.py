"""kubeadm's configuration files have the user's settings. Secrets are in no other file."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpufleet.kubernetes.access import administrator_kubeconfig, may_replace
from gpufleet.kubernetes.kubeadm import OLD_API, JoinToken, init_configuration, join_configuration
from gpufleet.node.settings import load_node_settings
from tests.unit.kubernetes.kubeadm_files_setup import API, settings_of

TOKEN = JoinToken("10.0.0.1:6443", "abcdef.0123456789abcdef", "sha256:" + "0" * 64, "1.36.3")
CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}


def documents(text: str) -> dict[str, Any]:
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def test_the_file_of_init() -> None:
    kubelet = {"cgroupDriver": "cgroupfs", "kind": "Other"}
    text = init_configuration(settings_of(kubelet=kubelet, etcd_tag="3.7.2-0"), "1.36.3", API)
    found = documents(text)
    assert found["ClusterConfiguration"]["kubernetesVersion"] == "v1.36.3"
    assert found["ClusterConfiguration"]["etcd"]["local"]["imageTag"] == "3.7.2-0"
    assert found["KubeletConfiguration"]["cgroupDriver"] == "cgroupfs"
    (token,) = found["InitConfiguration"]["bootstrapTokens"]
    assert token == {"ttl": "1m0s"}  # an empty list would be a token for a day


@pytest.mark.parametrize("api", [API, OLD_API])
@pytest.mark.parametrize(
    ("address", "in_url"), [("0.0.0.0", "0.0.0.0"), ("::", "[::]"), ("127.0.0.1", "127.0.0.1")]
)
def test_metrics_can_be_scraped(api: str, address: str, in_url: str) -> None:
    """kubeadm's default is 127.0.0.1: alerts of kube-prometheus-stack would fire at once.
    https://github.com/prometheus-community/helm-charts/issues/4924"""
    found = documents(init_configuration(settings_of(metrics_address=address), "1.36.3", api))
    cluster = found["ClusterConfiguration"]
    parts = (cluster["controllerManager"], cluster["scheduler"], cluster["etcd"]["local"])
    said = [each["extraArgs"] for each in parts]
    if api == API:
        said = [{each["name"]: each["value"] for each in listed} for listed in said]
    bind = {"bind-address": address}
    assert said == [bind, bind, {"listen-metrics-urls": f"http://{in_url}:2381"}]
    assert found["KubeProxyConfiguration"]["metricsBindAddress"] == f"{in_url}:10249"


def test_a_user_says_where_kube_proxy_listens() -> None:
    own = {"metricsBindAddress": "10.0.0.1:10249", "mode": "ipvs"}
    found = documents(init_configuration(settings_of(kube_proxy=own), "1.36.3", API))
    assert own.items() <= found["KubeProxyConfiguration"].items()


@pytest.mark.parametrize("address", ["0.0.0.0:2381", "any", "fe80::1%eth0", ""])
def test_addresses_that_are_refused(address: str) -> None:
    settings, problems = load_node_settings({"kubernetes_metrics_address": address})
    assert settings is None
    assert "must be an IP address" in str(problems[0])


def test_the_token_is_in_the_file_of_join_and_nowhere_else() -> None:
    found = yaml.safe_load(join_configuration(settings_of(), TOKEN, API))["discovery"][
        "bootstrapToken"
    ]
    assert found["token"] == TOKEN.token
    assert found["caCertHashes"] == [TOKEN.hash]
    assert "unsafeSkipCAVerification" not in found
    assert TOKEN.token not in repr(TOKEN)


def registration(part: str, **data: Any) -> dict[str, Any]:
    settings = settings_of(**data)
    if part == "worker":
        text = join_configuration(settings, TOKEN, API)
    else:
        text = init_configuration(settings, "1.36.3", API)
    found: dict[str, Any] = next(iter(documents(text).values()))["nodeRegistration"]
    return found


OWN = {"key": "gpu", "value": "h100", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("part", "data", "taints"),
    [
        ("control-plane", {}, None),  # kubeadm's own taint
        ("control-plane", {"control_plane_pods": True}, []),
        ("control-plane", {"taints": ["gpu=h100:NoSchedule"]}, [CONTROL_PLANE, OWN]),
        ("control-plane", {"control_plane_pods": True, "taints": ["gpu=h100:NoSchedule"]}, [OWN]),
        ("worker", {"control_plane_pods": True}, None),
        ("worker", {"taints": ["gpu=h100:NoSchedule"]}, [OWN]),
        ("worker", {"taints": ["gpu:NoExecute"]}, [{"key": "gpu", "effect": "NoExecute"}]),
    ],
    ids=str,
)
def test_taints(part: str, data: dict[str, Any], taints: list[dict[str, str]] | None) -> None:
    found = registration(part, **data).get("taints")
    if part == "worker" and taints is None:
        assert not found
    else:
        assert found == taints


def test_labels_are_of_the_nodes_start() -> None:
    found = registration("worker", labels={"rack": "r7", "example.com/zone": "b"})
    for allowed in ("topology.kubernetes.io/zone", "x.node.kubernetes.io/a", "mykubernetes.io/a"):
        assert settings_of(labels={allowed: "a"}).labels
    assert found["kubeletExtraArgs"] == [
        {"name": "node-labels", "value": "example.com/zone=b,rack=r7"}
    ]


@pytest.mark.parametrize(
    "data",
    [
        {"labels": {"node-role.kubernetes.io/gpu": ""}},
        {"labels": {"topology.k8s.io/zone": "a"}},
        {"labels": {"kubernetes.io/role": "gpu"}},
        {"labels": {"rack": "a,b=c"}},
        {"labels": {"rack one": "a"}},
        {"taints": ["gpu"]},
        {"taints": ["gpu=a:Never"]},
        {"version": 1.36},
        {"pod_subnet": "10.244"},
        {"pod_subnet": "fd00:10:244::/56"},  # flannel has IPv4 alone
    ],
    ids=str,
)
def test_what_a_kubelet_would_refuse_is_refused_here(data: dict[str, Any]) -> None:
    keys = {f"kubernetes_{key}": value for key, value in data.items()}
    settings, problems = load_node_settings(keys)
    assert settings is None
    assert [each.message for each in problems if f"kubernetes_{next(iter(data))}" in each.message]


def test_another_network_may_have_ipv6() -> None:
    keys = {"kubernetes_network": "none", "kubernetes_pod_subnet": "fd00:10:244::/56"}
    settings, problems = load_node_settings(keys)
    assert settings is not None, problems


def access(*servers: str) -> str:
    return yaml.safe_dump({"clusters": [{"cluster": {"server": server}} for server in servers]})


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ("", True),
        (access("https://a:6443"), True),  # its certificates were renewed
        (access("https://b:6443"), False),
        (access("https://a:6443", "https://b:6443"), False),
        ("a note of the user's", False),
        ("{", False),
    ],
)
def test_only_the_access_to_this_cluster_is_replaced(there: str, expected: bool) -> None:
    assert may_replace(there, access("https://a:6443")) is expected


ADMIN: dict[str, Any] = {
    "clusters": [
        {"name": "c", "cluster": {
            "server": "https://a:6443", "certificate-authority-data": "Q0E="}},
    ],
    "users": [
        {"name": "u", "user": {"client-certificate-data": "Q0E=", "client-key-data": "S0VZ"}},
    ],
}  # fmt: skip


def test_the_access_has_certificates_and_a_server() -> None:
    found = yaml.safe_load(
        administrator_kubeconfig(yaml.safe_dump({**ADMIN, "preferences": {"a": 1}}))
    )
    assert found["clusters"][0]["cluster"] == ADMIN["clusters"][0]["cluster"]
    assert found["users"][0]["user"] == ADMIN["users"][0]["user"]
    assert "preferences" not in found
    assert administrator_kubeconfig(yaml.safe_dump(found)) == yaml.safe_dump(found, sort_keys=False)


def changed(part: str, **entries: Any) -> str:
    kind, name = ("users", "user") if part == "user" else ("clusters", "cluster")
    inner = {**ADMIN[kind][0][name], **entries}
    return yaml.safe_dump({**ADMIN, kind: [{"name": "x", name: inner}]})


@pytest.mark.parametrize(
    "text",
    [
        changed("user", exec={"command": "sh", "apiVersion": "client.authentication.k8s.io/v1"}),
        changed("user", tokenFile="/etc/hostname"),
        changed("user", **{"client-key-data": "no base64"}),
        changed("cluster", **{"proxy-url": "http://x"}),
        changed("cluster", server="http://a:6443"),
        yaml.safe_dump({**ADMIN, "users": ADMIN["users"] * 2}),
        changed("cluster", server=["https://a:6443"]),
        changed("user", **{"client-key-data": 7}),
        yaml.safe_dump({**ADMIN, "users": [{"name": "u", "user": None}]}),
        yaml.safe_dump(ADMIN).replace("https://a:6443", "&a [*a]"),
        "",
        "- 1",
        "{",
        "x" * 200_000,
    ],
    ids=lambda text: text[:20],
)
def test_a_host_names_no_program_and_no_file_of_this_machine(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(it|its|client-key-data) "):
        administrator_kubeconfig(text)


def test_a_list_of_lists_of_lists_is_not_written_out() -> None:
    """Each level doubles the list: 40 levels are a few lines, but exhaust any memory."""
    lists = "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 10))
    text = "a0: &a0 [1]\n" + lists + yaml.safe_dump(ADMIN).replace("https://a:6443", "*a9")
    with pytest.raises(ValueError, match="it has a YAML alias"):
        administrator_kubeconfig(text)
