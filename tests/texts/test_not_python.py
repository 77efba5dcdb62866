"""Files that are not Python, as a user of the program has them; single findings are examples of the rules."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest
from harness.launcher import launch
from harness.project import Project

from torchmigrate.catalogue.store import default_catalogue
from torchmigrate.codemods.small import environment
from torchmigrate.source.other import kind_of_name
from torchmigrate.texts.commands import commands_of
from torchmigrate.texts.cpp import Code
from torchmigrate.versions.releases import RELEASES, companion, companion_patches, show_version

LAUNCH = "python -m torch.distributed.launch --nproc_per_node=2 --use_env train.py\n"
RUN = "torchrun --nproc_per_node=2 train.py\n"
KERNEL = dedent("""\
    #include <torch/extension.h>
    void f(at::Tensor x) {
      AT_CHECK(x.type().is_cuda(), "x must be on a GPU");
      AT_CHECK(x.is_contiguous());
    }
""")

ENDS = 120  # seconds


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


def found(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    return [line.split(" ")[:2] for line in done.stdout.splitlines()]


def concise(project: Project, *options: str, code: int | None = None) -> list[list[str]]:
    return found(project.run("check", "--output-format", "concise", *options, code=code))


# ---- which files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("run.sh", "shell"),
        ("job.slurm", "shell"),
        ("job.SBATCH", "shell"),
        ("Makefile", "make"),
        ("rules.mk", "make"),
        ("Dockerfile", "docker"),
        ("Dockerfile.gpu", "docker"),
        ("gpu.dockerfile", "docker"),
        ("ci.yml", "yaml"),
        ("README.md", "markdown"),
        ("pyproject.toml", "toml"),
        ("setup.cfg", "ini"),
        ("requirements.txt", "requirements"),
        ("requirements-dev.txt", "requirements"),
        ("dev_requirements.in", "requirements"),
        ("constraints.txt", "requirements"),
        ("kernel.cu", "cpp"),
        ("kernel.cuh", "cpp"),
        ("ops.cpp", "cpp"),
        ("train.py", None),
        ("notes.txt", None),
        ("CMakeLists.txt", None),
        ("poetry.toml", None),
        ("file", None),
        (".sh", None),
    ],
)
def test_kinds_by_name(name: str, kind: str | None) -> None:
    assert kind_of_name(name) == kind


def test_lists_in_a_directory_of_requirements() -> None:
    assert kind_of_name("base.txt", "requirements") == "requirements"
    assert kind_of_name("base.txt", "data") is None


def test_directories_give_them_and_options_leave_them_out(project: Project) -> None:
    project.write("run.sh", LAUNCH)
    project.write("docs/README.md", f"```sh\n{LAUNCH}```\n")
    project.write("csrc/kernel.cu", KERNEL)
    project.write("notes.txt", LAUNCH)
    project.write("build/run.sh", LAUNCH)
    every = [
        ["csrc/kernel.cu:3:3:", "TM975"],
        ["csrc/kernel.cu:3:14:", "TM977"],
        ["docs/README.md:2:8:", "TM970"],
        ["run.sh:1:8:", "TM970"],
    ]
    assert concise(project, code=1) == every
    assert concise(project, "--extend-exclude", "*.md,csrc", code=1) == every[3:]
    assert concise(project, "--select", "TM975", code=1) == every[:1]
    assert concise(project, "--ignore", "TM970,TM977", code=1) == every[:1]


def test_include_says_what_directories_give(project: Project) -> None:
    project.write("run.sh", LAUNCH)
    project.write("README.md", f"```sh\n{LAUNCH}```\n")
    project.write("old.py", "import torch\nx = torch.symeig(y)\n")
    project.write("stub.in", "import torch\nx = torch.symeig(y)\n")
    project.write("torchmigrate.toml", 'include = ["*.py"]\n')
    assert concise(project) == [["old.py:2:5:", "TM100"]]
    assert concise(project, "run.sh") == [["run.sh:1:8:", "TM970"]]  # it is named
    project.write("torchmigrate.toml", 'include = ["*.sh"]\n')
    assert concise(project) == [["run.sh:1:8:", "TM970"]]
    project.write("torchmigrate.toml", 'extend-include = ["*.in"]\n')
    assert [where for where, _ in concise(project)] == [
        "README.md:2:8:",
        "old.py:2:5:",
        "run.sh:1:8:",
        "stub.in:2:5:",
    ]


def test_git_ignores_and_tracks_them(project: Project) -> None:
    subprocess.run(["git", "init", "-q", str(project.path)], check=True)
    project.write(".gitignore", "*.sh\n")
    project.write("run.sh", LAUNCH)
    project.write("tracked.sh", LAUNCH)
    subprocess.run(["git", "-C", str(project.path), "add", "-f", "tracked.sh"], check=True)
    assert concise(project) == [["tracked.sh:1:8:", "TM970"]]


def test_per_file_ignores(project: Project) -> None:
    project.write("docs/README.md", f"```sh\n{LAUNCH}```\n")
    project.write("run.sh", LAUNCH)
    project.write("torchmigrate.toml", '[per-file-ignores]\n"docs/**" = ["launch-in-commands"]\n')
    assert concise(project) == [["run.sh:1:8:", "TM970"]]


# ---- fixing -------------------------------------------------------------------------------------------


def test_fixed_once_and_nothing_else_changes(project: Project) -> None:
    kernel = KERNEL.replace("AT_CHECK", "TORCH_CHECK").replace("x.type().is_cuda()", "x.is_cuda()")
    texts = {
        "run.sh": (f"#!/bin/sh\r\n{LAUNCH.strip()}\r\n# ende: schön".encode(), RUN),
        "kernel.cu": (("// Größe\n" + KERNEL).encode("latin-1"), kernel),
        "Makefile": (b"\xef\xbb\xbftrain:\n\t@" + LAUNCH.encode(), RUN),
    }
    wanted = {
        "run.sh": f"#!/bin/sh\r\n{RUN.strip()}\r\n# ende: schön".encode(),
        "kernel.cu": ("// Größe\n" + kernel).encode("latin-1"),
        "Makefile": b"\xef\xbb\xbftrain:\n\t@" + RUN.encode(),
    }
    for name, (data, _) in texts.items():
        project.write(name, data)
    # `@python` is a word of its own: it is not `python`.
    wanted["Makefile"] = wanted["Makefile"].replace(b"@torchrun", b"@python -m torch.distributed.run")
    diff = project.run_bytes("check", "--diff").stdout
    project.run("check", "--fix", code=0)
    assert {name: (project.path / name).read_bytes() for name in texts} == wanted
    assert b"+torchrun --nproc_per_node=2 train.py" in diff
    project.run("check", "--diff", code=0)


def test_a_whole_project(project: Project) -> None:
    before, after = (Path(__file__).parent / "projects" / name for name in ("before", "after"))
    names = sorted(path.relative_to(before) for path in before.rglob("*") if path.is_file())
    for name in names:
        project.write(str(name), (before / name).read_bytes())
    project.run("check", "--isolated", "--fix-pins", code=1)
    for name in names:
        assert (project.path / name).read_bytes() == (after / name).read_bytes(), name
    project.run("check", "--isolated", "--fix-pins", "--diff", code=0)


def test_stdin(project: Project) -> None:
    done = project.run("check", "--fix", "-", "--stdin-filename", "run.sh", stdin=LAUNCH, code=0)
    assert done.stdout == RUN


def test_the_minimum_decides_how_safe_a_fix_is(project: Project) -> None:
    project.write("run.sh", LAUNCH)
    project.run("check", "--fix", "--minimum", "1.8", code=1)
    assert (project.path / "run.sh").read_text() == LAUNCH
    assert concise(project, "--target", "1.8", code=0) == []


def test_json_has_places_and_reasons(project: Project) -> None:
    project.write("run.sh", LAUNCH.replace(" --use_env", ""))
    (item,) = json.loads(project.run("check", "--output-format", "json", code=1).stdout)
    assert (item["code"], item["severity"], item["fix"]) == ("TM970", "warning", None)
    assert item["location"] == {"row": 1, "column": 8}
    assert [reason["text"] for reason in item["blocked_by"]] == [
        "`torchrun` does not pass `--local-rank`, and `train.py` was not found"
    ]


def test_the_script_that_is_started_decides(project: Project) -> None:
    plain = LAUNCH.replace(" --use_env", "")
    project.write("scripts/run.sh", plain)
    project.write("train.py", "rank = args.rank\n")
    assert "does not read `LOCAL_RANK`" in project.run("check", "--select", "TM970").stdout
    project.write("train.py", 'import os\nrank = int(os.environ["LOCAL_RANK"])\n')
    project.run("check", "--select", "TM970", "--fix", code=0)
    assert (project.path / "scripts/run.sh").read_text() == RUN


# ---- comments that hide findings ----------------------------------------------------------------------


def test_suppressions_of_every_kind(project: Project) -> None:
    note = "torchmigrate: ignore[TM970] the old cluster"
    project.write("one.sh", LAUNCH.strip() + f"  # {note}\n" + LAUNCH)
    project.write("two.sh", f"python -m torch.distributed.launch \\\n  --use_env a.py  # {note}\n")
    project.write("file.sh", "# torchmigrate: ignore-file[launch-in-commands] all of it\n" + LAUNCH)
    project.write("kernel.cu", KERNEL.replace(");\n", ");  // torchmigrate: ignore[TM975] later\n"))
    project.write("README.md", f"<!-- torchmigrate: ignore-file[TM970] -->\n```sh\n{LAUNCH}```\n")
    assert concise(project) == [["kernel.cu:3:14:", "TM977"], ["one.sh:2:8:", "TM970"]]


def test_suppressions_that_hide_nothing_are_reported_and_removed(project: Project) -> None:
    project.write(
        "run.sh", "torchrun train.py  # torchmigrate: ignore[TM970]\ntrue  # torchmigrate: ignore\n"
    )
    assert concise(project) == [["run.sh:1:20:", "TM011"], ["run.sh:2:7:", "TM010"]]
    project.run("check", "--fix")
    assert (project.path / "run.sh").read_text() == "torchrun train.py\ntrue  # torchmigrate: ignore\n"


# ---- commands -----------------------------------------------------------------------------------------


def words(text: str, kind: str = "shell") -> list[list[str]]:
    return [[word.text for word in command.words] for command in commands_of(text, kind)]


def test_words_of_commands() -> None:
    assert words("a 'b c'  \\\n  d # e\n$X -m ${Y:-z} && f; g | h") == [
        ["b", "c"],
        ["a", "b c", "d"],
        ["$X", "-m", "${Y:-z}"],
        ["f"],
        ["g"],
        ["h"],
    ]
    assert words('A=1 sudo echo "b c"\nX=`b c`') == [["X="], ["b", "c"]]
    assert words('RUN ["a", "b c"] # d\n', "docker") == [["RUN"], ["a", "b c"]]
    assert words("RUN a \\\n# b\n  c\n", "docker") == [["RUN", "a", "c"]]
    assert words("args:\n  - a\n  - 'b'\n\n  - c\n", "yaml")[-1] == ["a", "b", "c"]
    assert words("run: >\n  a\n  --b 1\n", "yaml") == [["run:", ">"], ["a", "--b", "1"]]
    assert words("no a\n~~~bash\nb\n~~~\n```python\nc\n```\n    ```\n    d\n    ```\n", "markdown") == [
        ["b"],
        ["d"],
    ]


def test_commands_in_files_of_every_kind(project: Project) -> None:
    command = LAUNCH.strip()
    project.write("ci.yml", f"steps:\n  - run: {command}\n  - run: |\n      cd x\n      {command}\n")
    project.write("Dockerfile", f'FROM x\nCMD {command}\nRUN bash -c "{command}"\n')
    project.write("Makefile", f"train:\n\t{command}\n")
    project.write("job.sbatch", f"#SBATCH -N 2\nsrun {command}\n")
    project.write("tox.ini", f"[testenv]\ncommands = {command}\n")
    done = project.run("check", "--select", "TM970", "--fix", code=0)
    assert "Fixed" in done.stderr
    texts = [
        (project.path / name).read_text()
        for name in ("ci.yml", "Dockerfile", "Makefile", "job.sbatch", "tox.ini")
    ]
    assert [text.count(RUN.strip()) for text in texts] == [2, 2, 1, 1, 1]
    assert not any("launch" in text for text in texts)


def test_fences_in_lists_and_code_in_a_line_of_markdown(project: Project) -> None:
    command = LAUNCH.strip()
    text = f"* ```python make.py``` makes the data\n\n1. ```bash\n   {command}\n   ```\n\n  ```\n  {command}\n  ```\n"
    text += f"\n```{command}```\n\n- `{command}`\n"
    project.write("data.md", text)
    project.run("check", "--select", "TM970", "--fix", code=0)
    assert (project.path / "data.md").read_text() == text.replace(command, RUN.strip())


def test_variables_are_those_that_python_code_is_told_of() -> None:
    rules = {rule.name: rule for rule in default_catalogue().of_other_files}
    renamed = {name: values.get("new") for name, values in rules["nccl-variables"].symbols.items()}
    assert renamed == {name: variable.new for name, variable in environment._RENAMED.items()}
    unread = {name: values["changed"] for name, values in rules["unread-variables"].symbols.items()}
    # TVM_SCHEDULER is too short a name for what is not known to be about torch.
    wanted = {name: variable.since for name, variable in environment._UNREAD.items()}
    assert unread == {name: since for name, since in wanted.items() if name != "TVM_SCHEDULER"}


# ---- C++ ----------------------------------------------------------------------------------------------


def test_tokens_of_cpp() -> None:
    text = 'a /* b */ "c" // d\nR"x(e)")x" \'f\' 1\'000 g::h->i\n#if 0\nj\n#else\nk\n#endif\nl'
    tokens = Code(text, Path("a.cu"), lambda _: None).tokens
    assert [token.text for token in tokens if token.text != "\n"] == [
        *["a", '"c"', 'R"x(e)")x"', "'f'", "1'000", "g", "::", "h", "->", "i", "j", "k", "l"]
    ]
    assert [token.text for token in tokens if token.guarded and token.text != "\n"] == ["j", "k"]


@pytest.mark.parametrize(
    "guard",
    [
        "#if TORCH_VERSION_MAJOR < 2",
        "#ifdef OLD_TORCH",
        "#ifndef VERSION_GE_1_5",
        "#if defined(PYTORCH_OLD)",
        "#if 0",
        "#ifndef TORCH_CHECK",
    ],
)
def test_guarded_cpp_is_left_alone(project: Project, guard: str) -> None:
    project.write(
        "kernel.cu",
        KERNEL.replace("  AT_CHECK(x.type()", f"{guard}\n  AT_CHECK(x.type()").replace("}\n", "#endif\n}\n"),
    )
    assert concise(project, code=0) == []


def test_what_has_nothing_to_do_with_torch_is_left_alone(project: Project) -> None:
    project.write(
        "other.cpp", '#include "matrix.h"\nfloat *f(M x) { AT_CHECK(x); return x.data<float>(); }\n'
    )
    assert concise(project, code=0) == []


def test_headers_of_torch_may_come_by_another_header(project: Project) -> None:
    project.write("kernel.cpp", '#include "kernel.h"\nfloat *f(at::Tensor x) { return x.data<float>(); }\n')
    assert concise(project) == [["kernel.cpp:2:35:", "TM978"]]


# ---- pins ---------------------------------------------------------------------------------------------


def test_pins_are_raised_together_when_asked(project: Project) -> None:
    project.write(
        "requirements.txt", "torch==1.13.1  # old\ntorchvision==0.14.1\ntorchaudio==0.13.1\nnumpy<2\n"
    )
    project.write("environment.yml", "dependencies:\n  - pip:\n    - torch==1.13.1\n")
    project.write(
        "setup.py",
        "from setuptools import setup\nsetup(install_requires=[\"torch>=1.8,<2.0\", 'torchvision'])\n",
    )
    project.write("Dockerfile", "FROM x\nRUN pip install torch==1.13.1+cu117 torchvision==0.14.1+cu117\n")
    project.write("README.md", "```\npip install torch==1.13.1\n```\n")
    assert concise(project, "--isolated", code=0) == []
    diff = project.run("check", "--isolated", "--fix-pins", "--diff", code=1).stdout
    assert "+torch==2.15.0  # old" in diff
    project.run("check", "--isolated", "--fix-pins", code=1)
    assert (project.path / "requirements.txt").read_text() == (
        "torch==2.15.0  # old\ntorchvision==0.29.*\ntorchaudio==2.11.*\nnumpy<2\n"
    )
    assert "    - torch==2.15.0\n" in (project.path / "environment.yml").read_text()
    assert "\"torch>=1.8,<2.16\", 'torchvision'" in (project.path / "setup.py").read_text()
    left = [["Dockerfile:2:17:", "TM984"], ["Dockerfile:2:37:", "TM984"], ["README.md:2:13:", "TM984"]]
    assert concise(project, "--isolated", "--fix-pins") == left


def test_pins_go_to_the_target(project: Project) -> None:
    project.write("requirements.txt", "torch==1.4.0\ntorchvision==0.5.0\ntorchtext==0.9.0\n")
    project.run("check", "--isolated", "--fix-pins", "--target", "2.1")
    assert (
        project.path / "requirements.txt"
    ).read_text() == "torch==2.1.2\ntorchvision==0.16.*\ntorchtext==0.16.*\n"


@pytest.mark.parametrize(("old", "target"), [("0.28", "2.15"), ("0.28.0", "2.15"), ("0.28.*", "2.15")])
def test_a_first_patch_release_that_goes_with_an_older_torch_is_no_pin(
    project: Project, old: str, target: str
) -> None:
    """torchvision 0.29.0 asks for torch 2.14.0, later ones for any torch from there on."""
    project.write("requirements.txt", f"torch==2.13.0\ntorchvision=={old}\n")
    project.run("check", "--isolated", "--fix-pins", "--target", target)
    assert "torchvision==0.29.*\n" in (project.path / "requirements.txt").read_text()


@pytest.mark.parametrize("release", RELEASES[2:])
def test_companions_of_the_table_fit(project: Project, release: tuple[int, int]) -> None:
    lines = [f"torch=={show_version(release)}.0"]
    for name in ("torchvision", "torchaudio"):
        patch = companion_patches(name, release)[0]
        lines.append(f"{name}=={show_version(companion(name, release))}.{patch}")
    project.write("requirements.txt", "\n".join(lines))
    assert concise(project, "--isolated", code=0) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("torch==1.7.1\ntorchvision==0.9.0\n", 1),
        ("torch==1.7.1+cu110\ntorchvision==0.9.0+cu110\n", 1),
        ("torch>=2.0\ntorchvision==0.9.0\n", 1),
        ("torch==1.7.1\ntorchvision>=0.8,<0.10\n", 0),
        ("torch>=1.7\ntorchvision==0.9.0\n", 0),
        ("torch==0.4.1\ntorchvision==0.2.1\n", 0),
        ("torch==1.3.1\ntorchvision==0.4.2\ntorchaudio==0.3.2\n", 0),
        ("torch==1.2.0\ntorchvision==0.4.0\ntorchaudio==0.3.0\n", 0),
        ("torch==1.2.0\ntorchvision==0.4.2\ntorchaudio==0.3.1\n", 2),
        ("torch==1.3.0\ntorchvision==0.4.0\ntorchaudio==0.3.0\n", 2),
        ("torch==2.15.0\ntorchvision==0.29.0\n", 1),
        ("torch==2.15.0\ntorchvision==0.29.2\n", 0),
        ("torch==1.7.1\n# torchvision==0.9.0\n", 0),
        ("torch==1.0.1\ntorchvision==0.2.2\n", 0),
        ("torch-geometric==1.7\ntorchvision==0.9.0\n", 0),
        ("torch==9.9\ntorchvision==0.9.0\n", 0),
    ],
)
def test_companions_that_do_not_belong_together(project: Project, text: str, wrong: int) -> None:
    project.write("requirements.txt", text)
    assert len(concise(project, "--isolated", "--select", "TM983")) == wrong


# ---- hostile input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["a.sh", "Dockerfile", "a.yml", "a.md", "a.cu", "requirements.txt", "pyproject.toml"]
)
@pytest.mark.parametrize(
    "data", [b"torch\0", b"torch \xff\xfe", b"torch\r\r\n'", b"\xef\xbb\xbftorch `", b""]
)
def test_strange_bytes_are_no_problem(project: Project, name: str, data: bytes) -> None:
    project.write(name, data)
    assert concise(project, "--isolated", code=0) == []


@pytest.mark.parametrize(
    "part",
    [
        "${",
        "'",
        '"',
        "$(",
        "\\",
        '["a",',
        "```\n",
        "- a\n",
        "/*",
        'R"x(',
        "#if 1\n",
        "{",
        "torch==1,",
        "torch = {",
    ],
)
def test_it_ends(project: Project, part: str) -> None:
    """In a few seconds; what is done again for every part would take hours."""
    text = "install dependencies poetry torch\n" + part * 60_000
    for name in ("a.sh", "Dockerfile", "a.yml", "a.md", "requirements.txt", "pyproject.toml", "a.cu"):
        project.write(f"many/{name}", text)
    done = launch(project.path, "check", "--isolated", "many", timeout=ENDS)
    assert done.returncode in (0, 1, 2) and "Traceback" not in done.stderr and "internal" not in done.stderr


def test_links_that_lead_nowhere_are_nobodys_loss(project: Project) -> None:
    (project.path / "gone.md").symlink_to("nowhere.md")
    (project.path / "run.sh").symlink_to("/etc/passwd")
    project.run("check", "--isolated", code=0)


def test_what_a_fixed_command_needs_is_said(project: Project) -> None:
    project.write("run.sh", LAUNCH)
    done = project.run("check", "--isolated", "--fix", code=0)
    assert (project.path / "run.sh").read_text() == RUN
    assert "The fixed file needs torch 1.10 or newer." in done.stderr


def test_bad_patterns_of_what_is_excluded_and_included_are_both_named(project: Project) -> None:
    project.write("torchmigrate.toml", 'extend-exclude = ["a["]\nextend-include = ["b["]\n')
    errors = project.run("check", code=2).stderr
    assert "invalid exclude pattern" in errors and "invalid include pattern" in errors
