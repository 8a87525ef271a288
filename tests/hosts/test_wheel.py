"""sdist and wheel in an empty environment do the main job outside the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest
from deploying import ROOT
from driver_state import NEWEST, assert_driver, driver_packages

from gpufleet_sandbox import Host
from gpufleet_sandbox.inventory import group_data, nodes
from tests.hosts.conftest import HostFactory

pytestmark = pytest.mark.hosts

WHERE = "import gpufleet, sys; print(gpufleet.__file__, *sys.path, sep='\\n')"


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment with gpufleet from its wheel, and a folder to work in."""

    programs: Path
    folder: Path

    def run(self, *words: str, status: int = 0) -> str:
        """Run a program of the environment, which must exit with `status`; its output."""
        done = subprocess.run(
            [self.programs / words[0], *words[1:]],
            cwd=self.folder,
            env={name: os.environ[name] for name in ("HOME", "PATH")},  # no PYTHONPATH
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=900, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stdout
        return done.stdout


def checked(*words: str | Path) -> None:
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The dependencies come from this environment's packages without their .pth files, hence
    without the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    checked("-m", "build", "--no-isolation", "--outdir", folder / "dist", ".")
    checked("-m", "twine", "check", "--strict", *sorted((folder / "dist").iterdir()))
    checked("-m", "venv", "--without-pip", folder / "venv")
    paths = {"base": str(folder / "venv"), "platbase": str(folder / "venv")}
    packages = Path(sysconfig.get_path("purelib", "venv", paths))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    programs = Path(sysconfig.get_path("scripts", "venv", paths))
    (wheel,) = (folder / "dist").glob("*.whl")
    install = ("install", "--quiet", "--no-index", "--no-deps", "--ignore-installed", wheel)
    checked("-m", "pip", "--python", programs / "python", *install)
    work = folder / "work"
    work.mkdir()
    return Environment(programs, work)


def fill_in(inventory: Path, host: Host) -> None:
    """Write the host as a user would, with the sandbox's mirror instead of NVIDIA's."""
    hosts = [(host.name, dict(nodes(host.sandbox))[host.name])]
    inventory.write_text(f"gpu_nodes = ({hosts!r}, {group_data()!r})\n")


@pytest.mark.claim(
    "An installed wheel makes, verifies and clears a GPU node outside the checkout.",
    level=3,
)
def test_an_installed_wheel_does_the_main_job(
    installed: Environment, bare_host: HostFactory
) -> None:
    found = installed.run("python", "-c", WHERE).split()
    assert Path(found[0]).is_relative_to(installed.programs.parent)
    dependencies = sysconfig.get_path("purelib")  # of a virtual environment in the checkout
    of_the_checkout = [path for path in found if Path(path).is_relative_to(ROOT)]
    assert of_the_checkout in ([dependencies], [])
    host = bare_host("ubuntu2204")
    installed.run("gpufleet", "init", "fleet")
    fleet = Environment(installed.programs, installed.folder / "fleet")
    inventory = "inventories/prod.py"
    fill_in(fleet.folder / inventory, host)

    applied = fleet.run("gpufleet", "apply", inventory, "--yes")
    assert f"none -> {NEWEST['580']}" in applied
    assert "1 host: 1 changed, 0 with no changes, 0 failed" in applied
    assert_driver(host, NEWEST["580"])

    fleet.run("gpufleet", "verify", inventory, "--json", "verify.json", "--junit", "verify.xml")
    checks = json.loads((fleet.folder / "verify.json").read_text())["hosts"][host.name]
    assert checks["failed"] == 0
    assert checks["passed"] > 30
    assert checks["checks"]["site.root_has_space_for_a_driver"]["outcome"] == "passed"
    assert "test_root_has_space_for_a_driver" in (fleet.folder / "verify.xml").read_text()

    removed = fleet.run("gpufleet", "remove", inventory, "--yes")
    assert f"{NEWEST['580']} -> none" in removed
    assert "1 host: 1 changed, 0 with no changes, 0 failed" in removed
    assert driver_packages(host) == {}


@pytest.mark.claim(
    "`pyinfra`, `plan`, `doctor` and `catalog` work in a folder of `gpufleet init`.",
    level=3,
)
@pytest.mark.extended
def test_pyinfra_and_every_other_command_work_in_the_folder(
    installed: Environment, bare_host: HostFactory
) -> None:
    installed.run("gpufleet", "init", "other")
    fleet = Environment(installed.programs, installed.folder / "other")
    inventory = "inventories/prod.py"
    fill_in(fleet.folder / inventory, bare_host("ubuntu2204"))
    planned = fleet.run("gpufleet", "plan", inventory)
    assert "1 host: 1 to change, 0 with no changes, 0 blocked" in planned
    again = fleet.run("python", "-m", "pyinfra", "-y", inventory, "deploys/preflight.py")
    assert "1 host: 1 to change, 0 with no changes, 0 blocked" in again
    assert "chain.driver: No NVIDIA driver" in fleet.run("gpufleet", "doctor", inventory, status=2)
    assert "550" in fleet.run("gpufleet", "catalog", "driver", "--distro", "rhel7", "--gpu", "T4")
    assert "seriesQuery" in fleet.run("gpufleet", "catalog", "autoscaling", "rules")
    assert "GF702" in fleet.run("gpufleet", "plan", inventory, "--limit", "nosuch", status=4)
    assert "GF702" in fleet.run("gpufleet", "verify", inventory, "--limit", "nosuch", status=4)
    assert "GF701" in fleet.run("gpufleet", "apply", "nosuch.py", "--yes", status=2)
    empty = Environment(installed.programs, installed.folder)
    outside = empty.run("gpufleet", "plan", f"other/{inventory}")  # no deploys/ and config.py here
    assert "1 host: 1 to change, 0 with no changes, 0 blocked" in outside
