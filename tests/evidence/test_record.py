"""`torchmigrate record` and its plugin, on programs and tests that run with a real torch."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest
import torch
from harness.launcher import launch
from harness.project import SOURCE, Project, environment

assert torch.__version__  # these tests need it

# What a program can tell of itself. It prints what must not depend on whether it is recorded.
PROGRAM = """\
    import inspect, pickle, sys
    import torch
    from torch.overrides import TorchFunctionMode

    class Net(torch.nn.Module):
        def forward(self, x):
            return x.masked_fill_(x > 1, 0.0).norm()

    class Calls(TorchFunctionMode):
        def __init__(self):
            self.calls = []
        def __torch_function__(self, function, types, args=(), kwargs=None):
            self.calls.append(function.__name__)
            return function(*args, **(kwargs or {}))

    class Own(torch.Tensor):
        calls = []
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            cls.calls.append(function.__name__)
            return super().__torch_function__(function, types, args, kwargs)

    class Hidden:
        def __getattr__(self, name):
            print("asked for", name)
            raise AttributeError(name)

    @torch.compile(backend="eager", fullgraph=True)
    def compiled(x):
        return x.norm() + x.half().float().norm()

    def gone(x):
        if hasattr(torch, "rfft"):
            return "old"
        try:
            return torch.rfft(x, 1)
        except AttributeError as error:
            first = repr(error)
        try:
            return x.gesv(x)
        except AttributeError as error:
            return first + repr(error)

    def main():
        x = torch.ones(3)
        yield torch.jit.script(Net())(torch.ones(3)).item()
        yield torch.fx.symbolic_trace(Net()).code
        yield compiled(x).item()
        with Calls() as mode:
            x.norm()
        yield mode.calls
        Own.calls.clear()
        x.as_subclass(Own).norm()
        yield Own.calls
        yield gone(x)
        try:
            Hidden().norm()
        except AttributeError:
            pass
        yield torch.norm is torch.norm, x.norm == x.norm, pickle.loads(pickle.dumps(torch.norm)) is torch.norm
        yield inspect.getsource(Net)
        yield sys.argv, __name__, __file__, sys.path[0], sorted(name for name in vars(sys.modules["__main__"]) if "compiled_fn" not in name)
        yield "torchmigrate" in str(sys.path)

    if __name__ == "__main__":
        for item in main():
            print(item)
        torch.ones(2).norm().is_not_there
    """


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / ".git").mkdir()
    return Project(tmp_path, monkeypatch)


# What the tests of the projects have installed is not in the way of the recorder, and takes long to import.
VARIABLES = {"OMP_NUM_THREADS": "1", "PYTHONPATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def execute(project: Project, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the project, without torchmigrate on its path."""
    kept = environment(**{**VARIABLES, **variables})
    return subprocess.run(
        command, cwd=project.path, env=kept, capture_output=True, text=True, timeout=120, check=False
    )


