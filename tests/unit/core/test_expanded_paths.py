"""Paths of a user that begin with ~, even ~USER with a user that this machine does not have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gpufleet.core.paths import expand_user_path
from gpufleet.core.stopped import Stopped
from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
from gpufleet.kubernetes.archives import expand_patterns
from gpufleet.kubernetes.operations.cluster_view import Unknown, read_cluster
from gpufleet.kubernetes.operations.joining import _fetch
from gpufleet.packages.operations.logins import LoginFileError, read_logins
from gpufleet.verify.inventory import Target

NOBODY = "~nosuchuser/file"
PRODUCT = Path(__file__).parents[3]


def test_a_path_is_expanded_where_there_is_such_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert expand_user_path("~/file") == Path("/home/me/file")
    assert expand_user_path(NOBODY) == Path(NOBODY)


def test_no_path_of_a_user_ends_a_command_with_a_traceback() -> None:
    """Path.expanduser raises RuntimeError if the user does not exist."""
    files = [file for part in ("gpufleet", "roles") for file in (PRODUCT / part).rglob("*.py")]
    assert [str(each) for each in files if re.search(r"\.expanduser\(\)", each.read_text())] == []


def test_what_has_the_path_of_nobody_says_so(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", NOBODY)
    plane = Target("h", ("control_plane",), {"kubernetes_kubeconfig": NOBODY})
    for access in (KubeAccess(NOBODY), KubeAccess()):
        with pytest.raises(ClusterProblem, match=NOBODY):
            access.read()
    with pytest.raises(Unknown, match=NOBODY):
        read_cluster([plane])
    with pytest.raises(LoginFileError, match=NOBODY):
        read_logins(NOBODY)
    with pytest.raises(ValueError, match=NOBODY):
        expand_patterns([NOBODY])
    with pytest.raises(Stopped, match="no such user"):
        _fetch(None, None, NOBODY, True)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
