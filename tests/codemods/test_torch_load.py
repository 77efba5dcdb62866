"""TM600: what `torch.load` is asked for, by what becomes of the result."""

from __future__ import annotations

import textwrap

import pytest
from harness.program import FIX_ALL, fixed, only, run

from torchmigrate.report.reasons import message_of, reason_of

STATE, OTHER = "weights_only=True", "weights_only=False"
ONLY = only(["TM600"])

# A call that reads, and its `weights_only` after the fixes.
READS = {
    "handed on": ("model.load_state_dict(torch.load(p))", STATE),
    "handed on by name": ("model.load_state_dict(state_dict=torch.load(p))", STATE),
    "one entry": ("model.load_state_dict(torch.load(p)['state_dict'], strict=False)", STATE),
    "parts": (
        """
        checkpoint = torch.load(p)
        model.load_state_dict(checkpoint['model'])
        optimizer.load_state_dict(checkpoint['optim'])
        epoch = checkpoint['epoch']
        """,
        STATE,
    ),
    "numbers alone": (
        """
        info = torch.load(p)
        epoch, best = info['epoch'], info['best_acc1']
        if 'logger' in info:
            logger = info['logger']
        """,
        OTHER,
    ),
    "other keys": (
        """
        state = torch.load(p)
        state = {k.replace('module.', ''): v for k, v in state.items()}
        model.load_state_dict(state)
        """,
        STATE,
    ),
    "whatever is there": (
        """
        loaded = torch.load(p)
        if 'state_dict' in loaded:
            state = loaded['state_dict']
        else:
            state = loaded
        model.load_state_dict(state)
        """,
        STATE,
    ),
    "a key that is chosen": (
        """
        loaded = torch.load(p)
        key = 'params_ema' if 'params_ema' in loaded else 'params'
        model.load_state_dict(loaded[key], strict=True)
        """,
        STATE,
    ),
    "keys are renamed in it": (
        """
        loaded = torch.load(p)
        for k, v in deepcopy(loaded).items():
            if k.startswith('module.'):
                loaded[k[7:]] = v
                loaded.pop(k)
        compare(model, loaded)
        model.load_state_dict(loaded)
        """,
        STATE,
    ),
    "keys are renamed in another": (
        """
        new = OrderedDict()
        for k, v in torch.load(p).items():
            new[k[7:]] = v
        model.load_state_dict(new)
        """,
        STATE,
    ),
    "a copy": ("state = dict(torch.load(p))\nmodel.load_state_dict(OrderedDict(state.copy()))", STATE),
    "it changes another": (
        """
        own = model.state_dict()
        kept = {k: v for k, v in torch.load(p).items() if k in own}
        own.update(kept)
        model.load_state_dict(own)
        """,
        STATE,
    ),
    "it changes another by way of a third": (
        """
        own = model.state_dict()
        new = OrderedDict()
        for k, v in torch.load(p).items():
            if k in own:
                new[k] = v
        own.update(new)
        model.load_state_dict(own)
        """,
        STATE,
    ),
    "others have variables of its name": (
        """
        def other(state):
            start(state)
        def another():
            state = find()
            start(state)
        state = torch.load(p)
        model.load_state_dict(state)
        """,
        STATE,
    ),
    "another function reads it": (
        """
        def other():
            start(state)
        state = torch.load(p)
        model.load_state_dict(state['model'])
        """,
        OTHER,
    ),
    "it changes what is no state": ("settings = {}\nsettings.update(torch.load(p))\nstart(settings)", OTHER),
    "the size of a weight": (
        """
        state = torch.load(p)
        model.fc = Linear(10, state['fc.weight'].size(0))
        model.load_state_dict(state)
        """,
        STATE,
    ),
    "weights by their names": (
        "state = torch.load(p)\nuse(state[f'{name}.weight'], state['fc.bias'])",
        STATE,
    ),
    "weights and settings": ("state = torch.load(p)\nuse(state['fc.weight'], state['args'])", OTHER),
    "a copy of anything": ("data = deepcopy(torch.load(p))\nstart(data)", OTHER),
    "an entry that is chosen goes elsewhere": ("data = torch.load(p)\nstart(data[key])", OTHER),
    "what a function makes of it": ("model.load_state_dict(convert(torch.load(p)))", OTHER),
    "the arguments of a script": (
        """
        checkpoint = torch.load(p)
        args = checkpoint['args']
        model.load_state_dict(checkpoint['model'])
        """,
        OTHER,
    ),
    "a model": ("model = torch.load(p)\nmodel.eval()", OTHER),
    "a model in an entry": ("model = torch.load(p)['model'].float()", OTHER),
    "a model in an entry that has a name": ("net = torch.load(p)['model']\nnet.eval()", OTHER),
    "returned": ("def read(p):\n    return torch.load(p)", OTHER),
    "given away": ("start(torch.load(p))", OTHER),
    "an attribute": ("self.data = torch.load(p)", OTHER),
}


