"""An unexpected error of one host names the line in gpufleet's code, not the code around it."""

from __future__ import annotations

from typing import Any, cast

from pyinfra.api import Host

from gpufleet.host.trouble import explain_error


def function_in(module: str, line: str) -> Any:
    """A function of this module whose second line is `line`; its argument is `inner`."""
    names: dict[str, Any] = {"__name__": module}
    exec(f"def call(inner):\n    {line}", names)
    return names["call"]


def place_of(*modules: str) -> str:
    """The place in the finding for an error in the last of these modules, called by the others."""
    call = function_in(modules[-1], "raise KeyError")
    for module in reversed(modules[:-1]):
        outer, inner = function_in(module, "inner(None)"), call
        call = lambda _, outer=outer, inner=inner: outer(inner)  # noqa: E731
    try:
        call(None)
    except KeyError as error:
        return explain_error(cast(Host, None), error, "while it was tested").message
    raise AssertionError("no error")


def test_the_code_that_only_passes_errors_on_is_not_the_place() -> None:
    shown = place_of("gpufleet.driver.plan", "gpufleet.host.boundary", "yaml.reader")
    assert "gpufleet.driver.plan line 2, in yaml.reader line 2" in shown
    assert "boundary" not in shown


def test_an_error_of_that_code_itself_is_placed_there() -> None:
    assert "gpufleet.host.boundary line 2" in place_of("gpufleet.host.boundary")
