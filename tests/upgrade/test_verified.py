"""What an upgrade verifies, and by what; with a stand-in for torch."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

import pytest
from harness.project import SOURCE
from harness.repository import Repository
from harness.stand_in import environment_with

MODEL = "import torch\n\n\ndef outer(a, b):\n    return torch.ger(a, b)\n\n\ndef inner(a, b):\n    return a.shape + b.shape\n"
TEST = "import torch\nimport model\n\n\ndef test_inner():\n    assert model.inner(torch.ones(2), torch.ones(3)) == (2, 3)\n"
PROJECT = {"model.py": MODEL, "test_model.py": TEST}


@pytest.fixture(scope="session")
def fast(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(environment_with(tmp_path_factory.mktemp("fast") / "env"))


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An environment without pytest."""
    return str(environment_with(tmp_path_factory.mktemp("bare") / "env", pytest=False))


def error_of(repository: Repository, *options: str, **variables: str) -> str:
    """The one line of an upgrade that is refused; nothing is committed."""
    done = repository.upgrade(*options, code=2, **variables)
    [error] = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert repository.git("branch", "--list", "torchmigrate/*") == ""
    if (repository.work / "tree").exists():
        assert repository.git("rev-parse", "HEAD", at=repository.work / "tree") == repository.git(
            "rev-parse", "main"
        )
    return error


# ---- flaky tests ---------------------------------------------------------------------------------------------


def failing_in(place: Path, name: str, runs: str) -> str:
    """A test that fails in some of its runs, counted from 1: an expression of `run`."""
    return (
        f"\n\ndef {name}():\n    import pathlib\n\n    path = pathlib.Path({str(place / name)!r})\n"
        "    path.write_text(path.read_text() + 'x' if path.exists() else 'x')\n"
        f"    run = len(path.read_text())\n    assert not ({runs})\n"
    )


TWO_FIXES = {
    "model.py": MODEL,
    "other.py": "from torch.utils.data.dataloader import default_collate\nimport torch\n\ntorch.lerp_ = torch.qr\n",
}


@pytest.mark.parametrize(
    "runs",
    [
        ("run in (2, 4)", "run == 2"),
        ("run % 2 == 0", "run % 2 == 1"),
        ("run in (2, 4, 5)", "run in (2, 3)"),
    ],
)
def test_tests_that_fail_now_and_then_end_nothing_and_no_fix_is_blamed(
    tmp_path: Path, fast: str, runs: tuple[str, str]
) -> None:
    test = TEST + failing_in(tmp_path, "test_one", runs[0]) + failing_in(tmp_path, "test_two", runs[1])
    repository = Repository(
        tmp_path, {**PROJECT, "test_model.py": test, "old.py": MODEL.replace("ger", "symeig")}
    )
    done = repository.upgrade("--env", fast, "--no-evidence", "--unsafe-fixes")
    assert "torch.outer" in repository.result("model.py")
    report = repository.report
    assert report["taken_back"] == [] and report["broken"] == [] and report["failing"] == []
    assert set(report["unstable"]) <= {"test_model.py::test_one", "test_model.py::test_two"}
    assert report["unstable"] and all(f"{name} is flaky" in done.stdout for name in report["unstable"])
    repository.upgrade("--resume", own=True)
    assert repository.report["unstable"] == report["unstable"]


def test_a_fix_that_breaks_a_test_is_found_among_flaky_tests(tmp_path: Path, fast: str) -> None:
    test = (
        TEST
        + failing_in(tmp_path, "test_one", "run % 2 == 0")
        + "\n\ndef test_source():\n    import inspect\n    assert 'torch.ger' in inspect.getsource(model.outer)\n"
    )
    repository = Repository(tmp_path, {**PROJECT, "test_model.py": test, "other.py": MODEL})
    repository.upgrade("--env", fast, "--no-evidence")
    assert repository.result("model.py") == MODEL and "torch.outer" in repository.result("other.py")
    [taken] = repository.report["taken_back"]
    assert taken["tests"] == ["test_model.py::test_source"]


