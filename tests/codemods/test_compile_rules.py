"""TM902 to TM905 and TM941: step functions, wrappers, state dicts, graph breaks, `torch._dynamo.optimize`."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from harness.program import FIX_ALL, only, run
from harness.program import fixed as fixed_by
from harness.summary import HAS_TORCH

from torchmigrate.findings import Finding
from torchmigrate.report.reasons import help_of

PATH = Path("<case>", "case.py")
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")


@pytest.fixture(autouse=True)
def _modules() -> Iterator[None]:
    """Takes back what `module` imports: the compiler looks modules up by name."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("made_"):
            del sys.modules[name]


def found(text: str, *codes: str) -> list[Finding]:
    return run(text, *only(codes), path=PATH).findings


def fixed(text: str, *codes: str) -> str:
    """The text with unsafe fixes, which a second run leaves as it is."""
    return fixed_by(text, *only(codes), *FIX_ALL, path=PATH)


def helps(text: str, *codes: str) -> list[str]:
    return [help_of(finding) or "" for finding in found(text, *codes)]


def module(text: str, directory: Path, name: str) -> ModuleType:
    """Code that is imported from a file, as the compiler needs it."""
    path = directory / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    made = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def case(code: str, head: str = "import torch\n") -> str:
    return head + textwrap.dedent(code).lstrip("\n")


# ---- TM902: step functions ------------------------------------------------------------------------------

STEP = """\
import torch
import torch.nn.functional as F

def train_step(model, optimizer, x, y):
    \"\"\"One step.\"\"\"
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()
"""


def test_step_functions_get_the_decorator() -> None:
    after = fixed(STEP, "TM902")
    assert after == STEP.replace("def train_step", "@torch.compile\ndef train_step")


@pytest.mark.parametrize("name", ["step", "eval_step", "training_step", "val_step", "train_one_step"])
def test_names_of_step_functions(name: str) -> None:
    (finding,) = found(STEP.replace("train_step", name), "TM902")
    assert STEP.replace("train_step", name)[finding.start : finding.end] == name


def test_windows_lines_and_comments_stay() -> None:
    text = STEP.replace("def train_step", "# the step\ndef train_step").replace("\n", "\r\n")
    assert fixed(text, "TM902") == text.replace("def train_step", "@torch.compile\r\ndef train_step")


def test_the_import_of_functions_only_is_enough() -> None:
    text = STEP.replace("import torch\n", "", 1)
    after = fixed(text, "TM902")
    assert "\n@torch.compile\ndef train_step" in after
    assert "import torch\n" in after


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("loss.detach()", "loss.item()", "`.item()` ends the graph"),
        ("loss.detach()", "float(loss)", "`float(...)` ends the graph"),
        ("    return", "    print(loss)\n    return", "`print(...)` ends the graph"),
        ("loss.backward()", "loss.backward(retain_graph=True)", "twice"),
        ("    loss.backward()\n", "    loss.backward()\n    aux_loss(x).backward()\n", "twice"),
        ("loss.backward()", "scaler.scale(loss).backward()", "gradient scaling"),
    ],
)
def test_step_functions_that_are_only_reported(old: str, new: str, why: str) -> None:
    text = STEP.replace(old, new)
    assert text != STEP
    assert fixed(text, "TM902") == text
    (advice,) = helps(text, "TM902")
    assert why in advice


def test_models_and_steps_are_not_compiled_both() -> None:
    assert fixed(STEP, "TM900", "TM902") == STEP
    (advice,) = helps(STEP, "TM900", "TM902")
    assert "one of the two rules" in advice


