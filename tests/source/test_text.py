"""Bytes to text and back, lines, offsets, and what a syntax error is called."""

from __future__ import annotations

import ast
import pickle
import random
import sys
import unicodedata
import warnings
from pathlib import Path

import pytest

from torchmigrate.source.text import Source, SourceError

CASE = Path("case.py")


def source(text: str) -> Source:
    return Source.from_text(text, CASE)


def reason_of(text: str) -> tuple[str, int | None]:
    with pytest.raises(SourceError) as error:
        source(text).parse()
    assert "\n" not in error.value.reason
    return error.value.reason, error.value.line


# ---- bytes and text ---------------------------------------------------------------------------------

EXACT = [
    b"",
    b"x = 1",
    b"x = 1\n",
    b"x = 1\r\ny = 2\r\n",
    b"x = 1\ry = 2\r",
    b"x = 1\r\ny = 2\nz = 3\r",
    b"\x0c\nif x:\n\ty = 1\n\x0c\n",
    "# é\nx = '\u2028 \x85'\n".encode(),
    b"\xef\xbb\xbfx = 1\r\n",
    b"\xef\xbb\xbf# coding: utf-8\nx = 1\n",
    b"# -*- coding: latin-1 -*-\nx = '\xe9\xff'\n",
    b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nx = '\x80'\n",
    b"\n# coding=iso-8859-15\r\nx = '\xa4'\r\n",
    b"# coding: utf8\nx = '\xc3\xa9'\n",
    b"# -*- coding: utf-8-unix -*-\nx = '\xc3\xa9'\n",
    b"# -*- coding: latin-1-dos -*-\r\nx = '\xe9'\r\n",
    "# coding: gbk\nx = '\u4e2d'\n".encode("gbk"),
    "# coding: euc-jp\nx = '\u65e5\u672c'\n".encode("euc-jp"),
]


@pytest.mark.parametrize("data", EXACT)
def test_bytes_are_kept(data: bytes) -> None:
    read = Source.from_bytes(data, CASE)
    assert read.encode(read.text) == data
    assert not read.text.startswith("\ufeff")
    assert read.bom == data.startswith(b"\xef\xbb\xbf")
    changed = read.with_text(read.text.replace("x", "name"))
    assert read.encode(changed.text) == data.replace(b"x", b"name")
    assert changed.encode(changed.text) == data.replace(b"x", b"name")


@pytest.mark.parametrize("data", EXACT)
def test_text_is_what_python_reads(data: bytes) -> None:
    assert ast.dump(Source.from_bytes(data, CASE).parse()) == ast.dump(ast.parse(data))


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"x\n# coding: latin-1\n", "utf-8"),  # code before it: not a declaration
        (b"\n\n# coding: latin-1\n", "utf-8"),  # third line
        (b"# coding: latin-1\n# coding: cp1252\n", "iso-8859-1"),
        (b"# first\r# coding: cp1252\r", "cp1252"),
        (b'"""\n# coding: latin-1\n"""', "utf-8"),
        (b"# coding : latin-1\n", "utf-8"),
        (b"# encoding: Latin_1\n", "iso-8859-1"),
    ],
)
def test_declared_encoding(data: bytes, encoding: str) -> None:
    assert Source.from_bytes(data, CASE).encoding == encoding


@pytest.mark.parametrize(
    ("data", "reason", "line"),
    [
        (b"# coding: no-such\n", "unknown encoding: no-such", 1),
        (b"\n# coding: hex\n", "unknown encoding: hex", 2),
        (b"x = 1\r\ny = '\xe9'\n", "not utf-8 text: byte 0xe9 cannot be decoded", 2),
        (b"\xef\xbb\xbf\n\n'\xff'", "not utf-8 text: byte 0xff cannot be decoded", 3),
        (b"# coding: ascii\n'\xe9'", "not ascii text: byte 0xe9 cannot be decoded", 2),
        (
            b"\xef\xbb\xbf# coding: latin-1\n",
            "UTF-8 byte order mark, but the encoding is declared as iso-8859-1",
            1,
        ),
        (b"x = 1\n\0", "contains NUL bytes: not Python source", 2),
        (b"\x7fELF\x02\x01\x01\0\0\0", "contains NUL bytes: not Python source", 1),
        ("x = 1\n".encode("utf-16"), "UTF-16 text, which Python does not read: save it as UTF-8", None),
    ],
)
def test_no_text(data: bytes, reason: str, line: int | None) -> None:
    with pytest.raises(SourceError) as error:
        Source.from_bytes(data, CASE)
    assert (error.value.reason, error.value.line) == (reason, line)


