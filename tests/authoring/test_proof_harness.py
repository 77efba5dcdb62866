"""A proof has to fail where the two sides differ: wrong rewrites, each with what must be said about it."""

from __future__ import annotations

import pytest
import torch
from old_torch import recordings
from proofs import run, vocabulary
from proofs.run import ProofError, prove

A = {"A": "square(4)", "B": "tensor(4, 2)"}
RIGHT = [
    ("X = torch.solve(B, A)[0]", "X = torch.linalg.solve(A, B)", A),
    ("X = torch.solve(B, A).solution", "X = torch.linalg.solve(A, B)", A),
    ("L, V = torch.symeig(A, True)", "L, V = torch.linalg.eigh(A, UPLO='U')", {"A": "square(4)"}),
    ("L = A.symeig().eigenvalues", "L = torch.linalg.eigvalsh(A, UPLO='U')", {"A": "hermitian(4)"}),
    ("U = torch.potrf(A)", "U = torch.linalg.cholesky(A).mH", {"A": "spd(4)"}),
    (
        "x = torch.gels(B, A)[0][:2]",
        "x = torch.linalg.lstsq(A, B).solution",
        {"A": "tensor(4, 2)", "B": "tensor(4, 1)"},
    ),
    (
        "y = torch.rfft(x, 2)",
        "y = torch.view_as_real(torch.fft.rfftn(x, dim=(-2, -1)))",
        {"x": "tensor(2, 4, 6)"},
    ),
    (
        "y = torch.fft(x, 1)",
        "y = torch.view_as_real(torch.fft.fft(torch.view_as_complex(x)))",
        {"x": "pairs(3, 8)"},
    ),
    ("torch.ger(a, b)", "torch.outer(a, b)", {"a": "tensor(3)", "b": "tensor(4)"}),
    ("torch.nn.init.constant(w, 2)", "torch.nn.init.constant_(w, 2)", {"w": "tensor(3)"}),
    ("from torch._six import inf\nx = [inf]", "from math import inf\nx = [inf]", {}),
    (
        "s = torch.optim.lr_scheduler.StepLR(o, 5, verbose=True)",
        "s = torch.optim.lr_scheduler.StepLR(o, 5)",
        {"o": "sgd()"},
    ),
    (
        "y = torch.stft(x, 8)",
        "y = torch.view_as_real(torch.stft(x, 8, return_complex=True))",
        {"x": "signal(64)"},
    ),
    (
        "from apex.normalization import FusedLayerNorm\nm = FusedLayerNorm(4)\ny = m(x.float())",
        "m = torch.nn.LayerNorm(4)\ny = m(x.float())",
        {"x": "tensor(2, 4)"},
    ),
]
WRONG = [
    ("X = torch.solve(B, A)[0]", "X = torch.linalg.solve(A.mT, B)", A, "other values"),
    ("X = torch.solve(B, A)", "X = torch.linalg.solve(A, B)", A, "solve_result became Tensor"),
    ("L, V = torch.symeig(A, True)", "L, V = torch.linalg.eigh(A)", {"A": "square(4)"}, "other values"),
    ("U = torch.potrf(A)", "U = torch.linalg.cholesky(A)", {"A": "spd(4)"}, "other values"),
    ("r = torch.svd(A)", "r = torch.linalg.svd(A)", A, "no field `V`"),
    (
        "y = torch.rfft(x, 1)",
        "y = torch.fft.rfft(x)",
        {"x": "tensor(8)"},
        "dtype torch.float64 became torch.complex128",
    ),
    ("y = torch.range(0, 3)", "y = torch.arange(0, 4)", {}, "dtype torch.float32 became torch.int64"),
    ("y = x.float()", "y = x.double()", {"x": "tensor(2)"}, "dtype"),
    ("y = x.sum(0)", "y = x.sum(0, keepdim=True)", {"x": "tensor(2, 3)"}, "shape"),
    ("y = x.exp()", "y = x.exp().detach()", {"x": "tensor(2)"}, "requires_grad True became False"),
    ("y = x * x", "y = x * x.detach()", {"x": "tensor(2)"}, "gradient of x"),
    ("X = torch.solve(B, A)[0]", "X = torch.linalg.solve(A.detach(), B)", A, "gradient of A"),
    ("y = torch.nn.Parameter(x)", "y = x", {"x": "tensor(2)"}, "Parameter became Tensor"),
    ("n = len(x)", "n = float(len(x))", {"x": "tensor(2)"}, "2 became 2.0"),
    ("m = torch.nn.Linear(2, 3)", "m = torch.nn.Linear(2, 3).eval()", {}, "training"),
    ("m = torch.nn.LayerNorm(3)", "m = torch.nn.LayerNorm(3, eps=1e-6)", {}, "eps"),
    ("f = torch.sin", "f = torch.cos", {}, "cos"),
    ("c = torch.amp.autocast('cpu')", "c = torch.amp.autocast('cpu', enabled=False)", {}, "enabled"),
    (
        "from apex.optimizers import FusedAdam\no = FusedAdam(p, 0.1)",
        "o = torch.optim.AdamW(p, 0.1, fused=True)",
        {"p": "parameters(3)"},
        "weight_decay",
    ),
    ("o = torch.optim.SGD(p, 0.1)", "o = torch.optim.SGD(p, 0.2)", {"p": "parameters(3)"}, "lr"),
    ("torch.nn.init.zeros_(w)", "torch.zeros_like(w)", {"w": "tensor(3)"}, "w: other values"),
]
CANNOT = [
    ("y = torch.no_such(x)", "y = x", {"x": "tensor(2)"}, "the old side raised AttributeError"),
    ("y = x", "y = torch.symeig(x)", {"x": "square(2)"}, "the new side raised RuntimeError"),
    ("y = x", "y = x", {"x": "tensr(2)"}, "the inputs raised NameError"),
    ("def f(x): return x", "def f(x): return -x", {}, "nothing is computed"),
    ("y = x", "z = x", {"x": "tensor(2)"}, "nothing is computed"),
]


