"""What every key of a configuration is for: the source of the reference and of the schema for editors.

How a key is read is in `settings`; a run loads none of this.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from torchmigrate.config.settings import OUTPUT_FORMATS
from torchmigrate.versions.releases import NEWEST, RELEASES, show_version

Schema = dict[str, Any]

# As `settings.check_version` takes it.
_RELEASE: Schema = {
    "type": "string",
    "pattern": r"^v?\d+\.\d+(\.\d+)?([+.a-z].*)?$",
    "examples": [show_version(release) for release in reversed(RELEASES)],
}
_FLAG: Schema = {"type": "boolean"}
_PATH: Schema = {"type": "string", "minLength": 1}
_PATTERNS: Schema = {"type": "array", "items": {"type": "string"}}
_RULES: Schema = {
    "type": "array",
    "items": {"type": "string", "pattern": r"^(ALL|[A-Z]+\d*|[a-z][a-z0-9-]*)$"},
    "examples": [["TM1", "load-weights-only"]],
}
_SHOWN = {"release": _RELEASE, "true or false": _FLAG, "path": _PATH, "list of patterns": _PATTERNS}
_SHOWN |= {
    "output format": {"type": "string", "enum": [*OUTPUT_FORMATS]},
    "list of rules": _RULES,
    "list of paths": {"type": "array", "items": _PATH},
    "table of patterns and lists of rules": {"type": "object", "additionalProperties": _RULES},
}


class Key(Struct, frozen=True):
    """One key. kind: one of `_SHOWN`; default: in words or as TOML; example: as TOML; text: Markdown.

    option: what sets it on the command line.
    """

    name: str
    kind: str
    default: str
    example: str
    text: str
    option: str | None = None

    @property
    def schema(self) -> Schema:
        """What an editor needs to know."""
        return {**_SHOWN[self.kind], "description": self.text.replace("`", "")}


KEYS = (
    Key(
        "target",
        "release",
        f'`"{NEWEST}"`, the newest release known',
        '"2.9"',
        "The release of torch that the code moves to. Severity and fixes follow from it.",
        "--target",
    ),
    Key(
        "minimum",
        "release",
        "what the project requires",
        '"1.13"',
        "The oldest release of torch that the code must still run on. A fix is unsafe if that release lacks "
        "what it uses.",
        "--minimum",
    ),
    Key(
        "select",
        "list of rules",
        "all rules that are not off by default",
        '["TM1", "TM6"]',
        "The rules to look for: codes, prefixes of codes, names, groups, or `ALL`. The more specific "
        "selector wins.",
        "--select",
    ),
    Key(
        "extend-select",
        "list of rules",
        "`[]`",
        '["adopt-compile", "tf32"]',
        "Rules to look for in addition to those that are selected.",
        "--extend-select",
    ),
    Key(
        "ignore",
        "list of rules",
        "`[]`",
        '["load-weights-only"]',
        "Rules not to look for.",
        "--ignore",
    ),
    Key(
        "per-file-ignores",
        "table of patterns and lists of rules",
        "`{}`",
        '{"tests/**" = ["TM6"], "!src/**" = ["TM410"]}',
        "Rules not to look for in files that match a pattern. `!` in front: in files that do not match it.",
        "--per-file-ignores",
    ),
    Key(
        "exclude",
        "list of patterns",
        "the directories that ruff excludes (`.venv`, `build`, `node_modules`, ...)",
        '["build"]',
        "Files and directories to leave out, instead of the default ones. Patterns are as in `.gitignore`.",
        "--exclude",
    ),
    Key(
        "extend-exclude",
        "list of patterns",
        "`[]`",
        '["third_party/**"]',
        "Files and directories to leave out in addition.",
        "--extend-exclude",
    ),
    Key(
        "include",
        "list of patterns",
        "every kind of file that rules are about",
        '["*.py", "*.sh"]',
        "The only files to take from directories, instead of all kinds.",
    ),
    Key(
        "extend-include",
        "list of patterns",
        "`[]`",
        '["*.launch"]',
        "Files to take from directories in addition.",
    ),
    Key(
        "force-exclude",
        "true or false",
        "`false`",
        "true",
        "Also leave out excluded files that are named on the command line, as pre-commit does.",
        "--force-exclude",
    ),
    Key(
        "respect-gitignore",
        "true or false",
        "`true`",
        "false",
        "Leave out what git ignores. A file that git tracks is checked all the same.",
        "--respect-gitignore",
    ),
    Key(
        "embedded",
        "true or false",
        "`false`",
        "true",
        "Also check examples in docstrings, Markdown and reStructuredText.",
        "--embedded",
    ),
    Key(
        "evidence",
        "true or false",
        "`true`",
        "false",
        "Use what `torchmigrate record` has seen of the project, where there is a recording.",
        "--evidence",
    ),
    Key(
        "fix",
        "true or false",
        "`false`",
        "true",
        "Let `check` apply fixes. The configuration of the directory that holds all checked paths decides.",
        "--fix",
    ),
    Key(
        "fixable",
        "list of rules",
        '`["ALL"]`',
        '["TM1", "TM6"]',
        "The rules whose fixes may be applied. The more specific selector wins.",
        "--fixable",
    ),
    Key(
        "extend-fixable",
        "list of rules",
        "`[]`",
        '["TM110"]',
        "Rules whose fixes may be applied in addition.",
        "--extend-fixable",
    ),
    Key(
        "unfixable",
        "list of rules",
        "`[]`",
        '["TM721"]',
        "Rules whose fixes are only shown.",
        "--unfixable",
    ),
    Key(
        "unsafe-fixes",
        "true or false",
        "`false`",
        "true",
        "Count and apply fixes that may change results, too.",
        "--unsafe-fixes",
    ),
    Key(
        "extend-safe-fixes",
        "list of rules",
        "`[]`",
        '["TM330"]',
        "Rules whose unsafe fixes count as safe.",
    ),
    Key(
        "extend-unsafe-fixes",
        "list of rules",
        "`[]`",
        '["TM4"]',
        "Rules whose safe fixes count as unsafe. Wins over `extend-safe-fixes`.",
    ),
    Key(
        "output-format",
        "output format",
        '`"full"`',
        '"concise"',
        "The format of the findings of `check`. The same configuration decides as for `fix`.",
        "--output-format",
    ),
    Key(
        "baseline",
        "path",
        "none",
        '".torchmigrate-baseline.json"',
        "The file with the findings that the project accepts. It must be in the project.",
        "--baseline",
    ),
    Key(
        "cache-dir",
        "path",
        "`.torchmigrate_cache` at the root of the project",
        '".cache/torchmigrate"',
        "Where results are kept between runs. It must be in the project.",
        "--cache-dir",
    ),
    Key(
        "rules",
        "list of paths",
        "`[]`",
        '["lint/torch"]',
        "Directories (or files) with rules of your own. They have to be in the project, unless `--config` "
        "names this configuration. `package:NAME` is an installed package that brings rules.",
    ),
    Key(
        "extend",
        "path",
        "none",
        '"../torchmigrate.toml"',
        "A configuration whose options come before those of this one.",
    ),
)


def table_schema() -> Schema:
    """The JSON Schema of all keys together: of a `torchmigrate.toml`."""
    return {
        "type": "object",
        "properties": {key.name: key.schema for key in KEYS},
        "additionalProperties": False,
    }
