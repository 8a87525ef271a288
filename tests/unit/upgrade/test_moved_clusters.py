"""A cluster that is not where it was when its run was planned."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gpufleet.core.stopped import Stopped
from gpufleet.kube.findings import API_UNREACHABLE
from gpufleet.kube.kubeconfig import Kubeconfig
from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.operations import moved, opening
from gpufleet.upgrade.operations.clusters import NodeAt

Contexts = Mapping[str, str]  # name -> UID of the cluster, the current one first


class AtServer:
    """The cluster whose UID is the name of its server; `away` does not answer, and `secret`
    gives no UID."""

    there: ClassVar[list[AtServer]] = []

    def __init__(self, access: KubeAccess | Kubeconfig) -> None:
        found = access.read() if isinstance(access, KubeAccess) else access
        self.context, self.url = found.context, found.content["clusters"][0]["cluster"]["server"]
        self.uid, self.is_open = self.url.removeprefix("https://"), True
        self.there.append(self)

    def get(self, path: str) -> dict[str, Any]:
        if self.uid == "away":
            raise ClusterProblem(API_UNREACHABLE(context="c", url="u", reason="timed out"))
        if self.uid == "secret":
            raise ApiError(f"GET {path}", 403, {"reason": "Forbidden"}, "c")
        return {"metadata": {"uid": self.uid}}

    def close(self) -> None:
        self.is_open = False


def write(file: Path, contexts: Contexts) -> None:
    names = list(contexts)
    users = [f"{{name: {name}, user: {{token: {name}}}}}" for name in names]
    lines = [f"current-context: {names[0]}", f"users: [{', '.join(users)}]"]
    named = [f'{{name: {name}, cluster: {{server: "https://{contexts[name]}"}}}}' for name in names]
    used = [f"{{name: {name}, context: {{cluster: {name}, user: {name}}}}}" for name in names]
    lines += [f"clusters: [{', '.join(named)}]", f"contexts: [{', '.join(used)}]"]
    file.write_text("\n".join(lines))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "now"))
    monkeypatch.setattr(AtServer, "there", [])
    monkeypatch.setattr(opening, "ClusterApi", AtServer)
    monkeypatch.setattr(moved, "ClusterApi", AtServer)
    monkeypatch.setattr(opening, "take_lease", lambda api, *how: None)
    monkeypatch.setattr(opening, "remove_pods", lambda api: None)
    return tmp_path


def opened(folder: Path, place: NodeAt | None = None, **files: Contexts) -> Any:
    """The cluster of a run of context lab in the file `old`, or why it is not opened. `files`: that
    one, that of KUBECONFIG (`now`) and that of the inventory."""
    for name, contexts in files.items():
        write(folder / name, contexts)
    place = place or NodeAt("n", str(folder / "old"), "lab", cluster="a")
    tried = [KubeAccess(str(folder / "inventory"))] if "inventory" in files else []
    try:
        api: Any = opening.open_nodes({"h": place}, "run-1", print, {}, lambda: tried)["h"].api
    except opening.NotOpened as error:
        assert [each for each in AtServer.there if each.is_open] == []
        return error.findings[0]
    assert [each for each in AtServer.there if each.is_open] == [api]
    return api


@pytest.mark.parametrize(
    ("files", "context"),
    [
        ({"now": {"lab": "a"}}, "lab"),  # moved
        ({"old": {"lab2": "a"}}, "lab2"),  # renamed
        ({"old": {"lab2": "b"}, "now": {"lab2": "a"}}, "lab2"),
        ({"now": {"x": "b"}, "inventory": {"y": "a"}}, "y"),
        ({"old": {"lab": "b"}, "now": {"x": "away"}, "inventory": {"y": "a"}}, "y"),
        ({"old": {"x": "b", "lab2": "a"}}, "lab2"),  # renamed, and not the current one
        ({"old": {"lab": "b", "x": "c", "lab2": "a"}}, "lab2"),
        ({"now": {"x": "b", "y": "secret", "lab2": "a"}}, "lab2"),
        ({"old": {"x": "a", "y": "a"}, "now": {"z": "a"}}, "x"),
        ({"old": {"lab": "secret", "lab2": "a"}}, "lab2"),
    ],
)
def test_a_cluster_that_moved_is_known_by_its_uid(
    files: dict[str, Contexts], context: str, folder: Path
) -> None:
    found = opened(folder, **files)
    assert (found.context, found.url) == (context, "https://a")


FORBIDDEN = ApiError("POST leases", 403, {"message": "cannot create leases"}, "c")
AWAY = ClusterProblem(API_UNREACHABLE(context="c", url="u", reason="timed out"))


@pytest.mark.parametrize(
    ("refused", "context"), [({"ro": FORBIDDEN}, "admin"), ({"ro": AWAY}, ""),
                             (dict.fromkeys(("ro", "admin", "x"), FORBIDDEN), "")]
)  # fmt: skip
def test_a_context_that_may_not_write_is_not_the_only_way(
    refused: dict[str, ClusterProblem], context: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lease(api: AtServer, *how: Any) -> None:
        if problem := refused.get(api.context):
            raise problem

    monkeypatch.setattr(opening, "take_lease", lease)
    if context:
        assert opened(folder, old={"ro": "a", "admin": "a", "x": "a"}).context == context
        return
    with pytest.raises(ClusterProblem) as error:
        opened(folder, old={"ro": "a", "admin": "a", "x": "a"})
    assert error.value.findings == refused["ro"].findings


def test_contexts_are_opened_one_at_a_time_and_asked_side_by_side(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client library writes files that contexts share; one that is silent delays no other."""
    two, opening_now = threading.Barrier(2), threading.Lock()

    class Slow(AtServer):
        def __init__(self, access: KubeAccess | Kubeconfig) -> None:
            assert opening_now.acquire(blocking=False)
            time.sleep(0.02)
            super().__init__(access)
            opening_now.release()

        def get(self, path: str) -> dict[str, Any]:
            two.wait(30)  # broken, unless both are asked at a time
            return super().get(path)

    monkeypatch.setattr(moved, "ClusterApi", Slow)
    assert opened(folder, now={"x": "b", "y": "a"}).context == "y"


