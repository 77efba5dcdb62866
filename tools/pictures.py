"""Make the pictures of the documentation from what the program prints and writes.

    python tools/pictures.py [--terminal]

`docs/assets/pictures/` gets an SVG of a terminal and screenshots of the pages of `plan`, `upgrade` and
`fleet`, each in light and dark. `--terminal` makes only the SVG, which needs nothing but torchmigrate. The
screenshots need torch 2.13, pytest, Pillow, selenium, chromium and chromedriver, and take some minutes.
"""

from __future__ import annotations

import html
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import click

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PICTURES = ROOT / "docs" / "assets" / "pictures"
SCHEMES = ("light", "dark")
LARGEST = 80_000  # bytes of a picture

SHOWN = ("check", "--select", "TM1,TM7")
_ADVANCE, _LINE, _MARGIN = 8.4, 19, 16  # of a character of 14 pixels, in pixels
_STYLE = re.compile(r"\x1b\[([\d;]*)m")
_CLASSES = {"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow", "34": "blue", "36": "cyan"}
_COLORS = {
    "light": {
        "back": "#ffffff",
        "edge": "#d1d9e0",
        "text": "#1f2328",
        "red": "#cf222e",
        "green": "#116329",
        "yellow": "#7d4e00",
        "blue": "#0969da",
        "cyan": "#1b7c83",
    },
    "dark": {
        "back": "#0d1117",
        "edge": "#3d444d",
        "text": "#e6edf3",
        "red": "#ff7b72",
        "green": "#3fb950",
        "yellow": "#e3b341",
        "blue": "#79c0ff",
        "cyan": "#56d4dd",
    },
}


