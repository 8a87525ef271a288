"""Charts from a real repository over HTTP and a real OCI registry, with helm 3 and 4: downloads,
the cache, and every failure before any change of the cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpufleet.helm.release import ChartSource
from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.debian import debian_program
from tests.cluster.conftest import KUBERNETES
from tests.cluster.serving import PASSWORD, USER, Registry, Repository, chart_repository, registry
from tests.cluster.tiny import Run, Site, archive
from tests.selection import EXTENDED

# sources of charts do not depend on the server's version
pytestmark = [
    pytest.mark.parametrize("cluster", KUBERNETES[:1], indirect=True),
    pytest.mark.claim(
        "Charts come from a repository over HTTP or a registry, once, and are kept by their "
        "sha256.",
        level=5,
    ),
]


@pytest.fixture(scope="module")
def registry_program() -> Path:
    return debian_program("docker-registry", "docker-registry")


@pytest.fixture
def cache(tmp_path: Path, registry_program: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for the test; the sandbox's programs are downloaded before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gpufleet" / "charts"


@pytest.fixture
def offered(cluster: Cluster, tmp_path: Path) -> Iterator[Repository]:
    """A repository with the chart tiny in version 1.0.0."""
    folder = tmp_path / "offered"
    folder.mkdir()
    archive(folder)
    with chart_repository(folder) as found:
        found.index(cluster.helm)
        yield found


@pytest.fixture
def pushed(helm: Path, tmp_path: Path, registry_program: Path) -> Iterator[Registry]:
    """A registry with the chart tiny in version 1.0.0."""
    with registry(registry_program, tmp_path) as found:
        found.push(helm, Path(archive(tmp_path)))
        yield found


def http(offered: Repository, logins: Path | str = "") -> ChartSource:
    return ChartSource("repository", offered.url, str(logins))


def oci(pushed: Registry, logins: Path | str = "", *, plain: bool = True) -> ChartSource:
    return ChartSource("oci", f"{pushed.url}/tiny", str(logins), plain)


def refused(site: Site, cache: Path, source: ChartSource, code: str) -> Run:
    """Assert that the plan has that blocker, and that cluster and cache stay empty."""
    run = site.apply({}, source=source)
    message = run.finding(code).message
    assert source.location in message
    assert (run.plan.action, run.outcome) == ("blocked", None)
    assert site.open().facts.release(site.namespace, "one") is None
    assert site.apps.list_namespaced_deployment(site.namespace).items == []
    assert not [path for path in cache.rglob("*") if path.is_file()]
    return run


def logins(folder: Path, host: str, password: str = PASSWORD, mode: int = 0o600) -> Path:
    path = folder / "logins"
    path.write_text(f"machine {host} login {USER} password {password}\n")
    path.chmod(mode)
    return path


def test_a_chart_is_downloaded_once_from_a_repository(
    site: Site, offered: Repository, cache: Path
) -> None:
    offered.index(site.helm)
    assert site.apply({}, source=http(offered)).ok
    assert offered.requested == ["/index.yaml", "/tiny-1.0.0.tgz"]
    assert site.apply({}, source=http(offered)).plan.action == "no-op"
    assert site.apply({"deployment": {"replicas": 2}}, source=http(offered)).ok
    assert len(offered.requested) == 2, "the cached archive serves the upgrade too"
    (kept,) = cache.rglob("*.tgz")
    kept.write_bytes(b"damaged")
    assert site.apply({"deployment": {"replicas": 1}}, source=http(offered)).ok
    assert len(offered.requested) == 4


def test_a_chart_is_downloaded_once_from_a_registry(
    site: Site, pushed: Registry, cache: Path
) -> None:
    assert site.apply({}, source=oci(pushed)).ok
    (kept,) = cache.rglob("*.tgz")
    assert kept.read_bytes() == (site.folder / "tiny-1.0.0.tgz").read_bytes()
    pushed.blob(kept.stat().st_size).unlink()
    assert site.apply({}, source=oci(pushed)).plan.action == "no-op"
    assert site.apply({"deployment": {"replicas": 2}}, source=oci(pushed)).ok


def of_another_version(offered: Repository) -> None:
    offered.edit_index("version: 1.0.0", "version: 1.1.0")


def a_login_page(offered: Repository) -> None:
    (offered.folder / "index.yaml").write_text("<html>Please log in</html>")


def no_index(offered: Repository) -> None:
    (offered.folder / "index.yaml").unlink()


def another_digest(offered: Repository) -> None:
    offered.edit_index(offered.digest, "ab" * 32)


def a_truncated_archive_with_its_digest(offered: Repository) -> None:
    path = offered.folder / "tiny-1.0.0.tgz"
    data = path.read_bytes()[:900]
    path.write_bytes(data)
    offered.edit_index(offered.digest, hashlib.sha256(data).hexdigest())


def a_truncated_response(offered: Repository) -> None:
    offered.missing["/tiny-1.0.0.tgz"] = 100


@pytest.mark.parametrize(
    ("spoil", "code", "words"),
    [
        (of_another_version, "GF810", "its newest are 1.1.0"),
        (a_login_page, "GF841", "not a mapping"),
        (no_index, "GF841", "index.yaml: it answers 404"),
        (another_digest, "GF812", f"expected sha256 {'ab' * 32} from the index"),
        (a_truncated_archive_with_its_digest, "GF842", "not a valid archive"),
        pytest.param(a_truncated_response, "GF841", "more expected", marks=EXTENDED),
    ],
)
def test_a_faulty_repository(
    place: Site,
    offered: Repository,
    cache: Path,
    spoil: Callable[[Repository], None],
    code: str,
    words: str,
) -> None:
    spoil(offered)
    run = refused(place, cache, http(offered), code)
    assert words in run.finding(code).message


def test_a_faulty_registry(site: Site, pushed: Registry, cache: Path) -> None:
    run = site.apply({}, "1.1.0", source=oci(pushed))
    assert "tiny 1.1.0" in run.finding("GF810").message
    blob = pushed.blob((site.folder / "tiny-1.0.0.tgz").stat().st_size)
    sound = blob.read_bytes()
    blob.write_bytes(sound[:900])
    refused(site, cache, oci(pushed), "GF812")
    blob.write_bytes(sound[:900] + b"x" + sound[901:])
    refused(site, cache, oci(pushed), "GF812")
    blob.write_bytes(sound)
    if "helm4" in site.helm.name:  # helm 3 uses no TLS for loopback
        refused(site, cache, oci(pushed, plain=False), "GF841")
    assert site.apply({}, source=oci(pushed)).ok


def test_a_repository_that_requires_a_login(
    place: Site, offered: Repository, tmp_path: Path, cache: Path
) -> None:
    with chart_repository(offered.folder, login=True) as closed:
        host = closed.url.removeprefix("http://")
        run = refused(place, cache, http(closed), "GF811")
        assert f"machine {host} login" in run.finding("GF811").remedy
        refused(place, cache, http(closed, logins(tmp_path, host, "wrong")), "GF811")
        refused(place, cache, http(closed, logins(tmp_path, "other.example.com")), "GF811")
        assert place.apply({}, source=http(closed, logins(tmp_path, host))).ok


def test_a_login_does_not_go_to_another_host(
    place: Site, offered: Repository, tmp_path: Path, cache: Path
) -> None:
    """An index can name archives on other hosts."""
    with chart_repository(offered.folder, login=True) as other:
        offered.edit_index("- tiny-1.0.0.tgz", f"- {other.url}/tiny-1.0.0.tgz")
        host = offered.url.removeprefix("http://")
        refused(place, cache, http(offered, logins(tmp_path, host)), "GF811")
        assert other.requested == ["/tiny-1.0.0.tgz"]


@pytest.mark.claim(
    "Logins for charts come from a private file, and are in no command line.",
    level=5,
)
def test_a_registry_that_requires_a_login(
    site: Site, tmp_path: Path, registry_program: Path, cache: Path
) -> None:
    """The password is in a file of mode 0600 while helm runs, and never in its arguments."""
    seen = tmp_path / "seen"
    spy = tmp_path / "spy"
    spy.write_text(
        f'#!/bin/sh\necho "$@" >> {seen}\n'
        f'[ -z "$HELM_REGISTRY_CONFIG" ] || stat -c "%a %n" "$HELM_REGISTRY_CONFIG" >> {seen}\n'
        f'exec {site.helm} "$@"\n'
    )
    spy.chmod(0o755)
    with registry(registry_program, tmp_path, login=True) as closed:
        closed.push(site.helm, Path(archive(tmp_path)))
        refused(site, cache, oci(closed), "GF811")
        refused(site, cache, oci(closed, logins(tmp_path, closed.host, "wrong")), "GF811")
        watched = replace(site, helm=spy)
        run = watched.apply({}, source=oci(closed, logins(tmp_path, closed.host)))
    assert run.ok
    words = seen.read_text()
    assert "--plain-http" in words
    assert PASSWORD not in words + str(run)
    (line,) = (line for line in words.splitlines() if line.endswith("config.json"))
    mode, config = line.split()
    assert mode == "600"
    assert not Path(config).exists()


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        (f"machine h login {USER} password {PASSWORD}\n", 0o644, "other than its owner"),
        (
            f"machine h login {USER} password {PASSWORD} {PASSWORD}\n",
            0o600,
            "not a valid netrc file",
        ),
        (None, 0o600, "No such file"),
    ],
)
def test_an_unusable_file_of_logins(
    place: Site,
    offered: Repository,
    tmp_path: Path,
    cache: Path,
    text: str | None,
    mode: int,
    words: str,
) -> None:
    path = tmp_path / "logins"
    if text:
        path.write_text(text)
        path.chmod(mode)
    run = place.apply({}, source=http(offered, path))
    assert words in run.finding("GF326").message
    assert PASSWORD not in str(run)
    assert offered.requested == []
