"""Secrets in text that another text quotes: lists of arguments, JSON in JSON, HTML, URLs."""

from __future__ import annotations

import html
import json
import shlex
import subprocess
import time
from urllib.parse import quote, quote_plus

import pytest

from gpufleet.core.masks import secret_texts
from gpufleet.core.redact import redact

SECRET = "hunter2hunter2"
SECRETS = [SECRET, "hunter2 hunter2", "hunter2'hunter2", 'hunter2"hunter2']
ODD = "hunter2 &x'hunter2\"\\hunter2"


@pytest.mark.parametrize("text", [
    "docker login failed, retrying: docker run -p 8080:80 nginx:1.27",
    "registry login: docker run -p 5000:5000",
    '["--secret", "--name", "x"]',
])  # fmt: skip
def test_what_only_looks_like_an_option_of_a_secret(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "secret", [SECRET, "hunter2 hunter2", "hunter2'hunter2", 'hunter2"hunter2']
)
@pytest.mark.parametrize("option", ["--token", "--hf-password", "-api-key", "--wandb_key"])
def test_a_list_of_arguments(option: str, secret: str) -> None:
    words = ["run", option, secret, "--epochs", "3"]
    for shown in (
        repr(words),
        repr(tuple(words)),
        repr([word.encode() for word in words]),
        str(subprocess.CalledProcessError(1, words)),
        json.dumps(words),
        json.dumps(words, separators=(",", ":")),
        json.dumps(words, indent=2),
        json.dumps(json.dumps(words)),
        html.escape(json.dumps(words)),
        shlex.join(words),
        f'run "{option}" {shlex.quote(secret)}',
        f"args:\n- {option}\n- {json.dumps(secret)}\n- --epochs",
        f'  - "{option}"\n  - {json.dumps(secret)}\n',
    ):
        masked = redact(shown)
        assert "hunter2" not in masked, masked
        assert "***" in masked
    assert redact(repr(["run", option, SECRET, "-x"])) == repr(["run", option, "***", "-x"])


@pytest.mark.parametrize(
    "words",
    [
        ["curl", "-u", f"bob:{SECRET}", "https://host"],
        ["curl", "-fsSu", f"bob:{SECRET}", "https://host"],
        ["curl", "--proxy-user", f"bob:{SECRET} x", "https://host"],
        ["sshpass", "-p", SECRET, "ssh", "host"],
        ["mysql", f"-p{SECRET}", "db"],
        ["docker", "login", "-u", "bob", "-p", SECRET, "host"],
        ["docker", "login", "-u", "run", "-p", SECRET, "host"],
        ["x", "--password", f"--S3{SECRET}"],
    ],
)
def test_a_short_option_in_a_list(words: list[str]) -> None:
    shown = [repr(words), json.dumps(words), json.dumps(json.dumps(words)), shlex.join(words)]
    assert not [text for text in map(redact, shown) if "hunter2" in text]


@pytest.mark.parametrize(
    "text",
    [
        f"mysql -u root -p'{SECRET}' db",
        f'mysql -p"{SECRET} {SECRET}" db',
        f"machine mirror login carrier password '{SECRET} {SECRET}'",
        f"WANDB_API_KEY '{SECRET} {SECRET}'",
        f"run --token '{SECRET} and no end",
        f'run --token "{SECRET} and no end',
        f"curl -u 'bob':'{SECRET}' https://host",
        rf"https:\/\/bob:{SECRET}@host\/x",
        rf"GET https://host/x?limit=1\u0026key={SECRET}",
        f"https://host/x?limit=1&amp;sig={SECRET}",
        f"https://host/x?to=%2Fcb%3Fkey%3D{SECRET}",
        f"Authorization%3A+Bearer+{SECRET}",
        f"x=Bearer%20{SECRET}",
        f'password: "{SECRET}"{SECRET}',
    ],
)
def test_further_spellings(text: str) -> None:
    assert "hunter2" not in redact(text)


