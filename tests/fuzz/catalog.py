"""Sources of the catalog, and files of catalog.d/."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

from pydantic import ValidationError

from gpufleet.catalog import parse
from gpufleet.catalog.parse import BrokenSource
from gpufleet.core import own_catalog
from gpufleet.core.data import read_shipped_data
from gpufleet.driver.catalog import Branches

SOURCES = (
    b"Package: nvidia-dkms-580\nVersion: 1:580.95.05-0ubuntu1\nDepends: x\n\n"
    b"Package: b\nVersion: 2\n",
    b"<?xml version='1.0'?><repomd xmlns='x'><data type='primary'><checksum>00</checksum>"
    b"<location href='repodata/a.xml.gz'/></data></repomd>",
    b"<metadata><package type='rpm'><name>a</name><version epoch='0' ver='1.2' rel='1'/>"
    b"</package></metadata>",
    b"schedules:\n- {release: 1.30, endOfLifeDate: 2025-06-28, next: {release: 1.30.4}}\n",
    b'[{"cycle": "1.7", "eol": "2026-03-10"}, {"cycle": "2.0", "eol": false}]',
    b'{"580": {"type": "lts branch", "driver_info": [{"release_version": "580.95.05"}]}}',
    b"name: x\nversion: 1.2.3\nkubeVersion: '>= 1.16'\n",
)
OWN = (
    b"branches:\n  - {branch: 700, kind: lts, newest: 700.1.1, modules: [open], source: x}\n"
    b"  - {branch: 580, versions: [580.1.2], end_of_life: 2030-01-01}\nas_of: 2026-11-29\n",
)


def parse_catalog_source(data: bytes) -> None:
    """Run every parser of a source. All but one reject the input."""
    for reader in (
        parse.parse_deb_packages,
        parse.find_primary,
        parse.parse_rpm_packages,
        parse.parse_key,
        parse.parse_schedule,
        parse.parse_cycles,
        parse.parse_driver_releases,
        parse.parse_chart_file,
    ):
        with suppress(BrokenSource):
            reader(data)


@cache
def _shipped() -> dict[str, Any]:
    return read_shipped_data("driver/branches")


def parse_own_branches(data: bytes) -> None:
    """A file of catalog.d/, merged and validated as when the catalog is loaded."""
    shipped = _shipped()
    try:
        Branches.model_validate(own_catalog._merged(shipped, own_catalog._parsed(data)))
    except ValidationError as error:
        for detail in error.errors():
            own_catalog._place(shipped, detail["loc"])
