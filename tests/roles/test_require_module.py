"""require_module.sh: builds a module that is missing, by DKMS, from the source that is there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpufleet.host.shell import script_command

VERSION = "580.178.04"
# without its tree, `dkms status` prints nothing, and `dkms install` adds /usr/src/NAME-VERSION
DKMS = """#!/bin/sh
case $1 in
    status) cat {folder}/tree 2>/dev/null ;;
    install) echo "$*" >>{folder}/log; [ ! -e {folder}/headers ] || touch {folder}/built ;;
esac
"""
MODINFO = f"""#!/bin/sh
[ -e {{folder}}/built ] || exit 1
case $2 in version) echo {VERSION} ;; license) echo 'Dual MIT/GPL' ;; esac
"""
DEPMOD = "#!/bin/sh\n"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A folder with the fake programs, and the kernel's headers."""
    for name, text in {"dkms": DKMS, "modinfo": MODINFO, "depmod": DEPMOD}.items():
        (tmp_path / name).write_text(text.format(folder=tmp_path))
        (tmp_path / name).chmod(0o755)
    (tmp_path / "headers").touch()
    return tmp_path


def source(host: Path, name: str, version: str = VERSION) -> None:
    folder = host / "src" / f"{name}-{version}"
    folder.mkdir(parents=True)
    (folder / "dkms.conf").touch()


def run(host: Path) -> tuple[int, str]:
    words = ("nvidia", VERSION, "open", "dkms", "GF550 message")
    command = script_command("driver/require_module", *words).get_raw_value()
    command = command.replace("\nPATH=", f"\nPATH={host}:", 1)
    command = command.replace("/usr/src/", f"{host}/src/").replace("/var/lib/dkms", f"{host}/dkms")
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def built(host: Path) -> str:
    """The module that DKMS was asked for."""
    log = host / "log"
    return log.read_text().split("-k")[0].strip() if log.exists() else ""


@pytest.mark.parametrize("name", ["nvidia", "nvidia-current"])
def test_a_driver_that_was_removed_from_dkms_is_added_and_built(host: Path, name: str) -> None:
    source(host, name)
    source(host, "nvidia", "570.86.15")
    assert run(host) == (0, "")
    assert built(host) == f"install --force -m {name} -v {VERSION}"


def test_a_tree_comes_before_a_source(host: Path) -> None:
    source(host, "nvidia")
    (host / "tree").write_text(f"nvidia-current/{VERSION}: added\n")
    assert run(host) == (0, "")
    assert built(host) == f"install --force -m nvidia-current -v {VERSION}"


def test_without_source_and_tree_nothing_is_built(host: Path) -> None:
    status, said = run(host)
    assert (status, built(host)) == (1, "")
    assert said.startswith("GF550 message\n")
    assert "make.log" not in said


def test_a_build_that_fails_is_reported(host: Path) -> None:
    source(host, "nvidia")
    (host / "headers").unlink()
    status, said = run(host)
    assert status == 1
    assert said.startswith("GF550 message\n")
