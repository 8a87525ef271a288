"""A working directory with a catalog.d/, and keys."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpufleet.core import data, own_catalog
from gpufleet.helm import chart_choice
from gpufleet.node import catalog
from gpufleet.status import support
from tests.unit.catalog.live_mirror import KEY_NAMES, LiveMirror, MakeKey

OwnEntries = Callable[[dict[str, Any]], None]


def _forget() -> None:
    loaders: tuple[Any, ...] = (
        catalog.load_catalog, chart_choice.load_charts, support.load_runtimes, own_catalog._read,
    )  # fmt: skip
    for load in loaders:
        load.cache_clear()


@pytest.fixture(scope="package", autouse=True)
def parsed_once() -> Iterator[None]:
    """Each test reads the whole catalog again: the text of the shipped files is parsed once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "_parse", cache(data._parse))
        yield


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty catalog.d/ in the working directory."""
    folder = tmp_path / "fleet/catalog.d"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder.parent)
    _forget()
    yield folder
    _forget()


@pytest.fixture
def mirror(tmp_path: Path) -> LiveMirror:
    return LiveMirror(tmp_path / "mirror")


@pytest.fixture(scope="session")
def make_key() -> Iterator[MakeKey]:
    """A function that makes a key, valid for as long as gpg's text says: fingerprint and key.
    The key is made now, or at another time (20200131T120000)."""
    with tempfile.TemporaryDirectory(dir="/tmp") as home:  # a socket's path must be short

        def gpg(*words: str) -> bytes:
            command = ["gpg", "--homedir", home, "--batch", "--passphrase", "", *words]
            return subprocess.run(command, check=True, capture_output=True).stdout

        def make(valid: str, made: str = "") -> tuple[str, bytes]:
            name = f"key {len(os.listdir(home))} {valid} {os.urandom(4).hex()}"
            clock = ["--faked-system-time", made] if made else []
            gpg(*clock, "--quick-generate-key", name, "ed25519", "sign", valid)
            listed = gpg("--with-colons", "--list-keys", name).decode()
            fingerprint = next(
                line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr")
            )
            return fingerprint, gpg("--armor", "--export", fingerprint)

        yield make
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)


@pytest.fixture
def known_keys(own_folder: Path, mirror: LiveMirror, make_key: MakeKey) -> str:
    """One key for all repositories, which catalog.d/ has. Returns its fingerprint."""
    fingerprint, public = make_key("never")
    mirror.keys = dict.fromkeys(KEY_NAMES, public)
    key = {"fingerprints": [fingerprint]}
    files = [name.removeprefix("drivers ") for name in KEY_NAMES if name.startswith("drivers ")]
    content: dict[str, Any] = {
        "repositories": {"cuda": {"keys": [{"file": file, **key} for file in files]}},
        "toolkit": {"repository": {"key": key}},
        "kubernetes": {"repository": {"key": key}},
        "containerd": {"docker": {"keys": {"deb": key, "rpm": key}}},
    }
    for name, entries in content.items():
        (own_folder / f"{name}.yaml").write_text(json.dumps(entries))
    _forget()
    return fingerprint