@pytest.mark.parametrize("name", READS)
def test_what_is_read(name: str) -> None:
    code, wanted = READS[name]
    imports = "import torch\nfrom collections import OrderedDict\nfrom copy import deepcopy\n"
    text = imports + textwrap.dedent(code).strip() + "\n"
    (finding,) = run(text, *ONLY).findings
    assert finding.severity.label == ("info" if wanted == STATE else "warning")
    assert finding.fix is not None and reason_of(finding.fix)
    assert fixed(text, *ONLY, *FIX_ALL) == text.replace("torch.load(p)", f"torch.load(p, {wanted})")


WRITTEN = {
    "by name": ("torch.save(model, path)\nagain = torch.load(path)", True),
    "to a stream": ("b = io.BytesIO()\ntorch.save(x, b)\nb.seek(0)\ny = torch.load(b)", True),
    "by keyword": ("torch.save(model, f=path)\nagain = torch.load(f=path)", True),
    "another file": ("torch.save(model, path)\nagain = torch.load(other)", False),
    "later": ("again = torch.load(path)\ntorch.save(model, path)", False),
    "the name is another's now": (
        "torch.save(model, path)\npath = choose()\nagain = torch.load(path)",
        False,
    ),
    "made anew each time": ("torch.save(model, pick())\nagain = torch.load(pick())", False),
}


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("head", ["", "def work(model, path):\n"], ids=["module", "function"])
def test_what_the_same_function_wrote(name: str, head: str) -> None:
    code, own = WRITTEN[name]
    text = (
        "import io\nimport torch\npath = 'a'\n" + head + textwrap.indent(code, "    " if head else "") + "\n"
    )
    (finding,) = run(text, *ONLY).findings
    assert finding.fix is not None
    assert finding.fix.applicability.label == ("safe" if own else "unsafe")


TENSORS = {
    "by name": ("x = torch.ones(3)\ntorch.save(x, path)", "safe", STATE),
    "a result": ("x = torch.cat([a, b])\ntorch.save(x, path)", "safe", STATE),
    "a dictionary": ("x = torch.ones(3)\ntorch.save({'a': x, 'b': [x, 3, 'c']}, path)", "safe", STATE),
    "a tuple by name": (
        "x = torch.ones(3)\ny = x + 1\nboth = (x, y)\ntorch.save(both, path)",
        "safe",
        STATE,
    ),
    "annotated": ("torch.save(given, path)", "unsafe", STATE),
    "with others": ("x = torch.ones(3)\ntorch.save((x, a), path)", "safe", OTHER),
    "anything": ("torch.save(a, path)", "safe", OTHER),
    "a list that grows": ("x = [torch.ones(3)]\nx.append(a)\ntorch.save(x, path)", "safe", OTHER),
}


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_that_the_same_function_wrote(name: str) -> None:
    code, level, wanted = TENSORS[name]
    body = textwrap.indent(f"{code}\nreturn torch.load(path)\n", "    ")
    text = f"import torch\ndef work(a, b, path, given: torch.Tensor):\n{body}"
    (finding,) = run(text, *ONLY).findings
    assert finding.fix is not None
    assert finding.fix.applicability.label == level
    assert finding.severity.label == ("info" if wanted == STATE else "warning")
    assert wanted in fixed(text, *ONLY, *FIX_ALL)


def test_a_tuple_of_tensors_that_another_method_writes_to_an_open_file() -> None:
    text = """\
import os
import torch
class Digits:
    def make(self):
        train, test = (torch.ones(3), torch.zeros(3)), (torch.ones(2), torch.zeros(2))
        with open(os.path.join(self.root, self.train_file), "wb") as f:
            torch.save(train, f)
        with open(os.path.join(self.root, self.test_file), "wb") as f:
            torch.save({1: model}, f)
    def read(self):
        self.train = torch.load(os.path.join(self.root, self.train_file))
        self.test = torch.load(os.path.join(self.root, self.test_file))
"""
    train, test = run(text, *ONLY).findings
    assert (train.severity.label, test.severity.label) == ("info", "warning")
    new = fixed(text, *ONLY, *FIX_ALL)
    assert f"self.train_file), {STATE})" in new
    assert f"self.test_file), {OTHER})" in new


