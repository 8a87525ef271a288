"""The host itself: it answers, it has a record, its package manager is whole."""

from __future__ import annotations

from gpufleet.verify.findings import hosts as kinds
from gpufleet.verify.node import PROVENANCE_PATH, PROVENANCE_SCHEMA, CheckedNode


def test_reachable(node: CheckedNode) -> None:
    """The host answers over its one connection."""
    node.reach()


def test_settings(node: CheckedNode) -> None:
    """The inventory's settings of the host are valid."""
    node.expect_settings(kinds.SETTINGS)


def test_provenance(node: CheckedNode) -> None:
    """A host with a GPU has a record of what was installed, and it can be read."""
    node.need(node.gpus or node.section("provenance").ok, "the host has no NVIDIA GPU")
    wanted = node.is_wanted("driver") or node.is_wanted("toolkit")
    if not wanted and not node.section("provenance").ok:
        node.need(False, "driver_enabled and toolkit_enabled are false")
    expected = f"{PROVENANCE_PATH} with schema {PROVENANCE_SCHEMA}"
    section = node.section("provenance")
    node.expect(section.ok, kinds.RECORD_CHECK, expected, section.last)
    node.expect(bool(node.provenance), kinds.RECORD_CHECK, expected, "a file that is not JSON")
    schema = node.provenance.get("schema")
    node.expect(schema == PROVENANCE_SCHEMA, kinds.RECORD_CHECK, expected, f"schema {schema}")


def test_as_wanted(node: CheckedNode) -> None:
    """If a driver is enabled, one is recorded as the inventory sets it, or one of another source is
    loaded."""
    if node.provenance and node.is_wanted("driver"):
        there = bool(node.driver.get("version")) or node.has_kept_driver
        node.expect(there, kinds.AS_WANTED, "a driver (driver_enabled)", "none recorded")
    installed = node.loaded if node.has_kept_driver else node.need_driver()
    version, branch = node.data.get("driver_version"), node.data.get("driver_branch")
    node.need(version or branch, "the inventory sets neither driver_version nor driver_branch")
    found = f"{installed} {'loaded' if node.has_kept_driver else 'recorded'}"
    if version:
        expected = f"driver {version} (driver_version)"
        node.expect(installed == str(version), kinds.AS_WANTED, expected, found)
    if branch:
        expected = f"a driver of branch {branch} (driver_branch)"
        right = str(installed).split(".")[0] == str(branch)
        node.expect(right, kinds.AS_WANTED, expected, found)


def test_package_manager(node: CheckedNode) -> None:
    """No package is half installed, no transaction unfinished."""
    if node.is_debian:
        broken = sorted(p.name for p in node.packages.values() if not p.whole)
        audit = node.section("dpkg-audit").last if node.section("dpkg-audit").lines else ""
        found = f"half installed: {', '.join(broken)}" if broken else audit
        node.expect(not found, kinds.PACKAGE_MANAGER, "every package configured", found)
    unfinished = node.section("rpm-unfinished").lines
    expected = "no unfinished transaction"
    node.expect(not unfinished, kinds.PACKAGE_MANAGER, expected, ", ".join(unfinished))


def test_nothing_without_gpu(node: CheckedNode) -> None:
    """A host without a GPU, and without a record of a driver, has no driver."""
    node.need(not node.gpus, "it is for hosts without a GPU")
    node.need(not node.driver, "a driver is recorded: its GPU is missing (GF741)")
    there = sorted(p.name for p in node.packages.values() if p.is_driver)
    if "nvidia" in node.section("modules").lines:
        there.append("the loaded nvidia module")
    expected = "no NVIDIA driver, as there is no NVIDIA GPU"
    node.expect(not there, kinds.NO_GPU, expected, ", ".join(there))
