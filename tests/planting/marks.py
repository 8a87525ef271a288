"""Named secrets, and a search for them in texts, also in base64."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Marks:
    """Secrets by the name of their form, unique to this `place`."""

    place: str
    by_form: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, form: str) -> str:
        """The secret of a form, created on first use: letters and digits."""
        if form not in self.by_form:
            word = hashlib.sha256(f"{self.place} {form}".encode()).hexdigest()[:18]
            self.by_form[form] = f"s{word}t"
        return self.by_form[form]

    @property
    def patterns(self) -> dict[str, str]:
        """Text that reveals a secret -> name of the secret."""
        return {
            pattern: f"{form} of {self.place}"
            for form, secret in self.by_form.items()
            for pattern in (secret, *in_base64(secret))
        }


def in_base64(secret: str) -> list[str]:
    """The common part of all base64 texts that contain `secret`, for each of three offsets."""
    found = []
    for before in range(3):
        text = base64.b64encode(b"\0" * before + secret.encode()).decode().rstrip("=")
        found.append(text[-(-before * 8 // 6) : -1])
    return found


def shown(patterns: dict[str, str], texts: Iterable[str]) -> list[str]:
    """Names of the secrets in any of the texts."""
    everything = "\n".join(texts)
    return sorted({name for pattern, name in patterns.items() if pattern in everything})