@pytest.mark.parametrize(
    ("code", "whole"),
    [
        ("torch.save(model, 'best_model.pt')", True),
        ("torch.save(self.net, 'best_model.pt')", True),
        ("torch.save(optimizer, 'best_model.pt')", True),
        ("torch.save(model.state_dict(), 'best_model.pt')", False),
        ("torch.save(model, 'best_model.pt')\n    torch.save({}, 'best_model.pt')", False),
        ("torch.save(state, 'best_model.pt')", False),
        ("torch.save(something, 'best_model.pt')", False),
    ],
)
def test_a_whole_object_is_said_to_raise(code: str, whole: bool) -> None:
    text = f"""\
import torch
def train(self, model, optimizer, something):
    optimizer.zero_grad()
    self.net.parameters()
    state = model.state_dict()
    model.load_state_dict(state)
    {code}
def evaluate():
    return torch.load('best_model.pt')
"""
    (finding,) = run(text, *ONLY).findings
    assert ("raises since torch 2.6" in message_of(finding)) is whole
    if whole:
        assert finding.severity.label == "warning"
        assert OTHER in fixed(text, *ONLY, *FIX_ALL)


@pytest.mark.parametrize(
    "code",
    [
        "torch.load(p, pickle_module=dill)",
        "torch.load(p, 'cpu', dill)",
        "torch.load(p, **options)",
        "os.environ['TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD'] = '1'\ntorch.load(p)",
        "torch.serialization.add_safe_globals([Config])\ntorch.load(p)",
        "with torch.serialization.safe_globals([Config]):\n    torch.load(p)",
        "torch.load = functools.partial(torch.load, weights_only=False)\ntorch.load(p)",
    ],
)
def test_settled_otherwise(code: str) -> None:
    assert run(f"import functools, os, dill\nimport torch\n{code}\n", *ONLY).findings == []


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("found = torch.load(p)\nif 'a' in found:\n    net.load_state_dict(torch.load(p)['a'])", STATE),
        (
            "try:\n    net.load_state_dict(torch.load(p)['a'])\nexcept KeyError:\n    start(convert(torch.load(p)))",
            STATE,
        ),
        ("net.load_state_dict(torch.load(p)['a'])\nargs = torch.load(p)['args']", OTHER),
        (
            "net.load_state_dict(torch.load(join(d, 'x'))['a'])\nargs = torch.load(join(d, 'x'))['args']",
            OTHER,
        ),
    ],
)
def test_one_verdict_for_loads_of_one_file(code: str, wanted: str) -> None:
    text = f"import torch\nfrom os.path import join\n{code}\n"
    found = run(text, *ONLY).findings
    assert len(found) == 2
    assert {finding.severity.label for finding in found} == {"info" if wanted == STATE else "warning"}
    assert fixed(text, *ONLY, *FIX_ALL).count(wanted) == 2


def test_branches_that_exclude_each_other_may_read_different_files() -> None:
    text = """
        import torch
        def read(net, p, whole):
            if whole:
                return torch.load(p)
            else:
                net.load_state_dict(torch.load(p))
    """
    new = fixed(textwrap.dedent(text).lstrip(), *ONLY, *FIX_ALL)
    assert f"return torch.load(p, {OTHER})" in new and f"(torch.load(p, {STATE}))" in new


def test_what_has_other_entries_is_no_state_dict() -> None:
    text = """
        import torch, deepspeed
        def read(net, p):
            state = torch.load(p)
            state = state["module"]
            state = {k[7:]: v for k, v in state.items()}
            net.load_state_dict(state)
    """
    assert OTHER in fixed(textwrap.dedent(text).lstrip(), *ONLY, *FIX_ALL)


def test_other_files_in_one_function_have_their_own_verdicts() -> None:
    text = """
        import torch
        def read(net, p):
            net.load_state_dict(torch.load(p))
            p = other(p)
            return torch.load(p)
    """
    new = fixed(textwrap.dedent(text).lstrip(), *ONLY, *FIX_ALL)
    assert new.count(STATE) == new.count(OTHER) == 1


