"""Which files are checked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from harness.program import settings as settings_of

import torchmigrate
from torchmigrate.config.settings import Settings
from torchmigrate.project.discover import DEFAULT_EXCLUDE, Discovery, discover_for, is_excluded


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(*names: str, text: str = "") -> None:
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def ignore(text: str, directory: str = ".") -> None:
    Path(directory).mkdir(parents=True, exist_ok=True)
    (Path(directory) / ".gitignore").write_text(text)


def discover(paths: list[Path], **options: object) -> Discovery:
    settings = Settings(
        **{
            name: tuple(value) if isinstance(value, (list, set, frozenset)) else value
            for name, value in options.items()
        }  # type: ignore[arg-type]
    )
    return discover_for(paths, lambda _: settings)


def found(*paths: str, **options: object) -> list[str]:
    result = discover([Path(path) for path in paths or (".",)], **options)
    assert result.problems == []
    return [path.as_posix() for path in result.files]


def problems(result: Discovery) -> list[tuple[str, str]]:
    return [(problem.path.as_posix(), problem.reason) for problem in result.problems]


def test_suffixes_and_order(tree: Path) -> None:
    make("b.py", "a/z.py", "a/b/c.pyi", "a-b/x.py", "a/readme.txt", "a/script", "a/py", "Z.py")
    assert found() == ["Z.py", "a/b/c.pyi", "a/z.py", "a-b/x.py", "b.py"]
    assert found("a") == ["a/b/c.pyi", "a/z.py"]
    assert found("./a/") == ["a/b/c.pyi", "a/z.py"]
    assert found(str(tree / "a")) == [(tree / "a/b/c.pyi").as_posix(), (tree / "a/z.py").as_posix()]


def test_named_files_are_taken(tree: Path) -> None:
    make("script", "a/readme.txt", "build/x.py")
    ignore("script\nbuild\n")
    Path(".git").mkdir()
    assert found("script", "a/readme.txt", "build/x.py", "build") == ["a/readme.txt", "build/x.py", "script"]


def test_each_file_once(tree: Path) -> None:
    make("a/x.py")
    assert found("a", ".", "a/x.py", str(tree), "a/../a") == ["a/x.py"]


def test_default_excludes(tree: Path) -> None:
    make(
        *(f"{name}/x.py" for name in DEFAULT_EXCLUDE),
        *(f"a/{name}/x.py" for name in DEFAULT_EXCLUDE),
        "a/x.py",
    )
    assert len(DEFAULT_EXCLUDE) == 27
    assert found() == ["a/x.py"]
    assert found("venv") == ["venv/x.py"]  # by name
    assert found("venv", force_exclude=True) == []
    assert found("a/venv/x.py", force_exclude=True) == []
    assert found("a/x.py", force_exclude=True) == ["a/x.py"]
    assert len(found(exclude=[])) == 55


def test_excluded_directory_above_the_project_does_not_count(tree: Path) -> None:
    make("build/project/x.py")
    root = Path("build/project")
    assert found("build/project", root=root, force_exclude=True) == ["build/project/x.py"]


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("data", ["docs/a.py", "docs/deep/b.py", "test_x.py"]),
        ("docs", ["data/c.py", "test_x.py"]),
        ("docs/", ["data/c.py", "test_x.py"]),
        ("docs/*.py", ["data/c.py", "docs/deep/b.py", "test_x.py"]),
        ("./docs/deep", ["data/c.py", "docs/a.py", "test_x.py"]),
        ("docs/deep", ["data/c.py", "docs/a.py", "test_x.py"]),
        ("deep/b.py", ["data/c.py", "docs/a.py", "docs/deep/b.py", "test_x.py"]),
        ("**/b.py", ["data/c.py", "docs/a.py", "test_x.py"]),
        ("test_*", ["data/c.py", "docs/a.py", "docs/deep/b.py"]),
        ("{root}/docs", ["data/c.py", "test_x.py"]),
        ("#x", ["data/c.py", "docs/a.py", "docs/deep/b.py", "test_x.py"]),
        ("", ["data/c.py", "docs/a.py", "docs/deep/b.py", "test_x.py"]),
    ],
)
def test_exclude_patterns(tree: Path, pattern: str, left: list[str]) -> None:
    make("docs/a.py", "docs/deep/b.py", "data/c.py", "test_x.py")
    pattern = pattern.replace("{root}", str(tree))
    assert found(extend_exclude=[pattern]) == left
    assert found(exclude=[pattern]) == left
    everything = ["data/c.py", "docs/a.py", "docs/deep/b.py", "test_x.py"]
    assert found(*everything, extend_exclude=[pattern]) == everything
    assert found(*everything, extend_exclude=[pattern], force_exclude=True) == left


def test_patterns_are_relative_to_the_root(tree: Path) -> None:
    make("project/docs/a.py", "project/b.py", "other/docs/c.py")
    options = {"root": Path("project"), "extend_exclude": ["docs/*.py"]}
    assert found("project", "other", **options) == ["other/docs/c.py", "project/b.py"]
    assert found("project/docs", **options) == []  # the directory is asked for, the files are excluded


def test_excluded_text_of_stdin(tree: Path) -> None:
    settings = settings_of("--force-exclude", "--extend-exclude", "docs/*.py")
    others = settings_of("--force-exclude", "--exclude", "docs")
    left_out = ["docs/a.py", "build/a.py", "a/venv/b/c.py", str(tree / "docs/a.py"), "a/../docs/a.py"]
    assert [name for name in left_out if not is_excluded(Path(name), lambda _: settings)] == []
    assert not is_excluded(Path("a.py"), lambda _: settings)
    assert not is_excluded(Path("../docs/a.py"), lambda _: settings)
    assert not is_excluded(Path("build/a.py"), lambda _: others)


def test_invalid_exclude_pattern(tree: Path) -> None:
    make("a.py", "b.py")
    result = discover([Path()], extend_exclude=["!", "b*"])
    assert [path.name for path in result.files] == ["a.py"]
    assert [reason for _, reason in problems(result)] == ["invalid exclude pattern: !"]


def test_gitignore_of_the_repository(tree: Path) -> None:
    Path(".git").mkdir()
    make("a.py", "gen/b.py", "src/gen/c.py", "src/keep.py", "src/x_pb2.py", "src/sub/x_pb2.py", "top/gen.py")
    ignore("/gen\n*_pb2.py\r\n\n# comment\n")
    ignore("!x_pb2.py\n", "src/sub")
    make(".git/info/exclude", text="keep.py\n")
    assert found() == ["a.py", "src/gen/c.py", "src/sub/x_pb2.py", "top/gen.py"]
    assert found("src") == ["src/gen/c.py", "src/sub/x_pb2.py"]  # what is above the directory holds as well
    assert found("src/sub") == ["src/sub/x_pb2.py"]
    assert found("gen") == ["gen/b.py"]  # asked for by name
    assert len(found(respect_gitignore=False)) == 7


def test_gitignore_without_a_repository(tree: Path) -> None:
    make("a/b/x.py", "a/y.py")
    ignore("*\n")
    ignore("x.py\n", "a/b")
    assert found("a") == ["a/y.py"]  # the one above is not known to belong to it
    assert found() == []


def test_repository_in_a_repository(tree: Path) -> None:
    make(".git/HEAD", "sub/.git/HEAD", "sub/x.py", "x.py", "sub/y.py")
    ignore("x.py\n")
    make("sub/.git/info/exclude", text="y.py")
    assert found() == ["sub/x.py"]


def test_exclude_of_a_worktree(tree: Path) -> None:
    make("main/.git/info/exclude", text="x.py\n")
    make("main/.git/worktrees/other/commondir", text="../..\n")
    make("main/.git/worktrees/other/gitdir", text=f"{tree}/other/.git\n")
    make("other/.git", text=f"gitdir: {tree}/main/.git/worktrees/other\n")
    make("other/x.py", "other/y.py")
    assert found("other") == ["other/y.py"]
    make("broken/.git", text="gitdir: /no/such\n")
    make("broken/x.py")
    assert found("broken") == ["broken/x.py"]


# What git itself says about these.
@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        ("*\n!*/\n!b.py\n", ["b.py", "x/b.py", "x/y/b.py"]),
        ("x/*\n!x/a.py\n", ["a.py", "b.py", "x/a.py"]),
        ("x/**\n!x/a.py\n", ["a.py", "b.py", "x/a.py"]),
        ("x/\n!x/a.py\n", ["a.py", "b.py"]),
        ("x/**/\n", ["a.py", "b.py", "x/a.py", "x/b.py"]),
        ("x/y/\n!x/\n", ["a.py", "b.py", "x/a.py", "x/b.py"]),
        ("/a.py\n", ["b.py", "x/a.py", "x/b.py", "x/y/a.py", "x/y/b.py"]),
        ("x/a.py\n", ["a.py", "b.py", "x/b.py", "x/y/a.py", "x/y/b.py"]),
        ("**/y\n", ["a.py", "b.py", "x/a.py", "x/b.py"]),
        ("[ab].py\n!/b.py\n", ["b.py"]),
        ("a.py/\n", ["a.py", "b.py", "x/a.py", "x/b.py", "x/y/a.py", "x/y/b.py"]),
        ("\\a.py\nb.py   \n", []),
        ("!\nb.py\n", ["a.py", "x/a.py", "x/y/a.py"]),
    ],
)
def test_patterns_mean_what_git_means(tree: Path, patterns: str, left: list[str]) -> None:
    Path(".git").mkdir()
    make("a.py", "b.py", "x/a.py", "x/b.py", "x/y/a.py", "x/y/b.py")
    ignore(patterns)
    assert found() == left


def test_generated_patterns_mean_what_git_means(tree: Path) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    make(
        "a.py",
        "[a.py",
        "x/a.py",
        "x/b.py",
        "x/y/a.py",
        "x/y/z/ab.py",
        "y/x/b.py",
        "x y/a.py",
        "gen/lib/a.py",
    )
    names = ["*", "a*", "x", "y", "?", "[ab].py", "a.py", "gen", "**", "x*", "*.py"]
    odd = [
        "a",
        "x",
        "*",
        "?",
        "[!a]",
        "[z-a]",
        "[[:alpha:]]",
        "[",
        "\\*",
        "**",
        "[]a]",
        "[a\\]b]",
        "[/a",
        "\\[",
        " ",
    ]
    random = Random(0)

    def pattern(pieces: Sequence[str], most: int) -> str:
        parts = (
            "".join(random.choices(pieces, k=random.randint(1, most))) for _ in range(random.randint(1, 3))
        )
        start, end = random.choices(["", "!", "/", "!/"], [6, 2, 1, 1])[0], random.choice(["", "", "/"])
        return start + "/".join(parts) + end

    for _ in range(100):
        lines = [pattern(*random.choice([(names, 1), (odd, 4)])) for _ in range(random.randint(1, 4))]
        ignore("\n".join(lines) + "\n")
        said = subprocess.run(
            ["git", "ls-files", "-oz", "--exclude-standard"], capture_output=True, text=True, check=True
        )
        assert set(found()) == {file for file in said.stdout.split("\0") if file.endswith(".py")}, lines


def test_links(tree: Path) -> None:
    make("a/x.py", "outside/y.py", "z.txt")
    Path("a/loop").symlink_to("..")  # a directory: not followed
    Path("a/named.py").symlink_to("../outside", target_is_directory=True)
    Path("a/link.py").symlink_to("../outside/y.py")
    Path("a/same.py").symlink_to("x.py")
    Path("a/text.py").symlink_to("../z.txt")
    Path("a/.#x.py").symlink_to("user@host.1234")
    assert found("a") == ["a/link.py", "a/text.py", "a/x.py"]
    assert found() == ["a/text.py", "a/x.py", "outside/y.py"]
    assert found("a/same.py") == ["a/same.py"]
    Path("entry").symlink_to("a", target_is_directory=True)
    assert found("entry") == ["entry/link.py", "entry/text.py", "entry/x.py"]  # named: followed


def test_names_that_are_not_text(tree: Path) -> None:
    Path(os.fsdecode(b"\xff.py")).write_text("")
    assert [os.fsencode(path) for path in discover([Path()]).files] == [b"\xff.py"]


def test_patterns_are_loaded_only_when_needed(tree: Path) -> None:
    make("a/x.py")
    code = "import sys; from pathlib import Path; from torchmigrate.project.discover import discover_for; "
    code += "from torchmigrate.config.settings import Settings; settings = Settings(); "
    command = [
        sys.executable,
        "-c",
        code + "discover_for([Path()], lambda _: settings); print('torchmigrate.files.globs' in sys.modules)",
    ]
    search = [str(Path(torchmigrate.__file__).parents[1]), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(search)}
    for text, imported in (("", "False\n"), ("b\n", "True\n")):
        if text:
            ignore(text)
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        assert done.stdout == imported


def test_many_files_and_patterns(tree: Path) -> None:
    Path(".git").mkdir()
    ignore("".join(f"pattern_{number}/\n*.ext{number}\ndocs/{number}\n" for number in range(30)))
    for directory in range(100):
        Path(f"p/d{directory}").mkdir(parents=True)
        for number in range(50):
            os.close(os.open(f"p/d{directory}/m{directory}_{number}.py", os.O_CREAT))
    assert len(found()) == 5000
