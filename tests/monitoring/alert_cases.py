"""Cases of alerts, as promtool reads them. alerts/README.md explains the files that they are in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

CASES = Path(__file__).with_name("alerts")
NODE, UUID = "node-a", "GPU-a0"
GPU = {
    "gpu": "0",
    "UUID": UUID,
    "pci_bus_id": "00000000:07:00.0",
    "device": "nvidia0",
    "modelName": "NVIDIA H100 80GB HBM3",
}
WORKLOAD = {"namespace": "team", "pod": "train-0"}
# How versions and scrapes label one and the same thing.
STYLES: dict[str, tuple[str, str]] = {
    "before 4.8.3": ("Hostname", "exported_"),
    "from 4.8.3": ("hostname", "exported_"),
    "honorLabels": ("Hostname", ""),
    "node by relabeling": ("node", "exported_"),
}
GAP = 2  # samples that are lost when the exporter restarts
STALE = "stale"


@dataclass(frozen=True)
class Case:
    """Series, and whether the alert fires at `at`.

    `gpu`: field -> values of GPU 0; `also`: whole series -> values; samples are a minute apart.
    `labels`: labels of the firing alert in addition to those of its subject (`of`). `workload`:
    whether a pod has the GPU. `pods`: the pods that the alert names. `value`: $value. `said`:
    annotations that differ from their template with the labels filled in. `divided`: the GPU has
    two MIG instances, for which the exporter repeats each value.
    """

    name: str
    at: int
    fires: bool
    gpu: dict[str, str] = field(default_factory=dict)
    also: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    of: str = "gpu"
    workload: bool = True
    pods: str = "team/train-0"
    value: str = ""
    said: dict[str, str] = field(default_factory=dict)
    style: str = "before 4.8.3"
    restart: bool = False
    divided: bool = False


def samples(text: str) -> list[str]:
    """`5*3` is 5 5 5, `0+2*3` is 0 2 4, `_*2` two samples that are missing."""
    found: list[str] = []
    for word in text.split():
        many = re.fullmatch(r"(_|stale|-?[\d.]+)(?:([+-][\d.]+))?\*(\d+)", word)
        if not many:
            found.append(word)
            continue
        start, step, count = many[1], float(many[2] or 0), int(many[3])
        if start in ("_", STALE):
            found += [start] * count
        else:
            found += [_number(float(start) + step * i) for i in range(count)]
    return found


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def series(case: Case) -> Iterator[dict[str, str]]:
    """`input_series` of one case, including the utilization of each GPU.

    An exporter that restarts continues as another pod after a gap.
    """
    for text, values in case.also.items():
        yield {"series": text, "values": " ".join(samples(values))}
    used = {"DCGM_FI_DEV_GPU_UTIL": f"50*{case.at + 1}", **case.gpu} if case.gpu else {}
    if case.divided:
        used |= {_of_instance(name, number): used[name] for name in list(used) for number in (1, 2)}
    for name, values in used.items():
        measured = samples(values)
        if not case.restart:
            yield {"series": _labelled(name, case, "1"), "values": " ".join(measured)}
            continue
        end = case.at - 4
        first = [*measured[:end], STALE]
        second = ["_"] * (end + GAP) + measured[end + GAP :]
        for pod, part in (("1", first), ("2", second)):
            yield {"series": _labelled(name, case, pod), "values": " ".join(part)}


def _of_instance(name: str, number: int) -> str:
    """The series of a MIG instance. `name` may contain labels."""
    name, _, more = name.partition("{")
    own = [f'GPU_I_ID="{number}"', 'GPU_I_PROFILE="3g.40gb"', *([more.rstrip("}")] if more else [])]
    return f"{name}{{{', '.join(own)}}}"


def _labelled(name: str, case: Case, exporter: str) -> str:
    """One GPU's series, as Prometheus holds it after the scrape. `name` may contain labels."""
    host, prefix = STYLES[case.style]
    labels = {**GPU, host: NODE, "job": "dcgm-exporter", "instance": f"10.0.0.{exporter}:9400"}
    own = {"namespace": "monitoring", "pod": f"dcgm-exporter-{exporter}"}
    labels |= own
    if case.workload:
        labels |= {f"{prefix}{key}": value for key, value in WORKLOAD.items()}
    name, _, more = name.partition("{")
    pairs = [f'{key}="{value}"' for key, value in labels.items()]
    if more:
        pairs.append(more.rstrip("}"))
    return f"{name}{{{', '.join(pairs)}}}"