@pytest.mark.parametrize(
    "text",
    [
        STEP.replace("def train_step", "@torch.no_grad()\ndef train_step"),
        STEP.replace("def train_step", "async def train_step"),
        STEP.replace("train_step", "warmup_step"),
        STEP.replace("model(x)", "x"),
        STEP.replace("F.cross_entropy(model(x), y)", "model(x).sum()"),
        STEP.replace("import torch\n", "import torch\nimport pytorch_lightning as pl\n"),
        STEP.replace("import torch\n", "import torch\nfrom accelerate import Accelerator\n"),
        STEP.replace("import torch\n", "import torch\nimport jax\n"),
        STEP + "\nmodel = torch.compile(build())\n",
        STEP + "\nmodel.compile()\n",
        STEP.replace("    loss = F", "    for x, y in x:\n        loss = F").replace(
            "        loss", "        loss"
        ),
        "import torch\nclass Trainer:\n" + textwrap.indent(STEP.partition("\n\n")[2], "    "),
        STEP.replace("import torch.nn.functional as F", "from other import F").replace(
            "import torch\n", "", 1
        ),
    ],
)
def test_what_is_no_step_function_to_compile(text: str) -> None:
    assert found(text, "TM902") == []
    assert fixed(text, "TM902") == text


@needs_torch
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_steps_train_alike(backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    real = torch.compile
    monkeypatch.setattr(torch, "compile", lambda model: real(model, backend=backend))
    after = fixed(STEP, "TM902")
    results = []
    for name, text in (("made_old_step", STEP), ("made_new_step", after)):
        step = module(text, tmp_path, name).train_step
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        losses = [step(model, optimizer, torch.randn(5, 4), torch.randint(0, 2, (5,))) for _ in range(4)]
        results.append((torch.stack(losses), torch.nn.utils.parameters_to_vector(model.parameters())))
    torch.testing.assert_close(results[0], results[1])


# ---- TM903: the order of wrappers -----------------------------------------------------------------------

DDP = "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\nmodel = build()\n"


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("model = torch.compile(DDP(model))\n", "before"),
        ("model = DDP(model)\nmodel = torch.compile(model, mode='x')\n", "before"),
        ("if many:\n    model = DDP(model)\nmodel = torch.compile(model)\n", "before"),
        ("run = torch.compile(torch.nn.DataParallel(model))\n", "copies"),
        ("model = torch.nn.DataParallel(torch.compile(model))\n", "copies"),
        ("model = torch.compile(model)\nmodel = torch.nn.DataParallel(model)\n", "copies"),
        (
            "if fast:\n    model = torch.compile(model)\nelif script:\n    model = torch.jit.script(model)\n"
            "model = torch.nn.DataParallel(model)\n",
            "copies",
        ),
        ("model = build()\nmodel.compile()\nmodel = torch.nn.DataParallel(model)\n", "copies"),
    ],
)
def test_orders_that_are_found(code: str, word: str) -> None:
    (advice,) = helps(DDP + code, "TM903")
    assert word in advice
    assert fixed(DDP + code, "TM903") == DDP + code


@pytest.mark.parametrize(
    "code",
    [
        "model = DDP(torch.compile(model))\n",
        "model = torch.compile(model)\nmodel = DDP(model)\n",
        "model = torch.nn.DataParallel(model)\n",
        "model = DDP(model)\nmodel = build()\nmodel = torch.compile(model)\n",
        "model.compile()\nmodel = build()\nmodel = torch.nn.DataParallel(model)\n",
        "model.compile(optimizer='sgd', loss='mse')\nmodel = torch.nn.DataParallel(model)\n",
        "from lightning import Fabric\nmodel = torch.compile(DDP(model))\n",
        "from own import DDP\nmodel = torch.compile(DDP(model))\n",
    ],
)
def test_orders_that_are_not_found(code: str) -> None:
    assert found(DDP + code, "TM903") == []