def run(
    *arguments: str,
    directory: Path,
    codes: tuple[int, ...] = (0,),
    variables: Mapping[str, str] | None = None,
) -> str:
    """What the program prints on both streams.

    variables: added to the environment.

    Raises:
        RuntimeError: it ended with another exit code.
    """
    done = subprocess.run(
        [sys.executable, "-m", "torchmigrate", *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    if done.returncode not in codes:
        raise RuntimeError(f"torchmigrate {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def terminal() -> dict[str, str]:
    """The SVG of a terminal by the name of its file."""
    printed = run(
        *SHOWN,
        "--no-cache",
        directory=EXAMPLES / "training",
        codes=(1,),
        variables={"FORCE_COLOR": "1", "NO_COLOR": ""},
    )
    lines = [f"\x1b[2m$\x1b[0m torchmigrate {' '.join(SHOWN)}", *printed.splitlines()]
    return {f"check-{scheme}.svg": svg(lines, _COLORS[scheme]) for scheme in SCHEMES}


class Run(NamedTuple):
    """Characters of a line in one style."""

    column: int
    text: str
    classes: str


def runs(line: str) -> Iterator[Run]:
    """Split a line with ANSI sequences."""
    column, classes = 0, ""
    for number, part in enumerate(_STYLE.split(line)):
        if number % 2:
            classes = " ".join(_CLASSES[code] for code in part.split(";") if code in _CLASSES)
        elif part:
            yield Run(column, part, classes)
            column += len(part)


def svg(lines: list[str], colors: Mapping[str, str]) -> str:
    """Draw lines of text with ANSI sequences, in the reader's own monospaced font, fitted to columns."""
    columns = max(len(_STYLE.sub("", line)) for line in lines)
    width, height = round(columns * _ADVANCE) + 2 * _MARGIN, len(lines) * _LINE + 2 * _MARGIN
    drawn = []
    for row, line in enumerate(lines):
        y = _MARGIN + row * _LINE + 14
        for part in runs(line):
            text = part.text.strip(" ")
            if not text:
                continue
            start = part.column + part.text.index(text)
            kind = f' class="{part.classes}"' if part.classes else ""
            drawn.append(
                f'<text x="{_MARGIN + start * _ADVANCE:.1f}" y="{y}"'
                f' textLength="{len(text) * _ADVANCE:.1f}"{kind}>'
                f"{html.escape(text, quote=False)}</text>"
            )
    rules = [f".{name} {{ fill: {colors[name]} }}" for name in ("red", "green", "yellow", "blue", "cyan")]
    title = html.escape(_STYLE.sub("", lines[0]).removeprefix("$ "), quote=False)
    size = f'width="{width}" height="{height}"'
    rim = f'width="{width - 1}" height="{height - 1}" fill="{colors["back"]}" stroke="{colors["edge"]}"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size} role="img"'
            ' xml:space="preserve">',
            f"<title>{title}</title>",
            "<style>",
            "text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace;"
            f" white-space: pre; fill: {colors['text']} }}",
            ".bold { font-weight: 700 } .dim { opacity: .6 }",
            *rules,
            "</style>",
            f'<rect x=".5" y=".5" rx="8" {rim}/>',
            *drawn,
            "</svg>\n",
        )
    )


class Shot(NamedTuple):
    """A part of a page.

    page: the file.
    until: CSS selector of the first element below the picture.
    opened: CSS selector of an element to click before.
    """

    page: Path
    until: str
    opened: str | None = None


def plan_page(directory: Path) -> Shot:
    """The page of `plan` about an example."""
    page = directory / "plan.html"
    command = ("plan", "training", "--to", "2.13", "--output-format", "html", "--output", str(page))
    run(*command, directory=EXAMPLES)
    return Shot(page, "#releases-title")


def upgrade_page(directory: Path) -> Shot:
    """The page of `upgrade`, with the tests of an example run by this environment."""
    project = repository(EXAMPLES / "denoiser", directory / "denoiser")
    run(
        *("upgrade", ".", "--to", "2.13", "--env", sys.prefix, "--test", "pytest -q", "--unsafe-fixes"),
        directory=project,
    )
    return Shot(
        directory / "denoiser-upgrade-2.13" / "report.html",
        "footer",
        "[aria-labelledby='applied-title'] li:nth-child(4) summary",
    )


OWNERS = {
    "classifier": "vision",
    "denoiser": "speech",
    "extension": "platform",
    "finetune": "language",
    "migrations": "research",
    "training": "vision",
}


def fleet_page(directory: Path) -> Shot:
    """The page of `fleet` about all examples, after a second run for which two of them were fixed."""
    served, host = directory / "served", "https://git.acme.example/"
    addresses = {name: f"{host}{owner}/{name}.git" for name, owner in OWNERS.items()}
    for name, owner in OWNERS.items():
        repository(EXAMPLES / name, served / owner / f"{name}.git")
    lines = ["address,owner", *(f"{addresses[name]},{owner}" for name, owner in OWNERS.items())]
    (directory / "repos.csv").write_text("".join(f"{line}\n" for line in lines))
    rewritten = {
        "GIT_ALLOW_PROTOCOL": "file",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{served.as_uri()}/.insteadOf",
        "GIT_CONFIG_VALUE_0": host,
    }
    command = ("fleet", "repos.csv", "--to", "2.13", "--output", "fleet", "--clones", "clones")
    run(*command, directory=directory, variables=rewritten)
    for name, options in (("training", ()), ("denoiser", ("--unsafe-fixes", "--fix-pins"))):
        project = served / OWNERS[name] / f"{name}.git"
        run("check", "--target", "2.13", "--fix", *options, directory=project, codes=(0, 1))
        commit(project)
    run(*command, directory=directory, variables=rewritten)
    return Shot(directory / "fleet" / "index.html", "#rules-title")


def repository(source: Path, target: Path) -> Path:
    """Make a git repository of a directory."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    subprocess.run(["git", "init", "--quiet"], cwd=target, check=True)
    commit(target)
    return target


def commit(directory: Path) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "add", "--all"], cwd=directory, check=True)
    subprocess.run(["git", *identity, "commit", "--quiet", "--message", "Change"], cwd=directory, check=True)


def screenshots(directory: Path) -> Iterator[tuple[str, bytes]]:
    """The name and content of the files with the pages."""
    sys.path.insert(0, str(ROOT / "tests"))
    from harness.browser import open_browser  # type: ignore[import-not-found]

    shots = {"plan": plan_page(directory), "fleet": fleet_page(directory), "upgrade": upgrade_page(directory)}
    with open_browser(directory / "profile") as page:
        for name, shot in shots.items():
            for scheme in SCHEMES:
                page.open(shot.page, width=1200, height=4000, scheme=scheme)
                if shot.opened is not None:
                    page.one(shot.opened).click()
                bottom = page.one(shot.until).rect["y"]
                taken = page.picture(height=round(bottom) - 16)
                yield f"{name}-{scheme}.png", smaller(taken)


def smaller(content: bytes) -> bytes:
    """A PNG with as many of 256 colors as fit into the allowed size.

    Raises:
        RuntimeError: it is too large even with few colors.
    """
    from PIL import Image

    picture = Image.open(io.BytesIO(content)).convert("RGB")
    for colors in (256, 128, 64, 32):
        stream = io.BytesIO()
        picture.quantize(colors, dither=Image.Dither.NONE).save(stream, "PNG", optimize=True)
        if stream.tell() <= LARGEST:
            return stream.getvalue()
    raise RuntimeError(f"{stream.tell()} bytes")


@click.command(help=__doc__.split("\n\n")[0])
@click.option("--terminal", "only_terminal", is_flag=True, help="Make the picture of the terminal only.")
def main(only_terminal: bool) -> None:
    PICTURES.mkdir(exist_ok=True)
    for name, text in terminal().items():
        (PICTURES / name).write_text(text, "utf-8")
    if not only_terminal:
        with tempfile.TemporaryDirectory() as directory:
            for name, content in screenshots(Path(directory).resolve()):
                (PICTURES / name).write_bytes(content)


if __name__ == "__main__":
    main()
