"""How severe a finding is by what the code does with a name, and that a place has one finding."""

from __future__ import annotations

import pytest
from harness.program import only, run

from torchmigrate.report.reasons import message_of

FLAG = (
    "from torch.utils.cpp_extension import CppExtension\n"
    "e = CppExtension('x', ['x.cpp'], extra_compile_args=['-std=c++17'])\n"
)


def severities(text: str, *options: str) -> list[tuple[str, str]]:
    return [(finding.code, finding.severity.label) for finding in run(text, *options).findings]


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("", "info"),
        ("def f(s: GradScaler) -> None: ...\n", "info"),
        ("def f(s): return isinstance(s, GradScaler)\n", "info"),
        ("def f(s): return isinstance(s, (list, GradScaler))\n", "info"),
        ("def f(s): return issubclass(s, GradScaler)\n", "info"),
        ("s = GradScaler()\n", "warning"),
        ("class Own(GradScaler): ...\n", "warning"),
        ("make = GradScaler\n", "warning"),
        ("def f(s: GradScaler) -> None: ...\ns = GradScaler()\n", "warning"),
    ],
)
def test_only_what_can_warn_is_a_warning(use: str, expected: str) -> None:
    text = f"from torch.cuda.amp import GradScaler\n{use}"
    assert severities(text, *only(["TM202"])) == [("TM202", expected)]


def test_a_module_that_warns_when_it_is_imported_is_a_warning() -> None:
    text = "import torch.distributed._sharded_tensor\n"
    assert severities(text, *only(["TM506"])) == [("TM506", "warning")]


def test_all_removed_arguments_of_a_call_are_named() -> None:
    text = "import torch\ntorch.onnx.export(m, x, f, strip_doc_string=True, example_outputs=y)\n"
    (finding,) = run(text, *only(["TM650"])).findings
    assert "`example_outputs`" in message_of(finding)
    assert "`strip_doc_string`" in message_of(finding)


@pytest.mark.parametrize("name", ["DatasetFolder", "ImageFolder"])
def test_the_class_that_is_named_is_that_of_the_object(name: str) -> None:
    text = (
        f"from torchvision.datasets import {name}\n"
        f"class Own({name}):\n    def f(self): return self._find_classes('x')\n"
    )
    (finding,) = run(text, *only(["TM756"])).findings
    assert f"`torchvision.datasets.{name}._find_classes`" in message_of(finding)


@pytest.mark.parametrize(("target", "expected"), [("2.13", "info"), ("2.14", "error"), ("2.15", "error")])
def test_the_severity_of_a_compiler_flag_follows_the_headers_of_the_target(
    target: str, expected: str
) -> None:
    found = run(FLAG, *only(["TM076"]), "--target", target).findings
    assert [finding.severity.label for finding in found] == [expected]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import torch\ntorch._utils.is_compiling()\n", "TM314"),
        ("import torch\ntorch._dynamo.external_utils.is_compiling()\n", "TM693"),
        (
            "import torch\nc = torch.cuda.green_contexts.GreenContext.create(num_sms=8)\nc.set_context()\n",
            "TM070",
        ),
    ],
)
def test_rules_of_like_names_report_a_place_once(text: str, code: str) -> None:
    assert [finding.code for finding in run(text).findings] == [code]
