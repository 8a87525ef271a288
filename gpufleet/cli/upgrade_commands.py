"""The commands of the user's of a run that goes on, as the inventory has them now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from gpufleet.core.visible import one_line
from gpufleet.upgrade.load import load_settings
from gpufleet.upgrade.order import Order
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.verify.inventory import VerifyError, load_targets

KEYS = ("drain_command", "ready_command", "check_command")


def with_commands_of_now(
    order: Order, settings: Mapping[str, UpgradeSettings], say: Callable[[str], None]
) -> dict[str, UpgradeSettings]:
    """The settings of a run with these keys from its inventory: a wrong command can be corrected.
    Those that cannot be read stay as they were, and that is said."""
    result = dict(settings)
    if not settings:
        return result
    file = Path(order.folder, order.inventory)
    try:
        targets = load_targets(str(file) if file.exists() else order.inventory)
    except VerifyError as error:
        say(f"commands stay as they were: {one_line(str(error))}")
        return result
    for target in targets:
        if target.name not in settings:
            continue
        now, problems = load_settings(target.data)
        if now is None:
            text = "; ".join(f"{each.code} {each.message}" for each in problems)
            say(f"{target.name}: commands stay as they were: {one_line(text)}")
            continue
        commands = {key: getattr(now, key) for key in KEYS}
        result[target.name] = settings[target.name].model_copy(update=commands)
    return result
