"""Properties of every merge: reversible to the byte, idempotent, and limited to its settings."""

from __future__ import annotations

import difflib
import json
import string
import sys
from typing import Any

import pytest
import tomlkit
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gpufleet.formats.model import EditRecord, Merged
from gpufleet.toolkit.config import containerd, crio, docker
from gpufleet.toolkit.config.desired import DesiredRuntime
from gpufleet.toolkit.config.docker import dockerd_options
from tests.selection import examples

pytestmark = pytest.mark.claim(
    "User settings in daemon.json and config.toml survive a merge; a removal gives the bytes back.",
    level=1,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KINDS = {
    "boolean": st.booleans(),
    "number": st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    "string": st.text(max_size=20),
    "list": st.lists(st.text(max_size=10), max_size=3),
    "map": st.dictionaries(st.text(max_size=8), st.text(max_size=8) | st.booleans(), max_size=3),
}
json_values = st.recursive(
    st.none() | KINDS["boolean"] | KINDS["number"] | KINDS["string"],
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
OWN_KINDS = {
    "runtimes": st.dictionaries(
        st.text(max_size=8), st.fixed_dictionaries({"path": st.text()}), max_size=3
    )
    | st.none(),
    "features": st.dictionaries(st.text(max_size=8) | st.just("cdi"), st.booleans(), max_size=3)
    | st.none(),
    "default-runtime": st.sampled_from([None, "runc", "kata", "nvidia"]),
}
documented = {
    entry.key: OWN_KINDS.get(entry.key, KINDS[entry.kind]) for entry in dockerd_options().keys
}
spaces = st.text(" \t\n", max_size=3)


@st.composite
def daemon_json(draw: st.DrawFn) -> str:
    """A daemon.json: documented keys and others, laid out in any way that JSON allows."""
    config = draw(st.fixed_dictionaries({}, optional=documented))
    config |= draw(st.dictionaries(st.text(max_size=10), json_values, max_size=2).filter(
        lambda more: not more.keys() & documented.keys()))  # fmt: skip
    pairs = draw(st.permutations(list(config.items())))
    indent = draw(st.sampled_from([None, 1, 2, 4, "\t"]))
    colon = draw(st.sampled_from([":", ": ", " : "]))
    comma = "," if indent else draw(st.sampled_from([",", ", "]))
    ascii_only = draw(st.booleans())
    body = json.dumps(
        dict(pairs), indent=indent, separators=(comma, colon), ensure_ascii=ascii_only
    )
    text = draw(spaces) + body + draw(spaces)
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


desired_runtimes = st.builds(
    DesiredRuntime,
    file=st.just("/etc/docker/daemon.json"),
    binary=st.just("nvidia-container-runtime"),
    default=st.booleans(),
    cdi=st.booleans(),
)


def _only_adds(
    before: Any, after: Any, replaced: set[tuple[str, ...]], at: tuple[str, ...] = ()
) -> bool:
    """Whether `after` still has all of `before`, except for the settings named as replaced."""
    if isinstance(before, dict) and isinstance(after, dict):
        return all(
            key in after and _only_adds(before[key], after[key], replaced, (*at, key))
            for key in before
        )
    return at in replaced or (type(before) is type(after) and before == after)


def _is_small(before: str, after: str) -> bool:
    """Whether no line is removed except those that change in place or get a comma."""
    old, new = before.splitlines(), after.splitlines()
    steps = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    gone = sum(i2 - i1 for tag, i1, i2, _, _ in steps if tag in ("delete", "replace"))
    return gone <= 5


@settings(max_examples=examples(300), deadline=None)
@given(daemon_json(), desired_runtimes)
def test_docker_merge(text: str, desired: DesiredRuntime) -> None:
    merged = docker.merge_docker(text, desired)
    assert not merged.blocked
    assert merged.text is not None
    before, after = json.loads(text), json.loads(merged.text)
    null = {(key,) for key in ("runtimes", "features") if before.get(key, key) is None}
    assert _only_adds(before, after, null | ({("default-runtime",)} if desired.default else set()))
    assert "nvidia" in after["runtimes"]
    assert not desired.default or after["default-runtime"] == "nvidia"
    assert _is_small(text, merged.text)
    again = docker.merge_docker(merged.text, desired, merged.record)
    assert (again.text, again.changed, again.record) == (merged.text, False, merged.record)
    assert docker.unmerge_docker(merged.text, merged.record).text == text


@settings(max_examples=examples(150), deadline=None)
@given(daemon_json(), desired_runtimes, desired_runtimes)
def test_docker_setting_can_change(
    text: str, first: DesiredRuntime, second: DesiredRuntime
) -> None:
    one = docker.merge_docker(text, first)
    two = docker.merge_docker(one.text, second, one.record)
    assert two.text is not None
    assert json.loads(two.text) == json.loads(docker.merge_docker(text, second).text or "")
    assert docker.unmerge_docker(two.text, two.record).text == text


@settings(max_examples=examples(150), deadline=None)
@given(
    daemon_json(),
    desired_runtimes,
    st.dictionaries(st.text(max_size=6).map("x-{}".format), json_values, min_size=1, max_size=3),
)
def test_docker_edits_of_the_user_stay(
    text: str, desired: DesiredRuntime, more: dict[str, Any]
) -> None:
    merged = docker.merge_docker(text, desired)
    edited = json.loads(merged.text or "") | more
    removed = docker.unmerge_docker(json.dumps(edited, indent=3), merged.record)
    assert json.loads(removed.text or "") == json.loads(text) | more


@settings(max_examples=examples(200))
@given(st.text(string.printable, max_size=60), desired_runtimes)
def test_docker_takes_any_text(text: str, desired: DesiredRuntime) -> None:
    merged = docker.merge_docker(text, desired)
    if merged.blocked:
        assert merged.text == text
    else:
        assert docker.unmerge_docker(merged.text, merged.record).text == text


toml_keys = st.text(string.ascii_lowercase + "_", min_size=1, max_size=8)
toml_scalars = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(max_size=12)
    | st.floats(allow_nan=False, allow_infinity=False)
)
toml_values = toml_scalars | st.lists(st.text(max_size=5), max_size=3)
tables = st.dictionaries(toml_keys, toml_values, max_size=3)
comments = st.sampled_from(
    ["", "# a comment\n", "\n", "  # [plugins.fake]\n", "#default_runtime_name = 'x'\n"]
)
PLUGINS = {
    2: "io.containerd.grpc.v1.cri",
    3: "io.containerd.cri.v1.runtime",
    4: "io.containerd.cri.v1.runtime",
}


def _lines(table: dict[str, Any], indent: str) -> str:
    return "".join(
        f"{indent}{key} = {tomlkit.item(value).as_string()}\n" for key, value in table.items()
    )


@st.composite
def containerd_toml(draw: st.DrawFn) -> tuple[int, str]:
    """A config.toml of version 2 to 4: tables in any order, implicit, dotted or inline."""
    version = draw(st.sampled_from([2, 3, 4]))
    plugin = f'plugins."{PLUGINS[version]}"'
    indent = draw(st.sampled_from(["", "  ", "\t"]))
    cri, inner, runc, options = draw(tables), draw(tables), draw(tables), draw(tables)
    cri.pop("containerd", None)
    inner.pop("runtimes", None)
    runc.pop("options", None)
    if draw(st.booleans()):
        inner["default_runtime_name"] = draw(st.sampled_from(["runc", "kata", "nvidia"]))
    if draw(st.booleans()):
        cri["enable_cdi"] = draw(st.booleans())
    runc["runtime_type"] = "io.containerd.runc.v2"
    options["SystemdCgroup"] = draw(st.booleans())
    blocks = [f"[{plugin}]\n{_lines(cri, indent)}"]
    style = draw(st.sampled_from(["table", "dotted", "inline", "none"]))
    if style == "dotted":
        blocks[0] += _lines({f"x_{key}": value for key, value in inner.items()}, indent)
        blocks[0] += f"{indent}containerd.snapshotter = 'overlayfs'\n"
    elif style == "inline":
        pairs = ", ".join(
            f"{key} = {tomlkit.item(value).as_string()}" for key, value in runc.items()
        )
        blocks.append(f"[{plugin}.containerd.runtimes]\nrunc = {{{pairs}}}\n")
    elif style == "table":
        blocks.append(f"[{plugin}.containerd]\n{_lines(inner, indent)}")
        blocks.append(f"[{plugin}.containerd.runtimes.runc]\n{_lines(runc, indent)}")
        blocks.append(f"[{plugin}.containerd.runtimes.runc.options]\n{_lines(options, indent)}")
    for name in draw(st.lists(toml_keys, max_size=2, unique=True)):
        blocks.append(f"[user_{name}]\n{_lines(draw(tables), indent)}")
    if draw(st.booleans()):
        blocks.append(f"[[stream_list]]\n{_lines(draw(tables), '')}[[stream_list]]\n")
    text = f"version = {version}\n" + draw(comments)
    for block in draw(st.permutations(blocks)):
        text += block + draw(comments)
    if draw(st.booleans()):
        text = text.rstrip("\n")
    return version, text.replace("\n", "\r\n") if draw(st.booleans()) else text


desired_containerd = st.builds(
    DesiredRuntime,
    file=st.just("/etc/containerd/config.toml"),
    default=st.booleans(),
    cdi=st.booleans(),
    fills_maps=st.booleans(),
)


def _valid(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


@settings(max_examples=examples(300), deadline=None)
@given(containerd_toml(), desired_containerd)
def test_containerd_merge(config: tuple[int, str], desired: DesiredRuntime) -> None:
    version, text = config
    assume(_valid(text))
    merged = containerd.merge_containerd(text, desired)
    assert not merged.blocked, merged.notes
    assert merged.text is not None
    before, after = tomllib.loads(text), tomllib.loads(merged.text)
    cri = ("plugins", PLUGINS[version])
    replaced = {(*cri, "containerd", "default_runtime_name")} if desired.default else set()
    assert _only_adds(before, after, replaced)
    assert "nvidia" in after["plugins"][PLUGINS[version]]["containerd"]["runtimes"]
    assert _is_small(text, merged.text)
    again = containerd.merge_containerd(merged.text, desired, merged.record)
    assert (again.text, again.changed, again.record) == (merged.text, False, merged.record)
    assert containerd.unmerge_containerd(merged.text, merged.record).text == text


@settings(max_examples=examples(100), deadline=None)
@given(containerd_toml(), desired_containerd, desired_containerd)
def test_containerd_setting_can_change(
    config: tuple[int, str], first: DesiredRuntime, second: DesiredRuntime
) -> None:
    text = config[1]
    assume(_valid(text))
    one = containerd.merge_containerd(text, first)
    two = containerd.merge_containerd(one.text, second, one.record)
    assert not two.blocked
    assert containerd.unmerge_containerd(two.text, two.record).text == text


@settings(max_examples=examples(100), deadline=None)
@given(containerd_toml(), desired_containerd, tables)
def test_containerd_edits_of_the_user_stay(
    config: tuple[int, str], desired: DesiredRuntime, more: dict[str, Any]
) -> None:
    text = config[1]
    assume(_valid(text))
    merged = containerd.merge_containerd(text, desired)
    newline = "" if (merged.text or "").endswith("\n") else "\n"
    edited = f"{merged.text}{newline}\n[users_own]\n{_lines(more, '')}"
    removed = containerd.unmerge_containerd(edited, merged.record)
    assert tomllib.loads(removed.text or "") == tomllib.loads(text) | {"users_own": more}


@settings(max_examples=examples(100), deadline=None)
@given(tables, tables, st.booleans())
def test_crio_drop_in(crun: dict[str, Any], runtime: dict[str, Any], default: bool) -> None:
    crun.pop("runtime_path", None)
    runtime.pop("runtimes", None)
    layer = tomlkit.dumps(
        {"crio": {"runtime": {"default_runtime": "crun", "runtimes": {"crun": crun}}}}
    )
    desired = DesiredRuntime(
        file=crio.CRIO_DROP_IN,
        default=default,
        layers=crio.read_crio_layers({"main": layer}, "main"),
    )
    merged = crio.merge_crio(None, desired)
    assert merged.text is not None
    entry = tomllib.loads(merged.text)["crio"]["runtime"]["runtimes"]["nvidia"]
    assert entry["runtime_path"] == desired.binary
    again: Merged = crio.merge_crio(merged.text, desired, merged.record)
    assert not again.changed
    assert crio.unmerge_crio(merged.text, merged.record).text is None


def test_nothing_is_removed_without_a_record() -> None:
    text = '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'
    assert docker.unmerge_docker(text, EditRecord()).text == text