def test_text_that_the_encoding_cannot_express() -> None:
    read = Source.from_bytes(b"# coding: latin-1\nx = 1\n", CASE)
    with pytest.raises(SourceError, match=r"character '\\u20ac' does not exist in iso-8859-1"):
        read.encode("# coding: latin-1\nx = '€'\n")


def test_declaration_must_stay() -> None:
    read = Source.from_bytes(b"# coding: latin-1\nx = '\xe9'\n", CASE)
    with pytest.raises(SourceError, match="declaration"):
        read.encode("import torch\n" + read.text)
    assert read.encode("#!python\n" + read.text).startswith(b"#!python\n# coding")


def test_encoding_with_two_forms_of_one_text() -> None:
    # iso-2022-jp may switch the character set where it need not; decoding forgets that.
    data = b"# coding: iso-2022-jp\nx = '\x1b$B\x1b(B'\n"
    read = Source.from_bytes(data, CASE)
    with pytest.raises(SourceError, match="decoding and encoding"):
        read.encode(read.text.replace("x", "y"))


def test_error_survives_a_process_boundary() -> None:
    error = pickle.loads(pickle.dumps(SourceError("reason", 3)))
    assert (error.reason, error.line, str(error)) == ("reason", 3, "reason")


# ---- lines and offsets ------------------------------------------------------------------------------


def test_lines_are_those_of_ast() -> None:
    text = "a\rb\r\nc\n\x0cd\nx = '\x1c\x1d\x85\u2028\u2029\x0b'; e"
    read = source(text)
    assert [read.line_text(number) for number in range(1, 6)] == [
        "a",
        "b",
        "c",
        "\x0cd",
        "x = '\x1c\x1d\x85\u2028\u2029\x0b'; e",
    ]
    assert read.line_count == 5
    assert (read.line_text(0), read.line_text(6)) == ("", "")
    names = [node for node in ast.walk(read.parse()) if isinstance(node, ast.Name)]
    assert sorted(read.segment(node) for node in names) == ["a", "b", "c", "d", "e", "x"]


def test_positions() -> None:
    read = source("é = 1\r\nbc\n")
    assert [read.position(offset) for offset in (0, 1, 5, 7, 8, 9, 10)] == [
        (1, 1),
        (1, 2),
        (1, 6),
        (2, 1),
        (2, 2),
        (2, 3),
        (3, 1),
    ]
    assert source("").position(0) == (1, 1)
    assert source("ab").position(2) == (1, 3)
    assert source("a\nb").position(3) == (2, 2)
    assert [source(text).line_count for text in ("", "a", "a\n", "a\nb", "\n")] == [0, 1, 1, 2, 1]


def test_offset_beyond_the_text() -> None:
    read = source("é\n")
    assert read.offset(7, 3) == 2