# ---- TM904: state dicts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("model = torch.compile(model)", "model.compile()"),
        ("model = torch.compile(model, mode='x')  # fast", "model.compile(mode='x')  # fast"),
        ("model = torch.compile(model, **options)", "model.compile(**options)"),
        ("model = torch.compile(model=model, dynamic=True)", "model.compile(dynamic=True)"),
        ("model = torch.compile(model,)", "model.compile()"),
        ("model = torch.compile(\n    model,\n    mode='x',\n)", "model.compile(\n    mode='x',\n)"),
        ("if fast:\n    model = torch.compile(model)", "if fast:\n    model.compile()"),
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        "torch.save(model.state_dict(), path)",
        "torch.save({'model': model.state_dict(), 'epoch': 3}, path)",
        "state = dict(model=model.state_dict())\ntorch.save(state, path)",
        "model = model.to(device)\ncheckpoint['net'] = model.state_dict()\nsave_checkpoint(checkpoint)",
        "model = torch.nn.parallel.DistributedDataParallel(model)\ntorch.save(model.module.state_dict(), path)",
        "raw = model.module if many else model\nsave_file(raw.state_dict(), path)",
        "def state():\n    return {'model': model.state_dict()}\nsave_checkpoint(state())",
    ],
)
def test_models_are_compiled_in_place(line: str, expected: str, use: str) -> None:
    text = f"import torch\nmodel = build()\n{line}\n{use}\n"
    (finding,) = found(text, "TM904")
    assert text[finding.start : finding.end].endswith("state_dict()")
    after = text.replace(line, expected)
    assert fixed(text, "TM904") == (after if "torch." in after else after.removeprefix("import torch\n"))


def test_attributes_and_several_places_share_one_fix() -> None:
    text = case("""
        class Trainer:
            def __init__(self, model, fast):
                self.model = model
                if fast:
                    self.model = torch.compile(self.model, mode="max-autotune")
                else:
                    self.model = torch.compile(self.model)

            def save(self, path):
                torch.save(self.model.state_dict(), path)

            def best(self, path):
                torch.save({"best": self.model.state_dict()}, path)
    """)
    first, second = found(text, "TM904")
    assert first.fix is not None and first.fix == second.fix
    after = text.replace('self.model = torch.compile(self.model, mode="', 'self.model.compile(mode="')
    assert fixed(text, "TM904") == after.replace(
        "self.model = torch.compile(self.model)", "self.model.compile()"
    )


SAVED_ELSEWHERE = case("""
    from torch.nn.parallel import DistributedDataParallel as DDP

    def save(path, model, optimizer):
        plain = model.module if isinstance(model, DDP) else model
        torch.save({"model": plain.state_dict(), "optimizer": optimizer.state_dict()}, path)

    def train(fast):
        model = Net()
        if fast:
            model = torch.compile(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        save("last.pt", model, optimizer)
""")


def test_functions_of_the_file_that_save() -> None:
    (finding,) = found(SAVED_ELSEWHERE, "TM904")
    assert SAVED_ELSEWHERE[finding.start : finding.end] == "plain.state_dict()"
    assert fixed(SAVED_ELSEWHERE, "TM904") == SAVED_ELSEWHERE.replace(
        "model = torch.compile(model)", "model.compile()"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('save("last.pt", model, ', 'save("last.pt", Net(), '),
        ("    plain = model.module", "    model = other()\n    plain = model.module"),
        ("def train", "save = other\n\ndef train"),
        ("torch.save({", "remember({"),
    ],
)
def test_functions_of_the_file_that_save_something_else(old: str, new: str) -> None:
    assert old in SAVED_ELSEWHERE
    assert found(SAVED_ELSEWHERE.replace(old, new), "TM904") == []


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("compiled = torch.compile(model)\ntorch.save(compiled.state_dict(), p)\n", "`model.state_dict()`"),
        (
            "model = torch.compile(model)\ny = model.forward(x)\ntorch.save(model.state_dict(), p)\n",
            "instead of its `forward`",
        ),
        ("model = torch.compile(build())\ntorch.save(model.state_dict(), p)\n", "model.compile(...)"),
        ("raw = model\nmodel = torch.compile(model)\ntorch.save(model.state_dict(), p)\n", "`raw`"),
        (
            "model = torch.compile(  # slow\n    model, mode='x')\ntorch.save(model.state_dict(), p)\n",
            "model.compile(...)",
        ),
        (
            "class T:\n    def __init__(self, model):\n        self.model = torch.compile(model)\n"
            "    def save(self):\n        torch.save(self.model.state_dict(), p)\n",
            "self.model = model",
        ),
    ],
)
def test_state_dicts_that_are_only_reported(code: str, word: str) -> None:
    text = case(code)
    (advice,) = helps(text, "TM904")
    assert word in advice
    assert fixed(text, "TM904") == text


