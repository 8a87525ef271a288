"""Facts about kubeadm's requirements of a host, and about the files of a cluster on it."""

from __future__ import annotations

import base64

from fakehost import FakeHost

from gpufleet.facts.parse import parse_node_facts
from gpufleet.facts.sections.kubernetes import certificate_digest
from gpufleet.kubernetes.access import authority_digests, leads_elsewhere

BODY = base64.b64encode(bytes(range(90))).decode()
OTHER = base64.b64encode(bytes(range(90, 180))).decode()


def pem(body: str) -> str:
    lines = "\n".join(body[start : start + 64] for start in range(0, len(body), 64))
    return f"text before\n-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n"


def kubeconfig(text: str) -> str:
    data = base64.b64encode(text.encode()).decode()
    return f"clusters: [{{cluster: {{certificate-authority-data: {data}}}}}]"


def test_the_authorities_of_a_node_are_those_of_its_kubeconfig(
    host: FakeHost, shell: tuple[str, ...]
) -> None:
    """A kubeconfig has two authorities while the cluster's authority is replaced."""
    host.file("/etc/kubernetes/pki/ca.crt", pem(BODY) + pem(OTHER))
    found = parse_node_facts(host.gather(shell)).cluster_host
    assert found.authorities == {certificate_digest(BODY), certificate_digest(OTHER)}
    assert authority_digests(kubeconfig(pem(BODY) + pem(OTHER))) == found.authorities
    assert authority_digests(kubeconfig(pem(BODY))) < found.authorities


def test_text_without_a_certificate_names_no_authority(
    host: FakeHost, shell: tuple[str, ...]
) -> None:
    host.file("/etc/kubernetes/pki/ca.crt", "none\n")
    assert parse_node_facts(host.gather(shell)).cluster_host.authorities == frozenset()
    for text in ("", "[", "{}", "clusters: []", kubeconfig("none"), "clusters: [{cluster: {}}]"):
        assert authority_digests(text) == frozenset()


def test_files_and_links_of_clusters(host: FakeHost, shell: tuple[str, ...]) -> None:
    there = {"/etc/kubernetes/kubelet.conf", "/sys/class/net/cni0/address", "/etc/cni/net.d/a.conf"}
    for path in there:
        host.file(path, "")
    found = parse_node_facts(host.gather(shell)).cluster_host.paths
    assert {path.removesuffix("/address") for path in there} == found


def test_the_interface_of_a_bmc_does_not_identify_a_host(
    host: FakeHost, shell: tuple[str, ...]
) -> None:
    """Many BMCs give it, on USB, the same address in all servers."""
    host.file("/sys/class/net/eno1/address", "3c:ec:ef:6f:1f:3c\n")
    host.file("/sys/class/net/eno1/device/vendor", "0x8086\n")
    host.file("/sys/class/net/enxbe3af2b6059f/address", "be:3a:f2:b6:05:9f\n")
    host.file("/sys/class/net/enxbe3af2b6059f/device/bInterfaceNumber", "00\n")
    found = parse_node_facts(host.gather(shell)).cluster_host
    assert found.macs == ("3c:ec:ef:6f:1f:3c",)


def test_files_of_k3s(host: FakeHost, shell: tuple[str, ...]) -> None:
    there = {"/etc/rancher/k3s/config.yaml", "/var/lib/rancher/k3s/agent"}
    host.file("/etc/rancher/k3s/config.yaml", "")
    host.file("/var/lib/rancher/k3s/agent/client-ca.crt", "")
    host.file("/etc/rancher/k3s/token", "secret")
    assert parse_node_facts(host.gather(shell)).cluster_host.paths == there


def test_a_kubeconfig_of_another_cluster_leads_elsewhere() -> None:
    own, other = frozenset((certificate_digest(BODY),)), kubeconfig(pem(OTHER))
    assert leads_elsewhere(other, own)
    assert not leads_elsewhere(kubeconfig(pem(BODY)), own)
    assert not leads_elsewhere(other, frozenset())  # the host's are unknown
    both = other.replace("]", f", {kubeconfig(pem(BODY)).removeprefix('clusters: [')}", 1)
    assert not leads_elsewhere(both, own)  # a user has merged files
    for text in ("", "clusters: [{cluster: {certificate-authority: /ca.crt}}]"):
        assert not leads_elsewhere(text, own)
