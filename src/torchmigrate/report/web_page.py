"""Pages that need nothing else: no network, no other file. What runs in them is theirs, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape


def web_page(
    template: Path,
    *,
    style: str,
    script: str = "",
    filters: Mapping[str, Callable[..., object]],
    finalize: Callable[[object], object] | None = None,
    **values: Any,
) -> str:
    """The page of a template; the same input gives the same bytes.

    Args:
        style, script: what the template writes as `style` and `script`; `style_hash` and `script_hash` are
            what the page's own policy calls them.
        filters: of the template, by name; `code` is always there.
        finalize: converts each value before it is written.
        values: what else the template knows by name.
    """
    environment = Environment(
        loader=FileSystemLoader(template.parent, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=finalize,
    )
    environment.filters |= {"code": _code, **filters}
    return environment.get_template(template.name).render(
        style=Markup(style),
        script=Markup(script),
        style_hash=_policy_hash(style),
        script_hash=_policy_hash(script),
        **values,
    )


def _code(text: str) -> Markup:
    """Text with code between backticks."""
    parts = re.split(r"`([^`]+)`", text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )


def _policy_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