@pytest.mark.parametrize(
    "code",
    [
        "model = torch.compile(model)\nbest = model.state_dict()\nmodel.load_state_dict(best)\n",
        "model = torch.compile(model)\ntorch.save(model._orig_mod.state_dict(), p)\n",
        "model = torch.compile(model)\nstate = {k.replace('_orig_mod.', ''): v for k, v in s.items()}\n"
        "torch.save(model.state_dict(), p)\n",
        "torch.save(model.state_dict(), p)\nmodel = torch.compile(model)\n",
        "model = torch.compile(model)\nmodel = build()\ntorch.save(model.state_dict(), p)\n",
        "model = torch.compile(model)\nfor model in models:\n    torch.save(model.state_dict(), p)\n",
        "model.compile()\ntorch.save(model.state_dict(), p)\n",
        "raw = model\nmodel = torch.compile(model)\ntorch.save(raw.state_dict(), p)\n",
        "m = torch.nn.DataParallel(m)\nm = torch.compile(m)\ntorch.save(m.module.state_dict(), p)\n",
        "from accelerate import Accelerator\nmodel = torch.compile(model)\ntorch.save(model.state_dict(), p)\n",
        "model = torch.compile(model)\ntorch.save(optimizer.state_dict(), p)\n",
        "model = torch.compile(model)\ndef save(model):\n    torch.save(model.state_dict(), p)\n",
    ],
)
def test_state_dicts_that_are_not_found(code: str) -> None:
    assert found(case(code, "import torch\nmodel = build()\n"), "TM904") == []


@needs_torch
def test_keys_and_results_after_compiling_in_place(tmp_path: Path) -> None:
    import torch

    text = case("""
        def run(model, x, path):
            model = torch.compile(model, backend="aot_eager")
            y = model(x)
            y.sum().backward()
            torch.save(model.state_dict(), path)
            return y
    """)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    x = torch.randn(5, 4)
    results, keys = [], []
    for name, code in (("made_old_keys", text), ("made_new_keys", fixed(text, "TM904"))):
        net.zero_grad()
        results.append(module(code, tmp_path, name).run(net, x, tmp_path / name))
        results.append(torch.cat([item.grad.flatten() for item in net.parameters()]))
        keys.append(list(torch.load(tmp_path / name)))
    torch.testing.assert_close(results[:2], results[2:])
    assert keys[0] == [f"_orig_mod.{key}" for key in keys[1]]
    assert keys[1] == list(net.state_dict())
    net.load_state_dict(torch.load(tmp_path / "made_new_keys"))


@needs_torch
def test_what_wrappers_make_of_the_keys() -> None:
    """What the rule takes for granted of compiled models inside of wrappers, and around them."""
    import torch

    inside = torch.nn.DataParallel(torch.compile(torch.nn.Linear(2, 1), backend="eager"))
    assert next(iter(inside.module.state_dict())).startswith("_orig_mod.")
    around = torch.compile(torch.nn.DataParallel(torch.nn.Linear(2, 1)), backend="eager")
    assert next(iter(around.module.state_dict())) == "weight"


# ---- TM905: graph breaks --------------------------------------------------------------------------------

