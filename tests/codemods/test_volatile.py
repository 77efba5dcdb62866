"""Volatile variables: where `torch.no_grad()` goes, that both sides compute the same, and what is refused."""

from __future__ import annotations

import textwrap
import warnings

import pytest
import torch
from harness.fixing import checked_and_fixed
from harness.program import FIX_ALL, only
from harness.program import run as checked

from torchmigrate.report.reasons import help_of

HEAD = "import torch\nfrom torch.autograd import Variable\n\n"
CODES = frozenset(["TM331", "TM045"])


def check(text: str, codes: frozenset[str] = CODES) -> tuple[list[str], str]:
    """The help of every finding, and the fixed text."""
    found, new = checked_and_fixed(text, codes)
    return [help_of(finding) or "" for finding in found], new


def dedent(body: str) -> str:
    return HEAD + textwrap.dedent(body).lstrip("\n")


class Recorder(torch.nn.Linear):
    """Notes for every call whether gradients are recorded."""

    def __init__(self) -> None:
        super().__init__(3, 2)
        self.recorded: list[bool] = []

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self.recorded.append(torch.is_grad_enabled())
        return super().forward(input)


def run(text: str, *more: object) -> tuple[object, list[bool]]:
    torch.manual_seed(0)
    model = Recorder()
    batches = [(torch.randn(4, 3), torch.tensor([0, 1, 1, 0])) for _ in range(3)]
    space: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text, "example.py", "exec"), space)
        value = space["test"](model, batches, *more)  # type: ignore[operator]
    return value, model.recorded


LOOP = dedent("""
    def test(model, batches):
        total, hits = 0, 0
        for x, y in batches:
            x, y = Variable(x, volatile=True), Variable(y)
            out = model(x)
            total += torch.nn.functional.cross_entropy(out, y).item()
            hits += out.data.argmax(1).eq(y.data).sum().item()
        return total, hits
    """)
LISTS = dedent("""
    def test(model, batches):
        outs = []
        for x, _ in batches:
            x = Variable(x, volatile=True)
            outs.append(model(x))
        joined = torch.cat(outs) * 2
        return joined.data.sum().item()
    """)
BRANCHES = dedent("""
    def test(model, batches):
        x = batches[0][0]
        if x.is_cuda:
            x = Variable(x.cuda(), volatile=True)
        else:
            x = Variable(x, volatile=True)
        seen = 0
        for _ in range(3):
            h = model(x)
            seen += h.data.sum().item()
        return seen
    """)
ATTRIBUTE = dedent("""
    def test(model, batches):
        x = Variable(batches[0][0])
        x.volatile = True
        out = model(x)
        return out.data.sum().item()
    """)


@pytest.mark.parametrize("text", [LOOP, LISTS, BRANCHES, ATTRIBUTE])
def test_same_numbers_without_gradients(text: str):
    helps, new = check(text)
    assert len(helps) == text.count("volatile")
    assert "volatile" not in new and new.count("with torch.no_grad():") == 1
    old_value, old_recorded = run(text)
    value, recorded = run(new)
    assert value == old_value
    assert old_recorded and all(old_recorded) and recorded and not any(recorded)


@pytest.mark.parametrize("train", [True, False])
def test_a_flag_decides(train: bool):
    text = dedent("""
        def test(model, batches, train):
            total = 0
            for x, y in batches:
                x = Variable(x, volatile=not train)
                loss = model(x).pow(2).mean()
                if train:
                    loss.backward()
                total += loss.item()
            return total
        """)
    _, new = check(text)
    assert "        with torch.set_grad_enabled(train):\n            loss = model(x)" in new
    assert run(new, train)[0] == run(text, train)[0]
    assert run(new, train)[1] == [train] * 3


