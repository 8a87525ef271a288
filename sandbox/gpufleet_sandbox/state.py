"""state.json: the hosts of a sandbox, for the inventory, the CLI and other processes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from gpufleet_sandbox.errors import SandboxError, kinds
from gpufleet_sandbox.paths import state_dir

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class HostState:
    """One host and its connection data. `key` and `known_hosts` are files on this machine.

    `gpus`: instead of those of its kind, as h100:8.
    """

    name: str
    kind: str
    address: str
    container: str
    image: str
    key: str
    known_hosts: str
    user: str
    gpus: str = ""


@dataclass(slots=True)
class SandboxState:
    """The persistent state: hosts by name, their network, and the source of their images.

    `kubernetes`: the release that `cluster up --real` made them a cluster of, as 1.36.3.
    """

    name: str
    engine: str
    images: str  # imitation, or real
    network: str
    subnet: str
    hosts: dict[str, HostState] = field(default_factory=dict)
    kubernetes: str = ""

    def save(self) -> None:
        path = state_file(self.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".part")
        partial.write_text(json.dumps(asdict(self), indent=1) + "\n")
        partial.replace(path)


def state_file(name: str) -> Path:
    return state_dir(name) / "state.json"


def _others() -> str:
    """A sentence that names the sandboxes that are up, or ""."""
    files = state_dir(DEFAULT).parent.glob(f"*/{state_file(DEFAULT).name}")
    names = ", ".join(sorted(file.parent.name for file in files))
    return f" These are up: {names} (GPUFLEET_SANDBOX=NAME selects one)." if names else ""


def load_state(name: str) -> SandboxState:
    """The state of the sandbox `name`; GF603 if it is not up."""
    path = state_file(name)
    if not path.exists():
        option = "" if name == DEFAULT else f" --name {name}"
        raise SandboxError(
            kinds.NOT_UP(name=name, reason=f"{path} is missing", option=option, others=_others())
        )
    data = json.loads(path.read_text())
    hosts = {key: HostState(**value) for key, value in data.pop("hosts").items()}
    return SandboxState(**data, hosts=hosts)
