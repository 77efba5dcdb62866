"""The quotes of strings in new code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchmigrate.rewrite.quotes import requoted, requoted_within
from torchmigrate.source.text import Source


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("", '"'),
        ("x = 1", '"'),
        ("x = 'a'", "'"),
        ("x = \"a\"; y = 'b'", '"'),
        ("x = \"a\"; y = 'b'; z = 'c'", "'"),
        ("# don't, can't\nx = \"a\"", '"'),
        ('"""It\'s not."""\nx = \'a\'', "'"),
        ("'''It is \"so\" said.'''\nx = \"a\"", '"'),
        ("x = 'it\\'s'\ny = 1", "'"),
    ],
)
def test_quote_that_most_strings_have(text: str, quote: str) -> None:
    assert requoted('"U"', "", text) == f"{quote}U{quote}"


def test_new_strings_follow_the_file() -> None:
    assert requoted('f(x, UPLO="U")', "g(x)", "a = 'b'") == "f(x, UPLO='U')"
    assert requoted('f(x, UPLO="U")', "g(x)", 'a = "b"') == 'f(x, UPLO="U")'


def test_new_strings_follow_those_beside_them() -> None:
    assert requoted('"U"', "", 'a = "b"; c = "d"', "f('x', ") == "'U'"
    assert requoted("'U'", "", "a = 'b'", "f(\"x\", 'y')") == "'U'"
    assert requoted('"U"', "", "a = 'b'", "f(x)") == "'U'"


def test_strings_that_were_there_stay() -> None:
    old = 'g(x, "key")'
    assert requoted('f(x, "key", "new")', old, "a = 'b'; c = 'd'\n" + old) == "f(x, \"key\", 'new')"


def test_strings_with_quotes_inside_stay() -> None:
    assert requoted("""f("it's", '"', "U")""", "", "a = 'b'") == """f("it's", '"', 'U')"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="where things are in f-strings is not known before")
@pytest.mark.parametrize(
    ("text", "new"),
    [
        ('y = f"{x}"', "f('a', 'b')"),
        ("y = f'{x}'", 'f("a", "b")'),
        ('y = rf"a" f"{x}"', "f('a', 'b')"),
        ('y = f"""{x}"""', "f(\"a\", 'b')"),
        ("y = f\"{f'{x}'}\"", "f(\"a\", 'b')"),
        ("y = x", "f(\"a\", 'b')"),
    ],
)
def test_strings_in_fstrings(text, new):
    source = Source.from_text(text, Path("m.py"))
    assert requoted_within("f(\"a\", 'b')", text.index("x"), source) == new
