"""Renders the templates of files for hosts and clusters."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from gpufleet.core.paths import shipped_path

if TYPE_CHECKING:  # jinja2 loads slowly, and the prolog of a batch system renders nothing
    from jinja2 import Template

TEMPLATES_FOLDER = shipped_path("templates")


@lru_cache
def _template(name: str, autoescape: bool = False) -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES_FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=autoescape,
    )
    return environment.get_template(name)


def render_template(name: str, **values: object) -> str:
    """Render templates/NAME.j2 with `values`. An undefined value is an error."""
    return _template(f"{name}.j2").render(**values)


def render_page(name: str, **values: object) -> str:
    """Render an HTML template with every value escaped."""
    return _template(f"{name}.j2", autoescape=True).render(**values)