def test_a_state_dict_that_the_same_function_wrote() -> None:
    use = "torch.save(net.state_dict(), path)\nnet.load_state_dict(torch.load(path))\n"
    text = f"import torch\nnet = torch.nn.Linear(2, 3)\n{use}"
    (finding,) = run(text, *ONLY).findings
    assert finding.severity.label == "info"
    assert fixed(text, *ONLY, "--fix") == text.replace("load(path)", "load(path, weights_only=True)")
    unknown = f"import torch\nnet = make()\n{use}"  # what class it is of, and what it has in its state
    assert fixed(unknown, *ONLY, "--fix") == unknown
    assert STATE in fixed(unknown, *ONLY, *FIX_ALL)
    foreign = f"import transformer_engine\n{text}"  # whose layers may keep anything in the state
    assert fixed(foreign, *ONLY, "--fix") == foreign


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        ("net.load_state_dict({})", "files that hold anything but tensors and plain containers"),
        ("use({})", "runs any code that the file contains"),
    ],
)
def test_a_minimum_without_the_argument_is_said_beside_the_reason(use: str, reason: str) -> None:
    text = f"import torch\n{use.format('torch.load(path)')}\n"
    for minimum, needs in (("1.10", "needs torch 1.13, but the project supports torch 1.10; "), ("1.13", "")):
        (finding,) = run(text, *ONLY, "--minimum", minimum).findings
        assert finding.fix is not None and reason_of(finding.fix).startswith(f"{needs}{reason}")


@pytest.mark.parametrize(
    ("saved", "wanted"),
    [
        ("{'model': net.state_dict(), 'args': args}", OTHER),
        ("{'model': net.state_dict(), 'config': cfg, 'epoch': 3}", OTHER),
        ("{'model': net.state_dict(), 'args': vars(args)}", STATE),
        ("{'model': net.state_dict(), 'epoch': epoch}", STATE),
    ],
)
def test_what_else_the_checkpoints_of_the_file_hold(saved: str, wanted: str) -> None:
    code = f"""
        import torch
        def save(net, args, cfg, epoch, path):
            torch.save({saved}, path)
        def load(net, path):
            checkpoint = torch.load(path)
            net.load_state_dict(checkpoint["model"])
        def load_any(net, path):
            state = torch.load(path)
            if "model" in state:
                state = state["model"]
            net.load_state_dict(state)
        def start(net, path):
            net.load_state_dict(torch.load(path))
    """
    text = textwrap.dedent(code).lstrip()
    new = text.replace(" = torch.load(path)", f" = torch.load(path, {wanted})")
    assert fixed(text, *ONLY, *FIX_ALL) == new.replace("(torch.load(path))", f"(torch.load(path, {STATE}))")


@pytest.mark.parametrize(
    "other",
    [
        'def options(path):\n    return torch.load(path)["args"]\n',
        "def write(target, path, save=torch.save):\n    save(target, path)\n",
        "def later(target, path):\n    pool.submit(torch.save, target, path)\n",
        "torch_save = torch.save\n",
    ],
)
def test_what_the_file_shows_that_checkpoints_may_hold(other: str) -> None:
    code = 'import torch\n\ndef load(net, path):\n    net.load_state_dict(torch.load(path)["model"])\n\n'
    text = fixed(code + other, *ONLY, *FIX_ALL)
    assert f'torch.load(path, {OTHER})["model"]' in text
    assert f'torch.load(path, {STATE})["model"]' in fixed(code, *ONLY, *FIX_ALL)


NUMBERS = """
    import numpy as np
    import torch
    def measure(net, data):
        right = total = 0
        for x, y in data:
            right += np.sum(net(x).argmax(1).numpy() == y.numpy())
            total += len(y)
        acc = right / total
        return {{"state_dict": net.state_dict(), "acc": {acc}}}
    def save(net, data, path):
        torch.save(measure(net, data), path)
    def resume(net, path):
        checkpoint = torch.load(path)
        net.load_state_dict(checkpoint["state_dict"])
        return checkpoint["epoch"]
"""


