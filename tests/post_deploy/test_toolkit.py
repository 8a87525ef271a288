"""The container toolkit: packages at one version, the binary is theirs, the CDI spec is current."""

from __future__ import annotations

import re

import yaml

from gpufleet.core.names import count_noun
from gpufleet.verify.findings import runtimes as kinds
from gpufleet.verify.findings.hosts import PACKAGES
from gpufleet.verify.node import CheckedNode

CDI_KIND = "nvidia.com/gpu"
OF_GPUS = re.compile(rf"""\bkind["']?\s*:\s*["']?{re.escape(CDI_KIND)}\b""")


def need_toolkit(node: CheckedNode) -> str:
    """Skip without a recorded toolkit; its version."""
    node.need(node.gpus or node.toolkit, "the host has no NVIDIA GPU")
    node.need(node.toolkit.get("version"), "no container toolkit is recorded")
    return str(node.toolkit["version"])


def test_toolkit_packages(node: CheckedNode) -> None:
    """All toolkit packages have one version, the recorded and configured one."""
    if node.provenance and node.is_wanted("toolkit"):
        there = bool(node.toolkit.get("version"))
        expected = "a container toolkit (toolkit_enabled)"
        node.expect(there, PACKAGES, expected, "none recorded")
    version = need_toolkit(node)
    wanted = node.data.get("toolkit_version")
    if wanted:
        expected = f"toolkit {wanted} (toolkit_version)"
        right = version == str(wanted)
        node.expect(right, PACKAGES, expected, f"{version} recorded")
    recorded = node.toolkit.get("packages") or {}
    found = node.differences(recorded)
    odd = [n for n in recorded if n in node.packages and node.packages[n].upstream != version]
    found += [f"{name} {node.packages[name].version}" for name in odd if not found]
    expected = f"{count_noun(len(recorded), 'toolkit package')} at {version}"
    node.expect(not found, PACKAGES, expected, "; ".join(found))


def test_toolkit_binary(node: CheckedNode) -> None:
    """`nvidia-ctk` has the recorded version."""
    version = need_toolkit(node)
    section = node.section("nvidia-ctk")
    expected = f"`nvidia-ctk --version` to print {version}"
    node.expect(section.ok, kinds.TOOLKIT_BINARY, expected, section.last)
    said = re.search(r"version (\d[\w.]*)", section.text)
    found = said[1] if said else section.last
    node.expect(found == version, kinds.TOOLKIT_BINARY, expected, found)


def test_toolkit_programs(node: CheckedNode) -> None:
    """Every program of the toolkit's packages is there and can be run."""
    need_toolkit(node)
    lines = [line.partition(" ") for line in node.section("toolkit-programs").lines]
    node.need(lines, "the toolkit's packages list no programs (GF720)")
    lame = [f"{path} {state}" for state, _, path in lines if state != "runs"]
    expected = f"{len(lines)} programs that can be run"
    node.expect(not lame, kinds.TOOLKIT_BINARY, expected, ", ".join(lame))


def test_toolkit_held(node: CheckedNode) -> None:
    """An upgrade of the host does not change the toolkit."""
    need_toolkit(node)
    node.need(node.toolkit.get("held", True), "the toolkit was installed without a hold")
    node.need(node.data.get("toolkit_hold") is not False, "toolkit_hold is false")
    node.expect_held(node.toolkit.get("packages") or {})


def spec_fault(text: str, driver: str, devices: int) -> str:
    """The fault of a CDI spec for this driver and number of devices, or "" if it is correct."""
    try:
        spec = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        return f"not YAML: {error}".splitlines()[0]
    if not isinstance(spec, dict) or spec.get("kind") != CDI_KIND:
        return f"not a spec of {CDI_KIND}"
    # Libraries carry the driver's version in their names.
    versions = set(re.findall(r"lib(?:nvidia-ml|cuda)\.so\.(\d{3}\.[\d.]*\d)", text))
    if versions != {driver}:
        return f"libraries of driver {', '.join(sorted(versions)) or 'unknown version'}"
    names = [str(device.get("name")) for device in spec.get("devices") or []]
    numbered = [name for name in names if re.fullmatch(r"\d+(:\d+)?", name)]  # 0:1 under MIG
    single = numbered or [name for name in names if name != "all"]
    return (
        "" if len(single) >= devices else f"{count_noun(len(single), 'device')}: {', '.join(names)}"
    )


def test_cdi_spec(node: CheckedNode) -> None:
    """The CDI spec names the loaded driver's libraries, every GPU and every MIG device in place of
    its GPU; so does any second one."""
    record = node.toolkit.get("cdi") or {}
    node.need(record.get("path"), "no CDI spec is recorded")
    driver = node.need_loaded()
    specs = node.sections("cdi:")
    parts = sum(map(len, node.mig_devices))
    devices = len(node.gpus) + parts - sum(map(bool, node.mig_devices))
    what = count_noun(devices, "GPU or MIG device" if parts else "GPU")
    expected = f"a spec with the libraries of driver {driver} and {what}"
    path = str(record["path"])
    names = {path, path.replace("/run/", "/var/run/", 1) if path.startswith("/run/") else path}
    node.expect(bool(names & set(specs)), kinds.CDI, expected, f"no {path}", path=path)
    for name, section in specs.items():
        if name not in names and not OF_GPUS.search(section.text):
            continue  # another vendor's, or the device plugin's own
        fault = spec_fault(section.text, driver, devices)
        node.expect(not fault, kinds.CDI, expected, f"{name}: {fault}", path=name)
