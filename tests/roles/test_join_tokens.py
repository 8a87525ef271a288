"""A host that gets no token to join with says why; the kubeconfig that is not written too."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.core.stopped import Stopped
from gpufleet.kubernetes.operations import joining, tokens

NAMED = "failed to create or update bootstrap token"
PARTS = ["endpoint 10.0.0.1:6443", "version 1.36.3", "token abc", "hash sha256:1"]


@pytest.fixture
def plane(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The control plane answers `lines`, fails with `errors`, or has gone away."""

    def set_up(lines: list[str] | None, errors: list[str], connected: bool = True) -> None:
        output = SimpleNamespace(stdout_lines=lines, stderr_lines=errors)
        there = SimpleNamespace(name="cp-01", connected=True)
        inventory = SimpleNamespace(get_host=lambda _: there)
        state = SimpleNamespace(inventory=inventory, failed_hosts=[])
        monkeypatch.setattr(tokens, "state", state)
        monkeypatch.setattr(tokens, "host_arguments", lambda _: {})
        monkeypatch.setattr(tokens, "framed_answer", lambda found: found)
        monkeypatch.setattr(tokens, "is_connected", lambda _: connected)
        monkeypatch.setattr(tokens, "run_on_host", lambda *_, **__: (lines is not None, output))

    return set_up


@pytest.mark.parametrize(("lines", "errors", "connected", "code", "said"), [
    (None, ["connection refused"], True, "GF294", "did not create one: connection refused."),
    (
        None,
        [f"error: {NAMED} with name bootstrap-token-c6ixcy: refused"],
        True, "GF294", "did not create one: error: refused.",
    ),
    (None, [], True, "GF294", "did not create one: it printed nothing."),
    (PARTS[:2], [], True, "GF294", "cp-01"),
    (None, [], False, "GF944", "cp-01"),
])  # fmt: skip
def test_why_there_is_no_token(
    plane: Any, lines: list[str] | None, errors: list[str], connected: bool, code: str, said: str
) -> None:
    plane(lines, errors, connected)
    with pytest.raises(Stopped) as stopped:
        tokens.token_of(["cp-01"])
    (finding,) = stopped.value.findings
    assert finding.code == code
    assert said in finding.message


def test_a_token_is_not_shown(plane: Any) -> None:
    plane(PARTS, [])
    found = tokens.token_of(["cp-01"])
    assert (found.endpoint, found.token, found.hash) == ("10.0.0.1:6443", "abc", "sha256:1")
    assert "abc" not in repr(found)


def test_a_kubeconfig_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    monkeypatch.setattr(joining, "_access", lambda *_: "new")
    for path in (tmp_path / "folder", tmp_path / "file" / "kubeconfig"):
        with pytest.raises(Stopped) as stopped:
            joining._fetch(None, None, str(path), True)  # type: ignore[arg-type]
        assert [each.code for each in stopped.value.findings] == ["GF293"]
