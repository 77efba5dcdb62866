"""What `check` and `plan` make of evidence, as `torchmigrate record` writes it."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from textwrap import dedent

import pytest
from harness.project import Project

MATRIX = "tensor:float32:2:strided"
MASK = "tensor:uint8:1:strided"
ROWS = "object:lib.Rows"
POWER, SYMEIG, UINT8_MASK, T_OF_NO_MATRIX = "TM058", "TM100", "TM029", "TM054"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / ".git").mkdir()
    return Project(tmp_path, monkeypatch)


def write_evidence(
    project: Project,
    name: str,
    places: dict[str, dict[str, list[str]]],
    warnings: dict[str, list[str]] | None = None,
) -> None:
    """Evidence of one file as it is now; places: "LINE:COLUMN NAME" -> slot -> kinds; warnings: by line."""
    digest = hashlib.sha256((project.path / name).read_bytes()).hexdigest()
    entry = {"sha256": digest, "places": places, "warnings": warnings or {}}
    content = {"version": 1, "files": {name: entry}}
    project.write(".torchmigrate/evidence.json", json.dumps(content))


def found(project: Project, *options: str) -> list[tuple[str, str]]:
    """Code and message of every finding."""
    done = project.run("check", "--output-format", "json", "--quiet", *options)
    assert done.stderr == ""
    return [(item["code"], item["message"]) for item in json.loads(done.stdout)]


def seen(project: Project, text: str, **places: dict[str, list[str]]) -> None:
    """A file `lib.py`, and what was seen at the first place of some names."""
    text = dedent(text)
    project.write("lib.py", text)
    at = {}
    for name, slots in places.items():
        row = next(
            number for number, line in enumerate(text.splitlines(), 1) if re.search(rf"\.{name}\b", line)
        )
        column = text.splitlines()[row - 1].rindex(f".{name}") + 2
        at[f"{row}:{column} {name}"] = slots
    write_evidence(project, "lib.py", at)


UNKNOWN = """\
    import torch

    def f(rows):
        return rows.matrix_power(2)
    """


def test_an_object_of_unknown_kind_is_what_it_was_in_every_run(project: Project) -> None:
    seen(project, UNKNOWN, matrix_power={"receiver": [MATRIX, "tensor:float64:3:strided"]})
    assert found(project, "--no-evidence") == []
    [(code, message)] = found(project)
    assert code == POWER and message.endswith("(seen at run time)")


def test_what_was_a_tensor_in_some_runs_only_is_none(project: Project) -> None:
    seen(project, UNKNOWN, matrix_power={"receiver": [MATRIX, "array:f:2"]})
    assert found(project) == []


def test_so_many_kinds_say_nothing(project: Project) -> None:
    seen(project, UNKNOWN, matrix_power={"receiver": ["*"]})
    assert found(project) == []


def test_the_fix_is_not_safe(project: Project) -> None:
    seen(project, UNKNOWN, matrix_power={"receiver": [MATRIX]})
    project.run("check", "--fix", code=1)
    assert "rows.matrix_power(2)" in (project.path / "lib.py").read_text()
    done = project.run("check", code=1)
    assert "(only recorded types show that it is a tensor)" in done.stdout
    project.run("check", "--fix", "--unsafe-fixes", code=0)
    assert "torch.linalg.matrix_power(rows, 2)" in (project.path / "lib.py").read_text()


def test_the_configuration_can_make_it_safe(project: Project) -> None:
    seen(project, UNKNOWN, matrix_power={"receiver": [MATRIX]})
    project.write("torchmigrate.toml", 'extend-safe-fixes = ["TM058"]\n')
    project.run("check", "--fix", code=0)
    assert "torch.linalg.matrix_power(rows, 2)" in (project.path / "lib.py").read_text()


def test_what_the_text_tells_stays_safe(project: Project) -> None:
    text = """\
        import torch

        A = torch.ones(3, 3)
        L = A.matrix_power(2)
        """
    seen(project, text, matrix_power={"receiver": [MATRIX]})
    [(_, message)] = found(project)
    assert "seen at run time" not in message
    project.run("check", "--fix", code=0)
    assert "torch.linalg.matrix_power(A, 2)" in (project.path / "lib.py").read_text()


MAYBE = """\
    import torch

    def f(rows):
        return rows.symeig(eigenvectors=True)
    """


def test_a_maybe_that_never_was_is_silent(project: Project) -> None:
    seen(project, MAYBE, symeig={"receiver": [ROWS]})
    assert [code for code, _ in found(project, "--no-evidence")] == [SYMEIG]
    assert found(project) == []
    assert found(project, "--isolated") == found(project, "--no-evidence")


def test_a_maybe_that_sometimes_was_stays_one(project: Project) -> None:
    seen(project, MAYBE, symeig={"receiver": [ROWS, MATRIX]})
    assert found(project) == found(project, "--no-evidence")


def test_none_says_nothing(project: Project) -> None:
    seen(project, MAYBE, symeig={"receiver": ["object:NoneType"]})
    assert found(project) == found(project, "--no-evidence")


def test_conditions_on_the_dtype_of_an_argument(project: Project) -> None:
    text = """\
        import torch

        def f(mask):
            x = torch.zeros(3)
            return x.masked_fill(mask, 1.0)
        """
    seen(project, text, masked_fill={"receiver": ["tensor:float32:1:strided"], "0": [MASK]})
    assert found(project, "--no-evidence") == []
    [(code, message)] = found(project)
    assert code == UINT8_MASK and message.endswith("(seen at run time)")
    project.run("check", "--fix", "--unsafe-fixes", code=0)
    assert "x.masked_fill(mask.bool(), 1.0)" in (project.path / "lib.py").read_text()


def test_bool_masks_are_none_of_uint8(project: Project) -> None:
    text = """\
        import torch

        def f(mask):
            return torch.zeros(3).masked_fill(mask, 1.0)
        """
    seen(project, text, masked_fill={"0": ["tensor:bool:1:strided"]})
    assert found(project) == []


def test_the_number_of_dimensions(project: Project) -> None:
    text = """\
        import torch

        def f(x: "torch.Tensor"):
            return x.T
        """
    seen(project, text, T={"receiver": ["tensor:float32:3:strided"]})
    assert found(project, "--no-evidence") == []
    assert [code for code, _ in found(project)] == [T_OF_NO_MATRIX]
    project.run("check", "--fix", "--unsafe-fixes", code=0)
    assert "x.permute(2, 1, 0)" in (project.path / "lib.py").read_text()


def test_matrices_may_be_transposed(project: Project) -> None:
    text = """\
        import torch

        def f(x: "torch.Tensor"):
            return x.T
        """
    seen(project, text, T={"receiver": [MATRIX, "tensor:float32:3:strided"]})
    assert found(project) == []


ASSERTED = """\
    import torch

    def check(actual, expected):
        torch.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3)
    """
BATCH = "tensor:float32:3:strided"


@pytest.mark.parametrize("other", [MATRIX, "object:float", "array:f:1"])
def test_arguments_of_different_dimensions(project: Project, other: str) -> None:
    seen(project, ASSERTED, assert_allclose={"0": [BATCH, "tensor:float64:4:strided"], "1": [other]})
    project.run("check", "--fix", "--unsafe-fixes", code=0)
    assert (project.path / "lib.py").read_text() == dedent("""\
        import torch

        def check(actual, expected):
            torch.testing.assert_close(*torch.broadcast_tensors(torch.as_tensor(actual), torch.as_tensor(expected)), rtol=1e-3, atol=1e-3, equal_nan=True, check_dtype=False)
        """)


@pytest.mark.parametrize("other", [[MATRIX, BATCH], ["object:list"], ["object:NoneType", MATRIX], ["*"], []])
def test_arguments_that_may_have_as_many_dimensions(project: Project, other: list[str]) -> None:
    seen(project, ASSERTED, assert_allclose={"0": [BATCH], "1": other})
    project.run("check", "--fix", "--unsafe-fixes", code=0)
    assert "broadcast" not in (project.path / "lib.py").read_text()


@pytest.mark.parametrize(
    ("shapes", "broadcast"),
    [
        (["shape:other"], True),
        (["shape:other", "shape:same"], True),
        (["shape:same"], False),
        (["shape:?"], False),
    ],
)
def test_arguments_of_different_shapes(project: Project, shapes: list[str], broadcast: bool) -> None:
    seen(project, ASSERTED, assert_allclose={"0": [BATCH], "1": [BATCH], "shapes": shapes})
    project.run("check", "--fix", "--unsafe-fixes", code=0)
    assert ("broadcast" in (project.path / "lib.py").read_text()) == broadcast


def test_a_call_that_no_run_came_to_is_like_the_one_before(project: Project) -> None:
    text = """\
        from torch.testing import assert_allclose

        def check(actual, expected):
            assert_allclose(actual, 1.5)
            assert_allclose(actual, expected)
            assert_allclose(actual, expected + 1)

        def other(actual, expected):
            assert_allclose(actual, expected)
        """
    project.write("lib.py", dedent(text))
    known = {"0": [BATCH], "1": [BATCH], "shapes": ["shape:other"]}
    places = {"4:5 assert_allclose": {"0": [BATCH]}, "5:5 assert_allclose": known}
    write_evidence(project, "lib.py", places)
    project.run("check", "--fix", "--unsafe-fixes", code=0)
    lines = (project.path / "lib.py").read_text().splitlines()
    assert ["broadcast" in line for line in lines if "assert_close(" in line] == [False, True, True, False]


def test_methods_of_modules_and_optimizers(project: Project) -> None:
    text = """\
        import torch

        def f(net, hook):
            net.encoder.register_backward_hook(hook)
        """
    base = "object:lib.Net:torch.nn.modules.module.Module"
    seen(project, text, register_backward_hook={"receiver": [base]})
    assert any("seen at run time" in message for _, message in found(project))


def test_a_file_that_has_changed_is_not_spoken_of(project: Project) -> None:
    seen(project, UNKNOWN, matrix_power={"receiver": [MATRIX]})
    path = project.path / "lib.py"
    path.write_text(path.read_text() + "\n")
    assert found(project) == []


def test_later_rounds_of_fixes_know_what_was_seen_before(project: Project) -> None:
    """The fix of what is inside waits for that of what is around it, which moves it."""
    line = "    return a.matrix_power(b.matrix_power(2).size(0))"
    project.write("lib.py", f"import torch\n\ndef f(a, b):\n{line}\n")
    columns = line.index("matrix_power") + 1, line.rindex("matrix_power") + 1
    write_evidence(
        project, "lib.py", {f"4:{column} matrix_power": {"receiver": [MATRIX]} for column in columns}
    )
    project.run("check", "--fix", "--unsafe-fixes", code=0)
    new = "torch.linalg.matrix_power"
    assert f"return {new}(a, {new}(b, 2).size(0))" in (project.path / "lib.py").read_text()


def test_columns_count_characters(project: Project) -> None:
    text = 'import torch\n\ndef f(a):\n    name = "äöü"; b = a.matrix_power(2)\n'
    project.write("lib.py", text)
    column = text.splitlines()[3].index("matrix_power") + 1
    write_evidence(project, "lib.py", {f"4:{column} matrix_power": {"receiver": [MATRIX]}})
    assert [code for code, _ in found(project)] == [POWER]


def test_a_plan_counts_what_was_seen(project: Project) -> None:
    seen(project, MAYBE, symeig={"receiver": [ROWS]})
    rows = [
        json.loads(project.run("plan", "--output-format", "json", *options, code=0).stdout)["effort"]
        for options in ([], ["--no-evidence"])
    ]
    assert [row["unsafe"] for row in rows] == [0, 1]


def test_the_nearest_evidence_above_a_file_counts(project: Project) -> None:
    seen(project, UNKNOWN, matrix_power={"receiver": [MATRIX]})
    inside = project.path / "lib.py"
    (project.path / "pkg").mkdir()
    inside.replace(project.path / "pkg" / "lib.py")
    write_evidence(project, "pkg/lib.py", {"4:17 matrix_power": {"receiver": [MATRIX]}})
    assert [code for code, _ in found(project, "pkg")] == [POWER]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not valid JSON: record it again"),
        ("[" * 100_000, "is not valid JSON: record it again"),
        ("[]", "was not written by `torchmigrate record`: record it again"),
        ('{"version": 99, "files": {}}', "was recorded by another version: record it again"),
        ('{"version": 1, "files": {"lib.py": {"sha256": "", "places": {"x": {}}}}}', "was not written by"),
        ('{"version": 1, "files": {"lib.py": []}}', "was not written by"),
        (" " * (17 << 20), "is larger than 16 MB: not read"),
    ],
)
def test_evidence_that_cannot_be_used(project: Project, text: str, reason: str) -> None:
    project.write("lib.py", dedent(MAYBE))
    project.write("other.py", dedent(MAYBE))
    project.write(".torchmigrate/evidence.json", text)
    done = project.run("check", "--output-format", "concise", code=2)
    assert done.stderr.count(reason) == 1
    assert done.stderr.startswith("error: .torchmigrate/evidence.json: ")
    assert done.stdout.count(SYMEIG) == 2
    project.run("check", "--no-evidence", code=1)


def test_evidence_elsewhere_is_not_read(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    project.write("lib.py", dedent(MAYBE))
    outside = tmp_path_factory.mktemp("outside") / "evidence.json"
    outside.write_text('{"version": 1, "files": {}}')
    (project.path / ".torchmigrate").mkdir()
    (project.path / ".torchmigrate" / "evidence.json").symlink_to(outside)
    done = project.run("check", code=2)
    assert ".torchmigrate/evidence.json: points outside of the project: not read" in done.stderr


def test_places_that_are_not_there(project: Project) -> None:
    project.write("lib.py", dedent(MAYBE))
    write_evidence(project, "lib.py", {"999:9 symeig": {"receiver": [ROWS]}, "1:999 symeig": {}})
    assert found(project) == found(project, "--no-evidence")


WARNS = """
import torch

