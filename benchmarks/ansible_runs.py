"""ansible-core doing the same work on the same hosts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.fleet import read_file, record
from benchmarks.timing import Run, RunFailed, timed
from gpufleet_sandbox.host import Host

HERE = Path(__file__).parent
PLAYBOOK = HERE / "ansible" / "gpu_node.yml"
CONSTRAINTS = HERE / "constraints-ansible.txt"
RUNTIME_FILES = ("/etc/docker/daemon.json", "/etc/containerd/config.toml")
SERVICES = (
    "nvidia-persistenced.service",
    "docker.service",
    "containerd.service",
    "nvidia-cdi-refresh.path",
)


@dataclass(frozen=True, slots=True)
class Ansible:
    """ansible-core in a virtual environment. `work`: the folder for the files of a run."""

    venv: Path
    work: Path

    def install(self) -> None:
        """Make the environment with the version that constraints-ansible.txt names."""
        if not self._program("python").exists():
            subprocess.run([sys.executable, "-m", "venv", self.venv], check=True)
        options = ["--quiet", "--disable-pip-version-check", "-c", str(CONSTRAINTS)]
        pip = [str(self._program("python")), "-m", "pip", "install", *options, "ansible-core"]
        subprocess.run(pip, check=True)

    def _program(self, name: str) -> Path:
        return self.venv / "bin" / name

    @property
    def version(self) -> str:
        words = [str(self._program("ansible")), "--version"]
        text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        return text.splitlines()[0]

    def prepare(self, hosts: Sequence[Host]) -> None:
        """Write inventory and variables, with the files as they are on the first host."""
        self.work.mkdir(parents=True, exist_ok=True)
        (self.work / "hosts.json").write_text(json.dumps(inventory(hosts), indent=1))
        (self.work / "vars.json").write_text(json.dumps(self._variables(hosts[0]), indent=1))

    def _variables(self, host: Host) -> dict[str, Any]:
        known = record(host)
        files = []
        for number, path in enumerate(managed_files(known)):
            source = self.work / f"file-{number}"
            source.write_bytes(read_file(host, path))
            mode = host.output(f"stat -c %04a {path}")
            files.append({"path": path, "src": str(source), "mode": mode})
        return {"files": files, **variables(known, host.ssh("uname -r").stdout.strip())}

    def run(self, forks: int) -> Run:
        """Run the playbook once. Raises RunFailed if a task fails or changes a host."""
        words: list[str | Path] = [self._program("ansible-playbook"), PLAYBOOK]
        words += ["-i", self.work / "hosts.json", "-e", f"@{self.work / 'vars.json'}"]
        done = timed(words, log=self.work / "ansible.log", env=self._settings(forks))
        require_converged(done.output, forks)
        return done

    def _settings(self, forks: int) -> dict[str, str]:
        return {
            "ANSIBLE_FORKS": str(forks),
            "ANSIBLE_PIPELINING": "1",
            "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto -o ControlPersist=120s",
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.work / "cp"),
            "ANSIBLE_HOST_KEY_CHECKING": "1",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_HOME": str(self.work / "home"),
            "LC_ALL": "C.UTF-8",
        }


def inventory(hosts: Sequence[Host]) -> dict[str, Any]:
    """The hosts as Ansible wants them; their Python is named, so that it need not be looked for."""
    return {
        "all": {
            "hosts": {
                host.name: {
                    "ansible_host": host.address,
                    "ansible_user": host.state.user,
                    "ansible_become": host.state.user != "root",
                    "ansible_ssh_private_key_file": host.state.key,
                    "ansible_ssh_common_args": f"-o UserKnownHostsFile={host.state.known_hosts}",
                    "ansible_python_interpreter": "/usr/bin/python3",
                }
                for host in hosts
            }
        }
    }


def managed_files(known: dict[str, Any]) -> list[str]:
    """Every file that gpufleet's record says it looks after, and the runtimes' configurations."""
    keyrings = [known[role]["keyring"] for role in ("driver", "toolkit")]
    return [*keyrings, *sorted(known["files"]), *RUNTIME_FILES]


def variables(known: dict[str, Any], kernel: str) -> dict[str, Any]:
    """The playbook's variables, by gpufleet's record on a host with the running `kernel`."""
    driver, toolkit = known["driver"], known["toolkit"]
    return {
        "prerequisites": [f"linux-headers-{kernel}", "dkms", "gcc", "make"],
        "driver_packages": _pinned(driver["packages"]),
        "toolkit_packages": _pinned(toolkit["packages"]),
        "held_packages": sorted({*driver["packages"], *toolkit["packages"]}),
        "driver_version": driver["version"],
        "services": list(SERVICES),
        "cdi_spec": toolkit["cdi"]["path"],
    }


def _pinned(packages: dict[str, str]) -> list[str]:
    return [f"{name}={version}" for name, version in sorted(packages.items())]


def require_converged(output: str, hosts: int) -> None:
    """RunFailed unless the recap has `hosts` lines without a change, a failure or a silent host."""
    recap = re.findall(r"changed=(\d+) +unreachable=(\d+) +failed=(\d+)", output)
    if len(recap) != hosts or any(int(count) for line in recap for count in line):
        tail = "\n".join(output.splitlines()[-hosts - 3 :])
        raise RunFailed(f"Ansible found something to do on converged hosts:\n{tail}")
