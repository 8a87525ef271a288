"""`gpufleet doctor --bundle` on real hosts: logs and files in one archive, without secrets."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

import pytest
from examining import SILENT, run_gpufleet, write_inventory

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.extended,
    pytest.mark.claim(
        "`doctor --bundle` collects logs, versions and files of each host with one command, and "
        "keeps what it read of a host whose connection ends.",
        level=3,
    ),
]

SECRET = "of-the-inventory-only"
BUG_REPORT = f"""\
#!/bin/sh
[ "$1" = --output-file ] && echo 'report of {SECRET}' | gzip >"$2.gz"
"""
CUT = "#!/bin/sh\npkill -f 'sshd: .*@notty'\nsleep 5\n"


def collect(hosts: list[Host], folder: Path, *options: str) -> dict[str, str]:
    """The files of the archive by path, after the checks that each archive passes."""
    archive = folder / "case.tar.gz"
    inventory = write_inventory(folder, hosts, SILENT, my_password=SECRET)
    done = run_gpufleet("doctor", inventory, "--bundle", archive, *options)
    assert done.returncode == 2, done.stdout + done.stderr
    assert archive.stat().st_mode & 0o777 == 0o600
    with tarfile.open(archive) as tar:
        found = {each.name: tar.extractfile(each) for each in tar}
        content = {name: file.read() for name, file in found.items() if file}
    assert all(SECRET.encode() not in data for data in content.values())
    manifest = content["case/MANIFEST.txt"].decode()
    for name, data in content.items():
        if name != "case/MANIFEST.txt":
            assert hashlib.sha256(data).hexdigest() in manifest
            assert f" {name.removeprefix('case/')}\n" in manifest
    return {name.removeprefix("case/"): data.decode() for name, data in content.items()}


def test_logs_versions_and_files_of_two_distributions(
    bare_host: HostFactory, tmp_path: Path
) -> None:
    hosts = [bare_host("ubuntu2204"), bare_host("el7")]
    hosts[0].put("/usr/local/bin/nvidia-bug-report.sh", BUG_REPORT, 0o755)
    hosts[0].run(f"echo '# {SECRET}' >>/etc/containerd/config.toml")
    before = hosts[0].output("ls -A /tmp")

    found = collect(hosts, tmp_path, "--bug-report")

    for host in hosts:
        folder = f"hosts/{host.name}"
        assert found[f"{folder}/kernel.log"].strip()
        assert "containerd" in found[f"{folder}/logs/containerd.service.log"]
        assert f"{folder}/files/etc/containerd/config.toml" in found
        assert "Linux" in found[f"{folder}/system.txt"]
        assert "containerd" in found[f"{folder}/packages.txt"]
    assert "***" in found["hosts/ubuntu2204/files/etc/containerd/config.toml"]
    assert found["hosts/ubuntu2204/nvidia-bug-report.log"] == "report of ***\n"
    assert hosts[0].output("ls -A /tmp") == before
    manifest = found["MANIFEST.txt"]
    assert "hosts/gone: GF005 " in manifest
    assert "hosts/el7/nvidia-bug-report.log: nvidia-bug-report.sh is not installed" in manifest


def test_a_connection_that_ends_leaves_what_was_read(
    bare_host: HostFactory, tmp_path: Path
) -> None:
    host = bare_host("ubuntu2204")
    host.put("/usr/local/bin/lspci", CUT, 0o755)
    found = collect([host], tmp_path)
    assert "Linux" in found["hosts/ubuntu2204/system.txt"]
    assert "hosts/ubuntu2204/kernel.log" not in found
    assert "hosts/ubuntu2204: GF504 " in found["MANIFEST.txt"]
    assert '"verdict"' in found["doctor.json"]
