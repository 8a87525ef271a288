"""The scripts around joins and departures of control planes, with fake kubectl and kubeadm."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpufleet.host.shell import SHARED_FUNCTIONS, script_command, script_file

KUBECTL = """#!/bin/sh
echo "kubectl $*" >>{folder}/log
cat {folder}/kubectl.out
exit "$(cat {folder}/kubectl.status)"
"""
KUBEADM = """#!/bin/sh
echo "kubeadm $*" >>{folder}/log
case $1 in
    token) echo abcdef.0123456789abcdef ;;
    init) cat >{folder}/config; echo "Using certificate key: no secret may be printed" ;;
esac
"""
SMALL = {
    "kubelet": "#!/bin/sh\necho Kubernetes v1.36.3\n",
    "openssl": "#!/bin/sh\necho key\n",
    "sleep": "#!/bin/sh\nprintf 0 >{folder}/kubectl.status\n",  # ends the wait
}


@dataclass(frozen=True, slots=True)
class Bench:
    """A folder of fake programs and of the files that the scripts know."""

    folder: Path

    def run(self, name: str, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        text = script_command(f"kubernetes/{name}", *words).get_raw_value()
        text = text.replace("/etc/kubernetes", f"{self.folder}/etc")
        text = text.replace("/proc/sys/kernel/hostname", f"{self.folder}/name")
        text = text.replace("\nPATH=", f"\nPATH={self.folder}:", 1)
        return subprocess.run(
            ["sh", "-c", text], input=given, capture_output=True, text=True, check=False
        )

    def kubectl(self, output: str, status: int = 0) -> None:
        (self.folder / "kubectl.out").write_text(output)
        (self.folder / "kubectl.status").write_text(str(status))

    @property
    def log(self) -> list[str]:
        file = self.folder / "log"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    for name, text in {"kubectl": KUBECTL, "kubeadm": KUBEADM, **SMALL}.items():
        (tmp_path / name).write_text(text.replace("{folder}", str(tmp_path)))
        (tmp_path / name).chmod(0o755)
    pki = tmp_path / "etc" / "pki"
    pki.mkdir(parents=True)
    (pki / "ca.crt").touch()
    (tmp_path / "etc" / "admin.conf").write_text("    server: https://k8s.lab:6443\n")
    (tmp_path / "name").write_text("CP-2\n")
    made = Bench(tmp_path)
    made.kubectl("")
    return made


def test_the_api_server_is_asked_without_the_proxies_of_a_login(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet does not use them. A proxy that refuses the API server stopped only kubeadm."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://proxy.example.com:3128")
        monkeypatch.setenv(name.upper(), "http://proxy.example.com:3128")
    (bench.folder / "kubectl").write_text(f"#!/bin/sh\nenv >>{bench.folder}/log\n")
    assert bench.run("withdraw").returncode == 0
    assert bench.log
    assert not [line for line in bench.log if "proxy.example.com" in line]


def test_no_script_asks_the_api_server_by_the_proxies_of_a_login() -> None:
    folder = script_file("kubernetes/ready").parent
    asks = re.compile(r"^[^#\n]*\bkube(adm|ctl) ", re.MULTILINE)
    asking = [path.stem for path in folder.glob("*.sh") if asks.search(path.read_text())]
    shared = SHARED_FUNCTIONS["kubernetes/api_access"]
    assert sorted(shared) == sorted(f"kubernetes/{name}" for name in asking)


def test_a_worker_gets_a_token_and_no_certificates(bench: Bench) -> None:
    done = bench.run("token", "15")
    words = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert words["endpoint"] == "k8s.lab:6443"
    assert words["token"] == "abcdef.0123456789abcdef"
    assert words["version"] == "1.36.3"
    assert [line.split()[1] for line in bench.log] == ["token"]


def test_a_control_plane_gets_certificates_by_a_key_that_is_not_printed(bench: Bench) -> None:
    done = bench.run("token", "15", "certificates", given="certificateKey: secret\n")
    assert done.returncode == 0, done.stderr
    assert (bench.folder / "config").read_text() == "certificateKey: secret\n"
    assert "secret" not in done.stdout + done.stderr + "\n".join(bench.log)
    assert "--skip-certificate-key-print --config /dev/stdin" in bench.log[1]


def test_the_secret_and_what_it_expires_by_are_removed(bench: Bench) -> None:
    bench.kubectl("bootstrap-token-abcdef")
    assert bench.run("withdraw").returncode == 0
    assert "delete secret kubeadm-certs bootstrap-token-abcdef --ignore-not-found" in bench.log[1]
    bench.kubectl("", status=1)
    assert bench.run("withdraw").returncode == 1


@pytest.mark.parametrize(
    ("said", "status", "expected"),
    [
        ('{"gitVersion": "v1.36.3"}', 0, 1),
        ('Error from server (Forbidden): forbidden: User "system:anonymous"', 1, 1),
        ("error: You must be logged in to the server (Unauthorized)", 1, 1),
        ("The connection to the server k8s.lab:6443 was refused", 1, 0),
        ("Error from server (ServiceUnavailable): 503", 1, 0),
    ],
)
def test_no_cluster_begins_where_another_answers(
    bench: Bench, said: str, status: int, expected: int
) -> None:
    bench.kubectl(said, status)
    done = bench.run("unanswered", "GF081 message", "k8s.lab:6443")
    assert done.returncode == expected
    assert done.stderr.startswith("GF081 message") is bool(expected)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("cp-1 True\ncp-2 True\ncp-3 True\n", 0),
        ("cp-1 True\ncp-2 True\ncp-3 False\n", 1),  # of two, both have to be
        ("cp-1 True\ncp-2 True\ncp-3 Unknown\ncp-4 True\n", 0),
        ("cp-1 Unknown\ncp-2 True\n", 1),
        ("cp-1 True\ncp-2 False\n", 0),
        ("cp-2 True\n", 0),  # the last one
        ("", 0),
    ],
)
def test_a_control_plane_leaves_only_if_the_others_can_do_without(
    bench: Bench, nodes: str, expected: int
) -> None:
    bench.kubectl(nodes)
    leaving = bench.folder / "leaving"
    done = bench.run("leave", "GF086 message", str(leaving))
    assert done.returncode == expected, done.stderr
    assert leaving.exists() is not expected
    if not expected:
        assert leaving.stat().st_mode & 0o777 == 0o600


def test_a_cluster_that_does_not_answer_is_not_left(bench: Bench) -> None:
    bench.kubectl("connection refused", status=1)
    done = bench.run("leave", "GF086 message", str(bench.folder / "leaving"))
    assert (done.returncode, "connection refused" in done.stderr) == (1, True)
    (bench.folder / "etc" / "admin.conf").unlink()
    assert bench.run("leave", "GF086 message", str(bench.folder / "leaving")).returncode == 0


def test_the_node_goes_with_the_access_that_was_kept(bench: Bench) -> None:
    leaving = bench.folder / "leaving"
    leaving.touch()
    bench.kubectl("the load balancer still leads here", status=1)
    assert bench.run("delete_node", "GF088 message", "1", str(leaving)).returncode == 1
    assert leaving.exists()
    assert bench.run("delete_node", "GF088 message", "5", str(leaving)).returncode == 0
    assert not leaving.exists()
    assert len(bench.log) == 3
    assert all("delete node cp-2 --ignore-not-found" in line for line in bench.log)
    assert bench.run("delete_node", "GF088 message", "1", str(leaving)).returncode == 0
    assert len(bench.log) == 3
