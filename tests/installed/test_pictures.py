"""The pictures of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pictures
import pytest

ROOT = Path(__file__).parents[2]
MADE = sorted(pictures.PICTURES.iterdir())
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
pytestmark = pytest.mark.one_python


def test_the_terminal_shows_what_the_program_prints() -> None:
    """If this fails, run `python tools/pictures.py --terminal`."""
    for name, text in pictures.terminal().items():
        assert (pictures.PICTURES / name).read_text("utf-8") == text


@pytest.mark.parametrize("path", MADE, ids=lambda path: path.name)
def test_a_picture_is_small_and_has_both_schemes(path: Path) -> None:
    assert path.stat().st_size <= pictures.LARGEST
    stem, _, scheme = path.stem.rpartition("-")
    assert scheme in pictures.SCHEMES
    for other in pictures.SCHEMES:
        assert path.with_stem(f"{stem}-{other}").is_file()


def test_the_terminal_loads_nothing() -> None:
    for path in MADE:
        if path.suffix == ".svg":
            text = path.read_text("utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
            assert not re.search(r"https?:|@import|@font-face|url\(|href", text)


def test_every_picture_is_shown_with_a_text() -> None:
    shown = set()
    for page in PAGES:
        for text, path in re.findall(r"!\[([^]]*)\]\(([^)#]*pictures/[^)#]*)", page.read_text("utf-8")):
            assert len(text) > 20, page
            shown.add((page.parent / path).resolve())
    assert shown == set(MADE)
