"""The configuration file, the selection of rules, and what wins."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import NamedTuple

import pytest

from torchmigrate.config import settings as config
from torchmigrate.config.selection import SelectorError, codes_of, did_you_mean
from torchmigrate.config.settings import ConfigError, Layer, combine, find_config, read_config


class Head(NamedTuple):
    code: str
    name: str
    opt_in: bool = False
    group: str | None = None


RULES = [
    Head("TM100", "symeig"),
    Head("TM101", "eig"),
    Head("TM131", "qr"),
    Head("TM200", "cuda-amp"),
    Head("TM900", "compile", opt_in=True, group="adopt"),
    Head("ACME1", "acme"),
]
EVERY = frozenset(rule.code for rule in RULES)


def write(directory: Path, text: str, name: str = "pyproject.toml") -> Path:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def codes(*layers: Layer) -> set[str]:
    return set(combine(layers, RULES, root=Path()).codes)


# ---- selectors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("TM100", {"TM100"}),
        ("symeig", {"TM100"}),
        ("TM10", {"TM100", "TM101"}),
        ("TM1", {"TM100", "TM101", "TM131"}),
        ("TM", EVERY - {"ACME1"}),
        ("TM9", {"TM900"}),
        ("adopt", {"TM900"}),
        ("ACME", {"ACME1"}),
        ("ALL", EVERY),
    ],
)
def test_selectors(selector: str, expected: set[str]) -> None:
    assert codes_of(selector, RULES)[1] == expected


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("TM109", "unknown rule `TM109`; did you mean `TM101`?"),
        ("symeg", "unknown rule `symeg`; did you mean `symeig`?"),
        ("all", "unknown rule `all`; did you mean `ALL`?"),
        ("T", "unknown rule `T`"),
        ("tm1", "unknown rule `tm1`; did you mean `TM131`?"),
        ("adopts", "unknown rule `adopts`; did you mean `adopt`?"),
        ("F401", "unknown rule `F401`"),
    ],
)
def test_unknown_selectors(selector: str, message: str) -> None:
    with pytest.raises(SelectorError) as error:
        codes_of(selector, RULES)
    assert str(error.value) == message


def test_no_suggestion_without_resemblance() -> None:
    assert did_you_mean("zzz", ["symeig"]) == ""


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ([], EVERY - {"TM900"}),
        ([Layer(extend_select=("TM9",))], EVERY),
        ([Layer(extend_select=("adopt",))], EVERY),
        ([Layer(select=("ALL",), ignore=("adopt",))], EVERY - {"TM900"}),
        ([Layer(select=("adopt",), ignore=("TM9",))], {"TM900"}),
        ([Layer(select=("adopt",), ignore=("compile",))], set()),
        ([Layer(select=("ALL",))], EVERY),
        ([Layer(select=("compile",))], {"TM900"}),
        ([Layer(select=("TM1",), ignore=("TM131",))], {"TM100", "TM101"}),
        ([Layer(select=("TM131",), ignore=("TM1",))], {"TM131"}),
        ([Layer(select=("TM1",), ignore=("TM1",))], set()),
        ([Layer(select=("TM1",)), Layer(select=("TM2",))], {"TM200"}),
        ([Layer(select=("TM1",)), Layer(extend_select=("TM2",))], {"TM100", "TM101", "TM131", "TM200"}),
        ([Layer(ignore=("TM1",)), Layer(ignore=("TM2",))], {"ACME1"}),
        ([Layer(ignore=("TM131",)), Layer(select=("TM13",))], {"TM131"}),
        ([Layer(ignore=("TM131",)), Layer(extend_select=("TM131",))], EVERY - {"TM900"}),
        ([Layer(select=("ALL",)), Layer(ignore=("TM",))], {"ACME1"}),
    ],
)
def test_layers(layers: list[Layer], expected: set[str]) -> None:
    assert codes(*layers) == expected


# ---- the file -----------------------------------------------------------------------------------------


def test_all_keys(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        [tool.torchmigrate]
        target = "2.6"
        minimum = "1.8.1"
        select = ["TM1"]
        extend-select = ["TM2"]
        ignore = ["TM101"]
        exclude = ["old"]
        extend-exclude = ["vendor/*"]
        extend-safe-fixes = ["symeig"]
        extend-unsafe-fixes = ["TM2"]
        rules = ["lint/rules"]
        unsafe-fixes = true
        respect-gitignore = false
        force-exclude = true
        embedded = true
        evidence = false
        fix = true
        output-format = "concise"
        fixable = ["TM1"]
        extend-fixable = ["TM200"]
        unfixable = ["TM131"]
        [tool.torchmigrate.per-file-ignores]
        "tests/*" = ["TM1"]
        """,
    )
    layer = read_config(path)
    assert layer.rules == (tmp_path / "lint/rules",)
    settings = combine([layer], RULES, root=tmp_path, fix=True)
    assert (settings.target, settings.minimum) == ("2.6", "1.8")
    assert settings.codes == {"TM100", "TM131", "TM200"}
    assert settings.ignored_in(tmp_path / "tests/unit/a.py") == {"TM100", "TM101", "TM131"}
    assert settings.ignored_in(tmp_path / "a.py") == frozenset()
    assert (settings.exclude, settings.extend_exclude) == (("old",), ("vendor/*",))
    assert settings.promotes("TM100") and not settings.promotes("TM101")
    assert settings.demotes("TM200") and not settings.demotes("TM100")
    assert (settings.fix, settings.unsafe_fixes) == (True, True)
    assert (settings.respect_gitignore, settings.force_exclude, settings.embedded) == (False, True, True)
    assert not settings.evidence
    assert (layer.fix, layer.output_format) == (True, "concise")
    assert settings.unfixable == EVERY - {"TM100", "TM101", "TM200"}
    assert settings.known["symeig"] == settings.known["TM100"] == "TM100"
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_every_key_is_a_field_and_every_field_a_key() -> None:
    keys = {key.replace("-", "_") for key in config._READERS}
    assert keys | {"origin", "option", "project", "root", "suppressions", "written_for"} == set(
        Layer.__struct_fields__
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "extend_select = []",
            "extend_select: unknown key; did you mean `extend-select`? Allowed keys are baseline, cache-dir, embedded, evidence, ",
        ),
        (
            "nonsense = 1",
            "nonsense: unknown key. Allowed keys are baseline, cache-dir, embedded, evidence, exclude, ",
        ),
        ("target = 2.1", 'target: must be quoted, such as "2.1" (unquoted, 1.10 would be the number 1.1)'),
        ("target = true", 'target: must be a release of torch such as "2.13", not True'),
        ('target = "newest"', 'target: must be a release of torch such as "2.13" or "1.8.1", not \'newest\''),
        ('minimum = ">=1.8"', 'minimum: must be a release of torch such as "2.13" or "1.8.1", not \'>=1.8\''),
        ('select = "TM1"', "select: must be a list of strings, not 'TM1'"),
        ("ignore = [1]", "ignore: must be a list of strings, not [1]"),
        ('unsafe-fixes = "yes"', "unsafe-fixes: must be true or false, not 'yes'"),
        (
            "per-file-ignores = []",
            'per-file-ignores: must be a table such as {"tests/*" = ["TM131"]}, not []',
        ),
        (
            'per-file-ignores = {"a.py" = "TM1"}',
            "per-file-ignores: 'a.py' must be a list of strings, not 'TM1'",
        ),
    ],
)
def test_mistakes_name_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, f"[tool.torchmigrate]\n{text}\n")
    with pytest.raises(ConfigError) as error:
        read_config(path)
    assert str(error.value).startswith(f"{path}: [tool.torchmigrate] {message}")


