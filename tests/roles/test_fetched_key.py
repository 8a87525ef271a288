"""fetch.sh with servers on loopback: where credentials are sent, and the limits of a download."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpufleet.core.findings import KNOWN_KINDS
from gpufleet.host.shell import script_file
from gpufleet.packages.operations import repository
from gpufleet.packages.operations.reading import Fetched
from gpufleet_sandbox.cluster.certificates import write_keys
from tests.roles.answers import framed_lines
from tests.roles.fetched_key_setup import APT, BASIC, MIB, serve
from tests.selection import some
from tests.unit.hosts import bare_host, plan_for

PROGRAMS = ("curl", "wget")
KEPT = ("mktemp", "rm", "date", "timeout", "sed", "tr", "cp", "tail", "wc", "grep", "base64", "cat",
        "awk")  # fmt: skip


def fetch(
    tmp_path: Path, program: str, url: str, login: bool = False, seconds: int = 30, **env: str
) -> bytes | str:
    """The download of fetch.sh on a host with only this program."""
    folder = tmp_path / "programs"
    folder.mkdir(exist_ok=True)
    for name in (program, *KEPT):
        found = shutil.which(name)
        if found and not (folder / name).exists():
            (folder / name).symlink_to(found)
    netrc = tmp_path / "netrc"
    if login:
        netrc.write_text("machine 127.0.0.1 login carrier password secret\n")
    parts = [script_file(part).read_text() for part in ("host/prelude", "packages/fetch")]
    source = "".join(parts).replace("PATH=/usr/local/sbin:/usr/sbin:/sbin:", f"PATH={folder}:", 1)
    source = source.replace("/usr/local/bin:/usr/bin:/bin", "/nowhere", 1)
    if program in PROGRAMS:
        source = source.replace(APT, "/nowhere")
    words = [
        "sh",
        "-c",
        source,
        "fetch",
        "apt",
        url,
        str(netrc) if login else "",
        str(MIB),
        str(seconds),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=900, env=env)
    assert done.returncode == 0, done.stderr
    assert not netrc.exists()
    return Fetched().process(framed_lines(done.stdout).splitlines())


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_login_reaches_the_mirror_and_stays_there(tmp_path: Path, program: str) -> None:
    with serve() as mirror, serve() as other:
        assert fetch(tmp_path, program, f"{mirror.url()}/a/closed", login=True) == b"key"
        assert mirror.asked == [("/a/closed", BASIC)]
        for target in (
            f"{other.url()}/key",  # the same machine, another port
            f"{other.url('localhost')}/key",
            f"http://127.0.0.1:{mirror.port}@127.0.0.1:{other.port}/key",
        ):
            mirror.to, other.asked = target, []
            assert fetch(tmp_path, program, f"{mirror.url()}/moved", login=True) == b"key"
            assert len(other.asked) == 1
            assert BASIC not in [said for _, said in other.asked], target


def test_a_login_for_tls_does_not_go_on_without_it(tmp_path: Path) -> None:
    write_keys(tmp_path, "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    with serve(context) as mirror, serve() as plain:
        mirror.to = f"{plain.url()}/key"
        url = f"{mirror.url().replace('http:', 'https:')}/moved"
        bundle = str(tmp_path / "ca.crt")
        assert fetch(tmp_path, "curl", url, login=True, CURL_CA_BUNDLE=bundle) == b"key"
        assert mirror.asked == [("/moved", BASIC)]
        assert plain.asked == [("/key", None)]


@pytest.mark.skipif(not Path(APT).is_file(), reason="this machine has no apt-helper")
def test_apt_does_not_follow_a_redirect_with_a_login(tmp_path: Path) -> None:
    """It would send the credentials of a host to each of its ports."""
    write_keys(tmp_path, "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    config = tmp_path / "apt.conf"
    config.write_text(f'Acquire::https::CaInfo "{tmp_path}/ca.crt"; Acquire::Retries "0";\n')
    with serve(context) as mirror, serve(context) as other, serve() as plain:
        url = mirror.url().replace("http:", "https:")
        env = {"APT_CONFIG": str(config)}
        assert fetch(tmp_path, "apt-helper", f"{url}/closed", login=True, **env) == b"key"
        mirror.to = f"{other.url().replace('http:', 'https:')}/closed"
        answer = fetch(tmp_path, "apt-helper", f"{url}/moved", login=True, **env)
        assert isinstance(answer, str)
        assert "302" in answer
        assert mirror.asked == [("/closed", BASIC), ("/moved", BASIC)]
        assert other.asked == []
        assert fetch(tmp_path, "apt-helper", f"{plain.url()}/closed", login=True, **env) == b"key"


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "to", ["{url}/b/closed", "/b/closed", "b/closed", "/b/closed?next=https://h/x"]
)
def test_a_redirect_within_the_mirror_keeps_it(tmp_path: Path, program: str, to: str) -> None:
    with serve() as mirror:
        mirror.to = to.format(url=mirror.url())
        assert fetch(tmp_path, program, f"{mirror.url()}/moved", login=True) == b"key"
        path, said = mirror.asked[-1]
        assert (path.split("?")[0], said) == ("/b/closed", BASIC)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("login", [True, False])
def test_redirects_end(tmp_path: Path, program: str, login: bool) -> None:
    with serve() as mirror:
        mirror.to = f"{mirror.url()}/moved"
        assert isinstance(fetch(tmp_path, program, f"{mirror.url()}/moved", login=login), str)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_login_does_not_go_on_to_a_file(tmp_path: Path, program: str) -> None:
    with serve() as mirror:
        mirror.to = "file:///etc/passwd"
        said = fetch(tmp_path, program, f"{mirror.url()}/moved", login=True)
        assert isinstance(said, str)
        assert "it leads to file:///etc/passwd" in said


@pytest.mark.parametrize("program", some([*PROGRAMS, "apt-helper"], PROGRAMS))
def test_an_endless_answer_is_not_kept(tmp_path: Path, program: str) -> None:
    if program == "apt-helper" and not Path(APT).exists():
        pytest.skip("this machine has no apt")
    with serve() as mirror:
        said = fetch(tmp_path, program, f"{mirror.url()}/endless")
    assert said == "it sends more than 1 MiB, the limit for a key"


@pytest.mark.parametrize("program", some([*PROGRAMS, "apt-helper"], PROGRAMS))
def test_a_slow_answer_is_not_waited_for(tmp_path: Path, program: str) -> None:
    if program == "apt-helper" and not Path(APT).exists():
        pytest.skip("this machine has no apt")
    began = time.monotonic()
    with serve() as mirror:
        said = fetch(tmp_path, program, f"{mirror.url()}/drip", seconds=2)
    assert said == "it was not done after 120 s, the longest wait for a key"
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("said", ["large", "slow"])
def test_it_is_a_finding_of_the_host(carry_out: Callable[..., Any], said: str) -> None:
    plan = plan_for(bare_host()).repository
    answers = {"gpufleet-fetch": framed_lines(said)}
    host = carry_out(lambda: repository.trust_repository("Trust", plan, "driver", 5), answers)
    assert "GF311" in host.commands[-1]
    assert KNOWN_KINDS["GF311"].title == "Repository key cannot be downloaded"
    assert "of a key" in host.commands[-1] or "for a key" in host.commands[-1]
