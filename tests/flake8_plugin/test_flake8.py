"""The plugin in the real flake8, in a process of its own for each run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness.launcher import launch, launch_flake8
from harness.project import environment

from torchmigrate import __version__

OLD = "import torch\n\nx = torch.load(p)\ny = torch.qr(a)\n"
# What TorchFix reports: in rows 2 to 8, the codes are in the comments.
THEIRS = "\n".join(
    [
        "import torch",
        "from torch import qr",
        "import torchvision.models as models",
        "y = torch.qr(a)",
        "y = torch.load(p)",
        "y = torch.log(1 + x)",
        "y = torch.solve(b, a)",
        "y = models.resnet18(pretrained=True)",
        "y = torch.rfft(x, 1)",
        "",
    ]
)


class Flake8:
    """A directory in which flake8 runs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def run(
        self, *arguments: str, code: int | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        done = launch_flake8(self.path, *arguments, stdin=stdin)
        assert "Traceback" not in done.stderr + done.stdout, done.stderr
        if code is not None:
            assert done.returncode == code, (done.stdout, done.stderr)
        return done

    def places(self, *arguments: str) -> list[str]:
        """Row and code of everything that we report, and not flake8 itself."""
        done = self.run(*arguments)
        assert done.returncode in (0, 1) and not done.stderr, (done.stdout, done.stderr)
        found = re.findall(r"^(?:.*):(\d+):\d+: (T[MO]\w+)", done.stdout, re.MULTILINE)
        return [f"{row} {code}" for row, code in found]


@pytest.fixture
def flake8(tmp_path: Path) -> Flake8:
    (tmp_path / "pyproject.toml").write_text("[tool.torchmigrate]\n")
    return Flake8(tmp_path)


def test_it_is_on_where_it_is_installed(flake8: Flake8) -> None:
    flake8.write("a.py", OLD)
    done = flake8.run("--extend-ignore=F", "a.py", code=1)
    assert done.stdout == (
        "a.py:3:5: TM600 `torch.load` without `weights_only`: the default changed to True in torch 2.6\n"
        "a.py:4:5: TM104 `torch.qr` was removed in torch 2.14; use `torch.linalg.qr`\n"
    )
    # As it is started from a shell.
    done = subprocess.run(
        [sys.executable, "-m", "flake8", "--version"], env=environment(), stdout=subprocess.PIPE
    )
    assert f"torchmigrate: {__version__}" in " ".join(done.stdout.decode().split())


def test_clean(flake8: Flake8) -> None:
    flake8.write("a.py", "import torch\n\nprint(torch.linalg.qr(torch.ones(2, 2)))\n")
    assert flake8.run("a.py", code=0).stdout == ""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ["3 TM600", "4 TM104"]),
        (["--select=E,W"], []),
        (["--select=E,TM"], ["3 TM600", "4 TM104"]),
        (["--select=T"], ["3 TM600", "4 TM104"]),
        (["--select=TM1"], ["4 TM104"]),
        (["--extend-ignore=TM1"], ["3 TM600"]),
        (["--ignore=TM"], []),
        (["--select=TM,TM600", "--ignore=TM6"], ["3 TM600", "4 TM104"]),
        (["--per-file-ignores=a.py:TM104,E501"], ["3 TM600"]),
        (["--per-file-ignores=b.py:TM104"], ["3 TM600", "4 TM104"]),
        (["--torchmigrate-target=1.7"], []),
        (["--torchmigrate-target", "2.13", "--torchmigrate-minimum", "2.6"], ["4 TM104"]),
    ],
)
def test_options(flake8: Flake8, options: list[str], expected: list[str]) -> None:
    flake8.write("a.py", OLD)
    assert flake8.places(*options, "a.py") == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # All of TorchFix, and nothing else.
        (
            ["--select=TOR"],
            ["2 TOR103", "3 TOR203", "4 TOR101", "5 TOR102", "6 TOR106", "7 TOR001", "8 TOR201"],
        ),
        (["--select=TOR1", "--ignore=TOR106"], ["2 TOR103", "4 TOR101", "5 TOR102"]),
        (["--select=TOR1,TOR106", "--ignore=TOR10"], ["6 TOR106"]),
        (["--select=TOR102"], ["5 TOR102"]),
        (["--select=E,TOR101"], ["4 TOR101"]),
        (["--select=TOR3"], []),
        # Some of it beside what is on anyway.
        (
            ["--extend-select=TOR102"],
            ["2 TM104", "4 TM104", "5 TOR102", "7 TM102", "8 TM722", "9 TM151"],
        ),
        (
            ["--extend-select=TOR106,TOR203"],
            ["2 TM104", "3 TOR203", "4 TM104", "5 TM600", "6 TOR106", "7 TM102", "8 TM722", "9 TM151"],
        ),
        (
            ["--extend-ignore=TOR203,TOR102"],
            ["2 TM104", "4 TM104", "7 TM102", "8 TM722", "9 TM151"],
        ),
        (
            ["--per-file-ignores=*.py:TOR1"],
            ["7 TM102", "8 TM722", "9 TM151"],
        ),
        (
            ["--per-file-ignores=tests/*:TOR102"],
            ["2 TM104", "4 TM104", "5 TOR102", "7 TM102", "8 TM722", "9 TM151"],
        ),
        # Our code is more specific.
        (["--select=TOR,TM600", "--ignore=TOR1"], ["3 TOR203", "5 TM600", "7 TOR001", "8 TOR201"]),
        (["--select=TOR", "--ignore=TM600,TOR2"], ["2 TOR103", "4 TOR101", "6 TOR106", "7 TOR001"]),
        # Rules that are off unless selected.
        (["--select=TM99"], ["3 TM996", "6 TM990"]),
        (["--select=TM996"], ["3 TM996"]),
        (
            ["--select=TM", "--extend-select=TM990"],
            ["2 TM104", "4 TM104", "5 TM600", "6 TM990", "7 TM102", "8 TM722", "9 TM151"],
        ),
    ],
)
def test_codes_of_torchfix(flake8: Flake8, options: list[str], expected: list[str]) -> None:
    flake8.write("a.py", THEIRS)
    assert flake8.places(*options, "a.py") == expected