def test_strings_comments_and_continuation_lines_stay_right():
    text = dedent('''
        def test(model, x, y):
            x = Variable(x,
                         volatile=True)  # once
            # of the batch
            out = model(x,
                        y)
            text = """
          as it is
        """
            last = out + \\
                1
            print(last.data, text)
        ''')
    _, new = check(text)
    assert new == (
        "import torch\n\ndef test(model, x, y):\n    # once\n    # of the batch\n    with torch.no_grad():\n"
        '        out = model(x,\n                    y)\n        text = """\n  as it is\n"""\n'
        "        last = out + \\\n            1\n    print(last.data, text)\n"
    ).replace(
        "    # of the batch\n    with torch.no_grad():\n", "    # of the batch\n    with torch.no_grad():\n"
    )


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("x = Variable(x, volatile=True)\nreturn x", "returned"),
        ("x = Variable(x, volatile=p)\nreturn net(x)", "some callers of `f`"),
        ("return Variable(x, volatile=self.test)", "do not know whether it is volatile"),
        ("return net(Variable(x, volatile=True)), Variable(p, volatile=True)", "some callers of `f`"),
        ("self.h = Variable(x, volatile=True)", "stored in `self.h`"),
        ("h = Variable(x, volatile=True)\nself.all.append(h)", "stored in `self.all`"),
        ("h = net(Variable(x, volatile=True))\nyield h", "yielded"),
        ("h = net(Variable(x, volatile=True))\nh.backward()", "backward()"),
        ("h = Variable(x, volatile=True)\ndef f():\n    return h", "nested function"),
        ("global h\nh = net(Variable(x, volatile=True))", "is global"),
        (
            "h = Variable(x, volatile=True)\nfor y in p:\n    a, c = net(h), net(y)\n    c.backward()\n    h = a * 2",
            "`backward()` is called between",
        ),
        ("h = Variable(x, volatile=True); a = net(h)", "more than one statement"),
        ("h = Variable(x, requires_grad=True, volatile=True)\na = net(h)", "`requires_grad`"),
        ("h = Variable(x, volatile=f())\na = net(h)", "computed"),
        ("h = Variable(*x, volatile=True)\na = net(h)", "cannot analyze"),
        ("h = Variable(x,  # here\n  volatile=True)\na = net(h)", "comment"),
        ("a = Variable(x, volatile=p)\nb = Variable(x, volatile=True)\nc = net(a, b)", "several flags"),
        ("a = Variable(x, volatile=p)\np = 1\nc = net(a)", "changes in between"),
        ("a = Variable(x, volatile=p)\nb = net(x)\np = 1\nc = net(a)\nreturn b", "may need gradients"),
        ("a = lambda: Variable(x, volatile=True)", "not created by a statement"),
    ],
)
def test_refused(body: str, why: str):
    text = f"{HEAD}def f(self, net, x, loss, p):\n{textwrap.indent(body, '    ')}\n"
    helps, new = check(text)
    assert new == text
    assert helps and all(why in said for said in helps), helps


def test_training_and_validation_in_one_function():
    text = dedent("""
        def fit(model, train, valid, criterion, optimizer):
            for x, y in train:
                out = model(Variable(x))
                loss = criterion(out, y)
                loss.backward()
                optimizer.step()
            for x, y in valid:
                x = Variable(x, volatile=True)
                out = model(x)
                loss = criterion(out, y)
                print(loss.data)
        """)
    _, new = check(text)
    assert "    for x, y in valid:\n        with torch.no_grad():\n            out = model(x)\n" in new
    assert "            loss = criterion(out, y)\n        print(loss.data)\n" in new
    assert new.count("no_grad") == 1


def test_under_no_grad_already():
    text = dedent("""
        def f(model, x):
            with torch.no_grad():
                x = Variable(x, volatile=True)
                print(model(x).data)
        """)
    assert check(text)[1].endswith("    with torch.no_grad():\n        print(model(x).data)\n")


def test_only_dropped_where_nothing_is_computed():
    assert check(f"{HEAD}x = Variable(t, volatile=True)\nprint(x.data)\n")[1] == (
        "import torch\n\nx = t\nprint(x.data)\n"
    )


def test_calls_that_ask_for_volatile_variables():
    text = dedent("""
        def to_var(x, volatile=False):
            return Variable(x, volatile=volatile)
        a = to_var(x, volatile=True)
        b = to_var(x, volatile=False)
        def other():
            market(volatile=True)
        """)
    helps, new = check(text)
    assert len(helps) == 2
    assert (
        new
        == "import torch\n\ndef to_var(x):\n    return x\na = to_var(x)\nb = to_var(x)\ndef other():\n    market(volatile=True)\n"
    )
    helps, new = check("from tools import to_var\nimport torch\n\na = to_var(x, volatile=True)\n")
    assert "`to_var` creates volatile variables" in helps[0]


def test_crlf():
    text = LOOP.replace("\n", "\r\n")
    _, new = check(text)
    assert new.replace("\r\n", "").count("\n") == 0
    assert new.replace("\r\n", "\n") == check(LOOP)[1]


