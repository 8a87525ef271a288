"""Shared by the tests of catalog driver."""

from __future__ import annotations

from datetime import date
from typing import Any

from gpufleet.driver.choice import DriverChoice
from gpufleet.driver.resolve import resolve_driver
from gpufleet.driver.settings import DriverSettings
from gpufleet.node.catalog import load_catalog

K80, M60, P100, V100 = 0x102D, 0x13F2, 0x15F8, 0x1DB4


T4, A100, H100, L4, B200, GH200, GB200 = 0x1EB8, 0x20B0, 0x2330, 0x27B8, 0x2901, 0x2342, 0x2941
TODAY = date(2026, 11, 20)


def choose(distribution: str, *devices: int, **settings: Any) -> DriverChoice:
    place = {
        key: settings.pop(key, default)
        for key, default in (
            ("architecture", "x86_64"),
            ("kernel", "6.8.0-40-generic"),
            ("nvswitch", False),
        )
    }
    return resolve_driver(
        load_catalog(),
        distribution=load_catalog().distribution(distribution) or distribution,
        devices=devices,
        settings=DriverSettings(**settings),
        today=TODAY,
        **place,
    )
