"""TM076: flags for the C++ standard that a file puts together."""

from __future__ import annotations

import pytest
from harness.fixing import checked_and_fixed

CODES = ("TM076",)
FILE = """\
from torch.utils.cpp_extension import CppExtension

number = {number}
name = "c++{number}"
ops = CppExtension("ops", ["ops.cpp"], extra_compile_args=[{flag}])
"""
FLAGS = (
    'f"-std=c++{number}"',
    '"-std=c++{}".format(number)',
    '"-std=c++%s" % number',
    '"-std=" + name',
    '"-std=c++%d" % (number,)',
)


@pytest.mark.parametrize("flag", FLAGS)
def test_old_standard(flag: str) -> None:
    text = FILE.replace("{number}", "14", 2).replace("{flag}", flag)
    found, _ = checked_and_fixed(text, CODES)
    assert [(item.code, text[item.start : item.end]) for item in found] == [("TM076", flag)]


@pytest.mark.parametrize(
    "flag", [*FLAGS, 'f"-O{number}"', 'f"-std=c++{unknown}"', '"-std=c++{}".format(*rest)']
)
def test_new_standard_or_none(flag: str) -> None:
    text = FILE.replace("{number}", "20", 2).replace("{flag}", flag)
    assert checked_and_fixed(text, CODES)[0] == []