def test_mistakes_in_torchmigrate_toml(tmp_path: Path) -> None:
    path = write(tmp_path, "targt = '2.0'\n", "torchmigrate.toml")
    with pytest.raises(ConfigError) as error:
        read_config(path)
    assert str(error.value).startswith(f"{path}: targt: unknown key; did you mean `target`?")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.torchmigrate\n", "not TOML: "),
        ("[tool]\ntorchmigrate = 1\n", "[tool.torchmigrate] must be a table"),
        ("[tool.other]\n", "has no [tool.torchmigrate] table"),
    ],
)
def test_files_without_a_table(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        read_config(path)
    assert str(error.value).startswith(f"{path}: {message}")


def test_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: cannot read: no such file"):
        read_config(tmp_path / "none.toml")
    path = tmp_path / "torchmigrate.toml"
    path.write_bytes(b"a = '\xff'\n")
    with pytest.raises(ConfigError, match=r"torchmigrate\.toml: not TOML: it is not UTF-8 text"):
        read_config(path)


def test_nearest_file(tmp_path: Path) -> None:
    top = write(tmp_path, "[tool.torchmigrate]\n")
    write(tmp_path / "a", "[tool.other]\n")
    inner = write(tmp_path / "a/b", "", "torchmigrate.toml")
    write(tmp_path / "a/b", "[tool.torchmigrate]\n")
    (tmp_path / "a/b/c").mkdir()
    assert find_config(tmp_path) == top
    assert find_config(tmp_path / "a") == top
    assert find_config(tmp_path / "a/b") == inner
    assert find_config(tmp_path / "a/b/c") == inner


def test_a_broken_pyproject_that_does_not_mention_us_is_not_ours(tmp_path: Path) -> None:
    top = write(tmp_path, "", "torchmigrate.toml")
    write(tmp_path / "a", "[tool.other\n")
    assert find_config(tmp_path / "a") == top
    write(tmp_path / "a", "[tool.torchmigrate\n")
    with pytest.raises(ConfigError, match="not TOML"):
        find_config(tmp_path / "a")


# ---- what they come to --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    ["select", "extend_select", "ignore", "extend_safe_fixes", "extend_unsafe_fixes", "per_file_ignores"],
)
def test_unknown_selector_names_origin_and_key(key: str) -> None:
    value: tuple[object, ...] = (("a.py", ("TM777",)),) if key == "per_file_ignores" else ("TM777",)
    name = key.replace("_", "-")
    with pytest.raises(ConfigError) as error:
        combine([Layer(origin="a.toml", **{key: value})], RULES, root=Path())  # type: ignore[arg-type]
    assert str(error.value) == f"a.toml: {name}: unknown rule `TM777`"
    with pytest.raises(ConfigError) as error:
        combine([Layer(option="--{}", **{key: value})], RULES, root=Path())  # type: ignore[arg-type]
    assert str(error.value) == f"--{name}: unknown rule `TM777`"


