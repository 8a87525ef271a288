"""CRI-O: the nvidia runtime inherits only from runc or crun, not from a VM or sandbox runtime.

The inputs follow cri-o/cri-o docs/crio.conf.5.md and the installation guides of Kata Containers
and gVisor (2026-11).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufleet.formats.edits import lookup_path
from gpufleet.toolkit.config.tables import parse_tables
from tests.unit.toolkit.runtime_result_setup import (
    BINARY,
    CRIO_D,
    PACKAGED,
    codes_of,
    crio_host,
    planned,
    written,
)

CONMON = "/usr/libexec/crio/conmon"
KATA = """[crio.runtime]
default_runtime = "kata"
[crio.runtime.runtimes.kata]
runtime_path = "/opt/kata/bin/containerd-shim-kata-v2"
runtime_type = "vm"
runtime_root = "/run/vc"
runtime_config_path = "/opt/kata/share/defaults/kata-containers/configuration.toml"
privileged_without_host_devices = true
"""
GVISOR = """[crio.runtime]
default_runtime = "runsc"
[crio.runtime.runtimes.runsc]
runtime_path = "/usr/local/bin/runsc"
runtime_root = "/run/runsc"
monitor_path = "/usr/libexec/crio/conmon"
"""
NVIDIA = ("crio", "runtime", "runtimes", "nvidia")


def entry_of(*texts: str) -> object:
    files = {f"{CRIO_D}/{number}.conf": text for number, text in enumerate(texts)}
    return lookup_path(parse_tables(written(planned(crio_host(files)))), NVIDIA)


@pytest.mark.parametrize("default", [KATA, GVISOR])
def test_a_sandbox_as_default_is_not_the_base(default: str) -> None:
    assert entry_of(PACKAGED, default) == {
        "runtime_path": BINARY,
        "runtime_type": "oci",
        "runtime_root": "/run/crun",
        "monitor_path": CONMON,
    }


@pytest.mark.parametrize(("default", "monitor"), [(KATA, {}), (GVISOR, {"monitor_path": CONMON})])
def test_without_runc_only_the_monitor_is_taken(default: str, monitor: dict[str, str]) -> None:
    assert entry_of(default) == {"runtime_path": BINARY, "runtime_type": "oci", **monitor}


def test_nothing_that_replaces_the_program_is_inherited() -> None:
    more = 'platform_runtime_paths = {"linux/arm64" = "/usr/bin/crun-arm64"}\n'
    more += 'inherit_default_runtime = true\nruntime_config_path = "/etc/crun.toml"\n'
    assert entry_of(PACKAGED + more) == entry_of(PACKAGED)


def test_a_virtual_machine_is_no_low_level_runtime() -> None:
    facts = crio_host({f"{CRIO_D}/10-crio.conf": PACKAGED, f"{CRIO_D}/20-kata.conf": KATA})
    lacking = replace(facts.runtimes["crio"], runc_in_path=False)
    (finding,) = planned(replace(facts, runtimes={"crio": lacking})).findings
    assert finding.code == "GF444"
    assert "runtimes=/usr/libexec/crio/crun" in finding.remedy


@pytest.mark.parametrize(("root", "code"), [("/run/crun", "GF406"), ("/srv/crun", "GF405")])
def test_the_default_root_is_no_difference(root: str, code: str) -> None:
    entry = f'[crio.runtime.runtimes.nvidia]\nruntime_path = "{BINARY}"\n'
    entry += f'monitor_path = "{CONMON}"\n'
    base = PACKAGED.replace("/run/crun", root)
    files = {f"{CRIO_D}/10-crio.conf": base, f"{CRIO_D}/50-gpu.conf": entry}
    assert codes_of(planned(crio_host(files))) == [code]
