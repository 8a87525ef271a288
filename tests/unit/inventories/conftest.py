"""Programs and an API that give the recorded answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from source_fakes import ANSWERS, FAKE_PROGRAM, PROGRAMS, NetBox


@pytest.fixture
def netbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[NetBox]:
    with NetBox() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("NETBOX_URL", server.url)
        monkeypatch.setenv("NETBOX_TOKEN", "nbt_key.hunter2")
        yield server
        server.shutdown()


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs that print the recorded answers, before all others."""
    for program in PROGRAMS.values():
        (tmp_path / program).write_text(FAKE_PROGRAM.format(answers=ANSWERS))
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("MAAS_PROFILE", "admin")
    for name in ("SSH_USER", "SSH_KEY", "KUBECONFIG", "TERRAFORM_DIR"):
        monkeypatch.delenv(f"GPUFLEET_{name}", raising=False)
    return tmp_path