@pytest.mark.parametrize(
    ("acc", "wanted"),
    [
        ("acc", OTHER),
        ("right / total", OTHER),
        ("max(0.0, acc)", OTHER),
        ("np.float32(acc)", OTHER),
        ("round(acc, 3)", OTHER),
        ("compute(data)", OTHER),
        ("total", STATE),
        ("float(acc)", STATE),
        ("acc.item()", STATE),
        ("f'{acc}'", STATE),
        ("torch.__version__", OTHER),
        ("str(torch.__version__)", STATE),
    ],
)
def test_numbers_of_numpy_in_a_checkpoint(acc: str, wanted: str) -> None:
    text = textwrap.dedent(NUMBERS.format(acc=acc)).lstrip()
    assert fixed(text, *ONLY, *FIX_ALL) == text.replace("load(path)", f"load(path, {wanted})")


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ("'best_acc1': best_acc1", STATE),
        ("'arch': args.arch, 'epoch': epoch + 1", STATE),
        ("'model_ema': ema", OTHER),
        ("'best_model': copy.deepcopy(net)", OTHER),
        ("'criterion': criterion", OTHER),
        ("**more", OTHER),
        ("'lr': lr, 'seed': 3, 'names': ['a', 'b']", STATE),
    ],
)
@pytest.mark.parametrize("way", ["at once", "later", "by call"])
def test_what_else_is_in_a_checkpoint(entry: str, wanted: str, way: str) -> None:
    saved = {
        "at once": f"held = {{'net': net.state_dict(), {entry}}}",
        "later": f"held = {{'net': net.state_dict()}}\n    held.update({{{entry}}})",
        "by call": f"held = dict(net=net.state_dict(), **{{{entry}}})",
    }[way]
    text = f"""import copy
import torch
def save(net, ema, criterion, more, args, epoch, best_acc1, lr, path):
    {saved}
    torch.save(held, path)
def resume(net, path):
    held = torch.load(path)
    net.load_state_dict(held["net"])
"""
    assert fixed(text, *ONLY, *FIX_ALL) == text.replace("load(path)", f"load(path, {wanted})")


# What is saved as `labels.pt`, and whether that is sure to be plain.
NAMED = {
    "torch.tensor([1])": True,
    "net.weight.data.cpu()": True,
    "out.detach().cpu()": True,
    "made.cpu()": True,
    "{'x': torch.stack(rows), 'n': 3, 'what': 'text'}": True,
    "net.state_dict()": True,
    "[str(row).split(' ') for row in rows]": True,
    "{'epoch': epoch, 'net': net.state_dict()}": True,
    "{'net': net.state_dict(), 'loss': loss}": False,
    "{'net': net.state_dict(), 'args': vars(args)}": False,
    "net": False,
    "net.cpu()": False,
    "rows": False,
    "filled": False,
    "args": False,
    "out.numpy()": False,
    "np.ones(3)": False,
    "torch.nn.Linear(1, 2)": False,
    "torch.__version__": False,
}


@pytest.mark.parametrize("what", NAMED)
@pytest.mark.parametrize(
    "path", ["os.path.join(d, 'labels.pt')", "'out/labels.pt'", "f'{d}/labels.pt'", "p / 'labels.pt'"]
)
def test_a_file_that_another_function_saves_under_the_name(what: str, path: str) -> None:
    text = f"""import os
import numpy as np
import torch
def save(net, out, rows, args, loss, epoch, d, p):
    made = torch.zeros(3)
    made = made.float()
    filled = {{}}
    fill(filled)
    torch.save({what}, {path})
def read(d, p):
    return torch.load({path})
"""
    (finding,) = run(text, *ONLY).findings
    assert finding.fix is not None and finding.fix.applicability.label == "unsafe"
    assert finding.severity.label == ("info" if NAMED[what] else "warning")
    wanted = STATE if NAMED[what] else OTHER
    assert fixed(text, *ONLY, *FIX_ALL) == text.replace(f"load({path})", f"load({path}, {wanted})")


def test_all_that_is_saved_under_a_name_is_looked_at() -> None:
    text = """import torch
def save(net):
    torch.save(net.state_dict(), "a/last.pt")
def save_all(net):
    torch.save(net, "b/last.pt")
def read():
    return torch.load("a/last.pt")
"""
    assert OTHER in fixed(text, *ONLY, *FIX_ALL)


# How a function of the file renames keys, or takes a part.
HELPERS = {
    "keys are renamed": (
        """
        new = OrderedDict()
        start = 1 if list(state.keys())[0].startswith('module') else 0
        for k, v in state.items():
            name = '.'.join(k.split('.')[start:])
            new[name] = v
        return new
        """,
        STATE,
    ),
    "a comprehension": ("return {k[7:]: v for k, v in state.items()}", STATE),
    "by key": ("new = {}\nfor k in list(state.keys()):\n    new[k[7:]] = state[k]\nreturn new", STATE),
    "pairs": ("return OrderedDict([(k[7:], v) for k, v in state.items()])", STATE),
    "pairs one by one": ("return dict((k[7:], v) for k, v in state.items())", STATE),
    "in place": ("for k in list(state):\n    state[k[7:]] = state.pop(k)\nreturn state", STATE),
    "the same": ("return state", STATE),
    "a part": ("return state['state_dict']", STATE),
    "another helper": ("return rename(state)", STATE),
    "itself": ("return convert(state)", OTHER),
    "nobody knows": ("return start(state)", OTHER),
    "arguments as well": ("print(state['args'])\nreturn state['model']", OTHER),
    "a model": ("return state.state_dict()", OTHER),
}


