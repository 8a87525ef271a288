"""fetch.sh on hosts that reach a repository only through the package manager's proxy."""

from __future__ import annotations

import base64
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gpufleet.host.shell import script_file
from gpufleet.packages.operations.reading import Fetched
from tests.roles.answers import framed_lines

KEY = "http://repo.invalid/cuda/key.pub"  # a name that resolves nowhere
APT = "/usr/lib/apt/apt-helper"
KEPT = ("mktemp", "rm", "date", "timeout", "sed", "tr", "wc", "grep", "base64", "cat", "awk")
BASIC = "Basic " + base64.b64encode(b"carrier:sec\\ret").decode()
needs_apt = pytest.mark.skipif(not Path(APT).exists(), reason="this machine has no apt-helper")


@contextmanager
def proxy(credentials: str = "") -> Iterator[tuple[str, list[str]]]:
    """A proxy: its address, and the paths that were requested."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fits = self.headers.get("Proxy-Authorization", "") == credentials
            asked.extend([self.path] if fits else [])
            self.send_response(200 if fits else 407)
            if not fits:
                self.send_header("Proxy-Authenticate", 'Basic realm="proxy"')
            self.send_header("Content-Length", "3")
            self.end_headers()
            self.wfile.write(b"key")

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: the test output stays readable."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def fetch(
    folder: Path, *programs: str, main: str = "", source: str = "", **env: str
) -> bytes | str:
    """The answer of fetch.sh on a host with these programs, and this dnf.conf and .repo file."""
    bin_folder = folder / "programs"
    bin_folder.mkdir(exist_ok=True)
    for name in (*KEPT, *(program for program in programs if program != "apt-helper")):
        if not (bin_folder / name).exists():
            (bin_folder / name).symlink_to(shutil.which(name) or f"/nowhere/{name}")
    (folder / "dnf.conf").write_text(main)
    (folder / "cuda.repo").write_text(source)
    text = "".join(script_file(part).read_text() for part in ("host/prelude", "packages/fetch"))
    text = text.replace("PATH=/usr/local/sbin:/usr/sbin:/sbin:", f"PATH={bin_folder}:", 1)
    text = text.replace("/usr/local/bin:/usr/bin:/bin", "/nowhere", 1)
    text = text.replace("/etc/yum.conf /etc/dnf/dnf.conf", str(folder / "dnf.conf"), 1)
    manager = "apt" if "apt-helper" in programs else "dnf"
    repo = str(folder / "cuda.repo") if source else ""
    words = ["sh", "-c", text, "fetch", manager, KEY, "", "1048576", "30", repo]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=900, env=env)
    assert done.returncode == 0, done.stderr
    return Fetched().process(framed_lines(done.stdout).splitlines())


@needs_apt
@pytest.mark.parametrize(
    "line",
    [
        'Acquire::http::Proxy "http://{place}";',
        'Acquire::http::Proxy::repo.invalid "http://{place}";',
        'Acquire {{ http {{ Proxy "http://{place}/"; }}; }};',
        'Acquire::http::Proxy-Auto-Detect "{folder}/detect";',
    ],
)
def test_apt_s_own_program_takes_apt_s_way(tmp_path: Path, line: str) -> None:
    with proxy() as (place, asked):
        detect = tmp_path / "detect"
        detect.write_text(f"#!/bin/sh\necho http://{place}\n")
        detect.chmod(0o755)
        config = tmp_path / "apt.conf"
        config.write_text(line.format(place=place, folder=tmp_path))
        found = fetch(tmp_path, "apt-helper", "curl", "wget", APT_CONFIG=str(config))
    assert (found, asked) == (b"key", [KEY])


MAIN = "[main]\ngpgcheck=1\nproxy = http://{place}\n"
LOGIN = "proxy_username=carrier\nproxy_password = sec\\ret \n"


@pytest.mark.parametrize("program", ["curl", "wget"])
@pytest.mark.parametrize(
    ("main", "source", "credentials"),
    [
        (MAIN, "", ""),
        ("[main]\nproxy=http://{place}\n" + LOGIN, "", BASIC),
        ("[main]\nproxy=http://127.0.0.1:1\n", "[cuda]\nproxy=http://{place}\n", ""),
        ("[main]\n", "[cuda]\nproxy=http://{place}\n" + LOGIN, BASIC),
        ("[other]\nproxy=http://127.0.0.1:1\n" + MAIN + "[more]\nproxy=none\n", "", ""),
    ],
)
def test_yum_and_dnf_s_proxy_is_used(
    tmp_path: Path, program: str, main: str, source: str, credentials: str
) -> None:
    with proxy(credentials) as (place, asked):
        texts = {"main": main.format(place=place), "source": source.format(place=place)}
        assert fetch(tmp_path, program, **texts) == b"key"
    assert asked == [KEY]


@pytest.mark.parametrize("value", ["", "_none_", "None", "False"])
def test_none_is_no_proxy(tmp_path: Path, value: str) -> None:
    with proxy() as (place, asked):
        main = f"[main]\nproxy=http://{place}\n"
        assert isinstance(fetch(tmp_path, "curl", main=main, source=f"[a]\nproxy={value}\n"), str)
    assert asked == []


def test_the_program_is_asked_before_its_file(tmp_path: Path) -> None:
    """dnf may read other files or use plugins, so its output shows the effective proxy."""
    with proxy() as (place, asked):
        dnf = tmp_path / "programs" / "dnf"
        dnf.parent.mkdir()
        dnf.write_text(f"#!/bin/sh\necho '[main]'\necho 'proxy = http://{place}'\n")
        dnf.chmod(0o755)
        assert fetch(tmp_path, "curl", main="[main]\nproxy=http://127.0.0.1:1\n") == b"key"
    assert asked == [KEY]


@pytest.mark.parametrize("program", ["curl", "wget"])
def test_a_password_is_neither_in_a_command_nor_in_the_answer(tmp_path: Path, program: str) -> None:
    """The program is one that prints its words."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / program).write_text('#!/bin/sh\necho "$0 $*" >&2\nexit 7\n')
    (folder / program).chmod(0o755)
    main = "[main]\nproxy=http://proxy.example:3128\n" + LOGIN
    said = fetch(tmp_path, program, main=main)
    assert isinstance(said, str)
    assert program in said
    assert "sec" not in said
    assert "carrier" not in said