def test_the_code_of_the_rule_is_told(flake8: Flake8) -> None:
    flake8.write("a.py", OLD)
    (line,) = flake8.run("--select=TOR102", "a.py", code=1).stdout.splitlines()
    assert line.startswith("a.py:3:5: TOR102 `torch.load` without `weights_only`") and line.endswith(
        " (TM600)"
    )


@pytest.mark.parametrize("name", [".flake8", "setup.cfg", "tox.ini"])
def test_the_configuration_of_flake8(flake8: Flake8, name: str) -> None:
    flake8.write(name, "[flake8]\nselect = E, TOR\nignore = TOR203\nper-file-ignores =\n    b.py: TOR102\n")
    flake8.write("a.py", THEIRS)
    flake8.write("b.py", OLD)
    done = flake8.run("a.py", "b.py", code=1)
    found = re.findall(r"^(\w\.py):(\d+):\d+: (\w+)", done.stdout, re.MULTILINE)
    assert ("a.py", "5", "TOR102") in found and ("a.py", "3", "TOR203") not in found
    assert [code for file, _, code in found if file == "b.py"] == ["TOR101"]


def test_our_options_in_the_configuration_of_flake8(flake8: Flake8) -> None:
    flake8.write(".flake8", "[flake8]\nselect = TM\ntorchmigrate-target = 1.7\n")
    flake8.write("a.py", OLD)
    assert flake8.places("a.py") == []
    flake8.write(".flake8", "[flake8]\nselect = TM\ntorchmigrate_config = other/own.toml\n")
    flake8.write("other/own.toml", 'ignore = ["TM600"]\n')
    assert flake8.places("a.py") == ["4 TM104"]


@pytest.mark.parametrize("where", ["option", "configuration"])
def test_a_release_that_is_not_known(flake8: Flake8, where: str) -> None:
    flake8.write("a.py", OLD)
    if where == "configuration":
        flake8.write(".flake8", "[flake8]\ntorchmigrate-minimum = 2.99\n")
    options = ["--torchmigrate-minimum=2.99"] if where == "option" else []
    done = flake8.run("a.py", *options, code=2)
    assert done.stderr.splitlines()[-1].startswith(
        "flake8: error: --torchmigrate-minimum: torch 2.99 is unknown; the newest release"
    )