@pytest.mark.parametrize("name", HELPERS)
@pytest.mark.parametrize("given", ["torch.load(p)", "state=torch.load(p)"])
def test_what_a_function_of_the_file_makes_of_it(name: str, given: str) -> None:
    body, wanted = HELPERS[name]
    text = (
        "import torch\nfrom collections import OrderedDict\n"
        "def rename(state):\n    return {k[7:]: v for k, v in state.items()}\n"
        f"def convert(state):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"
        f"def read(net, p):\n    net.load_state_dict(convert({given}))\n"
    )
    assert fixed(text, *ONLY, *FIX_ALL) == text.replace("load(p)", f"load(p, {wanted})")


def test_the_result_of_a_function_is_no_state_dict_by_itself() -> None:
    text = """import torch
def convert(state):
    return {k: v for k, v in state.items()}
def read(p):
    start(convert(torch.load(p)))
"""
    assert fixed(text, *ONLY, *FIX_ALL) == text.replace("load(p)", f"load(p, {OTHER})")


# How the same file is named where it is written and where it is read, and whether it is known to be the same.
PATHS = {
    "an attribute": ("self.path = path", "self.path", "self.path", True),
    "an attribute with a name": (
        "self.path = os.path.join(d, 'x.pt')",
        "self.path",
        "os.path.join(d, 'x.pt')",
        True,
    ),
    "a constant": ("pass", "PATH", "PATH", True),
    "a constant in a directory": ("pass", "os.path.join(d, PATH)", "os.path.join(e, PATH)", True),
    "variables": (
        "pass",
        "(to := os.path.join(d, 'x.pt'))",
        "os.path.join(d, 'x.pt')",
        False,
    ),
    "a pattern": ("pass", "self.form.format(path)", "self.form.format(epoch=other)", True),
    "what callers say": ("pass", "path", "path", True),
    "what callers say of different things": ("pass", "path", "other", False),
    "another attribute": ("pass", "self.path", "self.other", False),
    "an attribute of another": ("pass", "self.path", "them.path", False),
}


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("what", ["self.net.state_dict()", "self.net"])
def test_a_file_that_another_method_saves(name: str, what: str) -> None:
    start, written, read, same = PATHS[name]
    text = f"""import os
import torch
PATH = "last.pt"
class Store:
    def start(self, path, d):
        {start}
    def save(self, path, d):
        torch.save({what}, {written})
    def load(self, path, d, e, them, other):
        self.state = torch.load({read})
"""
    wanted = STATE if same and what.endswith("()") else OTHER
    assert fixed(text, *ONLY, *FIX_ALL) == text.replace(f"load({read})", f"load({read}, {wanted})")


def test_functions_are_named_after_what_they_write_and_read() -> None:
    text = """import torch
def save_labels(path, labels):
    torch.save(torch.tensor(labels), path)
def load_labels(path):
    return torch.load(path)
def save_rows(path, rows):
    torch.save(rows, path)
def load_rows(path):
    return torch.load(path)
def read(path):
    return torch.load(path)
"""
    new = fixed(text, *ONLY, *FIX_ALL)
    assert new.count(STATE) == 1 and new.index(STATE) < new.index("save_rows")


# What rates of an optimizer are set to, and whether its state is plain then.
RATES = {
    "group['lr'] = np.interp(step, [0, 9], [0, 1])": OTHER,
    "group['lr'] = lr * 0.5 * (1 + np.cos(step))": OTHER,
    "group['momentum'] = np.interp(step, [0, 9], [0, 1])": OTHER,
    "group['lr'] = rate(step)": OTHER,
    "group.update(lr=schedule(step))": OTHER,
    "group.update(lr=steps[step])": OTHER,
    "optimizer.param_groups[0]['lr'] = schedule(step)": OTHER,
    "group['lr'] = float(np.interp(step, [0, 9], [0, 1]))": STATE,
    "group['lr'] = np.interp(step, [0, 9], [0, 1]).item()": STATE,
    "group['lr'] = lr * 0.1 ** (step // 30)": STATE,
    "group['name'] = np.array('a')": STATE,
    "LambdaLR(optimizer, lambda step: np.cos(step))": OTHER,
    "LambdaLR(optimizer, rate)": OTHER,
    "LambdaLR(optimizer, lambda step: 0.9 ** step)": STATE,
}


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(
    ("read", "other"),
    [
        ("optimizer.load_state_dict(torch.load(path)['optimizer'])", OTHER),
        ("self.optim.load_state_dict(torch.load(path))", OTHER),
        ("state = torch.load(path)\n    optimizer.load_state_dict(state)", OTHER),
        ("net.load_state_dict(torch.load(path))", STATE),
    ],
)
def test_numbers_of_numpy_as_rates(rate: str, read: str, other: str) -> None:
    text = f"""import numpy as np
import torch
from torch.optim.lr_scheduler import LambdaLR
def rate(step):
    return np.cos(step)
schedule = lambda t: np.interp([t], [0, 9], [0, 1])[0]
steps = np.linspace(0, 1, 10)
def train(optimizer, step, lr):
    for group in optimizer.param_groups:
        {rate}
    torch.save({{"optimizer": optimizer.state_dict()}}, "last.pt")
def resume(self, net, optimizer, path):
    {read}
"""
    wanted = STATE if RATES[rate] == STATE else other
    assert fixed(text, *ONLY, *FIX_ALL) == text.replace("load(path)", f"load(path, {wanted})")


