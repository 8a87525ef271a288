"""The plan notes the user's own settings, so that the checks can compare them later."""

from __future__ import annotations

import pytest

from tests.unit.toolkit.toolkit_setup import containerd_host, docker_host, plan

DOCKER = '{"debug": true, "features": {"buildkit": true}, "default-runtime": "runc", "a.b": 1}'
CONTAINERD = 'version = 2\noom_score = -999\n[plugins."io.containerd.gc.v1.scheduler"]\n'
TABLE = 'version = 2\nroot = "/data"\n[debug]\nlevel = "warn"\n'


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (DOCKER, ("debug", "features.buildkit")),
        ("\ufeff" + DOCKER, ("debug", "features.buildkit")),
        ('{"log-opts": {"max.size": 1, "tag": 2}, "labels": []}', ("log-opts.tag", "labels")),
        ("{}", ()),
        (None, ()),
    ],
)
def test_dockers(text: str | None, keys: tuple[str, ...]) -> None:
    (runtime,) = plan(docker_host(text), default_runtime=True).runtimes
    assert runtime.user_keys == keys


@pytest.mark.parametrize(
    ("text", "keys"), [(CONTAINERD, ("oom_score",)), (TABLE, ("root", "debug")), (None, ())]
)
def test_containerds(text: str | None, keys: tuple[str, ...]) -> None:
    (runtime,) = plan(containerd_host(text, "1.7.24")).runtimes
    assert runtime.user_keys == keys
