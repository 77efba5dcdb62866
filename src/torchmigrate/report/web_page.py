"""Pages that need nothing else: no network, no other file. What runs in them is theirs, and nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from torchmigrate.report.document import Code, Document, Label, Part, Text, cell_of, parts_of

_MOST_OF_DIFF = 2000  # lines
TEMPLATES = Path(__file__).parent / "templates"


def web_page(
    template: Path,
    *,
    filters: Mapping[str, Callable[..., object]],
    variables: Mapping[str, int] | None = None,
    finalize: Callable[[object], object] | None = None,
    **values: Any,
) -> str:
    """The page of a template; the same input gives the same bytes.

    Args:
        template: may extend those of TEMPLATES. Files with its name and the ending `css` or `js` are its own
            style and script; `page.css` is the style of all pages. The policy of the page allows just these.
        filters: of the template, by name.
        variables: values of variables of the style that depend on the page.
        finalize: converts each value before it is written.
        values: what else the template knows by name.
    """
    own = [template.with_name(template.name.replace(".html.jinja", end)) for end in (".css", ".js")]
    style, script = (path.read_text("utf-8") if path.exists() else "" for path in own)
    style = (TEMPLATES / "page.css").read_text("utf-8") + style
    style += "".join(f":root {{ --{name}: {value}; }}\n" for name, value in (variables or {}).items())
    environment = Environment(
        loader=FileSystemLoader([template.parent, TEMPLATES], encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=finalize,
    )
    environment.filters |= filters
    return environment.get_template(template.name).render(
        style=Markup(style),
        script=Markup(script),
        style_hash=_policy_hash(style),
        script_hash=_policy_hash(script),
        **values,
    )


def _policy_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


# ---- documents ----------------------------------------------------------------------------------------


def as_html(document: Document, template: Path = TEMPLATES / "document.html.jinja", **values: Any) -> str:
    """A document as a page. template: one that extends the usual one; values: what it needs besides."""
    filters = {"text": html_text, "cell": cell_of, "diff": _html_diff, "number": "{:,}".format}
    return web_page(template, filters={**filters, **values.pop("filters", {})}, document=document, **values)


def visible(value: object) -> object:
    """A value with no character that is invisible or turns the direction of others, where it is text."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "".join(
        each if each.isprintable() else " " if each.isspace() else "\N{REPLACEMENT CHARACTER}"
        for each in value
    )


def html_text(text: Text) -> Markup:
    """A text with its parts as elements."""
    return Markup("").join(map(_html_part, parts_of(text)))


def _html_part(part: Part) -> Markup:
    if isinstance(part, str):
        return escape(visible(part))
    if isinstance(part, Code):
        return Markup("<code>{}</code>").format(visible(part.code))
    if isinstance(part, Label):
        return Markup('<span class="chip {}">{}</span>').format(part.kind, part.text)
    path, _, row = part.text.rpartition(":")
    return Markup('<a class="source" href="{}">{}<wbr>:{}</a>').format(
        part.address, Markup("/<wbr>").join(path.split("/")), row
    )


def _html_diff(diff: str) -> Markup:
    """The lines of a diff of git, each as an element with its kind."""
    lines = diff.splitlines()
    shown = Markup("")
    kinds = {"@": "place", "+": "new", "-": "old"}
    for line in lines[:_MOST_OF_DIFF]:
        if line.startswith("+++ b/"):
            shown += Markup('<span class="file">{}</span>').format(line[6:])
        elif not line.startswith(("diff ", "index ", "--- ", "+++ ")):
            shown += Markup('<span class="{}">{}</span>').format(kinds.get(line[:1], "same"), line)
    if len(lines) > _MOST_OF_DIFF:
        shown += Markup('<span class="place">and {} more lines</span>').format(len(lines) - _MOST_OF_DIFF)
    return shown