LOSSES = """\
import torch
import numpy as np
def f(losses, images, rows, criterion, out, y, model, log):
    {}
"""


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("total = 0.0 + criterion(out, y).data[0]", "total = 0.0 + criterion(out, y).item()"),
        (
            "for name in losses: t = losses[name].data[0]; t += losses[name].data[0]",
            "t += losses[name].item()",
        ),
        ("print('%f' % model.loss.data[0])", "print('%f' % model.loss.item())"),
        ("log(out['loss'].data[0], out)", "log(out['loss'].item(), out)"),
        ("mean = (out - y).abs().mean().data[0]", "mean = (out - y).abs().mean().item()"),
        ("text = f'{model.loss.data[0]:.4f} of {y}'", "f'{model.loss.item():.4f} of {y}'"),
        ("text = f'{images.data[0]} {{model.loss.data[0]}}'", None),
        ("each = [v.data[0] for v in losses]", "each = [v.item() for v in losses]"),
        ("each = [v.data[0] for v in images]", None),
        ("log.total += criterion(out, y).double().data[0]", "criterion(out, y).double().item()"),
        ("out = {'loss': model.loss.data[0], 'n': 1}", "{'loss': model.loss.item(), 'n': 1}"),
        ("rows = {'n': model.loss.data[0]}", None),
        ("loss, n = y; total += loss.data[0]; plot(out, loss.data[0])", "plot(out, loss.item())"),
        ("loss, n = y; plot(out, loss.data[0])", None),
        ("img = images.data[0]", None),
        ("img = images[0].data[0]; row = rows.loss_mask[0].data[0]", None),
        ("print(np.array(y).mean().data[0], losses.data[0], np.loss.data)", None),
        ("losses = criterion(out, y, reduction='none'); print(losses.data[0])", None),
        ("loss = criterion(out, y, reduce=False); print(loss.data[0])", None),
    ],
)
def test_losses_by_name(line: str, new: str | None):
    text = LOSSES.format(line)
    helps, fixed = check(text, frozenset(["TM053"]))
    assert bool(helps) == (new is not None)
    assert (new or line) in fixed


def test_no_wrapper_is_dropped_where_the_volatile_ones_stay() -> None:
    text = textwrap.dedent(
        """\
        import torch
        from torch.autograd import Variable

        def load(x, y):
            y = Variable(torch.zeros(3))
            x = Variable(torch.ones(3))
            x.volatile = True
            return x, y

        def other(z):
            return Variable(torch.zeros(3))
        """
    )
    after = checked(text, *only(["TM330", "TM331", "TM045"]), *FIX_ALL).new_text
    assert after is not None
    assert after.partition("def other")[0] == text.partition("def other")[0]
    assert "return torch.zeros(3)" in after


def test_what_begins_with_a_parenthesis_keeps_its_order() -> None:
    _, after = check(dedent("def f(a, b):\n    return Variable((a) + b, volatile=True).data.sum()\n"))
    assert "return ((a) + b).data.sum()" in after


@pytest.mark.parametrize(
    "body",
    [
        "    for module in self.children():\n        module.gathered(recurse=False, volatile=volatile)",
        "    if not volatile:\n        self.write_back()",
        "    self.cache(volatile=volatile)\n    self.flag = volatile",
        "    return open_memory(self, volatile=volatile)",
        "    return dict(volatile=volatile)",
    ],
)
def test_an_argument_of_that_name_of_another_function(body: str) -> None:
    code = (
        "import torch\nfrom torch.autograd import Variable\n\n"
        f"def gathered(self, recurse=True, volatile=False):\n{body}\n\n"
        "def step(model):\n    gathered(model, volatile=True)\n    model.gathered(volatile=True)\n"
    )
    assert "TM331" not in [item.code for item in checked(code).findings]


@pytest.mark.parametrize(
    "body",
    [
        "    return Variable(x, volatile=volatile)",
        "    return Variable(x, requires_grad=True, volatile=volatile)",
        "    return to_variable(x, volatile=volatile)",
        "    return inner(x, volatile=volatile)\n\ndef inner(x, volatile):\n    return Variable(x, volatile=volatile)",
        "    x = Variable(x)\n    x.volatile = volatile\n    return x",
    ],
)
def test_a_function_that_hands_it_on_to_a_variable(body: str) -> None:
    code = (
        "import torch\nfrom torch.autograd import Variable\nfrom tools import to_variable\n\n"
        f"def made(x, volatile=False):\n{body}\n\n"
        "def step(model, x):\n    return model(made(x, volatile=True))\n"
    )
    found = checked(code).findings
    assert any(item.code == "TM331" and code[: item.start].endswith("made(x, ") for item in found)
