"""A removal leaves docker and containerd as healthy as they reported before."""

from __future__ import annotations

import pytest
from deploying import Outcome, run_deploy
from snapshots import differences, snapshot

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.extended,
    pytest.mark.claim(
        "A removal that would leave docker or containerd without its default runtime changes "
        "nothing.",
        level=3,
    ),
]

DAEMON_JSON, CONFIG_TOML = "/etc/docker/daemon.json", "/etc/containerd/config.toml"
NAMED = '[plugins."io.containerd.grpc.v1.cri".containerd]\ndefault_runtime_name = "nvidia"\n'
KATA = """[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.kata]
runtime_type = "io.containerd.kata.v2"
"""


@pytest.fixture(scope="module")
def host(bare_host: HostFactory) -> Host:
    found = bare_host("debian12")
    found.run(f"rm -f {CONFIG_TOML} && systemctl restart containerd")
    return found


@pytest.fixture(scope="module")
def installed(host: Host) -> Outcome:
    done = run_deploy("gpu_node", [host])
    assert done.returncode == 0, done.output
    return done


def cri(host: Host) -> str:
    """containerd's status of the plugin that a kubelet uses."""
    return host.output("ctr plugins ls | awk '$2 == \"cri\" { print $NF }'").strip()


def test_the_users_default_runtime_blocks_removal_before_any_change(
    host: Host, installed: Outcome
) -> None:
    """Both runtimes would name a default that is gone; nothing on the host changes."""
    ours, docker = host.get(CONFIG_TOML), host.get(DAEMON_JSON)
    host.put(CONFIG_TOML, ours + NAMED)
    host.put(DAEMON_JSON, '{"default-runtime": "nvidia",' + docker.lstrip()[1:])
    host.run("systemctl restart containerd docker")
    was = snapshot(host)
    done = run_deploy("remove", [host])
    assert done.returncode == 1, done.output
    reported = [f["message"] for f in done.report[host.name]["findings"] if f["code"] == "GF435"]
    assert sorted(message.split()[0] for message in reported) == [
        "default-runtime",
        "default_runtime_name",
    ]
    assert differences(was, snapshot(host)) == {}
    assert cri(host) == "ok"
    host.put(CONFIG_TOML, ours)
    host.put(DAEMON_JSON, docker)


def test_the_users_runtime_keeps_what_it_needs(host: Host, installed: Outcome) -> None:
    """containerd 1.x drops runc once a file names another runtime: gpufleet's runc table stays."""
    host.put(CONFIG_TOML, host.get(CONFIG_TOML) + KATA)
    host.run("systemctl restart containerd docker")
    assert cri(host) == "ok"
    done = run_deploy("remove", [host])
    assert done.returncode == 0, done.output
    assert "GF434" in done.codes(host.name)
    left = host.get(CONFIG_TOML)
    assert "nvidia" not in left
    assert "gpufleet" not in left
    assert "runtimes.runc]" in left
    assert left.endswith(KATA)
    assert cri(host) == "ok"
    assert host.output("docker info --format '{{.DefaultRuntime}}'").strip() == "runc"
