"""TM091: releases of torch that are compared as text, as floats or by their first characters."""

from __future__ import annotations

import pytest
from harness.fixing import checked_and_fixed

CODES = ("TM091",)
FIXED = {
    'str(torch.__version__) >= "2.7"': 'torch.__version__ >= "2.7"',
    'str(torch.__version__).split("+")[0] < "2.6.0"': 'torch.__version__ < "2.6.0"',
    'torch.__version__.split("+")[0] < "1.9.0"': 'torch.__version__ < "1.9.0"',
    'torch.__version__.partition("+")[0] >= "2.2"': 'torch.__version__ >= "2.2"',
    "float(torch.__version__[:3]) >= 2.2": 'torch.__version__ >= "2.2"',
    "float(torch.__version__[0:3]) < 1.8": 'torch.__version__ < "1.8"',
    'torch.__version__[:3] >= "2.4"': 'torch.__version__ >= "2.4"',
    'torch.__version__[:5] >= "2.4.1"': 'torch.__version__ >= "2.4.1"',
    'float(".".join(torch.__version__.split(".")[:2])) >= 1.9': 'torch.__version__ >= "1.9"',
    'str(th.__version__) >= "2.7"': 'th.__version__ >= "2.7"',
    r'float(re.match("(\d+\.\d+)", torch.__version__).group(1)) < 2.7': 'torch.__version__ < "2.7"',
    'str(__version__) >= "2.7"': '__version__ >= "2.7"',
}
REPORTED = (
    'str(torch.__version__) <= "2.6.0"',
    '"2.7" <= str(torch.__version__)',
    'torch.__version__.split(".")[:2] >= ["2", "7"]',
    'tuple(torch.__version__.split(".")[:2]) < ("2", "7")',
    'torch.version.__version__ >= "2.7"',
    "float(torch.__version__[:3]) > 1.7",
    'TEXT >= "2.7"',
    'torchvision.__version__ < "0.7"',
    "float(torchvision.__version__[:3]) < 0.7",
    'torchvision.__version__.split("+")[0] >= "0.13"',
    'torchaudio.__version__ >= "0.8"',
    'version("torch") >= "2.7"',
    'pkg_resources.get_distribution("torch").version >= "2.7"',
    '[*torch.__version__.split(".")[:2]] >= ["2", "7"]',
    'torch.__version__.startswith("2.1")',
    "helper() < 2.7",
)
CLEAN = (
    'torch.__version__ >= "2.7"',
    'str(torch.__version__) >= "2"',
    'str(torch.__version__) == "2.7"',
    'str(torch.__version__).startswith("2.7")',
    'torch.__version__[0] >= "2"',
    'int(torch.__version__.split(".")[0]) >= 2',
    'tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 7)',
    'torch.__version__.split(".")[0] >= "2"',
    'Version(torch.__version__.split("+")[0]) >= Version("2.7")',
    'parse(str(torch.__version__)) >= parse("2.7")',
    "str(torch.__version__) >= wanted",
    'str(np.__version__) >= "1.7"',
    'str(torch.__version__) >= "parrots"',
    'int(torch.__version__.split(".")[1]) >= 8',
    'torch.__version__.startswith("2.1.")',
    'torchvision.__version__ >= "wanted"',
    'int(torch.__version__.replace(".", "")[:2]) >= 17',
    'version("numpy") >= "1.7"',
)
HEAD = """\
import re
from importlib.metadata import version

import numpy as np
import pkg_resources
import torch
import torch as th
import torchaudio
import torchvision
from packaging.version import Version, parse
from torch import __version__

PATTERN = re.compile("a")
TEXT = torch.__version__.split("+")[0]


def helper():
    return float(torch.__version__[:3])


"""


@pytest.mark.parametrize(("test", "new"), FIXED.items())
def test_comparison_is_of_versions(test: str, new: str) -> None:
    text = f"{HEAD}if {test}:\n    print(1)\n"
    found, fixed = checked_and_fixed(text, CODES)
    assert len(found) == 1
    assert fixed == text.replace(test, new)


@pytest.mark.parametrize("test", REPORTED)
def test_other_comparison_of_text_is_reported(test: str) -> None:
    text = f"{HEAD}\n\ndef f():\n    return {test}\n"
    found, fixed = checked_and_fixed(text, CODES)
    assert [text[item.start : item.end] for item in found] == [test]
    assert fixed == text


@pytest.mark.parametrize("test", CLEAN)
def test_comparison_that_is_right_is_not_reported(test: str) -> None:
    assert checked_and_fixed(f"{HEAD}a = {test}\n", CODES)[0] == []
