"""Mutants of Python code: small changes that a test should detect. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

OPPOSITES = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: ">=", ast.GtE: "<", ast.Gt: "<=", ast.LtE: ">",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
Function = ast.FunctionDef | ast.AsyncFunctionDef
# Arguments whose change changes nothing: zip's `strict` if lengths are equal, `n` of
# get_close_matches if only the best match is used.
SAME = ("strict", "n")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: replaces the characters `start` to `end` of a file's text by `new`."""

    path: str
    line: int
    function: int  # line of the first statement of its function
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.old!r} -> {self.new!r}"

    def applied(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]


def mutants(path: str, text: str) -> Iterator[Mutant]:
    """Every mutant of a file's functions; other code is data."""
    tree = ast.parse(text)
    lines = [0]
    for line in text.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    raw = text.encode()

    def place(row: int, column: int) -> int:
        return len(raw[: lines[row - 1] + column].decode())

    for function in _outermost(tree):
        first = _first_statement(function)
        if first is None:
            continue
        for node in _inside(function):
            for target, new in _changes(node, text):
                start = place(target.lineno, target.col_offset)
                end = place(target.end_lineno or 0, target.end_col_offset or 0)
                old = text[start:end]
                if old != new:
                    yield Mutant(path, target.lineno, first, start, end, old, new)


def marked(text: str, marks: dict[int, int]) -> str:
    """The file with calls before some statements; `marks`: line of the statement -> number."""
    lines = text.splitlines(keepends=True)
    for line, number in sorted(marks.items(), reverse=True):
        statement = lines[line - 1]
        indent = statement[: len(statement) - len(statement.lstrip())]
        lines.insert(line - 1, f'{indent}__import__("mutant_reached").reached({number})\n')
    return "".join(lines)


def _outermost(tree: ast.AST) -> Iterator[Function]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield node
        else:
            yield from _outermost(node)


def _first_statement(function: Function) -> int | None:
    """The line before which to insert a call, or None if the function has only a docstring."""
    body = [one for one in function.body if not _is_docstring(one)]
    if not body or body[0].lineno == function.lineno:
        return None
    decorators = getattr(body[0], "decorator_list", [])
    return min([body[0].lineno, *(one.lineno for one in decorators)])


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _inside(function: Function) -> Iterator[ast.AST]:
    """The nodes of its body, without annotations, decorators and f-strings."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.keyword) and node.arg in SAME:
            continue
        yield node
        if isinstance(node, ast.JoinedStr):
            continue
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            found = value if isinstance(value, list) else [value]
            todo += [one for one in found if isinstance(one, ast.AST)]


def _changes(node: ast.AST, text: str) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """(replaced node, replacement) for each mutant of one node."""

    def source(part: ast.AST) -> str:
        return ast.get_source_segment(text, part) or ""

    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        operator = OPPOSITES[type(node.ops[0])]
        yield node, f"({source(node.left)} {operator} {source(node.comparators[0])})"
    elif isinstance(node, ast.BoolOp):
        word = " or " if isinstance(node.op, ast.And) else " and "
        yield node, "(" + word.join(f"({source(part)})" for part in node.values) + ")"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, f"bool({source(node.operand)})"
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(
        node.test, ast.Compare | ast.UnaryOp | ast.NamedExpr
    ):
        yield node.test, f"(not ({source(node.test)}))"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, str(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield node, str(node.value + 1)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        sign = "-" if isinstance(node.op, ast.Add) else "+"
        if not any(isinstance(part, ast.JoinedStr) for part in (node.left, node.right)):
            yield node, f"({source(node.left)} {sign} {source(node.right)})"
    elif isinstance(node, ast.Return) and not _is_nothing(node.value):
        yield node, "return None"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield node, "pass"


def _is_nothing(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)
