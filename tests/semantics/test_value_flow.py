"""The value flow: small programs, and the origins of what `ask(...)` is given.

A row is one step, a pair of steps, or what must stay unknown. Origins are written as in the program; an item of one
has its keys in brackets behind `@`.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchmigrate.semantics.flow.forward import Forward
from torchmigrate.semantics.flow.steps import Step
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.walk.resolver import resolve
from torchmigrate.source.text import Source

UNKNOWN, OPEN = "UNKNOWN", "OPEN"


def flow_of(text: str) -> tuple[ValueFlow, ast.expr]:
    """The flow of a program, and the argument of `ask`, which others keep alive."""
    source = Source.from_text(text, Path("case.py"))
    flow = ValueFlow(resolve(source.parse(), source, roots=LIBRARY_ROOTS))
    (call,) = [call for call in flow.names.nodes(ast.Call) if getattr(call.func, "id", "") == "ask"]
    return flow, call.args[0]


def shown(step: Step) -> str:
    if step.node is None:
        return OPEN if step.open else UNKNOWN
    path = "".join(f"[{key if isinstance(key, int | str) else '*'}]" for key in step.path)
    return ast.unparse(step.node) + (f"@{path}" if path else "")


def origins(text: str) -> set[str]:
    flow, asked = flow_of(text)
    return {shown(step) for step in flow.origins(asked)}


NAMES = {
    "x = a()\nask(x)": {"a()"},
    "x = a()\nx = b()\nask(x)": {"b()"},
    "x = y = a()\nask(x)": {"a()"},
    "if c:\n    x = a()\nelse:\n    x = b()\nask(x)": {"a()", "b()"},
    "x = a()\nif c:\n    x = b()\nask(x)": {"a()", "b()"},
    "x = a()\nfor _ in c:\n    x = f(x)\nask(x)": {"a()", "f(x)"},
    "x = a()\nwhile c:\n    ask(x)\n    x = b()": {"a()", "b()"},
    "try:\n    x = a()\nexcept ValueError:\n    x = b()\nask(x)": {"a()", "b()"},
    "x: int = a()\nask(x)": {"a()"},
    "if (x := a()):\n    ask(x)": {"a()"},
    "ask(a() if c else b())": {"a()", "b()"},
    "ask(a() or b())": {"a()", "b()"},
    "x = a()\nx += 1\nask(x)": {"x += 1"},
    "with a() as x:\n    ask(x)": {"a() as x"},
    "x = None\nif c:\n    x = a()\nask(x)": {"None", "a()"},
    "x = a()\ndef f():\n    ask(x)": {"a()"},
    "x = a()\nx = b()\ndef f():\n    ask(x)": {"a()", "b()"},
    "def f():\n    x = a()\n    def g():\n        ask(x)": {"a()"},
    "x = a()\ndef f():\n    global x\n    x = b()\n    ask(x)": {"a()", "b()"},
    "import x\nask(x)": {"x"},
    "del x\nask(x)": {UNKNOWN},
    "async def f():\n    ask(await a())": {"a()"},
}
UNPACKED = {
    "x, y = a(), b()\nask(y)": {"b()"},
    "x, y = a()\nask(y)": {"a()@[1]"},
    "x, (y, z) = a()\nask(z)": {"a()@[1][1]"},
    "p = a(), b()\nx, y = p\nask(x)": {"a()"},
    "x, *y = a()\nask(y)": {UNKNOWN},
    "x, y = *a(), b()\nask(x)": {UNKNOWN},
    "x, y = y, x = a(), b()\nask(x)": {"b()"},
    "def f():\n    return a(), b()\nx, y = f()\nask(y)": {"b()"},
}
CONTAINERS = {
    "x = [a(), b()]\nask(x[0])": {"a()"},
    "x = [a(), b()]\nask(x[-1])": {"b()"},
    "x = [a(), b()]\nask(x[i])": {"a()", "b()"},
    "x = []\nx.append(a())\nask(x[0])": {"a()"},
    "x = []\nx.extend(a())\nask(x[0])": {UNKNOWN},
    "d = {'k': a(), 'l': b()}\nask(d['k'])": {"a()"},
    "d = dict(k=a())\nask(d['k'])": {"a()"},
    "d = {}\nd['k'] = a()\nd['l'] = b()\nask(d['k'])": {"a()"},
    "d = {'k': a()}\nd.update(k=b())\nask(d['k'])": {"a()", "b()"},
    "d = {'k': a()}\nd.update(e)\nask(d['k'])": {"a()", "e@[k]"},
    "d = {'k': a()}\ne = {'k': b(), 'l': c()}\nd.update(e)\nask(d['k'])": {"a()", "b()"},
    "from collections import OrderedDict\nd = OrderedDict()\nd['k'] = a()\nask(d['k'])": {"a()"},
    "from copy import deepcopy\nd = {'k': a()}\ne = deepcopy(d)\nask(e['k'])": {"a()"},
    "d = dict((n, f(n)) for n in names)\nask(d['k'])": {"f(n)"},
    "d = {'k': a()}\nd[i] = b()\nask(d['k'])": {"a()", UNKNOWN},
    "d = {'k': a(), **{'k': b()}}\nask(d['k'])": {"a()", "b()"},
    "d = {i: a()}\nask(d['k'])": {UNKNOWN},
    "ask([f(y) for y in x][0])": {"f(y)"},
    "for x in [a(), b()]:\n    ask(x)": {"a()", "b()"},
    "for x in a():\n    ask(x)": {"a()@[*]"},
    "for i, x in enumerate([a(), b()]):\n    ask(x)": {"a()", "b()"},
    "for x, y in zip(c, [a(), b()]):\n    ask(y)": {"a()", "b()"},
    "for i, (x, y) in enumerate(zip(c, [a()])):\n    ask(y)": {"a()"},
    "for k, x in {'k': a()}.items():\n    ask(x)": {"a()"},
    "for x in {'k': a()}.values():\n    ask(x)": {"a()"},
    "for x in reversed([a()]):\n    ask(x)": {"a()"},
    "y = [ask(x) for x in [a()]]": {"a()"},
    "from torch import nn\nm = nn.ModuleList([a(), b()])\nfor x in m:\n    ask(x)": {"a()", "b()"},
    "from torch import nn\nm = nn.ModuleList(a(i) for i in c)\nask(m[0])": {"a(i)"},
    "from torch import nn\nm = nn.Sequential(a(), b())\nask(m[1])": {"a()", "b()"},
    "d = f()\nask(d['k'])": {"f()@[k]"},
    "for x in {'k': a()}:\n    ask(x)": {"'k'"},
    "for k, x in {'k': a()}.items():\n    ask(k)": {"'k'"},
    "d = {'k': a(), 'l': b()}\nask(d[i])": {"a()", "b()"},
    "x = [a(), b()]\nx.pop(0)\nask(x[0])": {"a()", "b()"},
    "x = [a(), b()]\ndel x[0]\nask(x[0])": {"a()", "b()"},
    "def f(zip):\n    for x, y in zip(c, [a()]):\n        ask(y)": {"zip(c, [a()])@[*][1]"},
    "d = {'k': a(), 'l': b()}\nask(d.get('k'))": {"a()"},
    "d = {'k': a()}\nask(d.get(i, b()))": {"a()", "b()"},
    "ask(d.get('k'))": {"d.get('k')"},
    "d = {'k': a()}\nask(d.get(*c))": {"d.get(*c)"},
}
CALLS = {
    "def f(x):\n    ask(x)\nf(a())": {"a()", OPEN},
    "def f(x):\n    ask(x)": {OPEN},
    "def f(x):\n    ask(x)\nf(x=a())\nf(b())": {"a()", "b()", OPEN},
    "def _f(x):\n    ask(x)\n_f(a())": {"a()"},
    "def _f(x):\n    ask(x)\n_f(a())\ng(_f)": {"a()", OPEN},
    "def f(x=a()):\n    ask(x)": {"a()", OPEN},
    "def _f(y, x=a()):\n    ask(x)\n_f(1)\n_f(1, b())": {"a()", "b()"},
    "def _f(x):\n    ask(x)\n_f(*c)": {UNKNOWN},
    "def g():\n    def f(x):\n        ask(x)\n    f(a())": {"a()"},
    "def f(*x):\n    ask(x)\nf(a())": {"x"},
    "def f(**o):\n    ask(o['k'])\nf(k=a(), **{'k': b()})": {"a()", "b()", OPEN},
    "def f(y):\n    return a(y)\nask(f(1))": {"a(y)"},
    "def f():\n    if c:\n        return a()\n    return b()\nask(f())": {"a()", "b()"},
    "def f():\n    yield a()\nask(f())": {UNKNOWN},
    "@mark\ndef f():\n    return a()\nask(f())": {UNKNOWN},
    "f = lambda y: a(y)\nask(f(1))": {"a(y)"},
    "def f(x):\n    return x\nask(f(a()))": {"a()", OPEN},
    "def f():\n    return g()\ndef g():\n    return f()\nask(f())": set(),
    "from functools import partial\ndef f(y, x):\n    ask(x)\ng = partial(f, x=a())": {"a()", OPEN},
    "import functools\ndef f(x, y):\n    ask(x)\ng = functools.partial(f, a())": {"a()", OPEN},
    "x = a()\ndef f():\n    ask(x)\ndel x": {"a()"},
    "import pytest\n@pytest.mark.parametrize('x', [a(), b()])\ndef test(x):\n    ask(x)": {"a()", "b()"},
    "import pytest\n@pytest.mark.parametrize('x, y', [(a(), b())])\ndef test(x, y):\n    ask(y)": {"b()"},
    "import pytest\n@pytest.mark.parametrize(['x', 'y'], c)\ndef test(x, y):\n    ask(y)": {"c@[*][1]"},
    "from .functools import partial\ndef f(y, x):\n    ask(x)\ng = partial(f, x=a())": {OPEN},
    "@mark('x', [a()])\ndef test(x):\n    ask(x)": {OPEN},
    "x = a()\ny = x.add_(1)\nask(y)": {"a()"},
    "from torch import nn\nx = a()\ny = nn.init.zeros_(x)\nask(y)": {"a()"},
    "ask(x.add(1))": {"x.add(1)"},
}
CLASSES = {
    "class A:\n    def __init__(self):\n        self.m = a()\n    def f(self):\n        ask(self.m)": {"a()"},
    "class A:\n    m = a()\n    def f(self):\n        ask(self.m)": {"a()"},
    "class A:\n    def __init__(self):\n        self.register_buffer('m', a())\n    def f(self):\n        ask(self.m)": {
        "a()"
    },
    "class A:\n    def __init__(self):\n        self.m, self.n = a(), b()\n    def f(self):\n        ask(self.n)": {
        "b()"
    },
    "class A:\n    def __init__(self, x):\n        self.m = x\n    def f(self):\n        ask(self.m)\nA(a())": {
        "a()",
        OPEN,
    },
    "class A:\n    def g(self):\n        return a()\n    def f(self):\n        ask(self.g())": {"a()"},
    "class A:\n    def g(self, x):\n        ask(x)\n    def f(self):\n        self.g(a())": {"a()", OPEN},
    "class A:\n    @property\n    def g(self):\n        return a()\n    def f(self):\n        ask(self.g)": {
        "a()"
    },
    "class B:\n    def __init__(self):\n        self.m = a()\nclass A(B):\n    def f(self):\n        ask(self.m)": {
        "a()"
    },
    "class A:\n    def __init__(self):\n        self.m = a()\n    def f(self):\n        ask(self.m)\nA().m = b()": {
        "a()",
        UNKNOWN,
    },
    "class A:\n    def __init__(self):\n        self.m = a()\n        setattr(self, k, 1)\n    def f(self):\n"
    "        ask(self.m)": {"a()", UNKNOWN},
    "class A:\n    def __init__(self):\n        setattr(self, 'm', a())\n    def f(self):\n        ask(self.m)": {
        "a()"
    },
    "class A:\n    m = a()\nask(A.m)": {"a()"},
    "class A:\n    m = {'k': a()}\n    def f(self):\n        self.m['l'] = b()\nask(A.m[i])": {"a()", "b()"},
    "class A:\n    m = a()\n    @classmethod\n    def f(cls):\n        ask(cls.m)": {"a()"},
    "class A(Enum):\n    m = a()\nask(A.m)": {"A.m"},
    "class A:\n    m = a()\nA.m = b()\nask(A.m)": {"a()", UNKNOWN},
    "class A:\n    @staticmethod\n    def g():\n        return a()\nask(A.g())": {"a()"},
    "class N:\n    def forward(self, x):\n        ask(x)\nclass M:\n    def __init__(self):\n        self.n = N()\n"
    "    def forward(self, y):\n        return self.n(a())": {"a()", OPEN},
    "class N:\n    def forward(self, x):\n        return a()\nn = N()\nask(n(1))": {"a()"},
    "class A:\n    def f(self):\n        ask(self.m)": {"self.m"},
    "class A:\n    def g(self):\n        return a()\n    def f(self):\n        ask(self.g())\nclass B(A):\n"
    "    def g(self):\n        return b()": {"self.g()"},
    "ask(x.m)": {"x.m"},
}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [*NAMES.items(), *UNPACKED.items(), *CONTAINERS.items(), *CALLS.items(), *CLASSES.items()],
)
def test_origins(text: str, wanted: set[str]) -> None:
    assert origins(text) == wanted


# Each of these gives `ask` what `a()` is, by one kind of step.
PAIRS = {
    "name": ("{indent}y = {value}\n", "y"),
    "branch": ("{indent}if c:\n{indent}    y = {value}\n{indent}else:\n{indent}    y = {value}\n", "y"),
    "unpacked": ("{indent}_, y = 1, {value}\n", "y"),
    "list": ("{indent}y = [{value}]\n", "y[0]"),
    "dictionary": ("{indent}y = dict(k={value})\n", "y['k']"),
    "in place": ("{indent}y = {value}\n", "y.add_(1)"),
    "attribute": ("{indent}self.y = {value}\n", "self.y"),
    "buffer": ("{indent}self.register_buffer('y', {value})\n", "self.y"),
    "helper": ("{indent}def g():\n{indent}    return {value}\n", "g()"),
    "argument": ("{indent}def g(x):\n{indent}    return x\n{indent}y = g({value})\n", "y"),
    "loop": ("{indent}for y in [{value}]:\n{indent}    pass\n", "y"),
    "conditional": ("", "({value} if c else {value})"),
}


@pytest.mark.parametrize("first", PAIRS)
@pytest.mark.parametrize("second", PAIRS)
def test_each_pair_of_steps(first: str, second: str) -> None:
    """In a method, one step after the other."""
    text, value = "class A:\n    def f(self):\n", "a()"
    for number, name in enumerate((first, second)):
        lines, use = PAIRS[name]
        # Each step has names of its own.
        for old in ("y", "g", "x"):
            lines, use = (_renamed(part, old, f"{old}{number}") for part in (lines, use))
        text += lines.format(indent=" " * 8, value=value)
        value = use.format(value=value)
    assert origins(f"{text}        ask({value})\n") == {"a()"}


def _renamed(text: str, old: str, new: str) -> str:
    import re

    return re.sub(rf"(?<![\w{{]){old}(?![\w}}])", new, text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("y = made\nf(y)\ng(y)", {"f(y)"}),
        ("y = made\nif c:\n    y = other\nf(y)", {"f(y)"}),
        ("y = made\ny = other\nf(y)", set()),
        ("y, z = made, other\nf(y)\nf(z)", {"f(y)"}),
        ("def g(x):\n    f(x)\ng(made)", {"f(x)"}),
        ("def g():\n    return made\nf(g())", {"f(g())"}),
        (
            "class A:\n    def __init__(self):\n        self.y = made\n    def g(self):\n        f(self.y)",
            {"f(self.y)"},
        ),
        ("y = made\ndef g():\n    f(y)", {"f(y)"}),
        ("f(made if c else other)", {"f(made if c else other)"}),
        ("f(made.add_(1))", {"f(made.add_(1))"}),
        ("f(made.add(1))", set()),
        ("y = [f(made) for _ in c]", {"f(made)"}),
    ],
)
def test_where_values_go(text: str, wanted: set[str]) -> None:
    """All that the value of `made` is given to, at the end of the way."""
    source = Source.from_text(text, Path("case.py"))
    flow = ValueFlow(resolve(source.parse(), source, roots=LIBRARY_ROOTS))
    forward = Forward(flow)
    (made,) = [name for name in flow.names.nodes(ast.Name) if name.id == "made"]
    seen: list[ast.AST] = [made]
    for node in seen:
        seen += [use for use in forward.of(node) if use not in seen]
    calls = {flow.names.parents.get(node) for node in seen}
    assert {
        ast.unparse(call)
        for call in calls
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "f"
    } == wanted


@pytest.mark.parametrize(
    "unit",
    [
        "x{n}, _ = x{m}, 1",
        "x{n} = x{m}.add_(1)",
        "x{n} = [x{m}][0]",
        "x{n} = x{m} if c else x{m}",
        "def f{n}():\n    return x{m}\nx{n} = f{n}()",
        "d{n} = dict(k=x{m})\nx{n} = d{n}['k']",
    ],
)
def test_long_ways_end(unit: str) -> None:
    lines = [unit.format(n=number, m=number - 1) for number in range(1, 2000)]
    assert origins("x0 = a()\n" + "\n".join(lines) + "\nask(x1999)\n") == {"a()"}


def test_objects_that_make_each_other() -> None:
    """What is too far away is not followed, and no error."""
    unit = "class A{n}:\n    def make(self, y):\n        return A{n}()\nx{n} = x{m} if c else x{m}.make(1)\n"
    text = "".join(unit.format(n=number, m=number - 1) for number in range(1, 500))
    assert "a()" in origins(f"x0 = a()\n{text}ask(x499)\n")
