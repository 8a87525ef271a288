"""The controller's container image is built from the wheel and works, without a network.

The base is a sandbox host's image with Python and ssh, because the tests have no registry to pull
the published base from. pip installs the packages of this environment.
"""

from __future__ import annotations

import ensurepip
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from repacked import needed, repack

from gpufleet import __version__
from gpufleet.core.paths import cache_dir
from gpufleet_sandbox.engine import LABEL, Engine, find_engine
from gpufleet_sandbox.images import build_base
from tests.naming import RUN

pytestmark = [pytest.mark.hosts, pytest.mark.extended]

ROOT = Path(__file__).resolve().parents[2]
BASE = f"localhost/gpufleet-test-controller-base:{RUN}"
IMAGE = f"localhost/gpufleet-test-controller:{RUN}"
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True, slots=True)
class Controller:
    """The image, and how containers of it are run here."""

    engine: Engine

    def run(self, *words: str, user: str = "", program: str = "") -> str:
        """Run the image's program, or another one, to its end; its output."""
        options = ["--rm", "--network", "none", "--label", f"{LABEL}=build"]
        options += self.engine.limit_options()
        options += ["--user", user] if user else []
        options += ["--entrypoint", program] if program else []
        return self.engine("run", *options, IMAGE, *words, timeout=900).stdout


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    engine = find_engine()
    limits = engine.limit_options()
    host = build_base(engine, cache_dir(), print)
    found = engine("run", "--rm", *limits, "--entrypoint", PYTHON, host, "--version", check=False)
    if found.returncode:
        pytest.skip(f"the sandbox's Debian has no {PYTHON}, for which the packages here are made")
    folder = tmp_path_factory.mktemp("image")
    shutil.copytree(Path(ensurepip.__file__).parent, folder / "base" / "ensurepip")
    text = f"FROM {host}\nCOPY ensurepip /usr/lib/{PYTHON}/ensurepip\n"
    (folder / "base" / "Containerfile").write_text(text)
    engine("build", *once(engine), *limits, "--tag", BASE, folder / "base", timeout=900)
    (folder / "wheels").mkdir()
    for package in needed("gpufleet"):
        repack(package, folder / "wheels")
    build(engine, folder / "wheels", limits)
    yield Controller(engine)
    engine("rmi", "--force", IMAGE, BASE, check=False)


def once(engine: Engine) -> list[str]:
    """Options of a build that leaves no images of its steps behind."""
    return ["--layers=false"] if engine.name == "podman" else []


def build(engine: Engine, wheels: Path, limits: list[str]) -> None:
    """`make image`, with the wheels of a folder in place of an index."""
    options = ["--network", "none", "--volume", f"{wheels}:/wheels:ro", *once(engine), *limits]
    options += ["--build-arg", f"BASE={BASE}"]
    options += ["--build-arg", "PIP_OPTIONS=--no-index --find-links /wheels"]
    done = subprocess.run(
        [ROOT / "scripts/image.sh", sys.executable, *options],
        env=os.environ | {"IMAGE": IMAGE}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.claim(
    "The controller's image is built from the wheel without a network.",
    level=3,
)
def test_the_image_is_gpufleet(controller: Controller) -> None:
    assert __version__ in controller.run("--version")
    assert "580" in controller.run("catalog", "driver", "--distro", "ubuntu2204", "--gpu", "H100")
    assert "GF112 blocker" in controller.run("explain", "GF112")


def test_it_is_no_root_and_has_a_home(controller: Controller) -> None:
    script = 'id -u; echo "$HOME"; touch "$HOME/x" && gpufleet init /fleet/new; ssh -V 2>&1'
    lines = controller.run("-c", script, program="/bin/sh").splitlines()
    assert lines[:2] == ["10001", "/home/gpufleet"]
    assert any(line.startswith("Created /fleet/new") for line in lines)
    assert lines[-1].startswith("OpenSSH")


def test_any_user_of_group_0_can_use_it(controller: Controller) -> None:
    script = 'id -u; touch "$HOME/x" && gpufleet --version'
    assert controller.run("-c", script, user="54321:0", program="/bin/sh").startswith("54321\n")


def test_it_has_no_files_of_the_checkout(controller: Controller) -> None:
    search = "find / -xdev -name .git -o -name .venv -o -name 'gpufleet-*.whl' -o -name prod.py"
    found = controller.run("-c", search, user="0", program="/bin/sh").splitlines()
    ours = [path for path in found if "/gpufleet/_shipped/" in path]
    assert ours, "the examples that ship"
    assert found == ours
