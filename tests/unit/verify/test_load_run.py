"""Load tests of a cluster: what is read of a Job without a pod, and of Prometheus."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from gpufleet.verify.cluster import Cluster
from gpufleet.verify.load_models import PodLabels
from gpufleet.verify.load_run import Run, _look, read_series, running, tail
from gpufleet.verify.subject import CheckFailed

LABELS = [
    PodLabels(namespace="namespace", pod="pod", source="a test"),
    PodLabels(namespace="exported_namespace", pod="exported_pod", source="a test"),
]


class FakeCluster:
    """Answers of an API server with one Job and no pod, and of its Prometheus."""

    def __init__(self, job: Any = None, events: tuple[str, ...] = (), series: Any = ()) -> None:
        self.queries: list[str] = []
        self.series = series
        messages = [SimpleNamespace(message=text) for text in events]
        self.core = SimpleNamespace(
            list_namespaced_pod=lambda *_, **__: SimpleNamespace(items=[]),
            list_namespaced_event=lambda *_, **__: SimpleNamespace(items=messages),
        )
        self.batch = SimpleNamespace(read_namespaced_job=lambda *_: job)

    def ask(self, call: Any, *words: Any, **options: Any) -> Any:
        return call(*words, **options)

    find = ask

    def prometheus(self, query: str) -> Any:
        self.queries.append(query)
        return self.series if "exported_pod" in query or isinstance(self.series, str) else ()


def job(*conditions: tuple[str, str, str]) -> Any:
    listed = [
        SimpleNamespace(type=kind, status=status, message=message, reason="")
        for kind, status, message in conditions
    ]
    return SimpleNamespace(status=SimpleNamespace(conditions=listed))


@pytest.mark.parametrize(
    ("found", "events", "phase", "trouble"),
    [
        (None, (), "Failed", "the Job was removed"),
        (job(("Failed", "True", "deadline exceeded")), (), "Failed", "deadline exceeded"),
        (job(("Failed", "False", "no")), ("quota", "forbidden"), "", "forbidden"),
        (job(), (), "", ""),
    ],
    ids=["removed", "failed", "no pod may be created", "it waits"],
)
def test_a_job_without_a_pod(found: Any, events: Any, phase: str, trouble: str) -> None:
    run = Run(cast("Any", None), "load")
    _look(cast("Cluster", FakeCluster(found, events)), run)
    assert (run.phase, run.trouble) == (phase, trouble)


def test_series_are_those_since_the_container_started() -> None:
    began = datetime.now(timezone.utc) - timedelta(seconds=90)
    run = Run(cast("Any", None), "load", pod="load-x", began=began)
    cluster = FakeCluster(series=["one"])
    assert read_series(cast("Cluster", cluster), run, ["A", "B"], LABELS) == ""
    assert cast("Any", run.series) == ["one"]
    assert len(cluster.queries) == 2  # the first labels have no series
    assert '__name__=~"A|B"' in cluster.queries[1]
    assert 'exported_pod="load-x"' in cluster.queries[1]
    assert int(cluster.queries[1].rsplit("[", 1)[1].removesuffix("s]")) in range(90, 120)


@pytest.mark.parametrize("answer", ["no Service selects it", ()])
def test_without_a_container_prometheus_is_asked_whether_it_answers(answer: Any) -> None:
    cluster = FakeCluster(series=answer)
    run = Run(cast("Any", None), "load")
    found = read_series(cast("Cluster", cluster), run, ["A"], LABELS)
    assert (found, cluster.queries, run.series) == (answer or "", ["up"], [])


def test_the_end_of_a_log_has_no_part_of_a_secret() -> None:
    shown = tail(f"first\nAuthorization: Bearer {'hunter2' * 60}\nout of memory\n")
    assert shown == "first / Authorization: *** / out of memory"
    assert tail("x" * 200_000 + "\n  last \n\n") == "last"
    assert tail("") == ""


class OfJobs:
    """The Jobs of an API server. `refuses`: why it does not delete one, by name."""

    def __init__(self, refuses: Mapping[str, Any], create: Exception | None = None) -> None:
        self.there, self.asked, self.refuses = list[str](), list[str](), refuses
        self.create = create  # what the third one ends with

    def create_namespaced_job(self, namespace: str, body: Any, **how: Any) -> Any:
        self.there.append(body["metadata"]["name"])
        if self.create and len(self.there) == 3:
            raise self.create

    def delete_namespaced_job(self, name: str, namespace: str, **how: Any) -> Any:
        assert how["propagation_policy"] == "Background"  # else its pods stay
        letter = name[0]
        self.asked.append(letter)
        if letter in self.refuses:
            error = self.refuses[letter]
            raise error if isinstance(error, BaseException) else error(name)
        return {"kind": "Status", "status": "Success"}


def load_of(jobs: OfJobs, end: BaseException | None = None, said: Any = print) -> Any:
    """Three Jobs, and a cluster that closes while they run, or another end."""
    cluster: Any = Cluster(cast("Any", SimpleNamespace(name="c", data={})))
    cluster.batch = jobs
    load: Any = SimpleNamespace()
    bodies = [(load, {"metadata": {"generateName": letter}}) for letter in "abc"]
    with running(cluster, bodies, said) as runs:
        assert [run.job for run in runs] == jobs.there
        raise end or cluster.gone("connection refused")


def is_missing(name: str) -> Exception:
    error = ApiException(404, "Not Found")
    error.body = json.dumps(
        {"kind": "Status", "reason": "NotFound", "details": {"name": name}, "message": "no"}
    )
    return error


def test_every_job_is_removed_and_those_that_stay_are_named() -> None:
    unreadable = UnicodeDecodeError("utf-8", b"\xe9", 0, 1, "invalid")
    jobs = OfJobs({"a": ApiException(502, "Bad Gateway"), "b": unreadable})
    with pytest.raises(CheckFailed) as failed:
        load_of(jobs)
    assert sorted(jobs.asked) == ["a", "b", "c"]
    assert failed.value.finding.code == "GF707"
    a, b, _ = jobs.there
    assert f"{a}: 502 Bad Gateway; {b}: 'utf-8' codec can't decode" in str(failed.value)
    assert "before: GF790 c: " in str(failed.value)
    assert "connection refused" in str(failed.value)


def test_a_log_in_page_deletes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OfJobs, "delete_namespaced_job", lambda *_, **__: "<html>Log in</html>")
    with pytest.raises(CheckFailed, match="the response is not the API server's") as failed:
        load_of(OfJobs({}))
    assert failed.value.finding.code == "GF707"


def test_an_interrupt_stays_one_and_names_what_is_left() -> None:
    said: list[str] = []
    jobs = OfJobs({"a": ApiException(403, "Forbidden")})
    with pytest.raises(KeyboardInterrupt):
        load_of(jobs, KeyboardInterrupt(), said.append)
    assert sorted(jobs.asked) == ["a", "b", "c"]
    assert said == [f"GF707 Load test's Jobs left in the cluster: {jobs.there[0]}: 403 Forbidden"]


@pytest.mark.parametrize(
    ("answer", "deleted"),
    [
        (HTTPError("timed out"), "abc"),
        (ApiException(504, "x"), "abc"),
        (ApiException(403, ""), "ab"),
    ],
)
def test_a_job_whose_creation_is_unknown_is_deleted(answer: Exception, deleted: str) -> None:
    jobs = OfJobs({}, answer)
    with pytest.raises(CheckFailed) as failed:
        load_of(jobs)
    assert failed.value.finding.code == "GF790"
    assert "".join(sorted(jobs.asked)) == deleted


def test_a_job_that_is_gone_is_removed() -> None:
    jobs = OfJobs({"b": is_missing})
    with pytest.raises(CheckFailed, match="connection refused"):
        load_of(jobs)
    assert sorted(jobs.asked) == ["a", "b", "c"]
    jobs = OfJobs({"b": is_missing("other")})
    with pytest.raises(CheckFailed, match=r"b\w+: 404 Not Found"):
        load_of(jobs)