def load_cases() -> dict[str, list[Case]]:
    """Alert -> its cases, with those that follow from the ones that fire."""
    found: dict[str, list[Case]] = {}
    for path in sorted(CASES.glob("*.yaml")):
        for alert, content in yaml.safe_load(path.read_text()).items():
            assert alert not in found, f"{alert} is in two files"
            found[alert] = [*_written(content), *_derived(content)]
    return found


def _written(content: Mapping[str, Any]) -> Iterator[Case]:
    base = content.get("base", {})
    for kind in ("fires", "quiet", "reset"):
        for name, entry in content.get(kind, {}).items():
            yield _case(f"{kind}: {name}", base, entry, fires=kind == "fires")


def _case(name: str, base: Mapping[str, Any], entry: Mapping[str, Any], *, fires: bool) -> Case:
    merged: dict[str, Any] = {**base, **entry}
    for part in ("gpu", "also", "labels"):
        both = {**base.get(part, {}), **entry.get(part, {})}
        merged[part] = {key: value for key, value in both.items() if value is not None}
    return Case(name=name, fires=merged.pop("fires", fires), **merged)


def _derived(content: Mapping[str, Any]) -> Iterator[Case]:
    """Every way to label, an exporter that restarts, MIG instances, each series missing once."""
    base = content.get("base", {})
    firing = [
        _case(f"fires: {name}", base, entry, fires=True) for name, entry in content["fires"].items()
    ]
    for case in firing:
        if not case.gpu:
            continue
        for style in list(STYLES)[1:]:
            yield replace(case, name=f"{case.name}, labels {style}", style=style)
        if not content.get("no_restart"):
            yield replace(case, name=f"{case.name}, exporter restarts", restart=True)
        if case.of == "gpu" and not content.get("no_instances"):
            yield replace(case, name=f"{case.name}, two MIG instances", divided=True)
    case, without = firing[0], content.get("without", {})
    for part in ("gpu", "also"):
        for name in getattr(case, part):
            left = {key: value for key, value in getattr(case, part).items() if key != name}
            fires = bool(without.get(name, False))
            missing = f"missing: {name}"
            yield replace(case, name=missing, fires=fires, **{part: left})  # type: ignore[arg-type]


def same_rules() -> dict[str, dict[str, str]]:
    """Alert -> changes that make no difference to it, each with the reason."""
    return {
        alert: content.get("same", {})
        for path in CASES.glob("*.yaml")
        for alert, content in yaml.safe_load(path.read_text()).items()
    }


def as_promtool(
    alerts: Sequence[str], case: Case, own: Mapping[str, str], texts: Mapping[str, str]
) -> dict[str, Any]:
    """One test of promtool's, the same for every name in `alerts`.

    `own`: the rule's labels; `texts`: the alert's annotations, as the catalog has them.
    """
    about = {"gpu": {**GPU, "node": NODE}, "node": {"node": NODE}, "fleet": {}}[case.of]
    labels = {**about, **case.labels, **own}
    expected = []
    if case.fires:
        usual = {name: text for name, text in texts.items() if name not in case.said}
        said = {name: _said(text, labels, case) for name, text in usual.items()} | case.said
        expected = [{"exp_labels": labels, "exp_annotations": said}]
    return {
        "name": f"{alerts[0]}: {case.name}",
        "interval": "1m",
        "input_series": list(series(case)),
        "alert_rule_test": [
            {"alertname": alert, "eval_time": f"{case.at}m", "exp_alerts": expected}
            for alert in alerts
        ],
    }


def _said(text: str, labels: Mapping[str, str], case: Case) -> str:
    """An annotation as it should come out."""
    text = text.replace("[[gpu]]", f"GPU {labels.get('gpu')} ({labels.get('UUID')}) of node {NODE}")
    text = text.replace("[[pods]]", case.pods).replace("{{ $value }}", case.value)
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels[found[1]], text).strip()
