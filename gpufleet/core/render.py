"""Templates: the files that land on hosts, in templates/ next to the package."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"


@lru_cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.get_template(name)


def render(name: str, **values: object) -> str:
    """The text of templates/NAME.j2 with `values`; an undefined value is an error."""
    return _template(f"{name}.j2").render(**values)