FORWARD = (
    "import logging\nimport time\nimport warnings\nimport torch\nimport numpy as np\n"
    "log = logging.getLogger(__name__)\nclass Net(torch.nn.Module):\n    def forward(self, x):\n"
)
BREAKS = [
    "y = x * x.abs().max().item()",
    "y = x * x.tolist()[0]",
    "y = x * float(torch.sum(x))",
    "y = x + 1\nprint('here')\ny = y * 2",
    "y = x + 1\nif y.sum() > 0:\n    y = y * 2",
    "y = x\nif (x > 0).any():\n    y = y * 2",
    "y = x\nif not torch.isnan(x).any():\n    y = y * 2",
    "y = x\nwhile y.sum() < 3 and torch.all(y > -9):\n    y = y + 1",
    "y = x if torch.equal(x, x + 1) else -x",
    "y = x + 1 if x.mean() > 0 else -x",
    "y = x + 1\nlog.info('%s', y.shape)\ny = y * 2",
    "y = x + 1\nlogging.debug('here')\ny = y * 2",
    "y = x + 1\nwarnings.warn('here')\ny = y * 2",
    "y = x + 1\nstart = time.perf_counter()\ny = y * 2",
    "y = x.sin()\ntry:\n    y = y * y.sum().item()\nexcept ValueError:\n    pass",
]
FOLLOWED = [
    "assert (x > -9).all(), 'small'\ny = x",
    "y = torch.from_numpy(x.detach().cpu().numpy() + 1)",
    "y = x\nif x.shape[0] > 1 and x.dim() == 1:\n    y = y * 2",
    "y = x\nif x is not None and len(x) > 1:\n    y = y * 2",
    "y = x\nif self.training:\n    y = y * 2",
    "y = x\nif x.dim() > 3:\n    print(x)",
    "y = x\nif not torch.compiler.is_compiling():\n    print(x.sum().item())",
    "y = x\nif x.dim() > 3:\n    raise ValueError(f'{x.max().item()}')",
    "y = {'a': x}\nfor k, v in y.items():\n    y = v",
    "y = torch.where(x > 0, x, -x)",
    "y = x\nif x.dim() > 3:\n    log.info(x)\n    warnings.warn('here')",
    "try:\n    y = x + 1\nexcept RuntimeError:\n    y = x",
    "self.kept = x\ny = x + len(x)",
]


def forward(body: str) -> str:
    return FORWARD + textwrap.indent(f"{body}\nreturn y\n", " " * 8)


@pytest.mark.parametrize("body", BREAKS)
def test_breaks_are_found(body: str) -> None:
    text = forward(body)
    assert found(text, "TM905")
    assert fixed(text, "TM905") == text


@pytest.mark.parametrize("body", FOLLOWED)
def test_what_is_followed_is_not_found(body: str) -> None:
    assert found(forward(body), "TM905") == []


@needs_torch
@pytest.mark.parametrize("body", [*BREAKS, *FOLLOWED])
def test_the_compiler_agrees(body: str, tmp_path: Path) -> None:
    import torch
    from torch._dynamo.exc import Unsupported
    from torch._dynamo.testing import CompileCounter

    net = module(forward(body), tmp_path, "made_breaks").Net()
    torch.compiler.reset()
    counter = CompileCounter()

    def run(x: torch.Tensor) -> torch.Tensor:
        return net(x * 2) + 1  # with something around it, a break at the border counts too

    torch.compile(run, backend=counter)(torch.tensor([1.0, 2.0, -1.0]))
    whole = counter.frame_count == 1
    torch.compiler.reset()
    try:
        torch.compile(run, backend="eager", fullgraph=True)(torch.tensor([1.0, 2.0, -1.0]))
    except Unsupported:
        whole = False
    torch.compiler.reset()
    assert whole is (body in FOLLOWED)


@pytest.mark.parametrize(
    "text",
    [
        forward("y = x.item()").replace("torch.nn.Module", "object"),
        forward("y = x.item()").replace("torch.nn.Module", "torch.autograd.Function"),
        forward("y = x.item()").replace("def forward", "def evaluate"),
        forward("y = x.item()").replace("    def forward", "    @torch.compiler.disable\n    def forward"),
        forward("y = x.item()").replace("    def forward", "    @torch.jit.ignore\n    def forward"),
        forward("y = x.item(3)"),
        forward("y = x\nlog.info(x)").replace("logging.getLogger(__name__)", "Console()"),
        forward("y = x\ndef tell():\n    print(x)"),
        "from log import print\n" + forward("print(x)\ny = x"),
        forward("y = x.item()")
        .replace("import numpy as np", "import lightning as L")
        .replace("torch.nn.Module", "L.LightningModule"),
    ],
)
def test_where_breaks_do_not_matter(text: str) -> None:
    assert found(text, "TM905") == []


