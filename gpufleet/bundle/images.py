"""The images that the objects of a release name. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_NAME = re.compile(r"[a-z0-9][\w.:/@-]*", re.ASCII)
# option of an operator for an image of its objects: --prometheus-config-reloader=quay.io/…
_OPTION = re.compile(
    r"--[\w-]+=(?P<image>[\w.-]+\.[\w.-]+/[\w./-]+:[\w.-]+(@sha256:[0-9a-f]{64})?)"
)


def rendered_images(objects: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The images of containers, of custom resources, and of options of operators."""
    found = {name for each in objects for name in _images(each)}
    return tuple(sorted(name for name in found if _NAME.fullmatch(name)))


def _images(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from _image(value)
        for inner in value.values():
            yield from _images(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _images(inner)
    elif isinstance(value, str) and (option := _OPTION.fullmatch(value)):
        yield option["image"]


def _image(value: Mapping[str, Any]) -> Iterator[str]:
    """The image of one container, or of one operand: repository, image and version apart."""
    image, folder, version = (value.get(key) for key in ("image", "repository", "version"))
    if not isinstance(image, str) or not image:
        return
    if isinstance(folder, str) and isinstance(version, str) and folder and version:
        yield f"{folder}/{image}{'@' if version.startswith('sha256:') else ':'}{version}"
    elif folder is None:
        yield image


def image_path(image: str) -> str:
    """The path of an image's archive in a bundle."""
    digest = hashlib.sha256(image.encode()).hexdigest()[:8]
    return f"images/{re.sub(r'[^a-z0-9._-]+', '-', image.lower())}-{digest}.tar"