mask = torch.zeros(3, 1).expand(3, 3)
mask[mask > 0] = 1.0
y = torch.ger(x, x)
mask[mask > 1] = 1.0
helper(x)
"""
EXPANDED = "UserWarning: Use of masked_fill_ on expanded tensors is deprecated"


def test_a_plan_lists_what_torch_warned_of_where_nothing_is_found(project: Project) -> None:
    project.write("lib.py", WARNS)
    warnings = {
        "5": [EXPANDED],
        "6": ["UserWarning: torch.ger is deprecated"],  # a finding is about it
        "7": [EXPANDED],
        "8": ["UserWarning: this may be slow"],  # of no change
    }
    write_evidence(project, "lib.py", {}, warnings)

    def planned(output_format: str, *options: str) -> str:
        return project.run("plan", "--to", "2.6", "--output-format", output_format, *options, code=0).stdout

    line = f"lib.py:5: torch warned here, and no finding is about it (and 1 more line): {EXPANDED}"
    assert f"\nWARNED\n  {line}\n" in planned("table")
    assert f"\n## Warned\n\n- {line.replace('_', chr(92) + '_')}\n" in planned("markdown")
    assert f"<li>{line}</li>" in planned("html")
    made = json.loads(planned("json"))
    assert made["warned"] == [{"path": "lib.py", "row": row, "text": EXPANDED} for row in (5, 7)]
    assert {place["location"]["row"] for place in made["places"]} == {6}
    for options in (["--no-evidence"], []):
        if not options:
            project.write("lib.py", WARNS + "z = 1\n")  # what was recorded is of another text
        assert json.loads(planned("json", *options))["warned"] == []
        assert "WARNED" not in planned("table", *options) and "Warned" not in planned("html", *options)


OPERATIONS = """\
    import torch

    def f(a, b, x):
        half = a / b
        whole = x[a / 2]
        rest = 1 - b
        x[a]; x[:, a, 0]
        y = (a / b).long()
    """
INTEGERS = "tensor:int64:1:strided"
BOOLS = "tensor:bool:1:strided"


@pytest.mark.parametrize(
    ("place", "slots", "codes"),
    [
        ("4:16 /", {"0": [INTEGERS], "1": ["tensor:int32:0:strided"]}, ["TM913"]),
        ("4:16 /", {"0": [INTEGERS], "1": [MATRIX]}, []),
        ("4:16 /", {"0": [INTEGERS, MATRIX], "1": [INTEGERS]}, []),
        ("4:16 -", {"0": [INTEGERS], "1": [INTEGERS]}, []),
        ("5:19 /", {"0": [INTEGERS]}, ["TM128", "TM913"]),
        ("4:16 /", {"0": [INTEGERS], "1": ["object:int"]}, ["TM913"]),
        ("4:16 /", {"0": [INTEGERS], "1": ["object:int", "object:float"]}, []),
        ("4:16 /", {"0": [INTEGERS], "1": ["object:numpy.int64"]}, []),
        ("8:14 /", {"0": [INTEGERS], "1": ["object:int"]}, ["TM133", "TM913"]),
        ("8:14 /", {"0": [INTEGERS], "1": ["object:numpy.int64"]}, []),
        ("8:14 /", {"0": [INTEGERS], "1": ["object:float"]}, []),
        ("5:19 /", {"0": [MATRIX]}, []),
        ("6:16 -", {"1": [BOOLS]}, ["TM032"]),
        ("6:16 -", {"1": [INTEGERS]}, []),
        ("7:7 [", {"0": [MASK]}, ["TM031"]),
        ("7:16 [", {"0": [MASK]}, ["TM031"]),
        ("7:7 [", {"0": [BOOLS]}, []),
        ("7:7 [", {"0": ["array:b:1"]}, []),
    ],
)
def test_operands_are_what_they_were_in_every_run(
    project: Project, place: str, slots: dict[str, list[str]], codes: list[str]
) -> None:
    project.write("lib.py", dedent(OPERATIONS))
    write_evidence(project, "lib.py", {place: slots})
    options = ("--select", "TM031,TM032,TM128,TM133,TM913")
    assert found(project, "--no-evidence", *options) == []
    said = found(project, *options)
    assert [code for code, _ in said] == codes
    assert all(message.endswith("(seen at run time)") for _, message in said)


@pytest.mark.parametrize(
    ("kinds", "codes"),
    [
        (["object:numpy.int64"], ["TM914"]),
        (["object:numpy.uint8", "object:int"], ["TM914"]),
        (["object:bool"], ["TM914"]),
        (["tensor:int64:0:strided"], ["TM914"]),
        (["object:numpy.float64"], []),
        (["object:numpy.bool"], []),
        (["object:float"], []),
    ],
)
def test_integers_that_fill_a_tensor(project: Project, kinds: list[str], codes: list[str]) -> None:
    text = "import torch\n\ndef f(n, value):\n    return torch.full((n,), value)\n"
    seen(project, text, full={"1": kinds})
    assert [code for code, _ in found(project, "--select", "TM914")] == codes
    project.run("check", "--select", "TM914", "--fix", "--unsafe-fixes")
    fixed = (project.path / "lib.py").read_text()
    assert ("value, dtype=torch.get_default_dtype())" in fixed) is (codes != [])


@pytest.mark.parametrize(
    ("kinds", "dim"),
    [
        (["tensor:float32:1:strided"], "0"),
        (["tensor:float32:3:strided", "tensor:float16:3:strided"], "0"),
        ([MATRIX], "1"),
        ([MATRIX, "tensor:float32:4:strided"], "1"),
        ([MATRIX, "tensor:float32:3:strided"], None),
        (["tensor::::lib.Rows", "tensor:float32:1:strided"], None),
    ],
)
def test_softmax_by_the_dimensions_of_its_input(project: Project, kinds: list[str], dim: str | None) -> None:
    text = "import torch.nn.functional as F\n\ndef f(x):\n    y = F.softmax(x)\n    return y\n"
    seen(project, text, softmax={"0": kinds})
    project.run("check", "--fix", code=1)
    assert (project.path / "lib.py").read_text() == text
    project.run("check", "--fix", "--unsafe-fixes")
    after = text if dim is None else text.replace("(x)\n", f"(x, dim={dim})\n")
    assert (project.path / "lib.py").read_text() == after


@pytest.mark.parametrize(
    ("tensor", "kinds", "codes"),
    [
        ("scores", ["tensor:float32:0:strided"], ["TM053"]),
        ("scores", ["tensor:float32:0:strided", "tensor:float32:1:strided"], []),
        ("loss", ["tensor:float32:1:strided"], []),
        ("loss", ["object:lib.Batch"], []),
    ],
)
def test_data_of_what_had_no_dimensions(
    project: Project, tensor: str, kinds: list[str], codes: list[str]
) -> None:
    seen(
        project, f"import torch\n\ndef f({tensor}):\n    print({tensor}.data[0])\n", data={"receiver": kinds}
    )
    told = found(project, "--select", "TM053")
    assert [code for code, _ in told] == codes
    assert all(message.endswith("(seen at run time)") for _, message in told)
    project.run("check", "--select", "TM053", "--fix")
    assert ".data[0]" in (project.path / "lib.py").read_text()
    project.run("check", "--select", "TM053", "--fix", "--unsafe-fixes", code=0)
    assert (".item()" in (project.path / "lib.py").read_text()) is (codes != [])


def test_fixes_by_what_operands_were_are_unsafe_and_follow_the_text(project: Project) -> None:
    text = OPERATIONS.replace("half = a / b", "half = torch.ger(a, b)")
    project.write("lib.py", dedent(text))
    write_evidence(project, "lib.py", {"6:16 -": {"1": [BOOLS]}, "7:7 [": {"0": [MASK]}})
    options = ("--select", "TM031,TM032,TM110", "--fix")
    project.run("check", *options)
    safe = dedent(text).replace("torch.ger", "torch.outer")
    assert (project.path / "lib.py").read_text() == safe
    project.write("lib.py", dedent(text))
    project.run("check", *options, "--unsafe-fixes")
    assert (project.path / "lib.py").read_text() == safe.replace("1 - b", "~b").replace(
        "x[a];", "x[a.bool()];"
    )


def test_the_text_counts_more_than_what_operands_were(project: Project) -> None:
    project.write("lib.py", "import torch\n\nhalf = torch.ones(2) / 2\n")
    write_evidence(project, "lib.py", {"3:24 /": {"0": [INTEGERS]}})
    assert found(project, "--select", "TM913") == []
