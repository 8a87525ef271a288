"""What a remedy may name: keys, values, commands, files and findings that exist.

tests/unit/test_commands_named.py checks the names of gpufleet's commands in every text. Here are
the remedies of findings, and the sentences that code puts into them.
"""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import click

from gpufleet.cli import main
from gpufleet.core.findings import KNOWN_KINDS
from gpufleet.core.load_settings import load_role
from gpufleet.core.settings import RoleSettings
from scripts.finding_codes import finding_modules
from scripts.generate_docs import READMES

ROOT = Path(__file__).resolve().parents[2]
MODELS: tuple[type[RoleSettings], ...] = tuple(dict.fromkeys(READMES.values()))
KEYS = {model.prefix + name: model for model in MODELS for name in model.model_fields}
NO_KEYS = ("gpu_nodes", "gpu_cluster", "gpu_pods")  # groups of an inventory, a described fact
KEYS_OF_CHECKS = (ROOT / "docs/reference/checks.md").read_text()
KEY = re.compile(
    rf"(?<![\w./{{-])(?:{'|'.join(sorted({m.prefix for m in MODELS}))})[a-z][a-z_]*\b(?![\w/.(])"
)
SETTING = re.compile(
    rf"({KEY.pattern}) = (\{{\{{.*\}}\}}|\"[^\"]*\"|\[[^\]]*\]|[\w.{{}}]+(?<![.]))"
)
BACKTICKED = re.compile(r"`([^`\n]+)`")
# A command at the end of a sentence: "Find the reason with: journalctl -u kubelet"
BARE = re.compile(
    r"(?:^|: |with |See |run )((?:kubectl|helm|systemctl|journalctl|curl|nvidia-smi|fuser) [^;:]*)"
)
FINDING = re.compile(r"\bGF\d{3}\b")
OURS = re.compile(
    r"(?:/var/lib/gpufleet|/run/gpufleet)[\w./-]*|\b(?:docs|templates|deploys)/[\w./-]*\w"
)
NO_COMMANDS = "machine |version$|and$|or$|not$|abort$|nvidia$"
PROGRAMS = {
    "amtool", "apt-cache", "apt-config", "apt-get", "apt-mark", "ausearch", "cat", "chmod",
    "chronyc", "containerd", "cp", "crictl", "crio", "ctr", "curl", "date", "dcgmi", "depmod",
    "df", "dkms", "dmesg", "dnf", "docker", "dockerd", "dpkg", "dracut", "free", "fuser",
    "getenforce", "getent", "getfacl", "gpufleet", "grep", "head", "helm", "hostnamectl", "ibstat",
    "iconv", "id", "ip", "journalctl", "kubeadm", "kubectl", "ldd", "ln", "ls", "lsmod", "lspci",
    "make", "microk8s", "modinfo", "modprobe", "mokutil", "mv", "nerdctl", "nproc",
    "nv-fabricmanager", "nv-hostengine", "nvcc", "nvidia-bug-report.sh", "nvidia-container-cli",
    "nvidia-ctk", "nvidia-modprobe", "nvidia-smi", "nvidia-uninstall", "ofed_info", "podman",
    "promtool", "pyinfra", "python", "restorecon", "rm", "rmmod", "rpm", "scontrol", "sed",
    "setsebool", "setup-envtest", "skopeo", "slurmd", "snap", "ss", "ssh", "ssh-keygen", "stat",
    "subscription-manager", "swapoff", "swapon", "sysctl", "systemctl", "systemd-detect-virt",
    "systemd-inhibit", "systemd-machine-id-setup", "tail", "timedatectl", "true", "uname",
    "update-initramfs", "usermod", "which", "yum", "yum-complete-transaction",
}  # fmt: skip


@cache
def kinds() -> dict[str, str]:
    finding_modules()
    return {code: f"{kind.remedy} {kind.advice}" for code, kind in sorted(KNOWN_KINDS.items())}