def test_of_many_contexts_some_dozens_are_tried(folder: Path) -> None:
    found = opened(folder, now={f"x{number}": f"b{number}" for number in range(moved.MOST + 2)})
    assert found.code == "GF272"
    assert "2 more contexts, which were not tried" in found.message
    assert len(AtServer.there) == moved.MOST


def test_the_inventory_comes_before_many_contexts(folder: Path) -> None:
    others = {f"x{number}": f"b{number}" for number in range(moved.MOST)}
    assert opened(folder, now=others, inventory={"y": "a"}).context == "y"


def test_a_cluster_is_asked_once_by_each_user(folder: Path) -> None:
    opened(folder, old={"x": "b", "y": "b"}, now={"x": "b"}, inventory={"y": "b"})
    assert len(AtServer.there) == 2


@pytest.mark.parametrize(
    ("uid", "why"),
    [("away", "timed out"), ("secret", "the UID of its namespace kube-system may not be read")],
)
@pytest.mark.parametrize("where", ["old", "now", "inventory"])
def test_a_cluster_that_may_be_away_is_not_written_off(
    where: str, uid: str, why: str, folder: Path
) -> None:
    """Another one has its place, and one that gives no answer, or no UID, may be it."""
    files = {"old": {"lab": "b"}, "now": {"x": "b"}, "inventory": {"x": "b"}}
    files[where] = {"y": uid} if where == "inventory" else {**files[where], "y": uid}
    found = opened(folder, **files)
    assert found.code == "GF276"
    assert f"Context 'lab' of {folder / 'old'} now points to https://b" in found.message
    assert f"kubeconfig {folder / where}: " in found.message
    assert why in found.message