def test_subclasses_and_other_libraries() -> None:
    text = case("""
        import cv2
        import torch.nn as nn
        class Base(nn.Module):
            pass
        class Net(Base):
            def forward(self, x):
                y = cv2.resize(x.cpu().numpy(), (2, 2))
                return torch.from_numpy(y)
    """)
    (finding,) = found(text, "TM905")
    assert text[finding.start : finding.end] == "cv2.resize(x.cpu().numpy(), (2, 2))"


# ---- TM941: torch._dynamo.optimize ----------------------------------------------------------------------

DYNAMO = "import torch\nimport torch._dynamo\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("g = torch._dynamo.optimize()(f)", "g = torch.compile(f)"),
        ("g = torch._dynamo.optimize('eager')(f)", "g = torch.compile(f, backend='eager')"),
        (
            "g = torch._dynamo.optimize(backend=b, nopython=True, dynamic=False)(f)",
            "g = torch.compile(f, backend=b, fullgraph=True, dynamic=False)",
        ),
        ("y = torch._dynamo.optimize('eager')(f)(x)", "y = torch.compile(f, backend='eager')(x)"),
        ("@torch._dynamo.optimize()\ndef f(x):\n    pass", "@torch.compile\ndef f(x):\n    pass"),
        (
            "@torch._dynamo.optimize('eager', disable=off)\ndef f(x):\n    pass",
            "@torch.compile(backend='eager', disable=off)\ndef f(x):\n    pass",
        ),
    ],
)
def test_dynamo_optimize_is_rewritten(before: str, after: str) -> None:
    assert fixed(f"{DYNAMO}{before}\n", "TM941") == f"{DYNAMO}{after}\n"


def test_the_import_of_dynamo_goes_with_its_last_use() -> None:
    text = "import torch\nfrom torch._dynamo import optimize\ng = optimize('eager')(f)\n"
    assert fixed(text, "TM941") == "import torch\ng = torch.compile(f, backend='eager')\n"


@pytest.mark.parametrize(
    "code",
    [
        "with torch._dynamo.optimize('eager'):\n    y = f(x)",
        "optimize = torch._dynamo.optimize('eager')\ng = optimize(f)",
        "g = torch._dynamo.optimize('eager', guard_fail_fn=tell)(f)",
        "g = torch._dynamo.optimize(*given)(f)",
        "g = torch._dynamo.optimize(**given)(f)",
        "g = torch._dynamo.optimize('eager')(*f)",
        "g = torch._dynamo.optimize('eager')(  # why\n    f)",
        "g = torch._dynamo.optimize(b := 'eager')(f)",
        "g = partial(torch._dynamo.optimize, 'eager')",
    ],
)
def test_dynamo_optimize_is_only_reported(code: str) -> None:
    text = f"{DYNAMO}{code}\n"
    assert len(found(text, "TM941")) == 1
    assert fixed(text, "TM941") == text


@needs_torch
def test_dynamo_optimize_and_compile_are_the_same(tmp_path: Path) -> None:
    import torch

    text = DYNAMO + textwrap.dedent("""
        def f(x):
            return x.sin() + x.cos()

        g = torch._dynamo.optimize("aot_eager", nopython=True)(f)

        @torch._dynamo.optimize("eager", dynamic=True)
        def h(x):
            return x.exp() * 2
    """)
    after = fixed(text, "TM941")
    assert "optimize(" not in after
    old, new = module(text, tmp_path, "made_old_dynamo"), module(after, tmp_path, "made_new_dynamo")
    for name in ("g", "h"):
        results = []
        for made in (old, new):
            x = torch.linspace(0, 1, 5, requires_grad=True)
            y = getattr(made, name)(x)
            y.sum().backward()
            results += [y, x.grad]
        torch.testing.assert_close(results[:2], results[2:])
