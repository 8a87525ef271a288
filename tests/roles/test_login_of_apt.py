"""apt's credentials file, as gpufleet writes it, with servers that redirect."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpufleet.packages.logins import RepositoryLogin, apt_file
from tests.roles.fetched_key_setup import APT, BASIC, serve

pytestmark = pytest.mark.skipif(not Path(APT).exists(), reason="this machine has no apt")


@pytest.mark.parametrize("to", ["http://127.0.0.1:{port}/a/key", "http://localhost:{port}/a/key"])
def test_apt_takes_the_login_to_no_other_place(tmp_path: Path, to: str) -> None:
    with serve() as mirror, serve() as other:
        mirror.to = to.format(port=other.port)
        login = apt_file("mirror", f"{mirror.url()}/a", RepositoryLogin("carrier", "secret"))
        netrc = tmp_path / "auth.conf"
        netrc.write_text(str(login.content))
        for path in ("a/closed", "a/moved"):
            options = ("-o", f"Dir::Etc::netrc={netrc}", "-o", "Acquire::Retries=0")
            words = [
                APT,
                *options,
                "download-file",
                f"{mirror.url()}/{path}",
                f"{tmp_path}/{path[2:]}",
            ]
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=900)
            assert done.returncode == 0, done.stderr
        assert mirror.asked == [("/a/closed", BASIC), ("/a/moved", BASIC)]
        assert other.asked == [("/a/key", None)]
