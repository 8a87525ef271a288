"""Settings of the exporter role: data keys `exporter_*`."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gpufleet.core.settings import Address, RoleSettings, in_quotes, must_match, whole_version

RequestedExporter = Annotated[str, in_quotes("4.8.3"), whole_version("4.8.3")]
_METRIC_TYPES = ("gauge", "counter", "label", "histogram", "summary", "untyped")
OUR_COUNTERS = "gpufleet"
_FIELD = re.compile(r"DCGM_[A-Z0-9_]+")


def _check_counters(text: str) -> str:
    """Accepts dcgm-exporter's lines `DCGM field, type, help`, empty lines and # comments."""
    fields = 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        parts = [part.strip() for part in line.split(",", 2)]
        if len(parts) != 3 or not _FIELD.fullmatch(parts[0]) or parts[1] not in _METRIC_TYPES:
            raise ValueError(
                f"must have lines `DCGM_FI_…, gauge|counter|label, help`; line {number} is "
                f"{line.strip()!r}"
            )
        fields += 1
    if not fields:
        raise ValueError("must name at least one field")
    return text if text.endswith("\n") else text + "\n"


def _check_counter_setting(text: str) -> str:
    """Accepts `gpufleet`, or a list."""
    return OUR_COUNTERS if text.strip() == OUR_COUNTERS else _check_counters(text)


Counters = Annotated[str, AfterValidator(_check_counters)]
CounterSetting = Annotated[str, AfterValidator(_check_counter_setting)]
Image = Annotated[
    str,
    must_match(
        r"[a-z0-9][A-Za-z0-9._:/@-]*", "an image, such as registry.example.com/exporter:4.5"
    ),
]


class ExporterSettings(RoleSettings):
    """The exporter of a host's GPU metrics. Disabled by default."""

    prefix = "exporter_"

    enabled: bool | Literal["auto"] = Field(
        False,
        description="Run an exporter on the host. `auto`: unless a kubelet or another collector "
        "runs; True: always, and another collector is an error.",
    )
    mode: Literal["auto", "systemd", "docker"] = Field(
        "auto",
        description="`systemd`: NVIDIA's packages, with DCGM as a service. `docker`: a container. "
        "`auto`: packages if available, else the container.",
    )
    version: RequestedExporter | None = Field(
        None, description='Version of dcgm-exporter, for example "4.8.3". Default: the catalog\'s.'
    )
    dcgm_version: RequestedExporter | None = Field(
        None, description="Version of DCGM. Default: the one that matches the exporter."
    )
    port: int = Field(9400, ge=1, le=65535, description="TCP port of /metrics.")
    listen: Address = Field(
        "127.0.0.1",
        description="Address to listen on, without a password. `0.0.0.0`: all IPv4 addresses.",
    )
    counters: CounterSetting | None = Field(
        None,
        description="Counters to collect, as lines `DCGM field, type, help`. `gpufleet`: the list "
        "that the alerts need, for this exporter and these GPUs. Default: the exporter's own list.",
    )
    image: Image | None = Field(
        None, description="Container image. Default: NVIDIA's, of that version."
    )
    hold: bool = Field(True, description="Hold the packages at the installed version.")

    @property
    def address(self) -> str:
        """host:port of /metrics for a URL: 127.0.0.1:9400, [::1]:9400."""
        host = f"[{self.listen}]" if ":" in self.listen else self.listen
        return f"{host}:{self.port}"
