"""Diffs and messages never show a secret."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufleet.redact import redact

SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    "text",
    [
        f'"http-proxy": "http://user:{SECRET}@proxy.example:3128"',
        f"HTTPS_PROXY=https://user:{SECRET}@proxy",
        f'"registry-password": "{SECRET}"',
        f"password = '{SECRET}'",
        f"auth_token: {SECRET}",
        f'[plugins.registry.configs.auth]\n  secret = "{SECRET}"',
    ],
)
def test_secrets_are_masked(text: str) -> None:
    masked = redact(text)
    assert SECRET not in masked
    assert "***" in masked


@pytest.mark.parametrize(
    "text",
    [
        '"log-driver": "json-file"',
        "deb [signed-by=/usr/share/keyrings/cuda.gpg] https://host/path /",
        '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]',
        '"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}',
    ],
)
def test_other_text_stays(text: str) -> None:
    assert redact(text) == text


@given(st.text(alphabet="abcdefgh0123456789", min_size=6, max_size=20))
def test_any_password_of_a_url_is_masked(password: str) -> None:
    assert password not in redact(f"x http://user:{password}@host/")
