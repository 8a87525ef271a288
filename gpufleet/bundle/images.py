"""The images that the objects of a release name, and their places in a bundle: those of the
registry API, so that a server of files answers pulls. Pure.

Names: https://github.com/distribution/reference/blob/main/normalize.go (read 2026-11-30)
API: https://github.com/opencontainers/distribution-spec/blob/main/spec.md (read 2026-11-30)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

REGISTRY_FOLDER = "v2"  # in a bundle: the path that registries have
DOCKER_HUB = "docker.io"
_OCI = "application/vnd.oci.image"
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
        if value.get("enabled") is False:  # an operand that the operator does not run
            return
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


@dataclass(frozen=True, slots=True)
class ImageName:
    """A whole name of an image. `reference`: its digest, or else its tag."""

    registry: str
    repository: str
    reference: str

    @property
    def place(self) -> str:
        """The folder of its registry in a mirror: quay.io, 10.0.0.1-5000."""
        return self.registry.replace(":", "-")

    @property
    def folder(self) -> str:
        """Its folder in a bundle: v2/registry.k8s.io/pause."""
        return f"{REGISTRY_FOLDER}/{self.place}/{self.repository}"

    def at(self, reference: str) -> str:
        """The image of the same repository with a tag or a digest, as skopeo names it."""
        mark = "@" if ":" in reference else ":"
        return f"docker://{self.registry}/{self.repository}{mark}{reference}"


def parse_image(image: str) -> ImageName:
    """Complete a name as container runtimes do.

    >>> parse_image("nvidia/cuda:12.5.0").folder
    'v2/docker.io/nvidia/cuda'
    """
    name, _, digest = image.partition("@")
    first, slash, rest = name.partition("/")
    if not slash or not (re.search(r"[.:]", first) or first == "localhost"):
        first, rest = DOCKER_HUB, name
    if first in (DOCKER_HUB, f"index.{DOCKER_HUB}"):
        first, rest = DOCKER_HUB, rest if "/" in rest else f"library/{rest}"
    folder, slash, last = rest.rpartition("/")
    last, _, tag = last.partition(":")
    return ImageName(first, f"{folder}{slash}{last}", digest or tag or "latest")


@dataclass(frozen=True, slots=True)
class ImageParts:
    """What a manifest of an image names, by digest."""

    kind: str  # media type of the manifest
    manifests: tuple[str, ...]  # of the platforms
    blobs: tuple[str, ...]  # configuration and layers


def read_image_manifest(data: bytes) -> ImageParts:
    """Read the manifest of an image, or of an image for several platforms. Layers of Windows that
    come from elsewhere are left out. Raises ValueError."""
    try:
        found = json.loads(data)
        manifests = tuple(str(each["digest"]) for each in found.get("manifests") or ())
        parts = [found["config"], *found["layers"]] if "config" in found else []
        kind = found.get("mediaType") or f"{_OCI}.{'index' if manifests else 'manifest'}.v1+json"
        return ImageParts(
            str(kind),
            manifests,
            tuple(str(each["digest"]) for each in parts if not each.get("urls")),
        )
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("it is no manifest of an image") from error