@pytest.mark.parametrize(
    "made",
    [
        "defaultdict(list)",
        "collections.defaultdict(int)",
        "deque()",
        "frozenset([1])",
        "datetime.timedelta(1)",
        "Path('a')",
        "argparse.Namespace(a=1)",
    ],
)
def test_what_is_never_plain(made: str) -> None:
    text = f"""import torch
def save(net, path):
    log = {made}
    torch.save({{"net": net.state_dict(), "step": log}}, path)
def resume(net, path):
    net.load_state_dict(torch.load(path)["net"])
"""
    assert fixed(text, *ONLY, *FIX_ALL) == text.replace("load(path)", f"load(path, {OTHER})")


# What a function keeps in a file, and whether that is plain.
KEPT = {
    "torch.squeeze(made, 0)": True,
    "{'made': torch.stack(made), 'size': len(made)}": True,
    "made.numpy()": False,
    "made": False,
}


@pytest.mark.parametrize("what", KEPT)
def test_what_a_function_keeps_in_a_file(what: str) -> None:
    text = f"""import os
import torch
def spectrum(name):
    path = name.replace(".wav", ".pt")
    path = os.path.join("kept", path)
    if os.path.exists(path):
        made = torch.load(path)
    else:
        made = compute(name)
        made = {what}
        torch.save(made, path)
    return made
"""
    wanted = STATE if KEPT[what] else OTHER
    assert fixed(text, *ONLY, *FIX_ALL) == text.replace("load(path)", f"load(path, {wanted})")


# What callers do with what a function of the file reads.
CALLERS = {
    "net.load_state_dict(read(p)['net'])": STATE,
    "state = read(p)\n    net.load_state_dict(state)": STATE,
    "net.load_state_dict(read(p))\n    read(p)['args']": OTHER,
    "net = read(p)\n    net.eval()": OTHER,
    "run(read, p)\n    net.load_state_dict(read(p))": OTHER,
    "return read(p)": OTHER,
    "": OTHER,
}


@pytest.mark.parametrize("code", CALLERS)
def test_what_callers_do_with_what_a_function_reads(code: str) -> None:
    text = f"""import torch
def read(p):
    state = torch.load(p)
    print("read", p)
    return state
def start(net, p):
    {code or "pass"}
"""
    assert fixed(text, *ONLY, *FIX_ALL) == text.replace("load(p)", f"load(p, {CALLERS[code]})")


def test_functions_that_call_each_other_have_an_end() -> None:
    text = """import torch
def read(p):
    return check(torch.load(p), p)
def check(state, p):
    return state if state else read(p)
def start(net, p):
    net.load_state_dict(read(p))
"""
    assert "weights_only" in fixed(text, *ONLY, *FIX_ALL)


def test_a_function_within_the_function_may_rename_keys() -> None:
    text = (
        "import torch\ndef load(net, path):\n"
        "    def convert(state):\n        return {k.replace('module.', ''): v for k, v in state.items()}\n"
        "    net.load_state_dict(convert(torch.load(path)))\n"
    )
    assert STATE in fixed(text, *ONLY, *FIX_ALL)


def test_what_functions_hand_to_each_other_is_followed_so_far_only() -> None:
    """Each calls the next one twice: there are 2 ** 40 ways through them."""
    functions = [
        f"def f{i}(net, x):\n    a = f{i + 1}(net, x)\n    return a or f{i + 1}(net, x)\n" for i in range(40)
    ]
    last = "def f40(net, x):\n    net.load_state_dict(x)\n"
    text = "import torch\n" + "\n".join([*functions, last]) + "f0(net, torch.load(path))\n"
    assert [item.code for item in run(text, *ONLY).findings] == ["TM600"]