def record(project: Project, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run it under `torchmigrate record`."""
    given = {**VARIABLES, **variables}
    return launch(project.path, "record", "--", *command, timeout=120, **given)


def evidence(project: Project) -> dict[str, dict[str, dict[str, list[str]]]]:
    """File -> "LINE NAME" -> what was seen there."""
    content = json.loads((project.path / ".torchmigrate" / "evidence.json").read_text())
    found: dict[str, dict[str, dict[str, list[str]]]] = {}
    for name, entry in content["files"].items():
        for place, slots in entry["places"].items():
            where, attribute = place.split(" ")
            line, column = map(int, where.split(":"))
            text = (project.path / name).read_text().splitlines()[line - 1]
            assert text[column - 1 :].startswith(attribute), place
            found.setdefault(name, {})[f"{line} {attribute}"] = slots
    return found


def test_a_program_runs_as_it_does_without(project: Project) -> None:
    project.write("program.py", dedent(PROGRAM))
    plain = execute(project, sys.executable, "program.py", "a", "b")
    recorded = record(project, sys.executable, "program.py", "a", "b")
    assert recorded.stdout == plain.stdout
    lines = recorded.stderr.splitlines()
    assert lines[:-1] == plain.stderr.splitlines()
    assert lines[-1].startswith("torchmigrate: .torchmigrate/evidence.json now has records of ")
    assert recorded.returncode == plain.returncode == 1
    seen = evidence(project)["program.py"]
    lines = dedent(PROGRAM).splitlines()
    gone = lines.index("        return torch.rfft(x, 1)") + 1
    assert seen[f"{gone} rfft"] == {"receiver": ["import:torch"], "gone": ["rfft"]}
    of_tensor = lines.index("        return x.gesv(x)") + 1
    assert seen[f"{of_tensor} gesv"] == {"receiver": ["tensor:float32:1:strided"], "gone": ["gesv"]}


LIBRARY = """\
    import torch

    def split(x, mask):
        q, r = x.qr()
        return q.masked_fill(mask, 0.0)

    def other(rows):
        return rows.symeig()

    class Rows:
        def symeig(self):
            return "secret of the user"
    """
TESTS = """\
    import torch, library

    def test_split():
        mask = torch.zeros(2, 2, dtype=torch.bool)
        assert library.split(torch.eye(2), mask=mask).norm() > 1

    def test_other():
        assert library.other(library.Rows())

    def test_wrong():
        x = library.split(torch.eye(2), torch.zeros(2, 2).bool())
        assert x.sum().item() == x.norm().item() + 100
    """
PYTEST = (
    sys.executable,
    "-m",
    "pytest",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:torchmigrate",
    "-q",
    "--no-header",
)


@pytest.fixture
def tested(project: Project) -> Project:
    project.write("library.py", dedent(LIBRARY))
    project.write("test_library.py", dedent(TESTS))
    return project


def without_times(text: str) -> list[str]:
    """The lines of a report, without what is another in every run: times and addresses."""
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    return [line.rpartition(" in ")[0] or line for line in text.splitlines()]


def test_tests_report_what_they_do_without(tested: Project) -> None:
    plain = execute(tested, *PYTEST)
    assert plain.returncode == 1 and "1 failed, 2 passed" in plain.stdout
    recorded = record(tested, *PYTEST)
    assert without_times(recorded.stdout) == without_times(plain.stdout)
    assert recorded.returncode == 1
    seen = evidence(tested)
    assert seen["library.py"]["4 qr"] == {"receiver": ["tensor:float32:2:strided"]}
    assert seen["library.py"]["8 symeig"] == {"receiver": ["object:library.Rows"]}
    assert seen["test_library.py"]["4 zeros"]["receiver"] == ["import:torch"]
    text = (tested.path / ".torchmigrate" / "evidence.json").read_text()
    assert "secret" not in text
    assert "UserWarning: torch.qr is deprecated" in text
    again = execute(tested, *PYTEST)  # nothing of the recording is left in compiled files
    assert without_times(again.stdout) == without_times(plain.stdout)
    before = tested.run("check", "--no-evidence", "--output-format", "concise", code=1).stdout
    after = tested.run("check", "--output-format", "concise", code=1).stdout
    assert "symeig" in before and "symeig" not in after
    assert "(seen at run time)" in after


def test_runs_add_to_each_other(tested: Project) -> None:
    record(tested, *PYTEST, "-k", "test_other")
    assert set(evidence(tested)["library.py"]) == {"8 symeig"}
    record(
        tested,
        sys.executable,
        "-c",
        "import library, torch; library.split(torch.eye(2).double(), torch.eye(2) > 2)",
    )
    assert evidence(tested)["library.py"]["4 qr"] == {"receiver": ["tensor:float64:2:strided"]}
    record(tested, *PYTEST, "-k", "test_split")
    both = ["tensor:float32:2:strided", "tensor:float64:2:strided"]
    seen = evidence(tested)["library.py"]
    assert seen["4 qr"] == {"receiver": both} and "8 symeig" in seen
    # What is known of a file goes when it changes.
    tested.write("library.py", dedent(LIBRARY) + "\n")
    record(tested, *PYTEST, "-k", "test_other")
    assert set(evidence(tested)["library.py"]) == {"8 symeig"}


def test_several_processes(tested: Project) -> None:
    tested.write(
        "test_more.py",
        dedent("""\
            import multiprocessing, subprocess, sys
            import library, torch

            def work(kind):
                library.split(torch.ones(1, 1).to(kind), torch.ones(1, 1) > 2)

            def test_fork():
                process = multiprocessing.get_context("fork").Process(target=work, args=(torch.float64,))
                process.start()
                process.join()

            def test_program():
                text = "import library, torch; library.split(torch.ones(1, 1) * 1j, torch.ones(1, 1) > 2)"
                subprocess.run([sys.executable, "-c", text], check=True)
            """),
    )
    done = record(tested, *PYTEST, "-p", "xdist", "-n", "2", "--dist", "loadfile")
    assert done.returncode == 1, done.stdout
    kinds = [f"tensor:{dtype}:2:strided" for dtype in ("complex64", "float32", "float64")]
    assert evidence(tested)["library.py"]["4 qr"] == {"receiver": kinds}
    left = (tested.path / ".torchmigrate" / "record").iterdir()
    assert [path.name for path in left] == ["settings.json"]


def test_the_plugin_of_pytest(tested: Project) -> None:
    plugin = ("-p", "torchmigrate.cli.pytest_plugin", "--torchmigrate-record")
    done = execute(tested, *PYTEST, *plugin, PYTHONPATH=str(SOURCE))
    assert "1 failed, 2 passed" in done.stdout
    assert "torchmigrate: .torchmigrate/evidence.json now has records of " in done.stdout
    assert evidence(tested)["library.py"]["4 qr"] == {"receiver": ["tensor:float32:2:strided"]}
    without = execute(tested, *PYTEST, *plugin[:2], PYTHONPATH=str(SOURCE))
    assert "torchmigrate" not in without.stdout


def test_the_exit_code_is_that_of_the_command(project: Project) -> None:
    assert record(project, sys.executable, "-c", "raise SystemExit(7)").returncode == 7
    killed = record(project, sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    assert killed.returncode == 128 + signal.SIGKILL
    missing = record(project, "no-such-command")
    assert missing.returncode == 2
    assert missing.stderr == "error: no-such-command: no such file or directory\n"


def test_nothing_to_be_kept(project: Project) -> None:
    done = record(project, sys.executable, "-c", "pass")
    assert (
        done.stderr == "torchmigrate: the command ran no code that a rule applies to; nothing was recorded.\n"
    )
    assert not (project.path / ".torchmigrate" / "evidence.json").exists()


def test_a_link_is_not_written_through(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (project.path / ".torchmigrate").symlink_to(outside)
    done = record(project, sys.executable, "-c", "pass")
    assert done.returncode == 2
    assert ".torchmigrate is a symbolic link: not written" in done.stderr
    assert not list(outside.iterdir())


def test_an_own_sitecustomize_runs(project: Project) -> None:
    project.write("own/sitecustomize.py", "print('mine')\n")
    text = "import sys; print('inject' in str(sys.path))"
    done = record(project, sys.executable, "-c", text, PYTHONPATH=str(project.path / "own"))
    assert done.stdout.splitlines() == ["mine", "False"]


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_control_c_goes_to_the_command(project: Project) -> None:
    project.write(
        "slow.py",
        "import time\ntry:\n    print('up', flush=True)\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('down')\n    raise SystemExit(5)\n",
    )
    kept = environment()
    program = [sys.executable, "-m", "torchmigrate", "record", "--", sys.executable, "slow.py"]
    with subprocess.Popen(
        program,
        cwd=project.path,
        env=kept,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    assert (out, process.returncode) == ("down\n", 5)