# ---- comments -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [[], ["--select=TOR,TM"]])
@pytest.mark.parametrize(
    ("comment", "hidden"),
    [
        ("# noqa", True),
        ("# noqa: TM600", True),
        ("# NoQA:TM6", True),
        ("# noqa: TOR102", True),
        ("# noqa: E501,TOR1", True),
        ("# noqa: E501", False),
        ("# noqa: TOR103", False),
        ("# torchmigrate: ignore[TM600] our own file", True),
        ("# torchmigrate: ignore[load-weights-only] our own file", True),
    ],
)
def test_comments(flake8: Flake8, comment: str, hidden: bool, options: list[str]) -> None:
    flake8.write("a.py", f"import torch\nx = torch.load(\n    p,\n)  {comment}\n")
    code = "TOR102" if options else "TM600"
    assert flake8.places(*options, "a.py") == ([] if hidden else [f"2 {code}"])


def test_comments_for_the_file(flake8: Flake8) -> None:
    flake8.write("a.py", f"# flake8: noqa\n{OLD}")
    flake8.write("b.py", f"# torchmigrate: ignore-file[TM600, TM104] generated\n{OLD}")
    assert flake8.places(".") == []


def test_disable_noqa(flake8: Flake8) -> None:
    text = 'import torch\n\ns = "# noqa"; x = torch.load(p)  # NOQA: TM600\ny = torch.qr(a)  # torchmigrate: ignore[TM104] x\n'
    flake8.write("a.py", text)
    assert flake8.places("a.py") == []
    assert flake8.places("--disable-noqa", "a.py") == ["3 TM600"]


def test_a_comment_that_hides_nothing(flake8: Flake8) -> None:
    flake8.write("a.py", "x = 1  # noqa: TM600\n")
    assert flake8.places("a.py") == ["1 TM011"]
    flake8.write("a.py", "import torch\n\nx = torch.ones(1)  # torchmigrate: ignore[TM600] the old cluster\n")
    assert flake8.places("a.py") == ["3 TM011"]


# ---- the configuration of the file -----------------------------------------------------------------------


def test_the_nearest_configuration(flake8: Flake8) -> None:
    """Each file has its own, whatever process of flake8 checks it; each is checked once."""
    flake8.write("old/torchmigrate.toml", 'target = "1.7"\n')
    flake8.write("new/torchmigrate.toml", 'target = "2.15"\nignore = ["TM600"]\n')
    flake8.write(
        "pinned/torchmigrate.toml", 'per-file-ignores = {"a1.py" = ["TM104"]}\nextend-select = ["TM990"]\n'
    )
    for directory in ("old", "new", "pinned"):
        for number in range(4):
            flake8.write(f"{directory}/a{number}.py", f"{OLD}z = torch.log(1 + x)\n")
    for jobs in ("1", "3"):
        done = flake8.run("--select=TM", f"--jobs={jobs}", ".", code=1)
        found = sorted(re.findall(r"(\w+)/a(\d)\.py:\d+:\d+: (TM\w+)", done.stdout))
        assert found == [
            *(("new", str(number), "TM104") for number in range(4)),
            *(
                ("pinned", str(number), code)
                for number in range(4)
                for code in ("TM104", "TM600", "TM990")
                if (number, code) != (1, "TM104")
            ),
        ]


def test_what_flake8_selects_wins(flake8: Flake8) -> None:
    """As the command line of `check` does; the name of the plugin alone is no such selection."""
    flake8.write("pyproject.toml", '[tool.torchmigrate]\nignore = ["TM6"]\n')
    flake8.write("a.py", OLD)
    assert flake8.places("a.py") == flake8.places("--select=TM", "a.py") == ["4 TM104"]
    assert flake8.places("--extend-select=TM600", "a.py") == ["3 TM600", "4 TM104"]
    assert flake8.places("--select=TOR102", "a.py") == ["3 TOR102"]


def test_what_the_project_requires(flake8: Flake8) -> None:
    """The minimum decides, as for `check`."""
    flake8.write("a.py", "import torch\n\nx = torch.func.vmap(f)\n")
    flake8.write("requirements.txt", "torch>=1.13\n")
    assert flake8.places("a.py") == ["3 TM005"]
    flake8.write("requirements.txt", "torch>=2.0\n")
    assert flake8.places("a.py") == []


