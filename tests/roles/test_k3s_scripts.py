"""Scripts of k3s, run by a shell with fake programs in a folder of their own."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

import pytest

from gpufleet.host.shell import script
from tests.roles.test_kubernetes_scripts import run

VERSION = "v1.32.2+k3s1"
REPORTED = f"k3s version {VERSION} (381620ef)\ngo version go1.23.6"
ROOTS = re.compile(r"""(?<![\w/.})*])/(?=(?:etc|var|run|sys)/|usr/local/bin/k3s\b)""")
K3S = (
    """#!/bin/sh
printf '%s\\n' "$*" >>{folder}/log
case "$*" in
    --version) printf '%s\\n' '"""
    + REPORTED
    + """' ;;
    'token create'*) echo a warning; echo K10ca::abcdef.0123456789abcdef ;;
    *jsonpath*InternalIP*) printf '10.0.0.7\\n' ;;
    *'get node'*) printf 'False the network is not ready' ;;
esac
"""
)
SYSTEMCTL = """#!/bin/sh
printf 'systemctl %s\\n' "$*" >>{folder}/log
[ "$1" != is-active ] || exit {active}
"""
JOURNAL = "#!/bin/sh\necho 'token K10 is wrong'\necho 'no default route'\n"
RULES = (
    "*filter\n:KUBE-API - [0:0]\n:CNI-DN-1 - [0:0]\n:OTHER - [0:0]\n-A INPUT -j KUBE-API\nCOMMIT\n"
)


SHIM = "/var/lib/rancher/k3s/data/a/bin/containerd-shim-runc-v2"


def confined(folder: Path, name: str, *words: str) -> str:
    """A script whose files are all below a folder; it fails the test if one is not."""
    text = str(script(f"kubernetes/{name}", *words).get_raw_value())
    text = ROOTS.sub(f"{folder}/", text)
    rest = text.replace(f"{folder}/", "below:")
    assert not re.search(r"""[ "'=(<>](/etc|/var|/run|/sys|/usr/local/bin/k3s)""", rest)
    return text


def carry_out(
    folder: Path, name: str, *words: str, active: int = 0, **programs: str
) -> subprocess.CompletedProcess[str]:
    usual = {"k3s": K3S, "journalctl": JOURNAL, "systemctl": SYSTEMCTL.replace(
        "{active}", str(active)
    )}  # fmt: skip
    return run(folder, confined(folder, name, *words), **{**usual, **programs})


def put(folder: Path, *parts: str, text: str = "x") -> Path:
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def log(folder: Path) -> list[str]:
    path = folder / "log"
    return path.read_text().splitlines() if path.exists() else []


SUM = f"#!/bin/sh\necho {hashlib.sha256(b'x').hexdigest()}\n"
CURL = '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\nprintf fetched >"$2"\n'


@pytest.mark.parametrize("url", ["", "https://mirror.example.com/k3s"])
def test_a_file_of_the_release_is_in_its_place_whole(tmp_path: Path, url: str) -> None:
    part, target = tmp_path / "part", tmp_path / "bin" / "program"
    content = "fetched" if url else "sent"
    if not url:
        part.write_text(content)
    digest = hashlib.sha256(content.encode()).hexdigest()
    words = (digest, str(target), "755", str(part), *([url, str(1 << 20), "60"] if url else []))
    done = run(tmp_path, script("kubernetes/k3s_put", "GF922", *words).get_raw_value(), curl=CURL)
    assert done.returncode == 0, done.stderr
    assert (target.read_text(), target.stat().st_mode & 0o777) == (content, 0o755)
    assert not part.exists()


def test_a_file_with_another_sha256_is_not_installed(tmp_path: Path) -> None:
    part, target = put(tmp_path, "part"), tmp_path / "bin" / "program"
    words = ("0" * 64, str(target), "755", str(part))
    done = run(tmp_path, script("kubernetes/k3s_put", "GF922 no", *words).get_raw_value())
    assert done.returncode == 1
    assert done.stderr.startswith("GF922 no\n  | its sha256 is ")
    assert not target.exists()
    assert not part.exists()