@pytest.mark.parametrize("secret", [SECRET, ODD])
@pytest.mark.parametrize("key", ["password", "registry_token", "AccountKey"])
def test_json_within_another_text(key: str, secret: str) -> None:
    line = json.dumps({"level": "info", key: secret, "seen": "yes"})
    for shown in (
        line,
        json.dumps({"log": line}),
        json.dumps({"log": json.dumps({"log": line})}),
        repr(json.dumps({"log": line})),
        html.escape(line),
        html.escape(line).replace("&quot;", "&#34;"),
        quote(line),
        quote_plus(line),
        quote(quote(line)),
    ):
        masked = redact(shown)
        assert "hunter2" not in masked, masked
        assert "info" in masked


def test_what_follows_the_value_stays() -> None:
    line = json.dumps({"password": SECRET, "seen": "yes"})
    assert redact(json.dumps({"log": line})) == json.dumps({"log": line.replace(SECRET, "***")})
    assert redact(html.escape(line)) == html.escape(line.replace(SECRET, "***"))
    assert redact(f"a?to=b%3Ftoken%3D{SECRET}%26x%3D1 y") == "a?to=b%3Ftoken%3D***%26x%3D1 y"


@pytest.mark.parametrize("rest", ["", "&x", "'x", '"x', "%x", " x"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_url_within_a_url(rest: str, depth: int) -> None:
    text = quote(f"{SECRET}{rest}hunter2", safe="")
    text = f"https://bob:{text}@host/a?token={text}&limit=1"
    for _ in range(depth):
        text = quote(text, safe="")
    masked = redact(f"see https://host/login?to={text}")
    assert "hunter2" not in masked
    assert masked.startswith("see https://host/login?to=http")


@pytest.mark.parametrize(
    "text",
    [
        "use '--token' to name it, or '--password'.",
        "one of 'password', 'token', 'user'",
        "expected '--password-stdin', '--username'",
        "GET https://host/a%3Ab%3D1?x=%22y%22",
        "a &quot;b&quot;: &quot;c&quot;",
        r"{\"level\": \"info\", \"path\": \"/a\"}",
        "ssh -p 2222 host; login -p",
    ],
)
def test_other_quoted_text_stays(text: str) -> None:
    assert redact(text) == text


def test_what_is_masked_has_no_quotes_of_its_list() -> None:
    words = ["run", "--token", SECRET]
    assert SECRET in secret_texts({"start": str(words)})
    assert SECRET in secret_texts({"start": shlex.join(words)})


@pytest.mark.parametrize(
    "text",
    [
        *("'--token', '", '"--token","', "'curl', '-u', '", "curl '", "curl &", "curl &#39;"),
        *("token%3D", "%3D", "%22token%22%3A%22", "%25", "%3A%2F%2F", "%3A%2F%2Fa:", "token%3D%22"),
        *("&quot;", "password&quot;: &quot;", r"password\"", "\\", 'password: \\"', r"--token \'"),
        *(
            "--token\n",
            "--token \n - ",
            "sshpass '-p",
            "docker login ",
            "a:/",
            ":\\/\\/",
            "'",
            "--a_",
            "auth:\n",
            "auth:\n  a:\n",
            "auth:\n- a:\n",
            "token: is required ",
            'token: cannot "',
            "kind: Secret\ndata:\n",
            'kind: Secret "data": {',
        ),
    ],
)
def test_repeated_beginnings_cost_little(text: str) -> None:
    def cost(count: int) -> float:
        """CPU seconds, the lower of two."""
        times = []
        for _ in range(2):
            began = time.process_time()
            redact(text * count)
            times.append(time.process_time() - began)
        return min(times)

    assert cost(4_000) < 10 * cost(1_000) + 0.03, "4 times as much text costs the square of it"


def test_a_command_line_of_dashes_costs_little() -> None:
    text = ("docker -------" + "---a=========x " * 4) * 40
    began = time.process_time()
    redact(text)
    assert time.process_time() - began < 1  # seconds: it took 7
