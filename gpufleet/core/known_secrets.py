"""The secrets in the data of a host or cluster, wherever the user repeats them. Pure."""

from __future__ import annotations

import re
from typing import Any

from gpufleet.core.masks import MASK, secret_texts

WITHIN_WORDS = 4  # characters from which on a secret is looked for within words
_BEGINS = r"(?:(?<!\w)|(?<=\\[nrt]))"  # a word, also after a line break as a repr has it
_ENDS = r"(?!\w)"


class KnownSecrets:
    """What stands below secret keys in `data`, and the logins and tokens within any other text.

    A shorter one than WITHIN_WORDS counts only as a whole word: others contain it by chance.
    """

    def __init__(self, data: Any) -> None:
        self._secrets = secret_texts(data, shortest=1)

    def hide(self, value: str) -> str:
        """A value without secrets."""
        for secret in self._secrets:
            value = _pattern(secret, _BEGINS, _ENDS).sub(MASK, value)
        return value

    def hide_in(self, sentence: str, value: str) -> str:
        """A sentence of gpufleet's that may quote a value or a part of it, without its secrets."""
        for secret in self._secrets:
            if _pattern(secret, _BEGINS, _ENDS).search(value):
                sentence = _pattern(secret, "(?<=['\"])", "(?=['\"])").sub(MASK, sentence)
        return sentence


def _pattern(secret: str, begins: str, ends: str) -> re.Pattern[str]:
    exact = re.escape(secret)
    return re.compile(exact if len(secret) >= WITHIN_WORDS else f"{begins}{exact}{ends}")