# What a class puts into the state dict that it makes: `SAVED` stands for the body of the method.
MADE = """
    import enum
    import numpy as np
    import torch
    from keys import EPOCH
    NAME = "model"
    class Key:
        pass
    class Part(enum.Enum):
        MODEL = 1
    class Names:
        MODEL = "model"
    MODEL = Key()
    class Trial:
        def __init__(self, net, best=0):
            self.net = net
            self.best = best
        def state_dict(self):
            SAVED
        def load_state_dict(self, state):
            pass
        def begun(self):
            self.net.train()
            return self
        @chained
        def quick(self):
            self.net.eval()
        def inner(self):
            return self.net
        def resume(self, path):
            self.load_state_dict(torch.load(path))
    def resume(net, path):
        USED
"""
MADE_BY = "Trial(net).load_state_dict(torch.load(path))"


def _resumed(saved: str, used: str = MADE_BY) -> str:
    """What the fixes make of both places that read the file, without the rest."""
    text = textwrap.dedent(MADE).lstrip()
    for name, code in (("SAVED", saved), ("USED", used)):
        indent = text.partition(name)[0].rpartition("\n")[2]
        text = text.replace(name, textwrap.indent(textwrap.dedent(code).strip(), indent).strip())
    new = fixed(text, *ONLY, *FIX_ALL)
    _, _, new = new.partition("def resume(self, path):")
    return new


@pytest.mark.parametrize(
    ("saved", "wanted"),
    [
        ("return {MODEL: self.net.state_dict()}", OTHER),
        ("return {Part.MODEL: self.net.state_dict()}", OTHER),
        ("return {EPOCH: 3}", OTHER),  # no file says what it is
        ("return {'kind': self.__class__, 'net': self.net.state_dict()}", OTHER),
        ("return {'kind': type(self.net)}", OTHER),
        ("return {'key': Key, 'net': self.net.state_dict()}", OTHER),
        ("return {'rng': np.random.get_state()}", OTHER),
        ("state = {}\nstate[MODEL] = self.net.state_dict()\nreturn state", OTHER),
        ("state = super().state_dict()\nstate['key'] = Key()\nreturn state", OTHER),
        ("state = {'kinds': []}\nstate['kinds'].append(self.net.__class__)\nreturn state", OTHER),
        ("return dict(net=self.net.state_dict(), key=Key())", OTHER),
        ("return {NAME: self.net.state_dict()}", STATE),
        ("return {Names.MODEL: self.net.state_dict()}", STATE),
        ("return {'net': self.net.state_dict(), 'best': self.best}", STATE),
        ("return {f'{NAME}.best': self.best}", STATE),
        ("return {name: value for name, value in self.__dict__.items()}", STATE),
        ("return self.net.state_dict()", STATE),
    ],
)
def test_what_a_class_puts_into_its_own_state_dict(saved: str, wanted: str) -> None:
    assert _resumed(saved).count(f"torch.load(path, {wanted})") == 2


@pytest.mark.parametrize(
    ("used", "wanted"),
    [
        ("trial = Trial(net)\ntrial.load_state_dict(torch.load(path))", OTHER),
        ("trial = Trial(net)\nstate = torch.load(path)\ntrial.load_state_dict(state)", OTHER),
        ("trial = Trial(net)\ntrial.load_state_dict(torch.load(path)['trial'])", OTHER),
        ("trial = Trial(net).begun()\ntrial.load_state_dict(torch.load(path))", OTHER),
        ("trial = Trial(net).quick().begun()\ntrial.load_state_dict(torch.load(path))", OTHER),
        (
            "class User:\n    def resume(self, net, path):\n        self.trial = Trial(net)\n"
            "        self.trial.load_state_dict(torch.load(path))",
            OTHER,
        ),
        ("trial = Trial(net).inner()\ntrial.load_state_dict(torch.load(path))", STATE),
        ("trial = Trial(net).elsewhere()\ntrial.load_state_dict(torch.load(path))", STATE),
        ("trial = Key()\ntrial.load_state_dict(torch.load(path))", STATE),
        ("trial = Trial(net)\nnet.load_state_dict(torch.load(path))", STATE),
    ],
)
def test_which_class_a_state_dict_is_loaded_into(used: str, wanted: str) -> None:
    _, _, there = _resumed("return {MODEL: self.net.state_dict()}", used).partition("def resume(net, path):")
    assert f"torch.load(path, {wanted})" in there
