"""Settings of the exporter: off unless asked for, and closed to the network unless asked for."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.exporter.role import ROLE as EXPORTER
from gpufleet.exporter.settings import ExporterSettings
from gpufleet.node.settings import load_node_settings


def exporter(**data: Any) -> ExporterSettings:
    settings, found = load_node_settings({f"exporter_{key}": value for key, value in data.items()})
    assert settings is not None, found
    return settings.of(EXPORTER)


def problem(**data: Any) -> str:
    settings, found = load_node_settings({f"exporter_{key}": value for key, value in data.items()})
    assert settings is None
    return " ".join(f"{finding.message} {finding.remedy}" for finding in found)


def test_the_careful_defaults() -> None:
    settings = exporter()
    assert settings.enabled is False
    assert settings.address == "127.0.0.1:9400"


@pytest.mark.parametrize(("value", "means"), [(True, True), ("auto", "auto"), (False, False)])
def test_on_off_and_auto(value: object, means: object) -> None:
    assert exporter(enabled=value).enabled == means


@pytest.mark.parametrize(
    ("listen", "port", "address"),
    [("0.0.0.0", 9400, "0.0.0.0:9400"), ("::1", 19400, "[::1]:19400")],
)
def test_addresses(listen: str, port: int, address: str) -> None:
    assert exporter(listen=listen, port=port).address == address


@pytest.mark.parametrize("value", ["everywhere", "10.0.0", "fe80::1%eth0", ":9400", "", 1, True])
def test_what_is_no_address_is_refused(value: object) -> None:
    assert "exporter_listen" in problem(listen=value)


def test_counters_are_lines_that_the_exporter_reads() -> None:
    text = (
        "# mine\n\nDCGM_FI_DEV_GPU_TEMP, gauge, Temperature, in C.\nDCGM_FI_DEV_SERIAL,label,Serial"
    )
    assert exporter(counters=text).counters == text + "\n"


@pytest.mark.parametrize(
    "value",
    ["", "# nothing\n", "DCGM_FI_DEV_GPU_TEMP, gauge", "DCGM_FI_DEV_GPU_TEMP, meter, Help",
     "temperature, gauge, Help", "/etc/counters.csv"],
)  # fmt: skip
def test_other_counters_are_refused(value: str) -> None:
    assert "exporter_counters" in problem(counters=value)


def test_a_version_in_floating_point_is_refused() -> None:
    assert 'as in "4.8.3"' in problem(version=4.8)


@pytest.mark.parametrize("value", ["-v /:/host", "a b", "$(id)", "-"])
def test_an_image_that_is_none_is_refused(value: str) -> None:
    assert "exporter_image" in problem(image=value)