def test_command_line_wins() -> None:
    file = Layer(target="2.0", minimum="1.0", unsafe_fixes=True, exclude=("a",), extend_exclude=("b",))
    line = Layer(target="2.6", unsafe_fixes=False, exclude=("c",), extend_exclude=("d",))
    settings = combine([file, line], RULES, root=Path())
    assert (settings.target, settings.minimum, settings.unsafe_fixes) == ("2.6", "1.0", False)
    assert (settings.exclude, settings.extend_exclude) == (("c",), ("b", "d"))


def test_impossible_range() -> None:
    with pytest.raises(ConfigError, match=r"2\.10, is newer than the target, torch 2\.9"):
        combine([Layer(minimum="2.10", target="2.9")], RULES, root=Path())
    assert combine([Layer(minimum="2.9.0", target="2.9")], RULES, root=Path()).minimum == "2.9.0"


def test_a_code_that_is_safe_and_unsafe_is_unsafe() -> None:
    settings = combine(
        [Layer(extend_safe_fixes=("TM1",), extend_unsafe_fixes=("symeig",))], RULES, root=Path()
    )
    assert settings.demotes("TM100") and not settings.promotes("TM100")
    assert settings.promotes("TM101")


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("a.py", "a.py", True),
        ("a.py", "deep/er/a.py", True),
        ("deep/*.py", "deep/a.py", True),
        ("/a.py", "deep/a.py", False),
        ("tests", "tests/unit/a.py", True),
        ("tests/**", "tests/unit/a.py", True),
        ("**/unit/*.py", "tests/unit/a.py", True),
        ("!src/**", "tests/a.py", True),
        ("!src/**", "src/a.py", False),
        ("b.py", "a.py", False),
        ("*.py", "/elsewhere/a.py", True),
    ],
)
def test_per_file_ignores(tmp_path: Path, pattern: str, path: str, expected: bool) -> None:
    layer = Layer(per_file_ignores=((pattern, ("TM100",)),))
    settings = combine([layer], RULES, root=tmp_path)
    assert ("TM100" in settings.ignored_in(tmp_path / path)) is expected
