"""Parts of the sandbox that need no container: addresses, state, keys, the PCI bus, faults."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpufleet_sandbox import KINDS, SandboxError, faults, load_state
from gpufleet_sandbox.addresses import free_address, gateway
from gpufleet_sandbox.images import PACKAGES, RECIPES, real
from gpufleet_sandbox.inventory import nodes
from gpufleet_sandbox.keys import known_hosts_line, make_key
from gpufleet_sandbox.kinds import HostKind
from gpufleet_sandbox.machine.kernels import KERNELS
from gpufleet_sandbox.machine.pci import write_device
from gpufleet_sandbox.process import run
from gpufleet_sandbox.scenario import write_scenario
from gpufleet_sandbox.state import HostState, SandboxState, state_file


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def host_state(name: str, address: str) -> HostState:
    return HostState(
        name, name, address, f"gpufleet-x-{name}", "image", "/key", "/known_hosts", "admin"
    )


def test_addresses_skip_the_gateway_and_used_ones() -> None:
    assert gateway("10.89.3.0/24") == "10.89.3.1"
    assert free_address("10.89.3.0/24", []) == "10.89.3.2"
    assert free_address("10.89.3.0/24", ["10.89.3.2", "10.89.3.3"]) == "10.89.3.4"


def test_a_full_network_is_an_error() -> None:
    with pytest.raises(ValueError, match="no free address"):
        free_address("10.0.0.0/30", ["10.0.0.2"])


def test_a_saved_state_can_be_loaded() -> None:
    state = SandboxState("x", "podman", "imitation", "gpufleet-x", "10.89.0.0/24")
    state.hosts["el7"] = host_state("el7", "10.89.0.2")
    state.save()
    assert load_state("x") == state


def test_the_error_of_a_sandbox_that_is_not_up_has_the_command_to_start_it() -> None:
    with pytest.raises(SandboxError) as caught:
        load_state("other")
    assert caught.value.finding.code == "GF603"
    assert "gpufleet sandbox up --name other" in caught.value.finding.remedy


def test_the_inventory_has_all_hosts_except_the_mirror() -> None:
    state = SandboxState("x", "podman", "imitation", "gpufleet-x", "10.89.0.0/24")
    for number, name in enumerate(("mirror", "el7", "nogpu"), 2):
        state.hosts[name] = host_state(name, f"10.89.0.{number}")
    state.save()
    found = dict(nodes("x"))
    assert list(found) == ["el7", "nogpu"]
    assert found["el7"]["ssh_hostname"] == "10.89.0.3"
    assert found["el7"]["ssh_strict_host_key_checking"] == "yes"
    assert found["el7"]["driver_branch"] == "550"
    assert "driver_branch" not in found["nogpu"]


def test_pyinfra_reports_a_sandbox_that_is_not_up_in_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUFLEET_SANDBOX", "none")
    inventory = Path(__file__).parents[3] / "inventories" / "sandbox.py"
    pyinfra = Path(sys.executable).with_name("pyinfra")
    done = run([pyinfra, inventory, "debug-inventory"], check=False)
    assert done.returncode != 0
    assert "GF603" in done.stderr
    assert "Traceback" not in done.stderr
    assert not state_file("none").exists()


def test_keys_are_created_once(tmp_path: Path) -> None:
    first = make_key(tmp_path / "keys" / "id", "comment")
    assert make_key(tmp_path / "keys" / "id", "comment") == first
    assert (tmp_path / "keys" / "id").stat().st_mode & 0o077 == 0
    assert known_hosts_line("10.0.0.2", first).startswith("10.0.0.2 ssh-ed25519 AAAA")


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_each_kind_has_a_recipe_and_existing_kernels(kind: HostKind) -> None:
    known = {kernel.release for kernel in KERNELS}
    assert (RECIPES / f"{kind.image}.sh").exists()
    for release in (kind.kernel, kind.next_kernel):
        assert not release or release in known
    if kind.kernel:
        assert kind.kernel in (RECIPES / f"{kind.image}.sh").read_text()


def test_lspci_reads_the_devices(tmp_path: Path) -> None:
    for device in KINDS["nvswitch"].devices:
        write_device(tmp_path, device)
    gpu = tmp_path / "0000:1b:00.0"
    assert (gpu / "vendor").read_text() == "0x10de\n"
    assert (gpu / "class").read_text() == "0x030200\n"
    assert (gpu / "modalias").read_text() == (
        "pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00\n"
    )
    assert (gpu / "config").read_bytes()[:4] == b"\xde\x10\x30\x23"
    assert all(len(line.split()) == 3 for line in (gpu / "resource").read_text().splitlines())
    switches = [path for path in tmp_path.iterdir() if "0x0680" in (path / "class").read_text()]
    assert len(switches) == 4


def test_scenario_of_each_package_manager(tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    for name in ("archive-key.gpg", "archive-key.asc"):
        (mirror / name).write_text("key")
    write_scenario(tmp_path / "deb", KINDS["debian12"], mirror)
    write_scenario(tmp_path / "rpm", KINDS["el7"], mirror)
    apt = (tmp_path / "deb/root/etc/apt/sources.list").read_text()
    assert "http://mirror/archive/debian12/ ./" in apt
    assert (tmp_path / "deb/secure-boot").read_text() == "0"
    yum = (tmp_path / "rpm/root/etc/yum.repos.d/CentOS-Base.repo").read_text()
    assert "baseurl=http://mirror/archive/el7/" in yum
    assert not (tmp_path / "rpm/secure-boot").exists(), "the EL 7 host has a BIOS"


def test_faults_are_available_on_matching_hosts() -> None:
    assert "apt-lock" in faults.available(KINDS["ubuntu2204"])
    assert "apt-lock" not in faults.available(KINDS["el7"])
    assert "secure-boot" not in faults.available(KINDS["el7"])
    assert "gpu-busy" not in faults.available(KINDS["nogpu"])
    mirror = {"down", "404", "slow", "wrong-signature", "expired-key"}
    mirror |= {f"rogue-key-{place}" for place in ("after", "first", "inside")}
    assert set(faults.available(KINDS["mirror"])) == mirror


def test_each_fault_script_is_valid_shell_and_has_both_functions() -> None:
    scripted = {fault.name for fault in faults.FAULTS if isinstance(fault, faults.ScriptFault)}
    assert scripted == {path.stem for path in faults.SCRIPTS.glob("*.sh")}
    for name in scripted:
        path = faults.SCRIPTS / f"{name}.sh"
        assert subprocess.run(["sh", "-n", path], check=False).returncode == 0
        assert {"on()", "off()"} <= set(path.read_text().split())


def test_a_failed_command_is_reported_with_its_status_and_reason() -> None:
    with pytest.raises(SandboxError) as caught:
        run(["sh", "-c", "echo first; echo the reason >&2; exit 3"])
    assert "status 3: the reason" in caught.value.finding.message
    missing = run(["no-such-program-here"], check=False)
    assert missing.returncode == 127


def test_a_command_that_times_out_fails() -> None:
    assert run(["sleep", "5"], check=False, timeout=0.1).returncode == 124


def test_real_images_install_no_packages_of_the_imitation_only() -> None:
    script = real.script("ubuntu2404", PACKAGES, RECIPES, "6.8.0-45-generic")
    assert " dnf" not in script
    assert " docker.io" not in script
    assert "containerd" in script
    assert script.rstrip().endswith("/usr/lib/sim/install-kernel 6.8.0-45-generic")


def test_state_is_plain_json() -> None:
    state = SandboxState("x", "docker", "real", "gpufleet-x", "10.89.0.0/24")
    state.hosts["el7"] = host_state("el7", "10.89.0.2")
    state.save()
    assert json.loads(state_file("x").read_text())["hosts"]["el7"]["address"] == "10.89.0.2"