def test_a_fix_that_breaks_a_test_which_needs_the_tests_before_it_is_found(tmp_path: Path, fast: str) -> None:
    test = TEST + (
        "\n\nseen = []\n\n\ndef test_first():\n    seen.append(1)\n\n\n"
        "def test_source():\n    import inspect\n    assert seen and 'torch.ger' in inspect.getsource(model.outer)\n"
    )
    repository = Repository(tmp_path, {**PROJECT, "test_model.py": test, "other.py": MODEL})
    repository.upgrade("--env", fast, "--no-evidence")
    assert repository.result("model.py") == MODEL and "torch.outer" in repository.result("other.py")
    assert [taken["tests"] for taken in repository.report["taken_back"]] == [["test_model.py::test_source"]]


# ---- what torch says ------------------------------------------------------------------------------------------

# An error of torch 2.13, and what to do.
SAID = [
    ("only integer tensors of a single element can be converted to an index", "use `//` where"),
    ("tensors used as indices must be long, int, byte or bool tensors", "use `//` where"),
    ("result type Float can't be cast to the desired output type Long", "use `//` if"),
    ("masked_fill_ only supports boolean masks, but got mask with dtype unsigned char", "add `.bool()`"),
    ("masked_select: expected BoolTensor for mask", "add `.bool()`"),
    ("Subtraction, the `-` operator, with a bool tensor is not supported.", "write `~mask`"),
    ("a leaf Variable that requires grad is being used in an in-place operation.", "under `torch.no_grad()`"),
    (
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
        "through a view",
    ),
    (
        "one of the variables needed for gradient computation has been modified by an inplace operation",
        "before the step",
    ),
    ("view size is not compatible with input tensor's size and stride", "use `reshape`"),
    ("invalid index of a 0-dim tensor. Use `tensor.item()` in Python", "use `.item()`"),
    ("stft requires the return_complex parameter be given for real inputs", "`return_complex=True`"),
    ("Legacy autograd function with non-static forward method is deprecated.", "`ctx` in the place"),
    (
        "mean(): could not infer output dtype. Input dtype must be either a floating point",
        "a mean needs floats",
    ),
    (
        "unsupported operation: more than one element of the written-to tensor refers to a single memory "
        "location.",
        "call `.clone()`",
    ),
    ("Unknown builtin op: aten::is_tensor.", "write `isinstance(x, torch.Tensor)`"),
    ("Cannot instantiate class 'Blur' in a script function:", "make the module outside"),
    ("Weights only load failed. Re-running `torch.load`", "`weights_only=False`"),
]


def test_errors_of_torch_say_what_to_do(tmp_path: Path, fast: str) -> None:
    raising = "\n\n".join(
        f"def test_{number}():\n    raise RuntimeError({words!r})\n"
        for number, (words, _) in enumerate([*SAID, ("the index is no tensor", "")])
    )
    repository = Repository(tmp_path, {**PROJECT, "test_said.py": raising})
    repository.upgrade("--env", fast, "--no-evidence", code=1)
    causes = {name: each["cause"] for each in repository.report["failing"] for name in each["tests"]}
    for number, (_, what) in enumerate(SAID):
        assert what in causes[f"test_said.py::test_{number}"]
    assert (
        causes[f"test_said.py::test_{len(SAID)}"]
        == "possibly about torch: no rule applies to a line of the traceback"
    )


HALVES = """\
def given(items, n):
    middle = n / 2
    other = n / 3
    print(other)
    return items[:middle]


def at_once(items, n):
    return items[: n / 4]


def unknown(items, n):
    return items[:n]


def counted(n):
    return list(range(n / 2))
"""
TEST_OF_HALVES = """\
import halves


def test_given():
    halves.given([1, 2], 2)


def test_at_once():
    halves.at_once([1, 2], 4)


def test_unknown():
    halves.unknown([1, 2], 2.0)


def test_counted():
    halves.counted(4)
"""


def test_quotients_are_named_where_an_index_is_a_float(tmp_path: Path, fast: str) -> None:
    repository = Repository(tmp_path, {**PROJECT, "halves.py": HALVES, "test_halves.py": TEST_OF_HALVES})
    repository.upgrade("--env", fast, "--no-evidence", code=1)
    causes = {name: each["cause"] for each in repository.report["failing"] for name in each["tests"]}
    assert causes["test_halves.py::test_given"].endswith("computes the bound; here: `n / 2` in line 2")
    assert causes["test_halves.py::test_at_once"].endswith("computes the bound; here: `n / 4` in line 9")
    assert causes["test_halves.py::test_unknown"].endswith("where one computes the bound")
    assert causes["test_halves.py::test_counted"].endswith("computes the count; here: `n / 2` in line 17")