def joined(node: ast.AST) -> str | None:
    """The text of a string, or of an f-string with its expressions as placeholders."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (
            part.value if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
            for part in node.values
            if isinstance(part, ast.Constant | ast.FormattedValue)
        )
        return "".join(map(str, parts))
    return None


@cache
def sentences() -> dict[str, str]:
    """Sentences in code, by place: some are put into remedies."""
    found = {}
    for path in sorted((ROOT / "gpufleet").rglob("*.py")):
        if "findings" in path.as_posix():
            continue
        tree = ast.parse(path.read_text())
        statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
                 for part in node.values}  # fmt: skip
        for node in ast.walk(tree):
            text = joined(node)
            if text and " " in text and "\n" not in text and id(node) not in statements | inner:
                found[f"{path.relative_to(ROOT)}:{node.lineno}:{node.col_offset}"] = text
    return found


def wrong_settings(text: str) -> Iterator[str]:
    for key in set(KEY.findall(text)):
        if key not in (*KEYS, *NO_KEYS) and key not in KEYS_OF_CHECKS and not key.endswith("_"):
            yield f"no key {key}"
    for key, value in SETTING.findall(text):
        if key not in KEYS:
            continue
        if value.startswith("{") and not value.startswith("{{"):
            yield f"{key} = {value}: without quotes"
            continue
        try:
            given = ast.literal_eval(
                re.sub(r"\{[^}]*\}", "1", value.replace("{{", "{").replace("}}", "}"))
            )
        except (ValueError, SyntaxError):
            yield f"{key} = {value}: not a value of Python"
            continue
        model, problems = KEYS[key], []
        if "{" not in value:
            load_role(model, {key: given}, problems)
        yield from (problem.message for problem in problems)


def commands(text: str) -> Iterator[str]:
    """Commands in a remedy: between backticks, or at the end of a sentence."""
    for snippet in BACKTICKED.findall(text):
        if re.match(r"[a-z][\w-]*(?:\.sh)?(?: [^=]|$)", snippet) and not re.match(
            NO_COMMANDS, snippet
        ):
            yield snippet
    rest = BACKTICKED.sub("", text)
    yield from (found.rstrip(" .,)") for found in BARE.findall(rest))


def calls_in_code(text: str) -> Iterator[str]:
    """Backticked calls of known programs in a text; other backticked words are values."""
    found = (snippet for snippet in BACKTICKED.findall(text) if " " in snippet)
    yield from (call for call in found if call.split()[0] in PROGRAMS)


def filled(command: str) -> str:
    return re.sub(r"\{[^{}]*\}", "x1", command.replace("{{", "").replace("}}", ""))


def calls(command: str) -> Iterator[list[str]]:
    """The words of each program that a command line starts."""
    lexer = shlex.shlex(
        command.replace("[", "").replace("]", ""), posix=True, punctuation_chars=True
    )
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word in ("|", "||", "&&", ";"):
            yield words
            words = []
        else:
            words.append(word)


def wrong_commands(found: Iterable[str]) -> Iterator[str]:
    for command in found:
        done = subprocess.run(
            ["bash", "-n", "-c", filled(command)], capture_output=True, check=False
        )
        if done.returncode:
            yield f"not shell: {command}"
            continue
        for words in calls(filled(command)):
            if not words or not (words[0] in PROGRAMS or words[0].endswith(".sh")):
                yield f"program {words[:1]}: {command}"
            elif words[0] == "gpufleet":
                yield from wrong_call(words[1:])
            elif words[:1] == ["systemctl"] and reloads(words):
                yield f"reloads systemd: {command}"


def reloads(words: list[str]) -> bool:
    return bool({"enable", "disable", "mask"} & set(words)) and "--no-reload" not in words


def wrong_call(words: list[str]) -> Iterator[str]:
    """Errors of click about a call, except for an argument that the text leaves out."""
    command: click.Command = main
    context = click.Context(main, info_name="gpufleet")
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.get_command(context, rest[0])
        if found is None:
            return
        command, context = found, click.Context(found, context, info_name=rest.pop(0))
    if not rest:
        return
    try:
        command.make_context(context.info_name, rest, context.parent)
    except click.MissingParameter as error:
        if not isinstance(error.param, click.Argument):
            yield f"gpufleet {' '.join(words)}: {error.format_message()}"
    except click.UsageError as error:
        yield f"gpufleet {' '.join(words)}: {error.format_message()}"


@cache
def sources() -> str:
    files = [*(ROOT / "gpufleet").rglob("*.py"), *(ROOT / "gpufleet").rglob("*.sh")]
    return "\n".join(path.read_text() for path in files if "findings" not in path.as_posix())


def wrong_names(text: str) -> Iterator[str]:
    yield from (f"no {code}" for code in FINDING.findall(text) if code not in KNOWN_KINDS)
    for path in OURS.findall(text):
        name = path.rstrip(".*")
        if name.startswith("/"):
            parts = name.removeprefix("/var/lib/gpufleet").strip("/")
            if parts and parts.split("/")[0] not in sources():
                yield f"no {path} in the code"
        elif not (ROOT / name).exists():
            yield f"no file {path}"


def wrong_in_code(text: str) -> list[str]:
    found = wrong_commands(calls_in_code(text))
    return [*wrong_settings(text), *found, *wrong_names(text)]
