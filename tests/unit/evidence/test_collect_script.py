"""The script that collects the evidence of a host, in a folder that is the host's root."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from gpufleet.evidence.models import Evidence, EvidenceFile, MissingEvidence
from gpufleet.evidence.parse import parse_evidence
from gpufleet.host.shell import script_command

_PATHS = re.compile(r"(?<=[\s\"'=])/(?=(?:etc|sys|var|run/nvidia|proc/modules)\b)")


class Machine:
    """`root` becomes the host's /. Commands without a fake are those of this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for command in ("systemctl", "journalctl", "dmesg", "dkms", "lspci", "dpkg-query",
                        "apt-mark", "dpkg", "rpm"):  # fmt: skip
            self.command(command, f"echo {command}: $*")

    def command(self, name: str, script: str) -> None:
        self.file(f"/fakes/{name}", f"#!/bin/sh\n{script}\n").chmod(0o755)

    def file(self, path: str, text: str = "") -> Path:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def collect(self, report: str = "no", **limits: int) -> dict[str, Evidence]:
        """The evidence by name. `limits`: seconds of items that end in .txt or .log."""
        text = script_command("evidence/collect", report).get_raw_value()
        text = _PATHS.sub(f"{self.root}/", text)
        text = text.replace("PATH=/usr/local/sbin", f"PATH={self.root}/fakes:/usr/local/sbin")
        for name, seconds in limits.items():
            text = re.sub(rf"({name}\.\w+ \d+) \d+", rf"\1 {seconds}", text)
        done = subprocess.run(["sh", "-c", text], capture_output=True, check=True, timeout=60)
        lines = done.stdout.decode("ascii").replace(str(self.root), "").split("\n")
        return {each.name: each for each in parse_evidence(lines)}


@pytest.fixture
def host(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def text_of(found: Evidence) -> str:
    assert isinstance(found, EvidenceFile), found
    return found.text


def test_units_that_exist_have_a_log(host: Machine) -> None:
    host.file("/etc/systemd/system/gpufleet-gpus.service")
    host.file("/usr/lib/systemd/system/none.service")
    host.file("/etc/systemd/system/docker.service")
    found = host.collect("yes")
    assert isinstance(found["nvidia-bug-report.log"], MissingEvidence)
    logs = [name for name in found if name.startswith("logs/")]
    assert {"logs/docker.service.log", "logs/gpufleet-gpus.service.log"} <= {*logs}
    assert text_of(found["logs/docker.service.log"]).startswith("journalctl: -u docker.service")
    assert "docker.service" in text_of(found["units.txt"])
    assert "ExecStart" not in text_of(found["units.txt"]), "command lines may hold tokens"


def test_the_kernel_log_is_that_of_the_kernel_if_there_is_no_journal(host: Machine) -> None:
    assert text_of(host.collect()["kernel.log"]).startswith("journalctl: -k -b")
    host.command("journalctl", "")
    assert text_of(host.collect()["kernel.log"]) == "dmesg:\n"


def test_nvidia_smi_runs_only_with_its_module(host: Machine) -> None:
    host.command("nvidia-smi", "touch $0.ran; echo GPUs")
    found = host.collect()
    assert isinstance(found["nvidia-smi.txt"], MissingEvidence)
    assert not (host.root / "fakes/nvidia-smi.ran").exists()
    host.file("/sys/module/nvidia/version", "580\n")
    assert text_of(host.collect()["nvidia-smi.txt"]) == "GPUs\n"


def test_commands_without_end_are_cut_and_others_follow(host: Machine) -> None:
    host.command("journalctl", "exec yes endless")
    host.command("dkms", "echo begun; exec sleep 50")
    host.file("/sys/module/nvidia/version", "580\n")
    host.command("nvidia-smi", "exec yes endless")
    found = host.collect(kernel=1, dkms=1)
    kernel, smi, dkms = (found[name] for name in ("kernel.log", "nvidia-smi.txt", "dkms.txt"))
    assert len(text_of(kernel)) <= 2097152
    assert len(text_of(smi)) == 2097152
    assert isinstance(smi, EvidenceFile)
    assert smi.note == "cut to 2097152 bytes"
    assert isinstance(dkms, EvidenceFile)
    assert (dkms.text, dkms.note) == ("begun\n", "not done after 1 s")
    assert "packages.txt" in found


def test_specs_and_the_last_log_of_a_build(host: Machine) -> None:
    host.file("/etc/cdi/nvidia.yaml", "kind: nvidia.com/gpu\n")
    host.file("/etc/cdi/with\nline\tbreak", "odd")
    host.file("/var/lib/dkms/nvidia/580/build/make.log", "error: implicit declaration\n")
    found = host.collect()
    assert text_of(found["files/etc/cdi/nvidia.yaml"]) == "kind: nvidia.com/gpu\n"
    assert not [name for name in found if "line" in name]
    log = found["files/var/lib/dkms/nvidia/580/build/make.log"]
    assert text_of(log) == "error: implicit declaration\n"


@pytest.mark.parametrize("packed", [True, False])
def test_the_report_of_nvidia_on_request(host: Machine, packed: bool) -> None:
    write = 'gzip -c >"$2.gz"' if packed else 'cat >"$2"'
    host.command("nvidia-bug-report.sh", f'dirname "$2" >$0.in\necho all of it | {write}')
    found = host.collect("yes")["nvidia-bug-report.log"]
    assert text_of(found).startswith("all of it\n")
    folder = (host.root / "fakes/nvidia-bug-report.sh.in").read_text().strip()
    assert folder.startswith("/tmp/")
    assert not Path(folder).exists()
