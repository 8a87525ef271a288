"""The bill of materials of a bundle: SPDX 2.3 as JSON. Pure.

Fields: https://spdx.github.io/spdx-spec/v2.3/package-information/ (read 2026-11-29 as v2.3-RC1)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from gpufleet.bundle.models import BundleFile

LISTED_SORTS = ("package", "chart", "image", "helm", "wheel")  # software, without lists and keys
UNKNOWN = "NOASSERTION"
NAMESPACE = "https://spdx.org/spdxdocs/gpufleet-bundle-"  # with a digest, it names one document


def sbom_text(files: Sequence[BundleFile], gpufleet: str, created: str) -> str:
    """The document. The license that a package names is a comment: it may not be SPDX's."""
    listed = [file for file in files if file.sort in LISTED_SORTS]
    digest = hashlib.sha256("".join(f"{f.path} {f.sha256}\n" for f in listed).encode()).hexdigest()
    packages = [_package(file, number) for number, file in enumerate(listed)]
    whole = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": "gpufleet bundle",
        "documentNamespace": f"{NAMESPACE}{digest}",
        "creationInfo": {"created": created, "creators": [f"Tool: gpufleet-{gpufleet}"]},
        "packages": packages,
        "documentDescribes": [each["SPDXID"] for each in packages],
    }
    return json.dumps(whole, indent=1) + "\n"


def _package(file: BundleFile, number: int) -> dict[str, Any]:
    known = {"licenseComments": f"The package names: {file.license}"} if file.license else {}
    return {
        "SPDXID": f"SPDXRef-Package-{number}",
        "name": file.name or file.path,
        "versionInfo": file.version or UNKNOWN,
        "packageFileName": file.path,
        "downloadLocation": file.source or UNKNOWN,
        "filesAnalyzed": False,
        "checksums": [{"algorithm": "SHA256", "checksumValue": file.sha256}],
        "licenseConcluded": UNKNOWN,
        "licenseDeclared": UNKNOWN,
        "copyrightText": UNKNOWN,
        **known,
    }
