"""Rules of a user about packages of their own, and what installed packages bring: as a user runs them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness.editor import Editor
from harness.project import Project, command, environment

from torchmigrate.catalogue.installed import entry_points
from torchmigrate.codemods import codemod

EXAMPLE = Path(__file__).parents[2] / "examples/own-rules"
BOTH = 'rules = ["lint/torch", "package:acme"]\n'
STEP = "import train_utils\n\nscaler = train_utils.make_scaler()\ntrain_utils.amp_step(loss, optimizer)\n"

Install = Callable[..., Path]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The example, without the files that use its wrappers."""
    project = Project(tmp_path / "project", monkeypatch)
    shutil.copytree(EXAMPLE, project.path, ignore=shutil.ignore_patterns("plugin", ".torchmigrate_cache"))
    for path in project.path.glob("*.py"):
        if path.stem != "train_utils":
            path.unlink()
    project.write("pyproject.toml", "")
    project.write("torchmigrate.toml", 'rules = ["lint/torch"]\n')
    return project


def forget_plugins() -> None:
    entry_points.cache_clear()
    codemod.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme_lint"]:
        del sys.modules[name]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install the package of the example, as an installer leaves it; `find` is the code of its codemod."""

    def installed(find: str | None = None, *, into: Path | None = None) -> Path:
        site = into or tmp_path / "site"
        shutil.copytree(EXAMPLE / "plugin/acme_lint", site / "acme_lint", dirs_exist_ok=True)
        if find is not None:
            (site / "acme_lint/amp_step.py").write_text(find)
        data = site / "acme_lint-1.0.dist-info"
        data.mkdir(exist_ok=True)
        (data / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-lint\nVersion: 1.0\n")
        (data / "entry_points.txt").write_text(
            "[torchmigrate.codemods]\nacme.amp_step = acme_lint.amp_step\n\n"
            "[torchmigrate.rules]\nacme = acme_lint.rules\n"
        )
        if into is None:
            monkeypatch.syspath_prepend(site)
        forget_plugins()
        return site

    yield installed
    forget_plugins()


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("from acme.linalg import symeig\n\nsymeig(m)\n", "from acme.linalg import eigh\n\neigh(m)\n"),
        ("import acme.linalg as la\n\nla.symeig(m)\n", "import acme.linalg as la\n\nla.eigh(m)\n"),
        (
            "from acme import linalg\n\nlinalg.symeig(m)\n",
            "from acme import linalg\n\nlinalg.eigh(m)\n",
        ),
        (
            "import acme.linalg\n\nclass A:\n    f = staticmethod(acme.linalg.symeig)\n",
            "import acme.linalg\n\nclass A:\n    f = staticmethod(acme.linalg.eigh)\n",
        ),
    ],
)
def test_names_of_a_package_of_the_project(project: Project, text: str, fixed: str) -> None:
    path = project.write("use.py", text)
    assert set(project.codes("use.py")) == {"ACM001"}
    project.run("check", "--fix", "use.py", code=0)
    assert path.read_text() == fixed
    assert project.codes("use.py") == []


def test_a_relative_import(project: Project) -> None:
    path = project.write(
        "acme/jobs/run.py",
        "from ..checkpoints import load\nfrom .. import linalg\n\nload(p)\nlinalg.symeig(m)\n",
    )
    project.write("acme/jobs/__init__.py", "")
    assert project.codes("acme") == ["ACM002", "ACM001"]
    project.run("check", "--fix", "--unsafe-fixes", "acme", code=0)
    assert path.read_text().endswith("load(p, weights_only=True)\nlinalg.eigh(m)\n")


def test_a_name_that_another_module_passes_on(project: Project) -> None:
    """`acme/__init__.py` has it from `acme.checkpoints`, and `helpers` from there."""
    project.write("helpers.py", "from acme import load\n")
    project.write("use.py", "from helpers import load as get\n\nget(p)\n")
    assert project.codes("use.py") == ["ACM002"]
    project.run("check", "--fix", "--unsafe-fixes", "use.py", code=0)
    assert (
        project.path / "use.py"
    ).read_text() == "from helpers import load as get\n\nget(p, weights_only=True)\n"


def test_a_generator_in_a_call_with_a_comma_at_its_end(project: Project) -> None:
    """`sum(x for x in y,)` does not parse."""
    path = project.path / "lint/torch/acme.yaml"
    text = path.read_text().replace("acme.linalg.symeig: acme.linalg.eigh", "acme.linalg.symeig: {}")
    text = text.replace("; use `{new}`", "")
    text = text.replace(
        "  removed:", '  signature: (m)\n  cases:\n    - replace: "sum(p.n for p in $m)"\n  removed:', 1
    )
    path.write_text(text)
    use = project.write("use.py", "from acme.linalg import symeig\n\nsymeig(\n    m,\n)\nsymeig(m)\n")
    project.run("check", "--fix", "use.py", code=0)
    assert use.read_text() == "sum(\n    (p.n for p in m),\n)\nsum(p.n for p in m)\n"


@pytest.mark.parametrize(
    "helpers",
    [
        "from acme import load\n\n\ndef load(path):\n    return path\n",
        "try:\n    from acme import load\nexcept ImportError:\n    load = None\n",
        "from other import load\n",
        "def load(path):\n    return path\n",
        "from helpers import load\n",
        "",
    ],
)
def test_a_name_that_may_be_something_else(project: Project, helpers: str) -> None:
    project.write("helpers.py", helpers)
    project.write("use.py", "from helpers import load\n\nload(p)\n")
    assert project.codes("use.py") == []


@pytest.mark.parametrize(
    "text",
    [
        "from numpy.linalg import symeig\n\nsymeig(m)\n",
        "def load(p):\n    return p\n\n\nload(p)\n",
        "import other_acme\n\nother_acme.linalg.symeig(m)\n",
        "from acme import linalg\n\n\ndef g(linalg):\n    return linalg.symeig(1)\n",
    ],
)
def test_other_names(project: Project, text: str) -> None:
    project.write("use.py", text)
    assert project.codes("use.py") == []


def test_a_package_of_the_same_name_within_another(project: Project) -> None:
    project.write("vendor/__init__.py", "")
    project.write("vendor/acme/__init__.py", "")
    project.write("vendor/acme/linalg.py", "def symeig(m): ...\n")
    project.write("vendor/acme/use.py", "from .linalg import symeig\n\nsymeig(m)\n")
    assert project.codes("vendor") == []


def test_the_cache_knows_what_other_modules_pass_on(project: Project) -> None:
    project.write("helpers.py", "from acme import load\n")
    project.write("use.py", "from helpers import load\n\nload(p)\n")
    assert project.codes("use.py") == ["ACM002"] == project.codes("use.py")
    project.write("helpers.py", "from other import load\n")
    assert project.codes("use.py") == []
    project.write("helpers.py", "from acme import load\n")
    assert project.codes("use.py") == ["ACM002"]


@pytest.mark.parametrize("comment", ["noqa: ACM002", "torchmigrate: ignore[ACM002] old", "noqa"])
def test_a_comment_hides_a_finding(project: Project, comment: str) -> None:
    project.write("use.py", f"from acme.checkpoints import load\n\nload(p)  # {comment}\n")
    assert project.codes("use.py") == []


def test_codes_of_the_user_are_selected_like_others(project: Project) -> None:
    project.write("use.py", "import acme.linalg\nimport torch\n\nacme.linalg.symeig(m)\ntorch.ger(a, b)\n")
    assert project.codes("use.py") == ["ACM001", "TM110"]
    for arguments in (["--select", "ACM"], ["--select", "acme-symeig"], ["--ignore", "TM"]):
        assert project.codes("use.py", *arguments) == ["ACM001"]
    for arguments in (["--select", "TM"], ["--ignore", "ACM001"], ["--per-file-ignores", "use.py:ACM"]):
        assert project.codes("use.py", *arguments) == ["TM110"]
    assert project.codes("use.py", "--isolated") == ["TM110"]
    assert "ACM003" in project.run("check", "--select", "ACM003", "use.py", code=2).stderr


def test_documentation_plan_and_other_views(project: Project) -> None:
    project.write("use.md", "```python\nfrom acme.linalg import symeig\n\nsymeig(m)\n```\n")
    assert project.codes("--config", "embedded=true", "use.md") == ["ACM001"]
    project.write("use.py", "from acme.linalg import symeig\n\nsymeig(m)\n")
    assert "ACM001" in project.run("plan", "use.py", "--output-format", "json").stdout
    assert "ACM001" in project.run("check", "use.py", "--output-format", "sarif", code=1).stdout


def test_flake8(project: Project) -> None:
    project.write("use.py", "from acme.linalg import symeig\n\nsymeig(m)\n")
    done = subprocess.run(
        [sys.executable, "-m", "flake8", "--extend-select", "ACM", "use.py"],
        cwd=project.path,
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert "use.py:1:25: ACM001 `acme.linalg.symeig` was removed in acme 3" in done.stdout, done.stderr


def test_an_editor(project: Project) -> None:
    with Editor(project.path) as editor:
        name = editor.open(project.path / "use.py", "from acme.linalg import symeig\n\nsymeig(m)\n")
        assert {each.code for each in editor.diagnostics(name)} == {"ACM001"}


# ---- mistakes in rules -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("removed:", "remved:", 8, "unknown key `remved` in a rule; did you mean `removed`?; allowed: code, name"),
        ('"3.0"', "3.10", 8, '`removed` must be a release in quotes, such as "1.10": write "3.10"'),
        ("ACM001", "TM110", 3, "code `TM110` is used already, by torchmigrate's own TM110 (ger)"),
        ("acme-symeig", "symeig", 3, "name `symeig` is used already, by torchmigrate's own TM100 (symeig)"),
        ("ACM001", "ACM002", 26, "code `ACM002` is used already, by line 3"),
        ("ACM001", "TM010", 3, "code `TM010` is used already"),
        ("ACM001", "acme-1", 3, "`code` must be capital letters and three digits, such as TM131, not `acme-1`"),
        ("library: acme\n  removed", "library: acne\n  removed", 10, "`acme.linalg.symeig` is not of library `acne`"),
        ("signature:", "codemod: acme.no_such_thing\n  signature:", 33, "no codemod `acme.no_such_thing`, and no installed package has it (entry points `torchmigrate.codemods`); there is `apex."),
        ("{add:", "{ad:", 36, "unknown key `ad` in `arguments`; did you mean `add`?; allowed: drop, keywords"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_rule(project: Project, old: str, new: str, line: int, said: str) -> None:
    path = project.path / "lint/torch/acme.yaml"
    path.write_text(path.read_text().replace(old, new, 1))
    shown = str(path.relative_to(project.path))
    tested = project.run("test-rules", "lint/torch", code=2).stderr
    assert f"error: {shown}:{line}: {said}" in tested
    assert f"{shown}:{line}: {said}" in project.run("check", ".", code=2).stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("        values, vectors = eigh(matrix)\n", "        values = eigh(matrix)\n", ": ACM001: fix: another text:\n"),
        ("from numpy.linalg import symeig", "from acme.linalg import symeig", ": ACM001: findings: `symeig` was reported\n"),
        ("        import acme.linalg\n", "        import other.linalg\n", ": ACM001: findings: nothing was found\n"),
        (
            "arguments: {add: {weights_only: true}}",
            'replace: acme.checkpoints.load(acme.checkpoints.load($path))',
            ": ACM002: fix: another text:\n",
        ),
    ],
)  # fmt: skip
def test_an_example_that_does_not_hold(project: Project, old: str, new: str, said: str) -> None:
    path = project.path / "lint/torch/acme.yaml"
    path.write_text(path.read_text().replace(old, new, 1))
    assert said in project.run("test-rules", "lint/torch", code=1).stdout


def test_a_fix_that_is_made_again_and_again(project: Project) -> None:
    path = project.path / "lint/torch/acme.yaml"
    text = path.read_text().replace("  missing: [weights_only]\n", "")
    text = text.replace("arguments: {add: {weights_only: true}}", "replace: acme.checkpoints.load($path[0])")
    path.write_text(text.replace("load(path, weights_only=True)", "load(path[0])"))
    done = project.run("test-rules", "lint/torch", code=1)
    assert (
        "ACM002: again: the rule finds the code that its fix writes, so that fixing does not end"
        in done.stdout
    )


def test_a_rule_to_start_from(project: Project) -> None:
    done = project.run("test-rules", "--new", "rules/own", code=0)
    assert done.stderr == (
        'Wrote rules/own/rules.yaml. To use it, set `rules = ["rules/own"]` in the configuration.\n'
        "3 examples of 1 rule: all hold.\n"
    ).replace("rules/own/rules.yaml", str(Path("rules/own/rules.yaml")))
    before = (project.path / "rules/own/rules.yaml").read_text()
    assert "exists already" in project.run("test-rules", "--new", "rules/own", code=2).stderr
    assert (project.path / "rules/own/rules.yaml").read_text() == before
    project.write("torchmigrate.toml", 'rules = ["rules/own"]\n')
    project.write("use.py", "from org_utils.checkpoints import old_load\n\nold_load(p)\n")
    assert project.codes("use.py") == ["ORG001"]
    assert "`--new` makes it" in project.run("test-rules", "nowhere", code=2).stderr
    project.write("file", "")
    assert "error: " in project.run("test-rules", "--new", "file", code=2).stderr


# ---- installed packages ----------------------------------------------------------------------------------


def test_a_package_with_rules_and_a_codemod(project: Project, install: Install) -> None:
    install()
    project.write("torchmigrate.toml", BOTH)
    path = project.write("use.py", STEP)
    assert project.codes("use.py") == ["ACM003"]
    project.run("check", "--fix", "--unsafe-fixes", "use.py", code=0)
    assert path.read_text() == STEP.replace("amp_step(loss, optimizer)", "step(loss, optimizer, scaler)")
    assert project.codes("use.py") == []
    assert "acme-amp-step" in project.run("explain", "ACM003", code=0).stdout
    assert "ACM003" in project.run("rules", code=0).stdout
    rules = EXAMPLE / "plugin/acme_lint/rules"
    assert project.run("test-rules", rules, code=0).stderr == "3 examples of 1 rule: all hold.\n"


def test_a_package_that_is_not_installed(project: Project) -> None:
    project.write("torchmigrate.toml", BOTH)
    done = project.run("check", ".", code=2)
    assert "error: package:acme: no installed package has rules under this name" in done.stderr


@pytest.mark.parametrize(
    ("find", "said"),
    [
        ("def find(rule, hits, file):\n    raise ValueError('no\\n  luck')\n", "ValueError: no luck in amp_step.py:2"),
        ("def find(rule, hits, file):\n    return 1\n", "TypeError: 'int' object is not iterable"),
        ("def find(rule, hits, file):\n    return [1]\n", "TypeError: `find` must return findings of ACM003"),
        ("def find(rule, hits, file):\n    yield from file.no_such\n", "AttributeError"),
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("def find(\n", "SyntaxError"),
        ("", "AttributeError"),
    ],
)  # fmt: skip
def test_a_codemod_that_fails(project: Project, install: Install, find: str, said: str) -> None:
    """Its uses are reported without a fix, other rules go on, and one line names it."""
    install(find)
    project.write("torchmigrate.toml", BOTH)
    project.write("use.py", f"{STEP}from acme.linalg import symeig\n")
    done = project.run("check", "use.py", "--output-format", "json", code=2)
    found = {item["code"]: item["fix"] for item in json.loads(done.stdout)}
    assert found["ACM003"] is None and found["ACM001"] is not None
    (line,) = [line for line in done.stderr.splitlines() if "ACM003" in line]
    assert line.startswith(
        "error: use.py: ACM003: every fix was skipped, because the codemod `acme.amp_step` failed ("
    )
    assert said in line


def test_a_bad_edit_of_a_codemod(project: Project, install: Install) -> None:
    find = """\
