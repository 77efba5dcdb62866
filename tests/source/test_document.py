"""Python in Markdown and reStructuredText."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.program import FIX_ALL, engine

from torchmigrate.engine.results import FileResult
from torchmigrate.source.document import Document

MARKDOWN = """\
# torch.ger

```python
import torch
from torchvision import models
```

1. In a list
   ~~~~ py title="x"
   m = models.resnet18(pretrained=True)

   for i in range(3):
       y = torch.ger(a, b)
   ~~~~

```pycon
>>> x = torch.ger(a, b)
tensor([1.])
>>> for i in x:
...     torch.ger(
...         i, i)
...
torch.ger(a, b)
```

```
>>> torch.ger(a, b)
```

```bash
python -c "torch.ger(a, b)"
```

```python
x = ..., torch.ger(
```

```python
torch.ger(a, b)"""

REST = """\
torch.ger
=========

.. code-block:: python
   :linenos:

   import torch
   y = torch.ger(a, b)

Text: torch.ger(a, b)

  >>> torch.ger(a,
  ...           b)
  torch.ger(a, b)

.. code:: c++

   torch.ger(a, b)

.. testcode::

    torch.ger(a, b)
    if a:
        %matplotlib inline
"""


def checked(text: str, name: str, *options: str) -> tuple[Document, FileResult]:
    source = Document.from_bytes(text.encode(), Path(name))
    assert isinstance(source, Document)
    return source, engine(*options).check_source(source, Path(name))


def fixed(text: str, name: str) -> str:
    """The file after all fixes, which a second run leaves as it is."""
    _, result = checked(text, name, *FIX_ALL)
    if result.new is None:
        return text
    new = result.new.content().decode()
    assert checked(new, name, *FIX_ALL)[1].new is None, "a second run changes nothing"
    return new


@pytest.mark.parametrize(
    ("text", "name", "places"),
    [
        (MARKDOWN, "a.md", ["10:24", "13:12", "17:9", "20:9", "27:5", "39:1"]),
        (REST, "a.rst", ["8:8", "12:7", "22:5"]),
    ],
)
def test_places_are_those_of_the_file(text: str, name: str, places: list[str]) -> None:
    source, result = checked(text, name)
    assert ["{1}:{2}".format(*source.place(finding.start)) for finding in result.findings] == places
    lines = text.splitlines()
    for finding in result.findings:
        _, row, column = source.place(finding.start)
        assert lines[row - 1][column - 1 :].startswith(source.text[finding.start : finding.end][:9])


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_only_lines_of_code_change(newline: str) -> None:
    text = MARKDOWN.replace("\n", newline)
    new = text.replace("pretrained=True", "weights=models.ResNet18_Weights.IMAGENET1K_V1")
    for line in ("y = torch.ger(", "x = torch.ger(", "...     torch.ger(", ">>> torch.ger("):
        new = new.replace(line, line.replace("ger", "outer"))
    new = new[: new.rindex("torch.ger")] + "torch.outer(a, b)"
    assert fixed(text, "a.md") == new
    rest = REST.replace("\n", newline)
    wanted = rest.replace("y = torch.ger", "y = torch.outer").replace(">>> torch.ger", ">>> torch.outer")
    assert fixed(rest, "a.rst") == wanted.replace(
        f"    torch.ger(a, b){newline}    if", f"    torch.outer(a, b){newline}    if"
    )


def test_lines_that_come_and_go_keep_prompts() -> None:
    text = "```\n>>> from torch._six import string_classes\n>>> isinstance(a, string_classes)\nTrue\n```\n"
    assert fixed(text, "a.md") == "```\n>>> isinstance(a, (str, bytes))\nTrue\n```\n"


@pytest.mark.parametrize(
    "text", ["", "```", "```python", "```python\n```", ">>>", "````\n```python\n", "\x00", ".. code::"]
)
def test_odd_documents(text: str) -> None:
    for name in ("a.md", "a.rst"):
        assert checked(text, name, *FIX_ALL)[1].findings == []


def test_a_document_is_read_in_linear_time() -> None:
    for text in ("```python\n" * 20_000, ">>> x\n" * 5_000, "`" * 200_000, ".. code:: python\n" * 20_000):
        for name in ("a.md", "a.rst"):
            Document.from_bytes(text.encode(), Path(name))
