"""The exporter on the host: it runs as recorded, has metrics of every GPU, listens as asked."""

from __future__ import annotations

import re
from typing import Any

from gpufleet.core.names import count_noun
from gpufleet.verify.findings import hosts as kinds
from gpufleet.verify.node import CheckedNode
from gpufleet.verify.parse import listening_addresses

TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP"


def need_exporter(node: CheckedNode) -> dict[str, Any]:
    """Skip without a recorded exporter; its record."""
    record: dict[str, Any] = dict(node.provenance.get("exporter") or {})
    node.need(record, "no exporter is recorded")
    return record


def need_running(node: CheckedNode) -> dict[str, Any]:
    """Skip unless its services run too."""
    record = need_exporter(node)
    node.need(not stopped(node, record), "the exporter is not running (GF750)")
    return record


def stopped(node: CheckedNode, record: dict[str, Any]) -> list[str]:
    """Recorded units that are not active or not enabled, as text."""
    found = []
    for unit in record.get("units") or []:
        values = node.services.get(unit, {})
        state = (values.get("ActiveState", "not there"), values.get("UnitFileState", ""))
        if state not in (("active", "enabled"), ("active", "static")):
            found.append(f"{unit} {', '.join(state)}".rstrip(", "))
    return found


def test_exporter_service(node: CheckedNode) -> None:
    """Its services are active and enabled; there is one where the inventory wants one."""
    if node.data.get("exporter_enabled") is True and node.gpus:
        there, expected = node.provenance.get("exporter"), "an exporter (exporter_enabled)"
        unit = "nvidia-dcgm-exporter"
        node.expect(bool(there), kinds.SERVICE_CHECK, expected, "none recorded", unit=unit)
    record = need_exporter(node)
    wrong = stopped(node, record)
    expected = f"{' and '.join(record.get('units') or [])} active and enabled"
    units = " ".join(record.get("units") or [])
    node.expect(not wrong, kinds.SERVICE_CHECK, expected, "; ".join(wrong), unit=units)


def test_exporter_metrics(node: CheckedNode) -> None:
    """/metrics answers with a temperature of every GPU that nvidia-smi lists."""
    record = need_running(node)
    node.need_loaded()
    gpus = sum(line.startswith("GPU ") for line in node.section("smi-list").lines)
    known = {gpus, len(node.gpus), len(node.section("driver-gpus").lines)}
    node.need(len(known) == 1, "a GPU is missing (GF741)")
    section = node.section("metrics")
    url = str(record.get("metrics"))
    expected = f"{TEMPERATURE} of {count_noun(gpus, 'GPU')} at {url}"
    node.expect(section.ok, kinds.EXPORTER_METRICS, expected, f"no answer: {section.last}")
    series = [line.split() for line in section.lines]
    wanted = str(node.data.get("exporter_counters") or TEMPERATURE)
    if (
        TEMPERATURE in wanted or wanted.strip() == "gpufleet"
    ):  # a list of the user's own may leave it out
        series = [words for words in series if words[0] == TEMPERATURE]
    found = len({words[-1] for words in series})
    node.expect(found == gpus, kinds.EXPORTER_METRICS, expected, f"{count_noun(found, 'GPU')}")


def test_exporter_version(node: CheckedNode) -> None:
    """The program, or the running image, has the recorded version."""
    record = need_running(node)
    wanted = node.data.get("exporter_version")
    version = str(record.get("version"))
    if wanted:
        right = version == str(wanted) or version.startswith(f"{wanted}.")
        expected = f"exporter {wanted} (exporter_version)"
        node.expect(right, kinds.PACKAGES, expected, f"{version} recorded")
    section = node.section("exporter-version")
    image = record.get("image")
    expected = f"image {image}" if image else f"`dcgm-exporter --version` to print {version}"
    node.expect(section.ok, kinds.PACKAGES, expected, section.last)
    if image:
        right = section.last == image
    else:  # the packages' versions have a fourth number that the program does not know
        said = re.findall(r"\d+\.\d+\.\d+", section.text)
        right = ".".join(version.split(".")[:3]) in said
    node.expect(right, kinds.PACKAGES, expected, section.last)


def test_exporter_listens(node: CheckedNode) -> None:
    """It listens on the recorded and configured address, and nowhere else."""
    record = need_running(node)
    address, _, port = str(record.get("listen")).rpartition(":")
    address = address.strip("[]")
    wanted = (
        str(node.data.get("exporter_listen") or address),
        str(node.data.get("exporter_port") or port),
    )
    expected = f"a listener at {' port '.join(wanted)} alone"
    found = {
        where
        for where, number in listening_addresses(node.section("listening").text)
        if number == port
    }
    words = ", ".join(sorted(found)) or "none"
    right = found == {wanted[0]} and port == wanted[1]
    node.expect(right, kinds.EXPORTER_LISTENS, expected, f"{words} at port {port}")


def test_exporter_packages(node: CheckedNode) -> None:
    """Its packages have the recorded versions and are held."""
    record = need_exporter(node)
    recorded = record.get("packages") or {}
    node.need(recorded, "the exporter is a container and has no packages")
    found = node.differences(recorded)
    expected = f"{count_noun(len(recorded), 'package')} at the recorded versions"
    node.expect(not found, kinds.PACKAGES, expected, "; ".join(found))
    if record.get("held"):
        node.expect_held(recorded)