# ---- the Python that runs the tests --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--test", "pytest -q"],
        ["--test", "python -m pytest"],
        ["--test", "python3 -m pytest -q"],
        ["--test", "env X=1 pytest"],
    ],
)
def test_an_environment_without_pytest_is_refused(tmp_path: Path, bare: str, options: list[str]) -> None:
    repository = Repository(tmp_path, PROJECT)
    # Packages that PYTHONPATH adds to this process are not those of the environment.
    path = os.pathsep.join([str(SOURCE), str(Path(pytest.__file__).parents[1])])
    error = error_of(repository, "--env", bare, *options, PYTHONPATH=path)
    assert (
        f"pytest is not installed in this environment; install it: {bare}/bin/python -m pip install pytest"
        in error
    )


@pytest.mark.parametrize("command", ["sh -c 'pytest -q'", "./run"])
def test_a_pytest_of_another_python_is_no_test_of_the_environment(
    tmp_path: Path, bare: str, fast: str, command: str
) -> None:
    other = environment_with(tmp_path / "other", torch="1.4.0")
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "pytest"
    program.write_text(f'#!/bin/sh\nexec {other}/bin/python -m pytest "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    files = {**PROJECT, "run": "#!/bin/sh\nexec pytest -q\n"}
    repository = Repository(tmp_path, files)
    (repository.path / "run").chmod(0o755)
    repository.commit()
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    error = error_of(repository, "--env", bare, "--test", command, PATH=path)
    assert f"ran pytest with {other}/bin/python, not with the Python of the environment" in error
    assert f"{bare}/bin/python -m pip install pytest" in error


def test_a_torch_of_another_python_is_not_the_one_that_is_verified(tmp_path: Path, fast: str) -> None:
    other = environment_with(tmp_path / "other", torch="1.4.0")
    repository = Repository(tmp_path, {**PROJECT, "check.py": "import model\n"})
    error = error_of(repository, "--env", fast, "--test", f"{other}/bin/python check.py")
    assert f"ran with torch 1.4.0 of {other}/bin/python, not with torch 2.13.0 of the environment" in error


def test_what_the_tests_imported_is_what_the_report_says(tmp_path: Path, fast: str) -> None:
    repository = Repository(tmp_path, {**PROJECT, "check.py": "import model\n", "none.py": ""})
    assert (
        "on torch 2.13.0 and Python" in repository.upgrade("--env", fast, "--test", "python check.py").stdout
    )
    said = repository.upgrade("--resume", "--test", "python none.py", own=True).stdout
    assert "on a torch that the tests did not report" in said


# ---- without tests that work ---------------------------------------------------------------------------------

MAKE_ENDS = "echo 'make: *** [Makefile:3: test] Error 1'\nexit 2\n"


@pytest.mark.parametrize(
    ("options", "files", "says"),
    [
        (["--test", "false"], {}, "`false` fails: exit code 1, so no fix can be verified"),
        (["--test", "pytest no_such"], {}, "file or directory not found: no_such"),
        (["--test", "pytest --no-such"], {}, "exit code 4: unrecognized arguments: --no-such"),
        (["--test", "pytest -k nothing"], {}, "`pytest -k nothing` runs no tests (1 deselected"),
        ([], {"test_model.py": "import no_such\n\n\ndef test_some():\n    pass\n"},
         "no test of `pytest -q` passes: test_model.py: test_model.py:1: ModuleNotFoundError: No module named 'no_such'"),
        ([], {"conftest.py": "\nimport no_such\n"}, "`pytest -q` fails: conftest.py:2: ModuleNotFoundError: No module named 'no_such'"),
        ([], {"pytest.ini": "[pytest]\naddopts = --no-such\n"}, "unrecognized arguments: --no-such"),
        ([], {"pytest.ini": "[pytest]\nrequired_plugins = no-such\n"}, "Missing required plugins: no-such"),
        (["--test", "python check.py"], {"check.py": "import model, no_such\n"},
         "`python check.py` fails: check.py:1: exit code 1: ModuleNotFoundError: No module named 'no_such'"),
        ([], {"test_model.py": "import pytest\n\n\n@pytest.mark.skip\ndef test_some():\n    pass\n"},
         "`pytest -q` skips all tests"),
        (["--test", "python -m unittest"], {"test_model.py": "\nimport no_such\n"},
         "test_model.py:2: exit code 1: ModuleNotFoundError: No module named 'no_such'"),
        (["--test", "sh check"], {"check": f"echo 'cc: fatal error: no input files'\n{MAKE_ENDS}"},
         "`sh check` fails: exit code 2: no input files"),
        (["--test", "sh check"], {"check": f"echo 'The data are missing'\n{MAKE_ENDS}"},
         "`sh check` fails: exit code 2: The data are missing"),
        ([], {"test_model.py": "\nimport os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n" + TEST},
         "`pytest -q` fails: test_model.py:3: signal SIGSEGV: Segmentation fault"),
    ],
)  # fmt: skip
def test_without_a_test_that_works_nothing_is_committed(
    tmp_path: Path, fast: str, options: list[str], files: dict[str, str], says: str
) -> None:
    repository = Repository(tmp_path, {**PROJECT, **files})
    assert says in error_of(repository, "--env", fast, "--unsafe-fixes", *options)
    if options:  # the right command needs neither another directory nor --resume
        repository.upgrade("--env", fast)
        assert "torch.outer" in repository.result("model.py")


def test_tests_that_torch_keeps_from_running_are_mended_or_nothing_is_committed(
    tmp_path: Path, fast: str
) -> None:
    model = "from torch._six import inf\n\n" + MODEL
    repository = Repository(tmp_path, {**PROJECT, "model.py": model})
    error = error_of(repository, "--env", fast)  # the stand-in has no `inf` either
    assert "cannot import name 'inf'" in error and "also with all fixes, so none is committed" in error


def test_modules_that_cannot_be_imported_are_no_baseline(tmp_path: Path, fast: str) -> None:
    repository = Repository(tmp_path, {"model.py": "import no_such\n" + MODEL})
    error = error_of(repository, "--env", fast)
    assert "no module can be imported: import model: model.py:1: ModuleNotFoundError" in error


# ---- options -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["cd tests && pytest", "cd tests", "pytest | tee log", "pytest; true"])
def test_a_command_for_a_shell_is_refused_with_the_right_one(tmp_path: Path, fast: str, command: str) -> None:
    repository = Repository(tmp_path, {"model.py": MODEL, "tests/test_model.py": TEST})
    error = error_of(repository, "--env", fast, "--test", command)
    assert error.endswith(f"use `sh -c {shlex.quote(command)}`")
    assert not repository.work.exists()


@pytest.mark.parametrize("command", ["env PYTHONPATH=lib pytest", "sh -c 'PYTHONPATH=lib pytest'"])
def test_a_command_that_replaces_the_path_of_python(tmp_path: Path, fast: str, command: str) -> None:
    repository = Repository(tmp_path, {"lib/model.py": MODEL, "test_model.py": TEST})
    error = error_of(repository, "--env", fast, "--test", command)
    assert "replaces PYTHONPATH" in error and "`sh -c 'PYTHONPATH=lib:$PYTHONPATH python -m pytest'`" in error
    repository.upgrade("--env", fast, "--test", "sh -c 'PYTHONPATH=lib:$PYTHONPATH python -m pytest'")
    assert not repository.report["broken"]


def test_a_shell_may_run_the_tests(tmp_path: Path, fast: str) -> None:
    test = TEST.replace(
        "== (2, 3)", "== (2, 3)\n\n\ndef test_outer():\n    model.outer(torch.ones(2), torch.ones(3))"
    )
    repository = Repository(tmp_path, {"tests/model.py": MODEL, "tests/test_model.py": test})
    repository.upgrade("--env", fast, "--test", "sh -c 'cd tests && python -m pytest'")
    assert repository.report["mended"] == ["test_model.py::test_outer"]


def test_a_run_that_goes_on_has_the_options_of_the_first_one(tmp_path: Path, fast: str) -> None:
    repository = Repository(tmp_path, PROJECT)
    repository.upgrade("--env", fast, "--test", "pytest -q -k inner", "--no-evidence", "--unsafe-fixes")
    log = (repository.work / "log.txt").read_text()
    arguments = [each for each in repository.options("--resume", own=True) if each not in ("--to", "2.13")]
    repository.run(arguments)
    assert (repository.work / "log.txt").read_text() == log, "all was known"
    repository.run([*arguments, "--test", "pytest -q", "--no-unsafe-fixes"])
    last = (repository.work / "log.txt").read_text().removeprefix(log)
    assert " -m pytest -q\n" in last and str(fast) in last and "-k inner" not in last


# ---- fixes that hold for all shapes ----------------------------------------------------------------------------

SOLVER = """\
import torch


def solved(a, b):
    lu = a.btrifact()
    return b.btrisolve(*lu)
"""


@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (2, 3, 4)])
def test_vectors_and_matrices_are_solved_for(tmp_path: Path, fast: str, shape: tuple[int, ...]) -> None:
    test = (
        "import torch\nimport solver\n\n\ndef test_inner():\n    pass\n\n\ndef test_solved():\n"
        f"    x = solver.solved(torch.ones({shape[0]}, 3, 3), torch.ones(*{shape}))\n"
        f"    assert x.shape == {shape}\n"
    )
    repository = Repository(tmp_path, {"solver.py": SOLVER, "test_solver.py": test})
    repository.upgrade("--env", fast, "--unsafe-fixes")
    assert "torch.linalg.lu_solve(*lu, b.reshape(*b.shape[:2], -1)).reshape(b.shape)" in repository.result(
        "solver.py"
    )
    assert repository.report["mended"] == ["test_solver.py::test_solved"]
    assert repository.report["taken_back"] == []