@pytest.mark.parametrize(
    ("program", "fetches", "seconds", "said"),
    [
        ("curl", "cat /dev/zero", "60", "it has more than 1 MiB, the limit for a file of k3s"),
        ("curl", "exec sleep 60", "0.2", "it was not done after 0.2 s, the longest"),
        ("wget", "cat /dev/zero", "60", "it has more than 1 MiB, the limit for a file of k3s"),
    ],
)
def test_a_mirror_does_not_fill_a_disk_or_keep_a_host_waiting(
    tmp_path: Path, program: str, fetches: str, seconds: str, said: str
) -> None:
    part, target = tmp_path / "part", tmp_path / "bin" / "program"
    fake = f'#!/bin/sh\nwhile [ "$1" != -o ] && [ "$1" != -O ]; do shift; done\n{fetches} >"$2"\n'
    words = ("0" * 64, str(target), "755", str(part), "https://m.example.com", "1048576", seconds)
    text = str(script("kubernetes/k3s_put", "GF922 no", *words).get_raw_value())
    if program == "wget":
        text = text.replace("has curl", "has no-curl")
    done = run(tmp_path, text, **{program: fake})
    assert done.returncode == 1
    assert done.stderr.startswith(f"GF922 no\n  | {said}")
    assert not part.exists()
    assert not target.exists()


def test_a_file_appears_with_its_mode_at_once(tmp_path: Path) -> None:
    """From a file beside it: between filesystems mv writes the target bit by bit."""
    part, target = put(tmp_path, "part"), put(tmp_path, "bin", "program", text="old")
    move = '#!/bin/sh\nstat -c "%a %n" "$2" >{folder}/log\nexec /bin/mv "$@"\n'
    words = (hashlib.sha256(b"x").hexdigest(), str(target), "755", str(part))
    text = script("kubernetes/k3s_put", "GF922 no", *words).get_raw_value()
    assert run(tmp_path, text, mv=move).returncode == 0
    mode, moved = log(tmp_path)[0].split()
    assert (mode, Path(moved).parent) == ("755", target.parent)
    assert target.read_text() == "x"
    failing = run(tmp_path, text, mv="#!/bin/sh\nexit 1\n", sha256sum=SUM)
    assert failing.returncode == 1
    assert [each.name for each in target.parent.iterdir()] == ["program"]


def start(folder: Path, version: str = VERSION, active: int = 0, seconds: str = "0",
          ) -> subprocess.CompletedProcess[str]:  # fmt: skip
    notes = (str(folder / "begun"), str(folder / "joined"))
    words = ("GF924 late", "GF923 other", *notes, "k3s.service", version, seconds)
    return carry_out(folder, "k3s_start", *words, active=active)


def test_a_node_that_has_joined_names_its_cluster(tmp_path: Path) -> None:
    agent = ("var", "lib", "rancher", "k3s", "agent")
    authority = put(tmp_path, *agent, "server-ca.crt", text="authority")
    put(tmp_path, *agent, "client-kubelet.crt")
    done = start(tmp_path)
    assert done.returncode == 0, done.stderr
    digest = hashlib.sha256(authority.read_bytes()).hexdigest()
    assert (tmp_path / "joined").read_text() == f"{digest}\n"
    assert not (tmp_path / "begun").exists()
    assert "systemctl enable -q k3s.service" in log(tmp_path)


@pytest.mark.parametrize("active", [0, 3])
def test_a_k3s_that_does_not_join_is_explained_without_secrets(tmp_path: Path, active: int) -> None:
    """Active without a certificate: an agent whose token is refused."""
    done = start(tmp_path, active=active)
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["GF924 late", "  | no default route"]
    assert ((tmp_path / "begun").exists(), (tmp_path / "joined").exists()) == (True, False)


