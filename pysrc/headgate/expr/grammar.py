"""The grammar of expressions: that of cel-python (https://github.com/cloud-custodian/cel-python) with additions.

The additions are optional access (`a.?b`, `a[?b]`, `[?a]`, `{?k: v}`), quoted field names, trailing commas, all
escapes, and identifiers that begin with `true` or `in`. Only the grammar file is read; the package is not imported.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Final

import lark

from headgate.expr import tables

MAX_DEPTH: Final = 100

# Rules that replace the rules of cel-python with the same names.
RULES: Final = r"""
member         : member_dot | member_dot_arg | member_index | member_object | primary
               | member_maybe_dot | member_maybe_index
member_dot     : member "." (IDENT | QUOTED)
member_dot_arg : member "." IDENT "(" [exprlist] ")"
member_index   : member "[" expr "]"
member_object  : member "{" [fieldinits] "}"
member_maybe_dot   : member "." "?" (IDENT | QUOTED)
member_maybe_index : member "[" "?" expr "]"
list_lit       : "[" [listinits] "]"
map_lit        : "{" [mapinits] "}"
exprlist       : expr ("," expr)* [","]
listinits      : listinit ("," listinit)* [","]
listinit       : expr | "?" expr -> maybe_item
fieldinits     : IDENT ":" expr ("," IDENT ":" expr)* [","]
mapinits       : mapinit ("," mapinit)* [","]
mapinit        : expr ":" expr | "?" expr ":" expr -> maybe_entry
relation_in    : relation IN
"""
TERMINALS: Final = r"""
IN           : /in\b/
BOOL_LIT.3   : /(?:true|false)\b/
NULL_LIT.3   : /null\b/
UINT_LIT.3   : /(?:0[xX][0-9a-fA-F]+|[0-9]+)[uU]/
FLOAT_LIT.2  : /[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+/
INT_LIT.1    : /0[xX][0-9a-fA-F]+|[0-9]+/
BYTES_LIT.5  : /(?:[bB][rR]|[rR][bB])(?:\"\"\"(?:.|\n|\r)*?\"\"\"|\'\'\'(?:.|\n|\r)*?\'\'\')/
             | /(?:[bB][rR]|[rR][bB])(?:\"[^\"\n\r]*\"|\'[^\'\n\r]*\')/
             | /[bB](?:\"\"\"(?:\\.|[^\\])*?\"\"\"|\'\'\'(?:\\.|[^\\])*?\'\'\')/
             | /[bB](?:\"(?:\\.|[^\\\"\n\r])*\"|\'(?:\\.|[^\\\'\n\r])*\')/
MLSTRING_LIT.5 : /[rR](?:\"\"\"(?:.|\n|\r)*?\"\"\"|\'\'\'(?:.|\n|\r)*?\'\'\')/
             | /\"\"\"(?:\\.|[^\\])*?\"\"\"|\'\'\'(?:\\.|[^\\])*?\'\'\'/
STRING_LIT.4 : /[rR](?:\"[^\"\n\r]*\"|\'[^\'\n\r]*\')/
             | /\"(?:\\.|[^\\\"\n\r])*\"|\'(?:\\.|[^\\\'\n\r])*\'/
IDENT        : /[_a-zA-Z][_a-zA-Z0-9]*/
QUOTED       : /`[a-zA-Z0-9_.\-\/ ]+`/
WHITESPACE   : /[\t\n\f\r ]+/
COMMENT      : /\/\/[^\n]*/

%ignore WHITESPACE
%ignore COMMENT
"""
RESERVED: Final = frozenset(
    (
        "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
        "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip


class SyntaxFault(ValueError):
    """An expression has a syntax error at `line` and `column`, which count from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"{line}:{column}: {message}")
        self.line = line
        self.column = column


def grammar_text() -> str:
    """Return the grammar, as lark reads it. Raises ImportError without cel-python."""
    found = importlib.util.find_spec("celpy")
    if found is None or found.origin is None:
        raise ImportError("cel-python is not installed")
    original = Path(found.origin).with_name("cel.lark").read_text(encoding="utf-8")
    rules = original.partition("// Terminals.")[0]
    ours = {line.split(":")[0].strip() for line in RULES.splitlines() if line}
    kept: list[str] = []
    dropping = False
    for line in rules.splitlines():
        if line[:1] not in (" ", "\t", ""):
            dropping = line.split(":")[0].strip() in ours
        if not dropping and not line.startswith("//"):
            kept.append(line)
    literal = "literal : UINT_LIT | FLOAT_LIT | INT_LIT | MLSTRING_LIT | STRING_LIT | BYTES_LIT | BOOL_LIT | NULL_LIT"
    text = "\n".join(line for line in kept if not line.startswith(("literal", "               | BOOL_LIT")))
    return f"{text}\n{RULES}\n{literal}\n{TERMINALS}"


@cache
def _parser() -> lark.Lark:
    return tables.parser(grammar_text())


def parse(text: str) -> lark.Tree[lark.Token]:
    """Return the syntax tree of an expression. Raises SyntaxFault."""
    _check_depth(text)
    try:
        tree = _parser().parse(text)
    except lark.exceptions.UnexpectedEOF as error:
        raise SyntaxFault("the expression ends too early", error.line, error.column) from None
    except lark.exceptions.UnexpectedToken as error:
        if error.token.type == "$END":
            raise SyntaxFault("the expression ends too early", *_end(text)) from None
        raise SyntaxFault(f"unexpected {str(error.token)!r}", error.line, error.column) from None
    except lark.exceptions.UnexpectedCharacters as error:
        hint = ", did you mean '=='?" if error.char == "=" else ""
        raise SyntaxFault(f"unexpected character {error.char!r}{hint}", error.line, error.column) from None
    return tree


def _end(text: str) -> tuple[int, int]:
    lines = text.split("\n")
    return len(lines), len(lines[-1]) + 1


def _check_depth(text: str) -> None:
    """Raise SyntaxFault for brackets nested deeper than MAX_DEPTH. Brackets inside string literals count as well."""
    depth = 0
    for position, char in enumerate(text):
        if char in "([{":
            depth += 1
            if depth > MAX_DEPTH:
                before = text[:position].split("\n")
                raise SyntaxFault(f"nested deeper than {MAX_DEPTH}", len(before), len(before[-1]) + 1)
        elif char in ")]}" and depth:
            depth -= 1
