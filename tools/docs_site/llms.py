"""llms.txt: the list of the pages for agents, as https://llmstxt.org describes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import metadata

from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

from docs_site.rule_pages import all_rules
from torchmigrate.catalogue.pages import page_of
from torchmigrate.report.rule_texts import generic

# Where the first sentence of a page does not say what the page is about.
DESCRIPTIONS = {
    "index.md": "What torchmigrate does, with an example.",
    "getting-started.md": "Install it, find and fix outdated code, read about a rule.",
    "first-project.md": "Set up a project in six steps: configuration, baseline, pre-commit, CI, editor.",
    "upgrading/from-1.md": "Upgrade a project from torch 1.4, step by step.",
    "upgrading/from-1.13.md": "Upgrade a project with tests from torch 1.13, step by step.",
    "upgrading/from-2.md": "Upgrade a project from torch 2.2, step by step.",
    "plan.md": "`plan` shows what each release of torch breaks in a project.",
    "evidence.md": "`record` runs the tests and records types, so that `check` finds more.",
    "fleet.md": "`fleet` makes the plans of many repositories.",
    "migrations/index.md": "Migrations that are one fix over many places.",
    "migrations/apex.md": "What is rewritten of apex.amp, and what stays for you.",
    "migrations/fft.md": "What is rewritten of the old FFT functions, which had pairs of real numbers.",
    "migrations/functional.md": "What is rewritten of functorch and `make_functional`.",
    "migrations/before-0.4.md": "What is rewritten of `volatile`, `Variable` and `.data[0]`.",
    "migrations/pretrained.md": "`pretrained=` to `weights=`.",
    "migrations/attention.md": "Attention that is written out, to `scaled_dot_product_attention`.",
    "migrations/compile.md": "Where `torch.compile` goes, and what it needs.",
    "fixes.md": "Safe and unsafe fixes and advice, and how to choose.",
    "other-files.md": "Requirements, Dockerfiles, shell scripts, CI files and C++ extensions.",
    "output.md": "The output formats, and the fields of JSON.",
    "exit-codes.md": "Exit codes, and what goes to stdout and stderr.",
    "ci.md": "Hooks of pre-commit, the GitHub action, GitLab and other systems.",
    "flake8.md": "The plugin of flake8.",
    "editors.md": "The language server, and the settings of editors.",
    "agents.md": "The MCP server for coding agents, and how to hand over a finding.",
    "rules/index.md": "All rules by topic, with releases and fixes.",
    "rules-from-data.md": "`TM001` to `TM009` compare code with the recorded API of each release.",
    "own-rules.md": "Rules in YAML for the wrappers of a company.",
    "comparison.md": "torchmigrate, TorchFix, ruff and other tools.",
    "testing.md": "How rules and fixes are proven on real releases of torch.",
    "torchfix.md": "The codes of TorchFix, and the rules that replace them.",
    "changelog.md": "What changed in each release.",
    "contributing.md": "Set up, test, write a rule or a codemod.",
    "develop/rules.md": "All keys of a rule.",
    "develop/codemods.md": "The interface of a codemod.",
    "develop/architecture.md": "The packages, and how data flows.",
    "develop/extending.md": "Add an output format, a kind of file or a page.",
    "develop/old-releases.md": "How results of old releases are recorded and compared.",
    "develop/api-data.md": "How the API of each release is recorded.",
    "develop/dependencies.md": "The reason for each dependency.",
    "develop/release.md": "How a release is made.",
}
_BLOCKS = re.compile(r"^ *(`{3,}).*?^ *\1`*$|<!--.*?-->", re.DOTALL | re.MULTILINE)
_NOT_PROSE = ("#", "|", "<", "!", "-", "*", ":::", "???", "$")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_SENTENCE = re.compile(r"(.*?)(?:[.:](?=\s|$)|$)", re.DOTALL)


def llms(nav: Navigation) -> str:
    """The text: the sections of the site with their pages, then every rule."""
    parts = ["# torchmigrate", f"> {metadata('torchmigrate')['Summary']}"]
    loose = [item for item in nav.items if isinstance(item, Page)]
    parts.append("## Start\n\n" + "\n".join(map(_line, loose)))
    for section in nav.items:
        if isinstance(section, Section):
            parts.append(f"## {section.title}\n\n" + "\n".join(map(_line, _pages(section.children))))
    rules = (
        f"- [{rule.code} {rule.name}]({page_of(rule.code)}): {_plain(generic(rule, rule.summary))}"
        for rule in all_rules()
    )
    # Readers that are short of room leave out a section of this name.
    parts.append("## Optional\n\n" + "\n".join(rules))
    return "\n\n".join(parts) + "\n"


def _pages(items: Iterable[object]) -> Iterator[Page]:
    for item in items:
        if isinstance(item, Page):
            yield item
        elif isinstance(item, Section):
            yield from _pages(item.children)


def _line(page: Page) -> str:
    text = DESCRIPTIONS.get(page.file.src_uri) or first_sentence(page.markdown or "")
    return f"- [{page.title}]({page.canonical_url}): {text}"


def first_sentence(markdown: str) -> str:
    """The first sentence of the first paragraph."""
    for paragraph in re.split(r"\n\s*\n", _BLOCKS.sub("", markdown)):
        text = paragraph.strip()
        if text and not text.startswith(_NOT_PROSE):
            found = _SENTENCE.match(_plain(text))
            assert found is not None
            return f"{found[1]}."
    return ""


def _plain(text: str) -> str:
    return _LINK.sub(r"\1", " ".join(text.split()))
