"""What a run says while helm waits for the hooks of a chart."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.helm.operations import release_watch
from gpufleet.helm.operations.release_watch import HOOK, QUIET, REPORT, Watch
from gpufleet.helm.release import ChartSource, Release
from gpufleet.kube.operations.refused import ApiError

JOBS = "/apis/batch/v1/namespaces/space/jobs"
RELEASE = Release("one", "space", "chart", "2.0.0", ChartSource("archive", "x"))


def job(name: str, *, hook: bool = True, succeeded: int = 0) -> dict[str, Any]:
    marks = {HOOK: "pre-install"} if hook else {}
    return {"metadata": {"name": name, "annotations": marks}, "status": {"succeeded": succeeded}}


def pod(name: str) -> dict[str, Any]:
    about = {"name": name, "namespace": "space"}
    return {"metadata": about, "spec": {}, "status": {"phase": "Pending"}}


def event(kind: str, name: str, message: str, at: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    about = {"kind": kind, "name": name}
    return {
        "involvedObject": about,
        "message": message,
        "reason": "FailedMount",
        "type": "Warning",
        "lastTimestamp": at,
    }


class Api:
    """Answers lists by path; a number is a status."""

    def __init__(self, **lists: Any) -> None:
        self.lists = lists

    def list(self, path: str, **query: str) -> Any:
        found = self.lists.get(path.rpartition("/")[2], [])
        if isinstance(found, int):
            raise ApiError(f"GET {path}", found, {"message": f"{path} is closed"}, "test")
        return found


class Watched:
    """A watch with its own clock, and what it said."""

    def __init__(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        clock = SimpleNamespace(monotonic=lambda: 100 + self.now)
        monkeypatch.setattr(release_watch, "time", clock)
        self.said: list[str] = []
        self.watch = Watch(api, RELEASE, self.said.append)  # type: ignore[arg-type]

    def poll(self, *seconds: float) -> list[str]:
        """What it says when helm has run for so long."""
        self.said.clear()
        for self.now in seconds:
            self.watch.during_helm(self.now)
        return self.said


def test_helm_is_reported_at_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    said = Watched(Api(), monkeypatch).poll(QUIET - 1, QUIET, QUIET + 1, QUIET + REPORT)
    assert said == ["2 s: helm waits for the API", "7 s: helm waits for the API"]


def test_its_hooks_are_named_with_their_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the pods of a Job are gone."""
    api = Api(
        jobs=[job("crds"), job("done", succeeded=1), job("other", hook=False)],
        pods=[pod("crds-x")],
        events=[
            event("Job", "crds", "quota exceeded", "2026-01-01T00:00:02Z"),
            event("Pod", "crds-x", "no route", "2026-01-01T00:00:01Z"),
            event("Pod", "elsewhere", "another"),
            event("Node", "crds", "another"),
        ],
    )
    watched = Watched(api, monkeypatch)
    why = "Job crds (Job crds: quota exceeded; FailedMount: no route)"
    assert watched.poll(QUIET) == [f"2 s: helm waits for {why}"]
    api.lists |= {"pods": [], "events": []}
    assert watched.poll(QUIET + REPORT) == [f"7 s: helm waits for {why}"]


def test_what_cannot_be_read_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Watched(Api(jobs=403), monkeypatch).poll(QUIET, QUIET + REPORT) == [
        f"cannot read the cause of the delay: {JOBS} is closed",
        "2 s: helm waits for the API",
        "7 s: helm waits for the API",
    ]
    assert Watched(Api(jobs=500), monkeypatch).poll(QUIET) == [
        f"2 s: helm is running; its hooks cannot be read: GET {JOBS}: 500 {JOBS} is closed"
    ]
