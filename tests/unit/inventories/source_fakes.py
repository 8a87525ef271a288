"""Recorded answers, and fakes of the programs and the API that give them."""

from __future__ import annotations

import copy
import json
import runpy
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gpufleet.core.process import ProgramResult
from gpufleet.run.sources import SourceError

ROOT = Path(__file__).resolve().parents[3]
ANSWERS = Path(__file__).with_name("answers")
PROGRAMS = {
    "aws": "aws",
    "azure": "az",
    "gcp": "gcloud",
    "maas": "maas",
    "slurm": "scontrol",
    "terraform": "terraform",
}
SECRETS = ("hunter2-in-the-state", "nbt_key.hunter2")
FAKE_PROGRAM = """#!/bin/sh
file={answers}/${{0##*/}}.json
[ -e "$file" ] || file={answers}/${{0##*/}}-$2.json
cat "$file"
"""


def recorded(name: str) -> Any:
    return json.loads((ANSWERS / f"{name}.json").read_text())


class NetBox(ThreadingHTTPServer):
    """An API with two pages of devices. `status`: of every response; `asked`: path and token."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), NetBoxHandler)
        self.pages: list[Any] = [recorded("netbox-1"), recorded("netbox-2")]
        self.status, self.location, self.asked = 200, "", [("", "")]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class NetBoxHandler(BaseHTTPRequestHandler):
    server: NetBox

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["Authorization"]))
        page = self.server.pages[0 if self.path.endswith("offset=0") else 1]
        body = page if isinstance(page, bytes) else json.dumps(page).encode()
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def load(source: str) -> dict[str, Any]:
    """The groups of an inventory."""
    found = runpy.run_path(str(ROOT / f"inventories/{source}.py"))
    public = {name: value for name, value in found.items() if not name.startswith("_")}
    return {name: value for name, value in public.items() if isinstance(value, list | tuple)}


def names(group: Any) -> list[str]:
    hosts = group[0] if isinstance(group, tuple) else group
    return [host[0] if isinstance(host, tuple) else host for host in hosts]


def error_of(source: str) -> str:
    """The error of an inventory: one line, without secrets."""
    with pytest.raises(SourceError) as caught:
        load(source)
    text = str(caught.value)
    assert text.isprintable()
    assert not any(secret in text for secret in SECRETS)
    return text


class FakeProcess:
    """Stands for a program: prints an answer, by the second word for the AWS CLI."""

    answers: dict[str, Any]

    def __init__(self, command: tuple[str, ...], **_: Any) -> None:
        self._name = f"aws-{command[2]}" if command[0] == "aws" else command[0]

    def wait(self) -> ProgramResult:
        return ProgramResult(0, json.dumps(self.answers[self._name]))


def places(value: Any, *above: str | int) -> Iterator[tuple[str | int, ...]]:
    """The path of each value within an answer."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield (*above, key)
            yield from places(value[key], *above, key)


def texts(value: Any) -> Iterator[str]:
    """Every text within groups, and every key."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value:
            yield from texts(each)
        yield from texts(list(value.values()) if isinstance(value, dict) else "")


def damaged(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """A copy with another value at a path; without it if the value is Ellipsis."""
    made = copy.deepcopy(value)
    parent = made
    for key in path[:-1]:
        parent = parent[key]
    if new is ...:
        del parent[path[-1]]
    else:
        parent[path[-1]] = new
    return made
