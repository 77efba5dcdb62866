"""The built documentation."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def built_site(directory: Path) -> Path:
    """The directory with the site: the one that $TORCHMIGRATE_SITE names, or a new one, built strictly."""
    if given := os.environ.get("TORCHMIGRATE_SITE"):
        return Path(given)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(directory)]
    # Nothing is fetched: a proxy that is not there makes any request fail.
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    environment = {**os.environ, **nowhere, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


def text_of(page: Path) -> str:
    """What is to be read on a page, in one line and without the marks of code."""
    body = re.search(r"<article.*</article>", page.read_text("utf-8"), re.DOTALL)
    assert body is not None
    return squeezed(html.unescape(re.sub(r"<[^>]*>", "", body[0])))


def squeezed(text: str) -> str:
    return "".join(text.replace("`", "").split())