@pytest.mark.parametrize(
    ("text", "newline"),
    [("", "\n"), ("a", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\nb\nc\r\n", "\n"), ("a\rb\rc\n", "\r")],
)
def test_newline(text: str, newline: str) -> None:
    assert source(text).newline == newline


def test_every_node_is_found_at_its_place() -> None:
    """Random programs of odd tokens: every name, and only it, is at the offsets that are given for it."""
    chance = random.Random(20240607)
    names = ["x", "torch", "é", "naïve", "名前", "ﬁeld", "𝐱", "_1"]
    filler = ["'é'", '"\u2028"', "'''\x85\r\n\r🙂'''", "1.5", "(\r\n\t", "b'a'", "'\x0c'", '"""\n"""']
    seen = 0
    for _ in range(400):
        newline = chance.choice(["\n", "\r\n", "\r"])
        lines = []
        for _ in range(chance.randrange(1, 6)):
            parts = [chance.choice(names)]
            depth = 0
            for _ in range(chance.randrange(5)):
                token = chance.choice(filler if chance.random() < 0.5 else names)
                depth += token.startswith("(")
                parts.append(f" {chance.choice('+,-')} {token}" if token[0] != "(" else f", {token} y")
            ending = ")" * depth + chance.choice(["", "  # é\x0c \u2029", " ;z", "\t"])
            lines.append(chance.choice(["", "\x0c", newline]) + "".join(parts) + ending)
        text = newline.join(lines) + chance.choice(["", newline])
        data = (b"\xef\xbb\xbf" if chance.random() < 0.3 else b"") + text.encode()
        read = Source.from_bytes(data, CASE)
        assert read.text == text
        assert read.encode(text) == data
        for node in ast.walk(read.parse()):
            if isinstance(node, ast.Name):
                seen += 1
                start, end = read.span(node)
                assert unicodedata.normalize("NFKC", text[start:end]) == node.id
                line, column = read.position(start)
                assert line == node.lineno
                assert read.line_text(line)[column - 1 :].startswith(text[start:end])
                assert read.line_start(line) + column - 1 == start
            elif isinstance(node, ast.expr):
                assert ast.get_source_segment(text, node) is not None
                ast.parse(f"({read.segment(node)})")
    assert seen > 2000


# ---- syntax -----------------------------------------------------------------------------------------

PYTHON2 = [
    ('print "a"', "print statement"),
    ("if x: print a.b, c", "print statement"),
    ("x = 1\nprint 'hello %s' % (a,\n  b)", "print statement"),
    ("exec code in space", "exec statement"),
    ("raise ValueError, 'bad'", "`raise X, value`"),
    ("x = `y`", "backticks"),
    ("if a <> b: pass", "`<>`"),
    ("os.chmod(p, 0755)", "octal number without `0o`"),
    ("x = 10L", "long integer with `L`"),
    ("x = 0xFFL", "long integer with `L`"),
    ('x = ur"a"', '`ur""` string'),
    ("def f(a, (b, c)): pass", "tuple as a parameter"),
    ("f = lambda (a, b): a", "tuple as a parameter"),
]


if sys.version_info < (3, 14):  # which reads a tuple of two
    PYTHON2 += [
        ("try:\n  pass\nexcept (A, B), error:\n  pass", "`except X, name`"),
        ("try:\n  pass\nexcept socket.error, e:\n  pass", "`except X, name`"),
    ]


@pytest.mark.parametrize(("text", "construct"), PYTHON2)
def test_python_2_is_called_so(text: str, construct: str) -> None:
    reason, _ = reason_of(text)
    assert reason == f"Python 2 code ({construct}): convert it to Python 3 first"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = mine(async=True)", 1),
        ("x = mine(device, async = flag) if c else x", 1),
        ("def f(x):\n  return x.send(\n    d,\n    async=True)", 4),
    ],
)
def test_async_argument(text: str, line: int) -> None:
    assert reason_of(text) == (
        "`async` is a keyword since Python 3.7; use PyTorch's new argument `non_blocking=`",
        line,
    )


@pytest.mark.parametrize(
    "text", ["x = x.cuda(async=True)", "def f(x):\n  return x.to(\n    d,\n    async=True)"]
)
def test_async_argument_of_a_tensor_method_parses(text: str) -> None:
    source = Source.from_text(text, Path("case.py"))
    source.parse()
    assert [text[offset : offset + 5] for offset in source.async_arguments] == ["async"]


@pytest.mark.parametrize(
    "text", ["async = 1", "def f(x, async=False): pass", "from a import async", "f(async)", "a.async"]
)
def test_async_name(text: str) -> None:
    assert reason_of(text) == ("`async` is a keyword since Python 3.7 and cannot be a name: rename it", 1)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("def f(:\n  pass", 1),
        ("x = 1\n\x0c\ny = (", 3),
        ("if x:\rpass\r", 2),
        ("async def f(x): return x y", 1),
        ("datetime(2020, 08, 1)", 1),
        ("try:\n pass\nfinally\n pass", 3),
        ("x = 'abc", 1),
    ],
)
def test_other_syntax_errors(text: str, line: int) -> None:
    reason, found = reason_of(text)
    assert reason.startswith("syntax error")
    assert found == line


def test_warnings_are_not_ours() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        source("x = '\\d'\nassert (1, 'always')\n1 is 1\n").parse()
