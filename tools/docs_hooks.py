"""Hooks of MkDocs: they add the pages that are made from the code, and check the form of external links.

    pip install ".[docs]" && mkdocs build --strict

Nothing that they make is in the repository. `docs_site/` has what makes the pages.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import torchfix_table
from docs_site import llms, reference, rule_pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

from torchmigrate.authoring.schemas import SCHEMAS, schema
from torchmigrate.catalogue.pages import SITE

ROOT = Path(__file__).parent.parent
LOG = logging.getLogger("mkdocs.hooks")  # whose warnings `--strict` counts
_FENCES = re.compile(r"^ *(`{3,}).*?^ *\1`*$", re.DOTALL | re.MULTILINE)
_CODES = re.compile(r"(?<![\[\w`/#])`(TM\d{3})`(?![\w`\]])")
_RELATIVE = re.compile(r"\]\((?!https?:|#)([^)\s]+)\)")
_GROUPS = re.compile(r"^<!-- table of groups\b.*-->$", re.MULTILINE)
REPOSITORY = "https://github.com/torchmigrate/torchmigrate/blob/main/"
_HREF = re.compile(r'href="(https?:[^"]*)"')


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The site's address is that of the pages that findings link to."""
    config.site_url = SITE
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made."""
    for path, content in _generated():
        level = InclusionLevel.INCLUDED
        if re.fullmatch(r"rules/TM\d+\.md", path):
            level = InclusionLevel.NOT_IN_NAV  # the index links to them
        files.append(File.generated(config, path, content=content, inclusion=level))
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Keep the navigation for `on_post_build`."""
    config.extra["nav"] = nav
    return nav


def on_post_build(config: MkDocsConfig) -> None:
    """Write the list of pages for agents; their titles and texts are known by now."""
    Path(config.site_dir, "llms.txt").write_text(llms.llms(config.extra["nav"]), "utf-8")


def _generated() -> Iterator[tuple[str, str]]:
    yield "rules/index.md", rule_pages.index()
    for rule in rule_pages.all_rules():
        yield f"rules/{rule.code}.md", rule_pages.page(rule)
    yield "reference/cli.md", reference.command_line()
    yield "reference/configuration.md", reference.configuration()
    yield "torchfix.md", torchfix_table.page()
    for name in SCHEMAS:
        yield f"schemas/{name}.json", json.dumps(schema(name), indent=2) + "\n"
    yield "contributing.md", _on_site("CONTRIBUTING.md")
    yield "changelog.md", _on_site("CHANGELOG.md")


def _on_site(name: str) -> str:
    """A file beside `docs/` with links to pages of the site, or to files of the repository."""

    def linked(match: re.Match[str]) -> str:
        page = match[1].removeprefix("docs/")
        return f"]({page if page != match[1] else REPOSITORY + match[1]})"

    return _RELATIVE.sub(linked, (ROOT / name).read_text("utf-8"))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Add the table of groups where it belongs, and make links of the codes of rules."""
    path = page.file.src_uri
    if path.startswith("rules/TM"):
        return markdown
    markdown = _GROUPS.sub(lambda _: rule_pages.groups_table(), markdown)
    up = "../" * path.count("/")

    def linked(text: str) -> str:
        return _CODES.sub(
            lambda match: (
                f"[`{match[1]}`]({up}rules/{match[1]}.md)"
                if files.get_file_from_path(f"rules/{match[1]}.md")
                else match[0]
            ),
            text,
        )

    parts, position = [], 0
    for fence in _FENCES.finditer(markdown):
        parts += [linked(markdown[position : fence.start()]), fence[0]]
        position = fence.end()
    return "".join([*parts, linked(markdown[position:])])


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Check external links for their form; nothing is fetched."""
    for link in _HREF.findall(html):
        try:
            parts = urlsplit(link)
            good = bool(parts.hostname) and "." in parts.netloc and not re.search(r"\s", link)
        except ValueError:
            good = False
        if not good:
            LOG.warning("%s: not the address of a page: %s", page.file.src_uri, link)
    return html