# ---- requirements and reports ----------------------------------------------------------------------------------


def test_every_requirement_is_raised_or_named(tmp_path: Path, fast: str) -> None:
    files = {
        "requirements.txt": "torch>=0.4\ntorchvision>=0.5,<0.10\n",
        "requirements/dev.txt": "torch>=1.2,!=1.3\n",
        "setup.py": (
            "from setuptools import setup\n\nTORCH = 'torch>=0.4'\nsetup(\n    install_requires=[TORCH, f'torchaudio>={AUDIO}'],\n"
            "    python_requires='>=2.7, !=3.0.*, !=3.1.*',\n    classifiers=[\n"
            "        'Programming Language :: Python :: 3.6',\n        'Programming Language :: Python :: 3.7',\n    ],\n)\n"
        ),
        "environment.yml": "name: x\ndependencies:\n  - pytorch>=1.0\n",
    }
    repository = Repository(tmp_path, {**PROJECT, **files})
    done = repository.upgrade("--env", fast)
    assert repository.result("requirements.txt") == "torch>=2.13\ntorchvision>=0.28,<0.29\n"
    assert repository.result("requirements/dev.txt") == "torch>=2.13\n"
    setup = repository.result("setup.py")
    assert "TORCH = 'torch>=2.13'" in setup and "python_requires='>=3.10'" in setup
    assert [number for number in range(6, 16) if f":: 3.{number}'" in setup] == [10, 11, 12, 13, 14]
    assert (
        "environment.yml:3: `pytorch>=1.0` was not raised: PyTorch is no longer in its conda channel"
        in done.stdout
    )
    assert (
        "setup.py:5: `torchaudio>={AUDIO}` was not raised: the program puts its version together"
        in done.stdout
    )


def test_reports_show_code_and_list_the_mended_tests(tmp_path: Path, fast: str) -> None:
    test = "import pytest\nimport torch\nimport model\n\n\n@pytest.mark.parametrize('n', range(30))\ndef test_outer(n):\n    model.outer(torch.ones(2), torch.ones(3))\n"
    repository = Repository(tmp_path, {"model.py": MODEL, "test_model.py": test})
    repository.upgrade("--env", fast)
    page = (repository.work / "report.html").read_text(encoding="utf-8")
    assert "Replace <code>torch.ger</code> with <code>torch.outer</code> (TM110)" in page
    assert "(TM110)</p>" in page  # why
    assert "<details><summary>30 tests pass that did not before</summary>" in page
    assert "<code>test_model.py::test_outer[29]</code>" in page
    text = (repository.work / "report.md").read_text(encoding="utf-8")
    assert "Replace `torch.ger` with `torch.outer`" in text
    assert "<summary>30 tests pass that did not before</summary>\n\n- `test_model.py::test_outer[0]`" in text
