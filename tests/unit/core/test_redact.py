"""Diffs and messages never show a secret."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufleet.core.redact import redact, redact_command, redacted_lines

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
    "line",
    [
        f"train --password {SECRET} --epochs 3",
        f"train --hf-token={SECRET} --epochs 3",
        f"serve --api-key {SECRET}",
        f"curl -H 'Authorization: Bearer {SECRET}' https://host",
        f"git clone https://{SECRET}@host/repository",
        f"mlflow --uri postgresql://user:{SECRET}@host/base",
        f"env WANDB_API_KEY={SECRET} python3 train.py",
        f"client hf_{SECRET}",
        f"first line\n--token\n{SECRET}",
    ],
)
def test_command_lines_have_no_secrets(line: str) -> None:
    shown = redact_command(line)
    assert SECRET not in shown
    assert "***" in shown
    assert "\n" not in shown


def test_command_lines_stay_short_and_say_what_runs() -> None:
    plain = "python3 -m vllm.entrypoints.openai.api_server --model meta/llama --port 8000"
    assert redact_command(plain) == plain
    assert redact_command("python3 " + "x" * 500) == "python3 " + "x" * 71 + "…"
    assert redact_command("") == ""


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


@pytest.mark.parametrize("word", ["token", "auth", "password-"])
def test_a_long_name_costs_little(word: str) -> None:
    began = time.process_time()
    redact(word * 20_000)
    redact_command(word * 20_000)
    assert time.process_time() - began < 5  # it took minutes


@pytest.mark.parametrize("text", ["DB_PASS=hunter2", "db.pass: hunter2", '"pass": "hunter2"'])
def test_a_short_name_of_a_password(text: str) -> None:
    assert "hunter2" not in redact(text)
    assert "hunter2" not in redact_command("mysql --pass hunter2")
    assert redact("passthrough = 1") == "passthrough = 1"


@pytest.mark.parametrize(
    "line",
    [
        f"curl -u carrier:{SECRET} https://mirror/x",
        f"curl -fsSu carrier:{SECRET} https://mirror/x",
        f"curl -ucarrier:{SECRET} https://mirror/x",
        f"curl -fsSL --user 'carrier:{SECRET} two' https://mirror/x",
        f"curl https://mirror/x --proxy-user=carrier:{SECRET}",
        f"wget --user=carrier --password={SECRET} https://mirror/x",
        f"wget --http-user carrier --http-password {SECRET} https://mirror/x",
        f"helm registry login host --username me --password {SECRET}",
        f"failed: join --token {SECRET} --discovery-token-ca-cert-hash sha256:0",
        f'args: ["--api-key", x, --api-key "{SECRET}"]',
        f"post to https://hooks.slack.com/services/T012/B345/{SECRET} failed",
        f"https://hooks.slack.example:8443/triggers/T012/{SECRET}",
        f"https://some.webhook.office.com/webhookb2/1-2@3/IncomingWebhook/4/{SECRET}",
        f"https://discord.com/api/webhooks/1234567890/{SECRET}",
        f"https://events.pagerduty.com/integration/{SECRET}/enqueue",
        f"https://alert.example/integrations/generic/2013/alert/{SECRET}/team",
        f"https://api.telegram.org/bot123456:{SECRET}/sendMessage",
        f"https://chat.example/v1/spaces/A/messages?key=1&token={SECRET}",
        f"https://region.logic.example/workflows/x?sp=%2Frun&sig={SECRET}",
        f"service_key: {SECRET}",
        f"integration_key={SECRET}",
        f"routing_key: '{SECRET}'",
        f"webhook_url: https://own.example/{SECRET}",
        f"slack_api_url: https://own.example/{SECRET}",
        f"X-Header: Bearer {SECRET}1",
        "proxy-connection: basic aHVudGVyMmh1bnRlcjI=",
        f"hub glpat-1234{SECRET}",
    ],
)
def test_other_forms_of_secrets_are_masked(line: str) -> None:
    shown = redact(line)
    assert SECRET not in shown
    assert "aHVudGVy" not in shown
    assert "***" in shown


@pytest.mark.parametrize(
    "line",
    [
        "cuda-drivers-580-580.95.05-1.el8.x86_64 and nvidia-container-toolkit=1.18.0-1",
        "nvcr.io/nvidia/k8s-device-plugin@sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
        "GPU-5a1e7c2e-0b7c-4b7e-9c5d-3f1f5e0c9a11 at 00000000:3b:00.0",
        "uid 7f8c1f0e-7f0a-4b53-8a3e-0f6f0d4c2b11 of kube-system",
        "HTTP Basic authentication is refused; X509v3 Basic Constraints: critical",
        "Bearer authentication is wanted",
        "docker run -u 1000:1000 --user 1000:1000 image",
        "kubectl get pods -n monitoring -l app=webhook",
        'failed calling webhook: Post "https://cert-manager-webhook.cert-manager.svc:443/mutate?timeout=10s"',
        'Post "https://webhook.gpu-operator.svc:443/validate-v1": EOF',
        "https://docs.example/reference/webhooks/introduction",
        "docker login --password-stdin --username me",
        "docker login registry && docker run -p 8080:80 image",
        "kubelet --token-file /etc/token.csv --tls-private-key-file /etc/x.key",
        "skipped_by_administrator_of_2026 hf-transfer-0.1.6",
        "curl: (22) The requested URL returned error: 404",
        "curl -fsSL https://host:8443/path",
        "gpg: key A4B46996: public key imported; NO_PUBKEY A4B46996",
        "https://host/path?timeout=10s&limit=500",
    ],
)
def test_ordinary_text_stays(line: str) -> None:
    assert redact(line) == line


@pytest.mark.parametrize(
    "text",
    [
        *("curl -x ", "u", "https://hooks.a/", "https://hooks.", "--a-", "?token=", "Basic "),
        *("http://a/b/", "http://", "http://a:", "http://a:1/", "a://b", "sk-a-", "login a "),
        *("mysql ", "sshpass -p", "a_b_key ", "key: |\n", " key: |\n ", "A_", "password"),
        *(
            'curl"-u=',
            'curl -u ":',
            "docker --a b ",
            "\x1b[",
            "\x1b]",
            "token: [\n",
            "token: [",
            "ctr -u ",
        ),
        *(
            'password: "a", ',
            '"a", ',
            "proxy=a:",
            "https://a:b'c",
            "token:\n- a\n",
            "key: !a ",
            "\\\n",
        ),
    ],
)
@pytest.mark.parametrize("beginning", ["", "a@", "curl -"])
def test_repeated_beginnings_cost_little(text: str, beginning: str) -> None:
    def cost(count: int) -> float:
        """CPU seconds, the lower of two."""
        times = []
        for _ in range(2):
            began = time.process_time()
            redact(beginning + text * count)
            times.append(time.process_time() - began)
        return min(times)

    assert cost(4_000) < 10 * cost(1_000) + 0.03, "4 times as much text costs the square of it"


@pytest.mark.parametrize(
    "text",
    [
        "pwd=hunter2",
        '"pwd": "hunter2"',
        "psk=hunter2",
        "encryption_key=hunter2",
        "AccountKey=hunter2",
        "Cookie: sid=hunter2",
        "Set-Cookie: sid=hunter2; Path=/",
        "machine mirror login carrier password hunter2",
        "sshpass -p hunter2 ssh host",
        "mysql -u root -phunter2 db",
        "WANDB_API_KEY hunter2hunter2",
        "aws_secret_access_key hunter2/hunter2+x",
        "run --wandb_key hunter2",
        "password: |\n  hunter2\n  hunter2\nnext: 1",
        "- token: >-\n    hunter2\n",
        '"password":\n  "hunter2"',
        "docker login -u ci-run -p hunter2 registry",
        "docker login registry.run.app -u bob -p hunter2",
        "mysql -h db.run -phunter2",
        "client-key-data: hunter2",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nhunter2",
        "token rejected eyJhbGciOiJSUzI1NiJ9.eyJpc3hunter2MiOiJrIn0.abhunter2",
    ],
)
def test_further_forms(text: str) -> None:
    assert "hunter2" not in redact(text)
    assert "next: 1" in redact(text) or "next" not in text


def test_lines_that_belong_together() -> None:
    lines = ["-----BEGIN PRIVATE KEY-----", "hunter2", "-----END PRIVATE KEY-----", "after"]
    assert redacted_lines(lines) == [
        "-----BEGIN PRIVATE KEY-----***-----END PRIVATE KEY-----",
        "after",
    ]
    assert redacted_lines([]) == []


@pytest.mark.parametrize("words", ["", "--epochs 3 "])
def test_a_command_line_that_the_host_cut_ends_with_a_whole_word(words: str) -> None:
    line = f"train {words}postgresql://carrier:{SECRET * 99}@host/base"[:1000]
    assert redact_command(line) == f"train {words}…"
    assert redact_command(f"train --token {SECRET * 99}"[:1000]) == "train --token ***"
