"""How the time of a run grows with the length and the depth of a file; see README.md beside this file."""
# ruff: noqa: E501 (one shape a line)

from __future__ import annotations

import argparse
import ast
import gc
import math
import os
import resource
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from torchmigrate.__main__ import GARBAGE
from torchmigrate.report import FORMATS

MOST = 1.2  # the largest exponent that is wanted
ENOUGH = 0.5  # CPU seconds that the larger of two runs should take to be compared
LIMIT = 10  # CPU seconds after which a run is ended: what is quadratic is seen long before
FIRST = 64  # units of the first file, which says how many are enough
LONGEST = 400_000  # characters of a file; the program looks for nothing in files of some megabytes
CHECK = ("check", "--isolated", "--no-cache", "--select", "ALL")
FIX = (*CHECK, "--fix", "--unsafe-fixes")
HEAD = """\
import torch
import torch as t
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable
from torch.cuda import amp
from apex import amp as apex_amp
"""

Shape = Callable[[int], str]


class Case(NamedTuple):
    """What is measured: the file of a size, the command, and whether the size is how deep it is."""

    name: str
    shape: Shape
    command: tuple[str, ...] = CHECK
    deep: int = 0  # this size and a quarter of it, not one that takes long enough


def lines(*unit: str) -> Shape:
    """A file that repeats lines; `{i}` is the number of the repetition."""
    text = "\n".join(unit) + "\n"
    return lambda n: HEAD + "".join(text.replace("{i}", str(i)) for i in range(n))


def body(*unit: str, start: str = "def work(x, y, model, loss, optimizer, k):") -> Shape:
    """The same, in one function."""
    inner = textwrap.indent("\n".join(unit) + "\n", "    ")
    first = "    x = torch.rand(3); low = x.min(); high = x.max(); mid = high - low; a = x > 0; items = [x]\n"
    return lambda n: HEAD + f"\n{start}\n{first}" + "".join(inner.replace("{i}", str(i)) for i in range(n))


def joined(unit: str, between: str, before: str = "y = ", after: str = "") -> Shape:
    """One expression of so many parts, on one line."""
    return lambda n: (
        HEAD
        + "x = torch.rand(3)\n"
        + before
        + between.join(unit.replace("{i}", str(i)) for i in range(n))
        + after
        + "\n"
    )


def many(shape: Callable[[int], str], times: int = 40) -> Shape:
    """A function that holds so many statements, each as deep as the size says."""

    def text(depth: int) -> str:
        one = textwrap.indent(shape(depth), "    ")
        return HEAD + "".join(
            f"\ndef work_{i}(x, y, k, model, loss, optimizer, items):\n{one}" for i in range(times)
        )

    return text


def nested(
    head: str, tail: str = "", last: str = "x = torch.ger(x, y)", base: str = ""
) -> Callable[[int], str]:
    """Blocks in blocks."""

    def text(depth: int) -> str:
        found = base + "\n" if base else ""
        for level in range(depth):
            found += textwrap.indent(head.replace("{i}", str(level)), " " * level) + "\n"
        found += " " * depth + last + "\n"
        for level in reversed(range(depth)):
            if tail:
                found += textwrap.indent(tail.replace("{i}", str(level)), " " * level) + "\n"
        return found

    return text


def elif_chain(n: int) -> str:
    """One `if` of so many branches, each of them in the last one, as far as the parser is concerned."""
    branches = "".join(f"    elif k == {i}:\n        y = torch.ger(x, x)\n" for i in range(n))
    return f"{HEAD}def work(x, k):\n    if k < 0:\n        y = x\n{branches}    return y\n"


