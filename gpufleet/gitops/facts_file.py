"""Facts of clusters as a file, so that a machine without access to them can render. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from gpufleet.core.secrets import without_secrets
from gpufleet.kube.facts import ClusterFacts, ObjectRef, ReleaseRef

FACTS_SCHEMA = 1  # of the file
REFS = ("unreadable", "operated")  # fields whose keys are no text


class FactsFileError(ValueError):
    """The file does not hold facts; the text says why."""


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[ClusterFacts]:
    return TypeAdapter(ClusterFacts)


def facts_text(clusters: Mapping[str, ClusterFacts]) -> str:
    """The file's content. Values of releases and of Prometheus resources lose their secrets."""
    found = {name: _plain(facts) for name, facts in sorted(clusters.items())}
    whole = {"gpufleet_facts": FACTS_SCHEMA, "clusters": found}
    return json.dumps(whole, indent=1) + "\n"


def parse_facts(text: str) -> dict[str, ClusterFacts]:
    """Name of each cluster -> its facts. Raises FactsFileError."""
    try:
        whole = json.loads(text)
        if whole["gpufleet_facts"] != FACTS_SCHEMA:
            raise FactsFileError("its schema is of another version of gpufleet")
        return {str(name): _facts(data) for name, data in whole["clusters"].items()}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        known = isinstance(error, FactsFileError)
        raise FactsFileError(str(error) if known else "it holds no facts of clusters") from error


def _plain(facts: ClusterFacts) -> dict[str, Any]:
    bare = replace(
        facts,
        releases=tuple(
            replace(each, values=without_secrets(each.values)) for each in facts.releases
        ),
        prometheuses=tuple(
            replace(each, spec=without_secrets(each.spec)) for each in facts.prometheuses
        ),
        cluster_policies=tuple(
            replace(each, spec=without_secrets(each.spec)) for each in facts.cluster_policies
        ),
        unreadable={},
        operated={},
    )
    pairs = {
        name: [[asdict(ref), text] for ref, text in sorted(getattr(facts, name).items())]
        for name in REFS
    }
    return {**_adapter().dump_python(bare, mode="json"), "apis": sorted(facts.apis), **pairs}


def _facts(data: Mapping[str, Any]) -> ClusterFacts:
    plain = {key: value for key, value in data.items() if key not in REFS}
    return replace(
        _adapter().validate_python(plain),
        unreadable={ReleaseRef(**ref): str(text) for ref, text in data["unreadable"]},
        operated={ObjectRef(**ref): str(text) for ref, text in data["operated"]},
    )