def with_torch(code):
    return f"import torch\n{code}\n"


@pytest.mark.parametrize(("before", "after", "inputs"), RIGHT)
def test_right_rewrites_are_proven(before, after, inputs):
    assert prove(with_torch(before), with_torch(after), inputs) == []


@pytest.mark.parametrize(("before", "after", "inputs", "reason"), WRONG)
def test_wrong_rewrites_are_not(before, after, inputs, reason):
    found = prove(with_torch(before), with_torch(after), inputs)
    assert reason in "\n".join(found)


@pytest.mark.parametrize(("before", "after", "inputs", "reason"), CANNOT)
def test_what_cannot_be_executed_is_an_error(before, after, inputs, reason):
    with pytest.raises(ProofError, match=reason):
        prove(with_torch(before), with_torch(after), inputs)


def test_the_old_functions_are_gone_afterwards():
    prove(
        with_torch("L = torch.symeig(A)[0]"),
        with_torch("L = torch.linalg.eigvalsh(A)"),
        {"A": "symmetric(3)"},
    )
    assert not hasattr(torch, "rfft")
    assert not callable(torch.fft)
    with pytest.raises(RuntimeError, match="removed"):
        torch.symeig(torch.eye(2))


def test_settings_of_an_example_do_not_leak():
    code = with_torch("torch.set_default_dtype(torch.float64)\nx = torch.zeros(2)")
    assert prove(code, code, {}) == []
    assert torch.get_default_dtype() is torch.float32


def test_inputs_depend_on_their_name_alone():
    one = vocabulary.evaluate({"a": "tensor(3)", "b": "tensor(3)"})
    two = vocabulary.evaluate({"b": "tensor(3)"})
    assert torch.equal(one["b"], two["b"])
    assert not torch.equal(one["a"], one["b"])


def test_words_keep_their_promises():
    values = vocabulary.evaluate(
        {
            "s": "symmetric(2, 4)",
            "h": "hermitian(3)",
            "p": "spd(4)",
            "l": "lower(3)",
            "r": "real_spectrum(4)",
            "m": "booleans(9)",
        }
    )
    assert torch.equal(values["s"], values["s"].mT)
    assert torch.equal(values["h"], values["h"].mH)
    assert (torch.linalg.eigvalsh(values["p"]) > 0).all()
    assert torch.equal(values["l"], values["l"].tril())
    assert torch.allclose(torch.linalg.eigvals(values["r"]).imag, torch.zeros(4, dtype=torch.float64))
    assert values["m"].any()
    assert not values["m"].all()


# ---- what cannot run here ------------------------------------------------------------------------------

OLD, NEW = "import nowhere_to_be_found as n\ny = n.old()", "import nowhere_to_be_found as n\ny = n.new()"


def recorded(monkeypatch, after, *lines):
    """Recordings of one example, in the place of those of this project."""
    digest = recordings.digest(OLD, after, {})
    monkeypatch.setattr(run, "_recordings", lambda: {digest: [{"digest": digest, **line} for line in lines]})


def both_in(release, new):
    return {"releases": [release], "values": {"y": 3}, "new": new}


def test_a_release_that_had_both_sides_speaks_for_a_library_that_is_not_here(monkeypatch):
    recorded(monkeypatch, NEW, both_in("1.8.1", "same"))
    assert prove(OLD, NEW, {}) == []
    recorded(monkeypatch, NEW, both_in("1.8.1", "differs: y: 3 became 4"))
    assert prove(OLD, NEW, {}) == ["differs: y: 3 became 4"]


@pytest.mark.parametrize(("value", "found"), [(3, []), (4, ["torch 1.9.1: y: 3 became 4"])])
def test_where_none_had_both_the_next_release_speaks(monkeypatch, value, found):
    later = {
        "releases": ["1.9.1"],
        "raised": "AttributeError",
        "new": "runs",
        "later": {"1.9.1": {"y": value}},
    }
    recorded(monkeypatch, NEW, both_in("1.8.1", "raised: AttributeError"), later)
    assert prove(OLD, NEW, {}) == found


def test_the_next_release_has_to_compute_the_same_names(monkeypatch):
    later = {"releases": ["1.9.1"], "raised": "AttributeError", "new": "runs", "later": {"1.9.1": {"z": 3}}}
    recorded(monkeypatch, NEW, both_in("1.8.1", "raised: AttributeError"), later)
    with pytest.raises(ProofError, match="both sides"):
        prove(OLD, NEW, {})


def test_a_module_that_torch_lacks_is_no_library_that_is_not_here(monkeypatch):
    after = "from torch.nowhere import new\ny = new()"
    recorded(monkeypatch, after, both_in("1.8.1", "same"))
    with pytest.raises(ProofError, match="ModuleNotFoundError"):
        prove(OLD, after, {})


def test_what_inputs_set_up_does_not_leak():
    compiler, hub = torch.compile, torch.hub.get_dir()
    inputs = {"c": "tracing_only()", "r": 'hub_repository("a/b:c", "def f(): return 3")', "x": "tensor(3)"}
    code = 'import torch\ny = torch.compile(torch.sin)(x)\nz = torch.hub.load("a/b:c", "f", trust_repo=True)'
    assert prove(code, code, inputs) == []
    assert torch.compile is compiler
    assert torch.hub.get_dir() == hub