STATEMENTS = {
    "simple calls": "y = torch.ger(x, x)",
    "methods of tensors": "y = x.ger(x)",
    "unknown methods": "y = k.ger(x)",
    "chained names": "x{i} = x\ny = x{i}.ger(x{i})",
    "one name again and again": "x = x + 1",
    "one name from itself twice": "x = x * x - x",
    "two names from each other": "low, high = high, low",
    "names from the last ones": "low = high - mid\nhigh = mid + low\nmid = low * high",
    "reassigned in branches": "if (x > mid).sum() > k:\n    low = mid\nelse:\n    high = mid\nmid = high - low",
    "new names in branches": "x{i} = x\nif k:\n    x{i} = y\nelif y:\n    y{i} = x{i}\nelse:\n    x{i} = y{i}",
    "masks in branches": "if k:\n    a = ~a\nelse:\n    a = a & (x > mid)\ny = 1 - a",
    "elif": "if k == {i}:\n    x = x.view(-1)\nelif k > {i}:\n    x = x + 1\nelif x:\n    y = x\nelse:\n    x = y",
    "for": "for item in items:\n    x = x + item\n    y = torch.ger(x, item)\nelse:\n    x = y",
    "while": "while x.sum() > {i}:\n    x = x / 2\n    if k: break",
    "try": "try:\n    y = torch.ger(x, x)\nexcept (AttributeError, TypeError) as error:\n    x = y\nelse:\n    y = x"
    "\nfinally:\n    k = 1",
    "with": "with torch.no_grad(), open('f') as file:\n    y = Variable(x, volatile=True)\n    x = model(y)",
    "match": "match k:\n    case [low, *high]:\n        x = low\n    case {'a': high}:\n        x = high\n"
    "    case nn.Linear(a=x) | {i}:\n        y = x\n    case _:\n        pass",
    "chained assignment": "x = y = low = high = torch.rand(3)",
    "unpacked": "(x, y), [low, *high] = torch.max(x, 0), torch.svd(x)",
    "augmented": "x += y\ny -= torch.ger(x, x)\nx @= y",
    "annotated": "x: torch.Tensor = torch.ger(x, x)",
    "walrus": "if (x := torch.ger(x, x)) is not None: y = x",
    "global": "global name_{i}\nname_{i} = torch.ger(x, x)\nname_{i}.ger(x)",
    "del": "z{i} = x\ndel z{i}",
    "assert and raise": "assert x.ger(x), torch.ger(x, x)\nif k: raise ValueError(x)",
    "nested functions": "def inner_{i}(z, w=x):\n    return torch.ger(z, x)\nx = inner_{i}(x)",
    "nested classes": "class Inner{i}(nn.Module):\n    name = torch.ger(x, x)\n    def forward(self, z):\n"
    "        return F.sigmoid(z) + x",
    "lambdas": "g = lambda z, w=x: torch.ger(z, w)\nx = g(x)",
    "comprehensions": "items = [torch.ger(z, x) for z in items if z is not x for w in z]",
    "dicts": "d = {'a': torch.ger(x, x), 'b': [x], **k}\nx = d['a']",
    "f-strings": "s = f'{torch.ger(x, x)} {x.ger(x)!r:>{k}}'",
    "conditional expressions": "x = torch.ger(x, y) if k else torch.ger(y, x)",
    "boolean": "k = x is not None and torch.ger(x, y) or not hasattr(torch, 'ger')",
    "subscripts": "x = x[..., 0][y > 0].ger(x[1:2])",
    "starred": "y = torch.ger(*items, **k)",
    "selections": "y = x[x > 0]\nx[y == 1] = torch.ger(x, x)\nx = torch.where(a, x, y)",
    "data": "y = x.data[0]\nx.data = y.data.clone()",
    "guards": "if hasattr(torch, 'outer'):\n    y = torch.outer(x, x)\nelse:\n    y = torch.ger(x, x)",
    "versions": "if torch.__version__ >= '1.{i}':\n    y = torch.ger(x, x)\nelif k: pass",
    "early return": "if not hasattr(torch, 'a{i}'):\n    return torch.ger(x, x)",
    "strings": "s = 'torch.ger {i}'\npatch('torch.ger', x)\ngetattr(torch, 'ger')(x, x)",
    "instances": "if isinstance(x, torch.Tensor) and not isinstance(y, Variable):\n    y = x.ger(y)",
    "training loop": "for x in items:\n    optimizer.zero_grad()\n    y = model(x)\n    l = loss(y, x)\n"
    "    l.backward()\n    torch.nn.utils.clip_grad_norm(model.parameters(), 1)\n    optimizer.step()\n"
    "    print(l.data[0])",
    "apex": "model, optimizer = apex_amp.initialize(model, optimizer, opt_level='O1')\n"
    "with apex_amp.scale_loss(loss, optimizer) as scaled:\n    scaled.backward()\noptimizer.step()",
    "attention": "q = k.to_q(x); v = k.to_v(x); w = k.to_k(x)\nw = w.transpose(1, 2)\n"
    "s = torch.matmul(q, w) / math.sqrt(64)\n"
    "s = F.softmax(s, dim=-1, dtype=torch.float32).to(q.dtype)\nx = torch.matmul(s, v)",
    "fft": "f = torch.rfft(x, 2, onesided=False)\nr, i = f[..., 0], f[..., 1]\nx = torch.irfft(f, 2)",
    "volatile": "x = Variable(x, volatile=True)\ny = model(x)\nx = y.data",
    "models": "model = torchvision.models.resnet18(pretrained=k)\nmodel = torch.nn.DataParallel(model)",
    "suppressed": "y = torch.ger(x, x)  # torchmigrate: ignore[TM110]",
    "wrongly suppressed": "y = x  # torchmigrate: ignore[TM110, TM111]",
    "noqa": "y = torch.ger(x, x)  # noqa: TM110",
    "comments": "y = torch.ger(  # first\n    x,  # second\n    # third\n    x,\n)",
    "statements on one line": "y = torch.ger(x, x); x = torch.ger(y, y); k = 1",
    "non-ASCII": "y = torch.ger(x, x)  # \u00e9\u4e2d\ns = '\u00e9\u4e2d'; y = torch.ger(x, x)",
    "load": "x = torch.load('f')\nmodel.load_state_dict(x)",
    "scheduler": "s = torch.optim.lr_scheduler.StepLR(optimizer, 1)\ns.step()\noptimizer.step()",
    "compile": "m{i} = torch.compile(model)\ntorch.save(m{i}.state_dict(), 'f')\nx = m{i}(x)",
    "functorch": "f{i}, p{i}, b{i} = functorch.make_functional_with_buffers(model)\nx = f{i}(p{i}, b{i}, x)",
}
FILES: dict[str, Shape] = {
    "imports": lines("import torch.m{i} as a{i}", "from torch.autograd import Variable as V{i}"),
    "imports of one name": lines("from torch import ger", "import torch", "y = ger(x, x)"),
    "imports that are used": lines("from torch import ger as g{i}", "y = g{i}(x, x)"),
    "imports in functions": lines("def f{i}(x):", "    import torch", "    from torch import ger", "    return ger(x, x)"),
    "one long import": lambda n: f"from torch import ({', '.join(f'ger as g{i}' for i in range(n))})\n"
    + "".join(f"y = g{i}(x, x)\n" for i in range(n)),
    "star imports": lines("from torch import *", "from m{i} import *", "y = ger(x, x)"),
    "aliases": lines("a{i} = torch.ger", "y = a{i}(x, x)"),
    "aliases of aliases": lambda n: HEAD
    + "a0 = torch\n"
    + "".join(f"a{i + 1} = a{i}\ny = a{i}.ger(x, x)\n" for i in range(n)),
    "aliases backwards": lambda n: HEAD
    + "def f():\n    return a0.ger\n"
    + "".join(f"a{i} = a{i + 1}\n" for i in range(n))
    + f"a{n} = torch\n",
    "sums of names": lambda n: HEAD + "a0 = torch.rand(3)\n" + "".join(f"a{i + 1} = a{i} + a{i}\n" for i in range(n)),
    "masks of names": lambda n: HEAD
    + "x = torch.rand(3)\nm0 = x > 0\n"
    + "".join(f"m{i + 1} = m{i} | m{i}\ny = 1 - m{i + 1}\n" for i in range(n)),
    "sums backwards": lambda n: HEAD
    + "".join(f"def f{i}():\n    return a{i} - (a{i} > 1)\na{i} = a{i + 1} + a{i + 1}\n" for i in range(n))
    + f"a{n} = torch.rand(3)\n",
    "functions": lines("def f{i}(x, y):", "    return torch.ger(x, y)", "", ""),
    "functions that call the next": lines("def f{i}(x, y):", "    y = f{i}1(x, y)", "    return torch.ger(x, y)"),
    "functions that call the last": lambda n: HEAD
    + "def f0(x):\n    return torch.ger(x, x)\n"
    + "".join(f"def f{i + 1}(x):\n    x = f{i}(x)\n    return f{i}(x) + F.sigmoid(x)\n" for i in range(n)),
    "functions that call the one behind": lambda n: HEAD
    + "".join(f"def f{i}(x):\n    x = f{i + 1}(x)\n    return f{i + 1}(x) + F.sigmoid(x)\n" for i in range(n))
    + f"def f{n}(x):\n    return torch.ger(x, x)\n",
    "functions that call all in turn": lambda n: HEAD
    + "".join(f"def f{i}(x):\n    return f{(i + 1) % n}(f{(i * 7) % n}(x))\n" for i in range(n)),
    "one function that calls itself": body("x = work(x, y, model, loss, optimizer, {i})"),
    "one function called by all": lambda n: HEAD
    + "def g(x, y):\n    return Variable(torch.ger(x, y), volatile=True)\n"
    + "".join(f"def f{i}(x):\n    return g(x, x)\n" for i in range(n)),
    "decorators": lines("@torch.no_grad()", "@amp.custom_fwd", "def f{i}(x):", "    return torch.ger(x, x)"),
    "many decorators": lambda n: HEAD + "@torch.no_grad()\n@amp.custom_fwd\n" * n + "def f(x): return x\n",
    "classes": lines("class C{i}(nn.Module):", "    def __init__(self):", "        super().__init__()",
                     "        self.f = torch.ger", "        self.l = nn.Linear(1, 2)", "    def forward(self, x):",
                     "        return F.sigmoid(self.f(x, self.l(x)))"),
    "classes of the last ones": lambda n: HEAD
    + "class C0(nn.Module): pass\n"
    + "".join(f"class C{i + 1}(C{i}):\n    def forward(self, x): return self.f{i}(x)\n" for i in range(n)),
    "methods of one class": lambda n: HEAD
    + "class C(nn.Module):\n"
    + "".join(f"    def f{i}(self, x):\n        self.a{i} = x\n        return torch.ger(self.f{i + 1}(x), self.a{i})\n"
              for i in range(n)),
    "attributes of one class": lambda n: HEAD
    + "class C(nn.Module):\n    def __init__(self, x):\n"
    + "".join(f"        self.a{i} = torch.ger(x, x)\n        self.b = self.a{i}.ger(x)\n" for i in range(n)),
    "legacy functions": lines("class C{i}(torch.autograd.Function):", "    def forward(self, x):",
                              "        self.save_for_backward(x)", "        return x", "    def backward(self, g):",
                              "        x, = self.saved_tensors", "        return g * x", "y = C{i}()(x)"),
    "globals": lines("name_{i} = torch.rand(3)", "def f{i}():", "    global name_{i}", "    name_{i} = name_{i}.ger(x)"),
    "a long string": lambda n: HEAD + "s = '''" + "torch.ger(x, x)\n" * n + "'''\ny = torch.ger(x, x)\n",
    "long strings": lambda n: HEAD + ("s = '" + "torch.ger " * 100 + "'\n") * n,
    "strings in brackets": lambda n: HEAD + "s = (" + "'torch.ger(x)'\n" * n + ")\n",
    "blank lines": lambda n: HEAD + "\n" * (n * 10) + "y = torch.ger(x, x)\n" + "# torch.ger\n" * n,
    "no torch": lambda n: "".join(f"def f{i}(x):\n    return x.ger(x)\n" for i in range(n)),
    "many findings on one line": lambda n: HEAD + "y = [" + "torch.ger(x, x), " * n + "]\n",
    "many statements on one line": lambda n: HEAD + "y = torch.ger(x, x); " * n + "\n",
    "a long list": lambda n: HEAD + "y = [\n" + "    torch.ger(x, x),\n" * n + "]\n",
    "a long dict": lambda n: HEAD + "y = {\n" + "".join(f"    {i}: torch.ger(x, x),\n" for i in range(n)) + "}\n",
    "a long call": lambda n: HEAD + "y = f(" + "".join(f"a{i}=torch.ger(x, x), " for i in range(n)) + ")\n",
    "a long comparison": joined("x", " < ", "y = torch.ger(x, x) < "),
    "a long condition": joined("torch.ger(x, x)", " and "),
    "a long f-string": joined("{torch.ger(x, x)}", " ", "y = f'", "'"),
    "many parameters": lambda n: HEAD + f"def f({', '.join(f'a{i}=torch.ger' for i in range(n))}): return a1(x)\n",
    "many targets": lambda n: HEAD + " = ".join(f"a{i}" for i in range(n)) + " = torch.rand(3)\na1.ger(a1)\n",
    "many names unpacked": lambda n: HEAD + ", ".join(f"a{i}" for i in range(n)) + " = torch.max(x, 0)\na1.ger(a1)\n",
    "many with items": lambda n: HEAD + "with " + ", ".join(f"torch.no_grad() as a{i}" for i in range(n)) + ": pass\n",
    "many handlers": lambda n: HEAD + "try:\n    y = torch.ger(x, x)\n" + "".join(f"except E{i}:\n    x = torch.ger(y, y)\n" for i in range(n)),
    "many cases": lambda n: HEAD + "match torch.ger(x, x):\n" + "".join(f"    case [{i}, x]:\n        y = torch.ger(x, x)\n" for i in range(n)),
    "one name bound often": lambda n: HEAD + "x = torch.rand(3)\n" * n + "def f():\n    return x.ger(x)\n",
    "one name bound often, read often": lambda n: HEAD
    + "def work():\n    def g(): return low.ger(mid) + (low > mid)\n"
    + "    low = torch.rand(3)\n    mid = low\n    mid = low > 1\n    y = 1 - mid\n" * n,
    "one import read often": lambda n: "from torch.autograd import Variable\n" + "y = Variable(x)\n" * n,
    "exported": lambda n: HEAD + "".join(f"g{i} = torch.ger\n" for i in range(n)) + f"__all__ = [{', '.join(repr(f'g{i}') for i in range(n))}]\n",
}  # fmt: skip
# Sizes are depths here; Python's own parser allows 100 levels of indentation and about 200 brackets.
BLOCKS = {
    "if": "if x.sum() > {i}:",
    "if with else": ("if x.sum() > {i}:\n x = y", "else:", "", ""),
    "for": "for item{i} in items:\n x = x + item{i}",
    "while": "while x.sum() > {i}:\n x = y",
    "with": "with torch.no_grad():\n x = Variable(x, volatile=True)",
    "try": ("try:", "except AttributeError:\n x = y", "", ""),
    "functions": "def f{i}(x, z{i}=x):\n y = Variable(x, volatile=True)",
    "classes": "class C{i}(nn.Module):\n f = torch.ger",
    "match": "",  # see `cases`
}
EXPRESSIONS: dict[str, Callable[[int], str]] = {
    "sum": lambda n: "y = " + " + ".join(["torch.ger(x, x)"] * n),
    "sum to the right": lambda n: "y = " + "x + (" * n + "x" + ")" * n,
    "power": lambda n: "y = " + " ** ".join(["x"] * n),
    "not": lambda n: "y = " + "not " * n + "x",
    "minus": lambda n: "y = " + "-" * n + "x",
    "methods": lambda n: "y = x" + ".ger(x)" * n,
    "attributes": lambda n: "y = torch" + ".a" * n,
    "views": lambda n: "y = x" + ".view(-1).data" * (n // 2),
    "subscripts": lambda n: "y = x" + "[0]" * n,
    "calls in calls": lambda n: "y = " + "torch.ger(" * n + "x" + ", x)" * n,
    "calls of calls": lambda n: "y = torch.ger" + "(x)" * n,
    "lists": lambda n: "y = " + "[" * n + "torch.ger(x, x)" + "]" * n,
    "dicts": lambda n: "y = " + "{'a': " * n + "torch.ger(x, x)" + "}" * n,
    "lambdas": lambda n: "y = " + "lambda a=torch.ger: " * n + "x",
    "conditions": lambda n: "y = " + "torch.ger(x, x) if k else " * n + "x",
    "comprehensions": lambda n: "y = " + "[torch.ger(x, " * n + "x" + ") for x in y]" * n,
    "walrus": lambda n: "y = " + "(x := " * n + "torch.ger(x, x)" + ")" * n,
    "boolean": lambda n: "y = " + "(x and torch.ger(x, x) or " * n + "x" + ")" * n,
    "ffts": lambda n: "y = " + "torch.rfft(" * n + "x" + ", 2)" * n,
    "variables": lambda n: "y = " + "Variable(" * n + "x" + ")" * n,
}  # fmt: skip


def cases() -> Iterator[Case]:
    """Everything but the examples of the rules."""
    for name, unit in STATEMENTS.items():
        yield Case(f"{name}: in a module", lines(unit), FIX)
        yield Case(f"{name}: in a function", body(unit), FIX)
    for name, shape in FILES.items():
        yield Case(name, shape, FIX)
    for name, block in BLOCKS.items():
        if isinstance(block, tuple):
            head, tail = (
                ("if x.sum() > {i}:", "else:\n x = y") if name.startswith("if") else (block[0], block[1])
            )
            made = nested(head, tail)
        elif name == "match":

            def made(depth: int) -> str:
                text = "".join(f"{'  ' * i}match x:\n{'  ' * i} case [y, {i}]:\n" for i in range(depth))
                return text + "  " * depth + "x = torch.ger(x, y)\n"
        else:
            made = nested(block)
        deepest = (
            80 if name in ("if", "if with else", "functions", "classes") else 40 if name == "match" else 19
        )
        yield Case(f"{name} in {name}", many(made), FIX, deepest)
    yield Case("one elif chain", elif_chain, FIX, 1000)
    for name, expression in EXPRESSIONS.items():
        yield Case(f"deep: {name}", many(lambda n, e=expression: e(n) + "\n"), FIX, 80)
    found = lines("y = torch.ger(x, x)", "z = x.data[0]")
    one_fix = lines("if isinstance(s, torch.cuda.amp.GradScaler):", "    s = torch.cuda.amp.GradScaler()")
    for form in FORMATS:
        yield Case(f"--output-format {form}", found, (*CHECK, "--output-format", form))
        one_line = FILES["many findings on one line"]
        yield Case(f"--output-format {form}, one line", one_line, (*CHECK, "--output-format", form))
        yield Case(f"--output-format {form}, one fix", one_fix, (*CHECK, "--output-format", form))
    yield Case("--diff", found, (*CHECK, "--diff", "--unsafe-fixes"))
    yield Case("--diff, one line", FILES["many findings on one line"], (*CHECK, "--diff", "--unsafe-fixes"))
    yield Case("--statistics", found, (*CHECK, "--statistics"))
    for form in ("table", "markdown", "json", "html"):
        yield Case(f"plan --output-format {form}", found, ("plan", "--isolated", "--output-format", form))


def rule_cases() -> Iterator[Case]:
    """The first example with a fix, and the first without, of every rule: as functions, and in one."""
    from torchmigrate.catalogue.examples import CLEAN
    from torchmigrate.catalogue.store import default_catalogue, examples_of

    for rule in default_catalogue().rules:
        seen: set[str] = set()
        for example in examples_of(rule):
            if example.kind in seen or example.kind == CLEAN:
                continue
            seen.add(example.kind)
            try:
                tree = ast.parse(example.before)
            except SyntaxError:
                continue  # `async` as a name
            where = f"{rule.code} {rule.name}, {example.kind}"
            yield Case(f"{where}: module", repeated(example.before, tree, ""), FIX)
            yield Case(f"{where}: functions", repeated(example.before, tree, "def f{i}(a, b):"), FIX)
            yield Case(f"{where}: one function", repeated(example.before, tree, "def f0(a, b):"), FIX)


def repeated(text: str, tree: ast.Module, head: str) -> Shape:
    """An example some times: its imports once, the rest in a module, in many functions or in one."""
    rows = text.splitlines()
    top, rest = [], []
    at = 0
    for statement in tree.body:
        end = statement.end_lineno or statement.lineno
        kept = top if head and isinstance(statement, ast.Import | ast.ImportFrom) else rest
        kept += rows[at:end]
        at = end
    rest += rows[at:]
    inside = "\n".join(rest) + "\n"
    if head:
        inside = textwrap.indent(inside, "    ")
        if not rest:
            inside = "    pass\n"
    first = "\n".join(top) + "\n"

    def made(n: int) -> str:
        if "{i}" in head:
            return first + "".join(f"{head.replace('{i}', str(i))}\n{inside}\n" for i in range(n))
        return first + (f"{head}\n" if head else "") + inside * n

    return made


# ---- measuring --------------------------------------------------------------------------------------


def seconds(text: str, command: Sequence[str], limit: int) -> float | str:
    """CPU seconds of a command for a file, in a process of its own; or why there is no such number."""
    receive, send = os.pipe()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "m.py"
        path.write_text(text, encoding="utf-8")
        process = os.fork()
        if process == 0:
            os.close(receive)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            _silence()
            start = time.process_time()
            code = _run(path, command)
            os.write(send, f"{code} {time.process_time() - start}".encode())
            os._exit(0)
        os.close(send)
        said = os.read(receive, 100)
        os.close(receive)
        _, status = os.waitpid(process, 0)
    if not said:
        return f"ended by signal {os.WTERMSIG(status)} (limit: {limit} s)"
    code, taken = said.split()
    return float(taken) if code in (b"0", b"1") else f"exit code {code.decode()}"


def _silence() -> None:
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    if not os.environ.get("GROWTH_ERRORS"):
        os.dup2(sink, 2)


def _run(path: Path, command: Sequence[str]) -> object:
    """The exit code of the program for a file."""
    from torchmigrate.cli.program import main

    try:
        main([*command, str(path)])
    except SystemExit as end:
        return end.code or 0
    return 2


def warm_up() -> None:
    """Run the program in this process, so that what it loads once is there before the others fork from it."""
    out = os.dup(1)
    errors = os.dup(2)
    _silence()
    try:
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "m.py"
            for unit in STATEMENTS.values():
                path.write_text(body(unit)(1), encoding="utf-8")
                _run(path, FIX)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(out, 1)
        os.dup2(errors, 2)


class Growth(NamedTuple):
    """Seconds for the smaller and the larger file, without start-up; `note`: why the larger has none of its own."""

    size: int
    larger: int
    small: float
    large: float
    note: str = ""

    @property
    def exponent(self) -> float:
        if self.size == self.larger:
            return math.inf
        return math.log(max(self.large, 0.001) / max(self.small, 0.001)) / math.log(self.larger / self.size)


def measure(case: Case, limit: int, enough: float) -> Growth:
    """Times of a case for two sizes, one of them four times the other."""
    idle = seconds(HEAD if case.deep else case.shape(1), case.command, limit)
    if isinstance(idle, str):
        return Growth(1, 1, 0, 0, idle)
    larger = case.deep or FIRST
    known = (1, 0.001)  # a size that ended well, and its seconds
    while True:
        taken = seconds(case.shape(larger), case.command, limit)
        if isinstance(taken, str):
            return Growth(known[0], larger, known[1], float(limit), taken)
        taken -= idle
        most = larger * LONGEST // len(case.shape(larger))
        if case.deep or taken >= enough / 2 or larger * 1.2 > most:
            break
        known = (larger, max(taken, 0.001))
        # As many as would take long enough if time grew linearly; it is less than linear as long as they are few.
        larger = min(most, int(larger * min(max(enough / known[1], 2), 16))) // 4 * 4
    small = seconds(case.shape(larger // 4), case.command, limit)
    if isinstance(small, str):
        return Growth(larger, larger, 0, taken, small)
    return Growth(larger // 4, larger, small - idle, taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--rules", action="store_true", help="the examples of the rules, not the rest")
    parser.add_argument(
        "--limit", type=int, default=LIMIT, help=f"CPU seconds for one run [default: {LIMIT}]"
    )
    parser.add_argument("--enough", type=float, default=ENOUGH, help=f"CPU seconds [default: {ENOUGH}]")
    parser.add_argument("--worst", action="store_true", help=f"show what is above {MOST} only")
    options = parser.parse_args()
    gc.set_threshold(GARBAGE)
    warm_up()
    bad = 0
    wanted = [case for case in (rule_cases() if options.rules else cases()) if options.only in case.name]
    print(f"{'':70} {'n':>7} {'s':>7} {'4n':>8} {'s':>7} exponent", flush=True)
    for case in wanted:
        growth = measure(case, options.limit, options.enough)
        for _ in range(2):  # once more, and once again: the machine may have been busy
            if growth.note or growth.exponent <= MOST:
                break
            growth = min(growth, measure(case, options.limit, options.enough), key=lambda item: item.exponent)
        over = growth.exponent > MOST
        bad += over
        if over or not options.worst:
            print(
                f"{case.name[:70]:70} {growth.size:7} {growth.small:7.2f} {growth.larger:8} {growth.large:7.2f} "
                f"{growth.exponent:8.2f}{' <--' if over else ''} {growth.note}",
                flush=True,
            )
    print(f"{len(wanted)} cases, {bad} above {MOST}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
