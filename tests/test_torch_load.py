"""TM600: what `torch.load` is asked for, by what becomes of the result."""

from __future__ import annotations

import textwrap

import pytest
from harness.program import FIX_ALL, fixed, only, run

STATE, OTHER = "weights_only=True", "weights_only=False"
ONLY = only(["TM600"])

# What is read, and what stands for it after the fixes.
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
    text = "import torch\n" + textwrap.dedent(code).strip() + "\n"
    (finding,) = run(text, *ONLY).findings
    assert finding.severity.label == ("info" if wanted == STATE else "warning")
    assert finding.fix is not None and finding.fix.reason
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


def test_a_state_dict_that_the_same_function_wrote() -> None:
    text = "import torch\ntorch.save(net.state_dict(), path)\nnet.load_state_dict(torch.load(path))\n"
    (finding,) = run(text, *ONLY).findings
    assert finding.severity.label == "info"
    assert fixed(text, *ONLY, "--fix") == text.replace("load(path)", "load(path, weights_only=True)")


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        ("net.load_state_dict({})", "a file that holds other objects than tensors and plain containers"),
        ("use({})", "it runs whatever code the file contains"),
    ],
)
def test_a_minimum_without_the_argument_is_said_beside_the_reason(use: str, reason: str) -> None:
    text = f"import torch\n{use.format('torch.load(path)')}\n"
    for minimum, needs in (("1.10", "needs torch 1.13, and the project supports torch 1.10; "), ("1.13", "")):
        (finding,) = run(text, *ONLY, "--minimum", minimum).findings
        assert finding.fix is not None and finding.fix.reason.startswith(f"{needs}{reason}")


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
