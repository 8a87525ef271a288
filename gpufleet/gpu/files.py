"""The files that keep layout and settings of the GPUs on a host. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from gpufleet.core.render import render_template
from gpufleet.facts.gpu import LAYOUT_FILE
from gpufleet.gpu.layouts import OFF, Layout
from gpufleet.gpu.lines import STAYS, parse_lines
from gpufleet.gpu.settings import Clocks, GpuSettings
from gpufleet.host.file_write import FileWrite

GPUS_UNIT = "gpufleet-gpus.service"
UNIT_PATH = f"/etc/systemd/system/{GPUS_UNIT}"
PROGRAM = "/usr/local/sbin/gpufleet-gpus"
UNIT_SECONDS = 300  # longest time that a boot waits for the layout
MODES = {
    "default": "Default",
    "exclusive-process": "Exclusive_Process",
    "prohibited": "Prohibited",
}
HEAD = "# Written by gpufleet: the wanted layout and settings of each GPU.\n"


def wanted_words(settings: GpuSettings, layout: Layout | None, index: int) -> str:
    """The words of a GPU's line in LAYOUT_FILE. `layout`: in the order of creation."""
    mig = None if layout is None else ",".join(layout) or OFF
    words: dict[str, str | None] = {
        "ecc": None if settings.ecc is None else str(int(settings.ecc)),
        "power": None if settings.power_limit is None else str(settings.power_limit),
        "clocks": _clocks(settings.clocks),
        "memory": _clocks(settings.memory_clocks),
        "compute": MODES[settings.compute_mode] if settings.compute_mode else None,
    }
    if settings.lines is not None:
        given = parse_lines(settings.lines).get(index, {})
        words = {key: value for key, value in given.items() if key not in ("mig", STAYS)}
    asked = [f"{key}={v}" for key, v in {"mig": mig, **words}.items() if v is not None]
    return " ".join([*asked, *(["reset=1"] if asked and settings.allow_reset else [])])


def _clocks(clocks: Clocks | None) -> str | None:
    return ",".join(map(str, clocks)) if isinstance(clocks, tuple) else clocks


def parse_words(words: str) -> dict[str, str]:
    """The values of a line in LAYOUT_FILE, by key."""
    return dict(word.partition("=")[::2] for word in words.split())


def layout_files(lines: Mapping[str, str]) -> tuple[FileWrite, ...]:
    """The program, the unit that runs it at boot, and the wanted state by slot of a GPU."""
    wanted = "".join(f"{slot} {words}\n" for slot, words in lines.items())
    program = render_template("gpu/gpufleet-gpus", file=LAYOUT_FILE)
    unit = render_template(
        "gpu/gpufleet-gpus.service", file=LAYOUT_FILE, program=PROGRAM, seconds=UNIT_SECONDS
    )
    return (
        FileWrite(PROGRAM, program, 0o755),
        FileWrite(UNIT_PATH, unit),
        FileWrite(LAYOUT_FILE, HEAD + wanted),
    )