@pytest.mark.parametrize(("version", "status"), [(VERSION, 0), ("v1.32.3+k3s1", 1)])
def test_a_node_without_a_record_stays_at_its_version(
    tmp_path: Path, version: str, status: int
) -> None:
    done = carry_out(tmp_path, "k3s_same", "GF909 no", version)
    assert done.returncode == status
    assert done.stderr.startswith("GF909 no\n  | k3s version" if status else "")


@pytest.mark.parametrize(("active", "healthy", "status"), [
    (0, "*127.0.0.1:10248*", 0), (0, "*[[]::1]:10248*", 0), (3, "*", 1), (0, "none", 1),
])  # fmt: skip
def test_a_node_that_does_not_restart_stays_one(
    tmp_path: Path, active: int, healthy: str, status: int
) -> None:
    """An agent's unit is active at once, also where its k3s ends over a wrong option."""
    note = put(tmp_path, "restarting")
    words = ("GF926 no", "k3s-agent.service", "0", str(note))
    asked = f"""#!/bin/sh
    case "$KUBECONFIG $*" in '/dev/null kubectl '{healthy}'get --raw /healthz') exit 0 ;; esac
    exit 1
    """
    done = carry_out(tmp_path, "k3s_restart", *words, active=active, k3s=asked)
    assert done.returncode == status
    assert done.stderr == ("GF926 no\n  | no default route\n" if status else "")
    assert ((tmp_path / "begun").exists(), note.exists()) == (False, bool(status))
    steps = [line for line in log(tmp_path) if "is-active" not in line]
    assert steps == [
        "systemctl daemon-reload",
        "systemctl stop k3s-agent.service",
        "systemctl --no-block start k3s-agent.service",
    ]


@pytest.mark.parametrize("version", ["v1.32.2+k3s2", "v1.32.2+k3s", "v1.32.2"])
def test_a_program_of_another_version_is_not_started(tmp_path: Path, version: str) -> None:
    done = start(tmp_path, version)
    assert done.returncode == 1
    assert done.stderr.startswith(f"GF923 other\n  | k3s version {VERSION} ")
    assert not [line for line in log(tmp_path) if "restart" in line]


@pytest.mark.parametrize(
    ("endpoint", "place"), [("", "10.0.0.7:6443"), ("k8s.lab:8443", "k8s.lab:8443")]
)
def test_what_an_agent_joins_with(tmp_path: Path, endpoint: str, place: str) -> None:
    put(tmp_path, "var", "lib", "rancher", "k3s", "agent", "server-ca.crt")
    done = carry_out(tmp_path, "k3s_token", "15", endpoint)
    digest = hashlib.sha256(b"x").hexdigest()
    assert done.stdout.splitlines() == [
        f"endpoint {place}", f"version {VERSION}", "token K10ca::abcdef.0123456789abcdef",
        f"hash {digest}",
    ]  # fmt: skip
    assert "token create --ttl 15m --description join by gpufleet" in log(tmp_path)


def test_the_access_has_an_address_that_others_reach(tmp_path: Path) -> None:
    text = "clusters:\n- cluster:\n    server: https://127.0.0.1:6443\n  name: default\n"
    put(tmp_path, "etc", "rancher", "k3s", "k3s.yaml", text=text)
    done = carry_out(tmp_path, "k3s_access", "")
    assert done.stdout == text.replace("127.0.0.1", "10.0.0.7")


