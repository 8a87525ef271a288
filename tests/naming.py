"""Names that two test runs of one user do not share."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

_CHECKOUT = hashlib.sha256(str(Path(__file__).resolve().parents[1]).encode()).hexdigest()[:6]

# of the sandboxes and control planes of this checkout's tests; GPUFLEET_TEST_SANDBOX overrides it
RUN = os.environ.get("GPUFLEET_TEST_SANDBOX", f"test-{_CHECKOUT}")