from torchmigrate.plugins import Edit, finding
def find(rule, hits, file):
    return [finding(rule, hit, file, Edit(0, 10_000, "")) for hit in hits]
"""
    install(find)
    project.write("torchmigrate.toml", BOTH)
    path = project.write("use.py", STEP)
    done = project.run("check", "--fix", "--unsafe-fixes", "use.py", code=2)
    assert "ACM003: the fix was skipped, because an edit is outside the text" in done.stderr
    assert path.read_text() == STEP


def test_another_version_of_a_codemod_is_another_result(project: Project, install: Install) -> None:
    site = install()
    project.write("torchmigrate.toml", BOTH)
    project.write("use.py", STEP)
    assert (
        "step(loss, optimizer, scaler)" in project.run("check", "--diff", "--unsafe-fixes", "use.py").stdout
    )
    for _ in range(2):
        project.run("check", "use.py", code=1)
    install("def find(rule, hits, file):\n    return []\n")
    assert project.codes("use.py") == []
    assert (site / "acme_lint/amp_step.py").exists()


def test_the_project_cannot_bring_a_codemod(project: Project, install: Install) -> None:
    """Neither as a package in the directory in which the program starts, nor in place of an installed one."""
    trap = "open('ran', 'w')\n"
    install(trap, into=project.path)
    project.write("acme_lint/__init__.py", trap)
    project.write("torchmigrate.toml", BOTH)
    project.write("use.py", STEP)
    done = subprocess.run(command("check", "."), cwd=project.path, capture_output=True, env=environment())
    assert done.returncode == 2 and b"no installed package has rules" in done.stderr, done
    site = install()
    more = environment()
    more["PYTHONPATH"] = f"{more['PYTHONPATH']}:{site}" if sys.platform != "win32" else str(site)
    done = subprocess.run(command("check", "use.py"), cwd=project.path, capture_output=True, env=more)
    assert done.returncode == 1 and b"ACM003" in done.stdout, done
    assert not (project.path / "ran").exists()


def test_a_run_without_them_reads_no_metadata(project: Project) -> None:
    project.write("use.py", "import torch\nfrom acme.linalg import symeig\n\nsymeig(torch.ger(a, b))\n")
    code = (
        "import sys\nfrom torchmigrate.cli.program import main\n"
        "try:\n    main(['check', 'use.py', '--no-cache'])\nexcept SystemExit:\n    pass\n"
        "print('importlib.metadata' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project.path, capture_output=True, text=True, env=environment()
    )
    assert "ACM001" in done.stdout and done.stdout.endswith("False\n"), done.stdout + done.stderr