def test_excluded_files_and_accepted_findings(flake8: Flake8) -> None:
    flake8.write(
        "pyproject.toml", '[tool.torchmigrate]\nextend-exclude = ["gen"]\nbaseline = "accepted.json"\n'
    )
    flake8.write("a.py", OLD)
    flake8.write("gen/a.py", OLD)
    launch(flake8.path, "baseline", "a.py").check_returncode()
    assert flake8.places(".") == []
    flake8.write("a.py", f"{OLD}z = torch.ger(a, b)\n")
    assert flake8.places(".") == ["5 TM110"]
    flake8.write("accepted.json", "{")
    assert flake8.places("a.py") == ["1 TM000"]


@pytest.mark.parametrize("options", [[], ["--select=TOR102"]])
def test_a_configuration_that_cannot_be_used(flake8: Flake8, options: list[str]) -> None:
    flake8.write("sub/torchmigrate.toml", "no-such-key = 1\n")
    flake8.write("sub/a.py", OLD)
    flake8.write("b.py", OLD)
    done = flake8.run(*options, "sub/a.py", "b.py", code=1)
    assert "sub/a.py:1:1: TM000 " in done.stdout and "no-such-key: unknown key" in done.stdout
    assert re.search(r"^b\.py:3:5: (TM600|TOR102) ", done.stdout, re.MULTILINE)


def test_runs_in_one_process(flake8: Flake8) -> None:
    """As editors do: each reads the configuration anew."""
    flake8.write("a.py", OLD)
    program = """
from pathlib import Path
from flake8.main.application import Application

for line in ("", "ignore = ['TM600']", "ignore = ['TM1']"):
    Path("pyproject.toml").write_text("[tool.torchmigrate]\\n" + line)
    Application().run(["--select=TM", "--jobs=1", "a.py"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=flake8.path, env=environment(), capture_output=True, text=True
    )
    assert re.findall(r":\d+: (TM\w+)", done.stdout) == ["TM600", "TM104", "TM104", "TM600"], done.stderr


# ---- texts -----------------------------------------------------------------------------------------------


def test_stdin(flake8: Flake8) -> None:
    done = flake8.run("--select=TM1", "-", stdin=OLD, code=1)
    assert done.stdout.startswith("stdin:4:5: TM104 ")
    flake8.write("sub/torchmigrate.toml", 'target = "1.7"\n')
    flake8.run("--select=TM1", "--stdin-display-name=sub/a.py", "-", stdin=OLD, code=0)


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbfimport torch\nx = torch.qr(a)\n",
        b"import torch\r\nx = torch.qr(a)\r\n",
        b"import torch\rx = torch.qr(a)\r",
        b"# coding: latin-1\nimport torch; s = '\xe9'; x = torch.qr(a)\n",
        b"\x0cimport torch\n\x0cx = torch.qr(a)",
        "import torch; s = 'größer 😀'; x = torch.qr(a)\n".encode(),
    ],
)
def test_places_are_in_characters(flake8: Flake8, data: bytes) -> None:
    """Where `torchmigrate check` has them as well."""
    flake8.write("a.py", data)
    (place,) = re.findall(r"^a\.py:(\d+:\d+): TM104", flake8.run("--select=TM1", "a.py").stdout)
    arguments = ("check", "a.py", "--output-format", "concise", "--no-cache")
    done = launch(flake8.path, *arguments)
    assert done.stdout.startswith(f"a.py:{place}: TM104 ")


def test_no_python(flake8: Flake8) -> None:
    """flake8 says so, and nothing else."""
    flake8.write("a.py", "import torch\nprint torch.qr(a)\n")
    done = flake8.run("--select=E9,TM,TOR", "a.py", code=1)
    assert len(done.stdout.splitlines()) == 1 and "E999" in done.stdout


def test_python_in_documentation(flake8: Flake8) -> None:
    flake8.write("pyproject.toml", "[tool.torchmigrate]\nembedded = true\n")
    flake8.write("a.py", '"""Doc.\n\n>>> import torch\n>>> torch.qr(a)\n"""\n')
    assert flake8.places("a.py") == ["4 TM104"]