def test_a_node_that_does_not_become_ready_is_explained(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    done = carry_out(tmp_path, "k3s_ready", "GF949 late", "0", str(ready))
    assert done.stderr.splitlines() == ["GF949 late", "  | False the network is not ready"]
    assert not ready.exists()


def reset(
    folder: Path, *others: str, leaves: str = "leaves", **more: str
) -> subprocess.CompletedProcess[str]:
    """A node is reset; `others`: networks of another program; `more`: further fake programs."""
    put(folder, "etc", "rancher", "node", "password")
    put(folder, "etc", "rancher", "k3s", "config.yaml")
    put(folder, "var", "lib", "rancher", "k3s", "agent", "server-ca.crt")
    put(folder, "var", "lib", "cni", "state")
    put(folder, "etc", "systemd", "system", "k3s.service")
    put(folder, "usr", "local", "bin", "k3s")
    for name in others:
        put(folder, "etc", "cni", "net.d", name)
    notes = [str(folder / name) for name in ("begun", "joined", "ready")]
    put(folder, "uploads", "part")
    words = (*notes[:2], "flannel", leaves, notes[2], str(folder / "uploads"))
    programs = {
        "ps": f"#!/bin/sh\necho '99999999 1 {folder}{SHIM} -id 1'\n",
        "ip": "#!/bin/sh\n", "nft": "#!/bin/sh\nexit 1\n", "umount": "#!/bin/sh\n",
    }  # fmt: skip
    for tool in ("iptables", "ip6tables"):
        programs[f"{tool}-save"] = f"#!/bin/sh\ncat <<'X'\n{RULES}X\n"
        programs[f"{tool}-restore"] = "#!/bin/sh\ncat >>{folder}/rules\n"
    programs |= more
    return carry_out(folder, "k3s_reset", "GF925 remains", "GF963 another", *words, **programs)


def test_a_reset_takes_what_k3s_has(tmp_path: Path) -> None:
    put(tmp_path, "joined", text="")
    done = reset(tmp_path)
    assert done.returncode == 0, done.stderr
    left = [each for each in (
        "etc/rancher", "var/lib/rancher", "var/lib/cni", "usr/local/bin/k3s",
        "etc/systemd/system/k3s.service", "joined", "begun", "uploads",
    ) if (tmp_path / each).exists()]  # fmt: skip
    assert left == []
    rules = (tmp_path / "rules").read_text()
    assert "-X KUBE-API" in rules
    assert "-X CNI-DN-1" in rules
    assert "OTHER" not in rules
    assert "systemctl disable -q --now k3s.service" in log(tmp_path)


def test_a_host_that_joins_again_is_known_to_its_server(tmp_path: Path) -> None:
    """By the password of its node: the server refuses another one under the same name."""
    done = reset(tmp_path, leaves="")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "etc" / "rancher" / "node" / "password").exists()
    assert not (tmp_path / "etc" / "rancher" / "k3s").exists()


@pytest.mark.parametrize(("disk", "left", "status"), [(0, "", 0), (0, "file", 1), (1, "", 1)])
def test_a_disk_of_its_own_is_emptied(tmp_path: Path, disk: int, left: str, status: int) -> None:
    """`rm -rf` empties a mounted folder and fails."""
    put(tmp_path, "var", "lib", "kubelet", "file")
    remove = f"""#!/bin/sh
    case "$*" in *lib/kubelet) [ "{left}" ] || /bin/rm "$2/file"; echo busy; exit 1 ;; esac
    exec /bin/rm "$@"
    """
    done = reset(tmp_path, rm=remove, mountpoint=f"#!/bin/sh\nexit {disk}\n")
    assert done.returncode == status
    assert done.stderr == ("GF925 remains\n  | busy\n" if status else "")
    assert (tmp_path / "begun").exists() is bool(status)


def test_a_reset_leaves_networks_of_others(tmp_path: Path) -> None:
    done = reset(tmp_path, "87-podman.conflist")
    assert done.returncode == 0, done.stderr
    assert "CNI-DN" not in (tmp_path / "rules").read_text()
    assert (tmp_path / "var" / "lib" / "cni" / "state").exists()


def test_a_node_of_another_cluster_is_not_reset(tmp_path: Path) -> None:
    put(tmp_path, "joined", text="another\n")
    done = reset(tmp_path)
    assert done.returncode == 1
    assert done.stderr == "GF963 another\n"
    assert (tmp_path / "usr" / "local" / "bin" / "k3s").exists()