@pytest.mark.parametrize(
    ("others", "files", "code"),
    [
        ({}, {}, "GF275"),
        ({"x": "b"}, {}, "GF275"),
        ({"x": "away"}, {}, "GF276"),
        ({}, {"inventory": {"lab": "secret"}}, "GF275"),  # the same, by another name
        ({}, {"inventory": {"y": "away"}}, "GF276"),
    ],
)
def test_a_cluster_that_does_not_show_its_uid_is_not_taken_for_that_of_the_run(
    others: Contexts, files: Mapping[str, Contexts], code: str, folder: Path
) -> None:
    """The run knows the UID: its context may lead to another cluster by now."""
    found = opened(folder, old={"lab": "secret", **others}, **files)
    assert found.code == code
    assert f"Context 'lab' of {folder / 'old'} now points to https://secret, where" in found.message
    unknown = NodeAt("n", str(folder / "old"), "lab")  # to a record of an earlier version
    assert opened(folder, unknown, old={"lab": "secret"}).context == "lab"


def test_a_cluster_of_an_inventory_that_is_not_read_may_be_away(folder: Path) -> None:
    write(folder / "old", {"lab": "b"})
    place = NodeAt("n", str(folder / "old"), "lab", cluster="a")

    def unread() -> list[KubeAccess]:
        raise Stopped(API_UNREACHABLE(context="c", url="u", reason="it has no hosts"))

    with pytest.raises(opening.NotOpened) as error:
        opening.open_nodes({"h": place}, "run-1", print, {}, unread)
    assert error.value.findings[0].code == "GF276"
    assert "the inventory: " in error.value.findings[0].message


@pytest.mark.parametrize("context", ["broken", "y"])
def test_a_kubeconfig_that_cannot_be_used_may_lead_to_it(context: str, folder: Path) -> None:
    write(folder / "old", {"lab": "b"})
    text = "[" if context == "broken" else "contexts: [{name: y, context: {cluster: gone}}]"
    (folder / "now").write_text(text)
    found = opened(folder)
    assert found.code == "GF276"
    assert str(folder / "now") in found.message


def test_another_cluster_is_named_where_the_right_one_is_nowhere(folder: Path) -> None:
    found = opened(folder, old={"lab": "b", "z": "c"}, now={"x": "b"}, inventory={"y": "c"})
    assert found.code == "GF288"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, [moved.NO_OTHERS]),
        ({"old": {"lab2": "b"}}, ["context 'lab2' of kubeconfig {0}/old: another cluster."]),
        (
            {"now": {"lab": "b"}, "inventory": {"y": "away"}},
            ["context 'lab' of kubeconfig {0}/now: another", "kubeconfig {0}/inventory: ", "timed"],
        ),
    ],
)
def test_a_lost_kubeconfig_says_what_was_tried(
    files: dict[str, Contexts], said: list[str], folder: Path
) -> None:
    found = opened(folder, **files)
    assert found.code == "GF272"
    assert (
        f"context 'lab' of kubeconfig {folder / 'old'}, which is no longer there" in found.message
    )
    for part in said:
        assert part.format(folder) in found.message


def test_a_cluster_whose_uid_is_not_known_is_not_guessed(folder: Path) -> None:
    """Nor is a file asked for that would not be taken."""
    place = NodeAt("n", str(folder / "old"), "lab")
    found = opened(folder, place, now={"lab": "a"})
    assert found.code == "GF277"
    assert "the same path and context" in found.remedy
    assert "KUBECONFIG" not in found.remedy
    assert AtServer.there == []
    assert opened(folder, place, old={"lab": "b"}).context == "lab"


def test_a_cluster_that_does_not_answer_is_not_opened(folder: Path) -> None:
    """Also where its UID is not known: its user may say that it is gone."""
    for uid in ("a", ""):
        place = NodeAt("n", str(folder / "old"), "lab", cluster=uid)
        assert opened(folder, place, old={"lab": "away"}, now={"x": "a"}).code == "GF863"


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ("", "the cluster of KUBECONFIG ({0}/now), which"),
        ("lab", "the cluster of context 'lab' of KUBECONFIG ({0}/now), which"),
    ],
)
def test_a_record_without_a_path_names_kubeconfig(context: str, said: str, folder: Path) -> None:
    found = opened(folder, NodeAt("n", "", context))
    assert found.code == "GF277"
    assert said.format(folder) in found.message
