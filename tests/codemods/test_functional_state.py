"""TM302, TM303: functional models of functorch, the old API run against what it is rewritten to."""

from __future__ import annotations

import warnings

import pytest
import torch
from harness.fixing import checked_and_fixed

from torchmigrate.findings import Finding
from torchmigrate.report.reasons import help_of

CODES = frozenset(["TM302", "TM303"])
HEAD = """\
import copy
import functools
from functools import partial

import torch
import torch.nn.functional as F
from functorch import combine_state_for_ensemble, grad, grad_and_value, jacrev, vmap
from functorch import make_functional, make_functional_with_buffers
from torch import nn
from torch.utils._pytree import tree_map


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(3, 4)
        self.two = nn.Linear(4, 2)

    def forward(self, x, scale=1.0):
        return self.two(torch.tanh(self.one(x))) * scale


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x):
        return self.norm(self.one(x))


torch.manual_seed(0)
x, y = torch.randn(5, 3), torch.randn(5, 2)
model = Net()
normed = Normed()


"""


def check(text: str) -> tuple[list[Finding], str]:
    """The findings, and the text after unsafe fixes, which a second run leaves as it is."""
    return checked_and_fixed(text, CODES)


def run(text: str) -> list[torch.Tensor]:
    """The tensors in the variable `out`, dicts in the order of their keys."""
    space: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text, "example.py", "exec"), space)
    return flat(space["out"])


def flat(value: object) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    return [tensor for item in items for tensor in flat(item)]  # type: ignore[attr-defined]


WORKING = {
    "call": "f, params = make_functional(model)\nout = f(params, x)\n",
    "keyword, star, no input": """
f, params = make_functional(model)
extra = {"scale": 3.0}
batch = [x]
out = [f(params, x, scale=2.0), f(params, (x), **extra), f(params, *batch), f(params, x, 2.0,)]
""",
    "buffers": """
f, params, buffers = make_functional_with_buffers(normed)
first = f(params, buffers, x)
out = [first, list(buffers)[0], normed.norm.running_mean]
""",
    "a copy, which later training of the model does not touch": """
f, params = make_functional(model)
with torch.no_grad():
    model.one.weight.zero_()
out = f(params, x)
""",
    "no gradients": """
f, params = make_functional(model, disable_autograd_tracking=True)
out = [f(params, x), torch.tensor([p.requires_grad for p in params])]
""",
    "per-sample gradients": """
fmodel, params, buffers = make_functional_with_buffers(model)

def compute_loss(params, buffers, sample, target):
    predictions = fmodel(params, buffers, sample.unsqueeze(0))
    return F.mse_loss(predictions, target.unsqueeze(0))

ft_compute_grad = grad(compute_loss)
ft = vmap(ft_compute_grad, in_dims=(None, None, 0, 0))
grads = ft(params, buffers, x, y)
out = [g.sum() for g in grads] + [grads[0], grads[-1]]
""",
    "the model as an argument": """
def loss_fn(fmodel, params, buffers, sample, target):
    return F.mse_loss(fmodel(params, buffers, sample[None]), target[None])

def per_sample(model, x, y):
    fmodel, params, buffers = make_functional_with_buffers(copy.deepcopy(model))
    compute = grad(partial(loss_fn, fmodel))
    return vmap(compute, in_dims=(None, None, 0, 0))(params, buffers, x, y)

out = per_sample(model, x, y)
""",
    "ensemble": """
models = [Net() for _ in range(3)]
fmodel, params, buffers = combine_state_for_ensemble(models)
[p.requires_grad_() for p in params]
out = vmap(fmodel, in_dims=(0, 0, None))(params, buffers, x)
out.sum().backward()
out = [out] + [p.grad for p in params]
""",
    "ensemble without its model": """
def init(number):
    models = [Net() for _ in range(number)]
    _, params, _ = combine_state_for_ensemble(models)
    return params

f, _ = make_functional(Net())
out = vmap(lambda params, x: f(params, x), in_dims=(0, None))(init(2), x)
""",
    "ensemble of an expression": """
def predict(models, x):
    fmodel, params, buffers = combine_state_for_ensemble(list(models))
    return vmap(fmodel, (0, 0, None), randomness="different")(params, buffers, x)

out = predict((Net(), Net()), x)
""",
    "training by hand": """
f, weights = make_functional(model)

def step(weights, x, y, lr=0.2):
    def compute_loss(weights, x, y):
        return F.mse_loss(f(weights, x), y)

    grads, loss = grad_and_value(compute_loss)(weights, x, y)
    new_weights = []
    with torch.no_grad():
        for g, w in zip(grads, weights):
            new_weights.append(w - g * lr)
    return loss, new_weights

for _ in range(3):
    loss, weights = step(weights, x, y)
out = [loss, f(weights, x)]
""",
    "maml": """
net, params = make_functional(Net())
opt = torch.optim.Adam(params, lr=1e-2)
alpha = 0.1

def task_loss(x1, y1):
    def inner(params, x1, y1):
        return F.mse_loss(net(params, x1), y1)
    grads = grad(inner)(params, x1, y1)
    new_params = [(params[i] - alpha * grads[i]) for i in range(len(params))]
    return inner(new_params, x1, y1)

losses = vmap(task_loss)(torch.stack([x, x + 1]), torch.stack([y, y]))
losses.mean().backward()
torch.nn.utils.clip_grad_norm_(params, 1.0)
opt.step()
t_params = params
for k in range(2):
    loss = F.l1_loss(net(t_params, x), y)
    grads = torch.autograd.grad(loss, t_params, create_graph=True)
    t_params = [(t_params[i] - alpha * grads[i]) for i in range(len(params))]
t_params = tuple(p.detach() for p in t_params)
out = [losses, net(t_params, x)]
""",
    "bundle": """
def loss_for_task(net, x, y):
    params, buffers, fnet = net
    def compute_loss(new_params, buffers, x, y):
        return F.mse_loss(fnet(new_params, buffers, x), y)
    new_params = params
    for _ in range(2):
        grads = grad(compute_loss)(new_params, buffers, x, y)
        new_params = [p - g * 1e-1 for p, g, in zip(new_params, grads)]
    return fnet(new_params, buffers, x)

def main():
    fnet, params, buffers = make_functional_with_buffers(model)
    net = (params, buffers, fnet)
    task = functools.partial(loss_for_task, net)
    return task(x, y)

out = main()
""",
    "in a class": """
class Worker:
    def __init__(self, model):
        self.fmodel, self.params = make_functional(model)
        self.optimizer = torch.optim.SGD([{"params": self.params}], lr=0.1)

    def loss(self, params, x, y):
        return F.mse_loss(self.fmodel(params, x), y)

    def step(self, x, y):
        g = grad(self.loss)(self.params, x, y)
        self.params = tree_map(lambda p, q: p - q, self.params, g)
        return self.loss(self.params, x, y)

worker = Worker(model)
out = [worker.step(x, y), worker.step(x, y)]
""",
    "kept as a tuple": """
class Case:
    def __init__(self, model):
        self.model = make_functional_with_buffers(model)

    def run(self):
        fmodel, params, buffers = self.model
        return fmodel(params, buffers, x)

out = Case(model).run()
""",
    "returned": """
def make(model):
    return make_functional(model)

f, params = make(model)
out = f(params, x)
""",
    "jacobians and auxiliary results": """
f, params = make_functional(model)

def ntk(params, a, b):
    one = vmap(jacrev(lambda params, row: f(params, row)), (None, 0))(params, a)
    one = [j.flatten(2) for j in one]
    two = [j.flatten(2) for j in vmap(jacrev(f), (None, 0))(params, b)]
    return torch.stack([torch.einsum("Naf,Mbf->NMab", i, j) for i, j in zip(one, two)]).sum(0)

def with_output(params, x, y):
    output = f(params, x)
    return F.mse_loss(output, y), output

g, (loss, output) = grad_and_value(with_output, has_aux=True)(params, x, y)
h, again = grad(with_output, argnums=0, has_aux=True)(params, x, y)
out = [ntk(params, x, x + 1), loss, output, again, torch.cat([i.flatten() for i in g]), *h]
""",
    "several gradients": """
f, params = make_functional(model)

def loss(params, x, y):
    return F.mse_loss(f(params, x), y)

both = grad(loss, argnums=(0, 1))(params, x, y)
of_params, of_x = grad(loss, argnums=(0, 1))(params, x, y)
out = [*both[0], both[1], of_x, sum(p.norm() for p in of_params), of_params[1:3]]
""",
    "helpers of the file": """
f, params = make_functional(model)

def sgd(params, grads, lr=0.5):
    return tuple(p - lr * g for p, g in zip(params, grads))

def size(params):
    return sum(p.numel() for p in params) + len(params)

def train(params, steps=2):
    for _ in range(steps):
        params = sgd(params, grad(lambda params: F.mse_loss(f(params, x), y))(params))
    return list(params)

trained = train(params)
out = [f(trained, x), torch.tensor(size(trained)), f(tuple(trained), x), f(copy.copy(trained), x)]
""",
}


@pytest.mark.parametrize("body", WORKING.values(), ids=WORKING.keys())
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_old_against_new(body: str, newline: str):
    before = HEAD + body.lstrip()
    findings, after = check(before.replace("\n", newline))
    body_starts = before.replace("\n", newline).index("class Net")
    inside = [
        item for item in findings if max(item.start, *(start for start, _ in item.places), 0) > body_starts
    ]
    assert inside and all(item.fix is not None for item in inside), [help_of(item) for item in inside]
    assert newline == "\n" or "\n" not in after.replace("\r\n", "")
    for old in ("make_functional", "combine_state"):
        used = [line for line in after.splitlines() if old in line]
        assert not any("(" in line for line in used), used
    old_out, new_out = run(before), run(after)
    assert len(old_out) == len(new_out)
    for one, other in zip(old_out, new_out, strict=True):
        torch.testing.assert_close(one, other)


# What is done with the state is not understood, or elsewhere: it stays a tuple.
KEPT = {
    "to another file": """
f, params = make_functional(model)
out = eval("lambda f, p: f(p, x)")(f, params)
""",
    "saved": """
import io

f, params = make_functional(model)
torch.save(params, io.BytesIO())
out = f(params, x)
""",
    "concatenated": """
f, p, b = make_functional_with_buffers(normed)
out = [*(p + b), f(p, b, x)]
""",
    "dimensions of each": """
f, params = make_functional(model)
stacked = tuple(torch.stack([p, p + 1]) for p in params[:2]) + params[2:]
out = vmap(f, in_dims=((0, 0, None, None), None))(stacked, x)
""",
    "called from elsewhere": """
f, params = make_functional(model)
def loss(params, x):
    return f(params, x).sum()
out = eval("loss")(params, x)
""",
    "two kinds of callers": """
f, p = make_functional(model)
def n(params):
    return len(list(params))
out = torch.tensor([n(p), n(model.parameters())]), f(p, x)
""",
    "attribute from outside": """
class A:
    def __init__(self):
        self.f, self.p = make_functional(model)
    def run(self):
        return self.f(self.p, x)
out = [*A().p, A().run()]
""",
    "vjp and jvp": """
from functorch import jvp, vjp

def kernel(f, params, one, two):
    output, pull = vjp(lambda params: f(params, one), params)

    def row(vector):
        return jvp(lambda params: f(params, two), (params,), pull(vector))[1]

    return vmap(row)(torch.eye(output.numel()).view(-1, *output.shape))

f, params = make_functional(model)
out = kernel(f, params, x, y[:, :1] * x)
""",
    "a list of parameters": """
class Linearized(nn.Module):
    def __init__(self, model):
        super().__init__()
        f, params, buffers = make_functional_with_buffers(model.eval(), disable_autograd_tracking=True)
        self.f = lambda params, x: f(params, buffers, x)
        self.params = nn.ParameterList(params)
        for p in self.params:
            p.requires_grad_(True)

    def forward(self, x):
        return self.f(tuple(self.params), x)

linearized = Linearized(normed)
found = linearized(x)
found.sum().backward()
out = [found, *(p.grad for p in linearized.params)]
""",
    "ensemble in a list of parameters": """
class Ensemble(nn.Module):
    def __init__(self, modules, **options):
        super().__init__()
        f, params, _ = combine_state_for_ensemble(nn.ModuleList(modules))
        self.vmap = vmap(f, in_dims=(0, 0, None), **options)
        self.params = nn.ParameterList([nn.Parameter(p) for p in params])

    def forward(self, *args, **options):
        return self.vmap([p for p in self.params], (), *args, **options)

out = Ensemble([Net(), Net()], randomness="different")(x)
""",
    "ensemble with buffers": """
f, params, buffers = combine_state_for_ensemble([Normed().eval(), Normed().eval()])
out = [*(params + buffers), vmap(f, in_dims=(0, 0, None))(params, buffers, x)]
""",
    "a list that hides a submodule": """
class Hidden(nn.Module):
    def __init__(self):
        super().__init__()
        f, params = make_functional(model)
        self.f = [f]
        self.params = nn.ParameterList(params)

    def forward(self, x):
        return self.f[0](list(self.params), x)

out = Hidden()(x)
""",
    "two models in one function": """
def run():
    f, p = make_functional(model)
    g, q = make_functional(nn.Linear(3, 2))
    both = [p + q]
    return [f(p, x), g(q, x).shape[0] * x, *both[0][:4]]

out = run()
""",
    "one name for two": """
if len(x) == 5:
    f, p = make_functional(model)
else:
    f, p = make_functional(Net())
out = [*(p + p), f(p, x, scale=2.0)]
""",
    "a loop that keeps nothing": """
out = []
for number in range(3):
    f, p = make_functional(model)
    out.append(f(p + (), x * number))
    g = vmap(f, in_dims=(None, 0))
    out.append(g(p, x) - vmap(f, in_dims=(None, 0))(p, x))
""",
    "one target, and a result": """
def make(model):
    return make_functional(model)

made = make_functional_with_buffers(normed)
out = [*(made[1] + made[2]), made[0](*made[1:], x), *eval("make")(model)[1]]
""",
    "a comment behind": """
f, p = make_functional(model)  # the net
out = [*(p + p), f(p, x)]
""",
    "only the parameters": """
_, p = make_functional(model)
_, q, b = make_functional_with_buffers(normed, True)
out = [*(p + q + b)]
""",
    "a hypernetwork that gives a list": """
class Hyper(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.func, params = make_functional(target)
        self.shapes = [p.shape for p in params]
        self.heads = nn.ModuleList([nn.Linear(3, p.numel()) for p in params])

    def forward(self, z, x):
        params = [head(z).view(self.shapes[i]) for i, head in enumerate(self.heads)]
        params[0] = params[0] * 2
        return self.func(params, x)

torch.manual_seed(1)
hyper = Hyper(nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.99)))
torch.manual_seed(2)
out = [hyper(x[0], x)]
torch.optim.SGD(hyper.heads.parameters(), lr=0.1).zero_grad()
out[0].sum().backward()
out += [p.grad for p in hyper.heads.parameters()]
hyper.eval()
out += [hyper(x[0], x)]
hyper.double()
out += [hyper(x[0].double(), x.double())]
""",
    "a hypernetwork that gives a flat vector": """
class Functional(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.sizes = {k: p.size() for k, p in module.named_parameters()}
        self.functional, self.named_params = make_functional(module)

    def forward(self, vector, *args, **kwargs):
        params = []
        start = 0
        for p in self.named_params:
            end = start + p.numel()
            params.append(vector[start:end].view(p.size()))
            start = end
        return self.functional(params, *args, **kwargs)

class Hyper(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = Functional(target)
        self.net = nn.Linear(3, sum(p.numel() for p in target.parameters()))

    def forward(self, z, x):
        one = self.target(self.net(z[0]), x, scale=2.0)
        return one, vmap(self.target, in_dims=(0, None))(self.net(z), x)

torch.manual_seed(1)
out = Hyper(model)(x, x)
""",
    "a hypernetwork that splits a vector": """
class Hyper(nn.Module):
    def __init__(self, target):
        super().__init__()
        func, params, buffers = make_functional_with_buffers(target)
        self.func = func
        self.sizes, self.shapes = [p.numel() for p in params], [p.shape for p in params]
        self.buffers0 = buffers
        self.net = nn.Linear(3, sum(self.sizes))

    def forward(self, z, x):
        parts = torch.split(self.net(z), self.sizes)
        return self.func([p.reshape(s) for p, s in zip(parts, self.shapes)], self.buffers0, x)

torch.manual_seed(1)
hyper = Hyper(normed)
out = [hyper(x[0], x), hyper.buffers0[0], hyper.eval()(x[0], x), hyper.buffers0[0]]
""",
    "only parameters of a submodule": """
class Kept(Net):
    def __init__(self):
        super().__init__()
        self.f, self.p = make_functional(model)

    def forward(self, x):
        return self.f(self.p, x)

kept = Kept()
out = [kept(x), torch.tensor([p.numel() for p in kept.parameters() if not p.is_meta])]
""",
    "names that are taken": """
base_model = param_names = functional_model = 1
class A:
    def __init__(self, params):
        (self.f, self.params) = make_functional(model)
a = A(1)
out = [*a.params, a.f(a.params, x), base_model * x]
""",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_tuple_kept(body: str):
    before = HEAD + body.lstrip()
    findings, after = check(before)
    inside = [item for item in findings if item.start > before.index("class Net")]
    assert inside and all(item.fix is not None for item in inside), [help_of(item) for item in inside]
    assert all("stay a tuple, because" in (help_of(item) or "") for item in inside)
    assert not [line for line in after.splitlines() if "make_functional" in line and "(" in line]
    for one, other in zip(run(before), run(after), strict=True):
        torch.testing.assert_close(one, other)


REFUSED = {
    "names of parameters": ("f, p = make_functional(model)\nf.param_names\nf(p, x)\n", "`.param_names`"),
    "the module itself": ("f, p = make_functional(model)\nf.stateless_model(x)\n", "`.stateless_model`"),
    "another method": ("f, p = make_functional(model)\nsave(p)\nf.cuda()\n", "`f.cuda` needs a module"),
    "evaluation": ("f, p = make_functional(model)\nf.eval()\nsave(p)\n", "`f.eval` needs a module"),
    "mode in another function": (
        "f, p = make_functional(model)\ndef run():\n    f.eval()\n    save(p)\n",
        "`f.eval` needs a module",
    ),
    "in a list of modules": (
        "f, p = make_functional(model)\nsave(p)\nnn.ModuleList([f])\n",
        "`torch.nn.ModuleList` takes a module",
    ),
    "a submodule that starts in a mode of its own": (
        "class A(Net):\n    def __init__(self):\n        super().__init__()\n"
        "        self.f, self.p = make_functional(model.eval())\n        save(self.p)\n",
        "has a mode of its own until `train()`",
    ),
    "a submodule that is set elsewhere": (
        "class A(nn.Module):\n    def put(self, f):\n        self.f = f\n\n"
        "    def make(self):\n        f, p = make_functional(model)\n        self.put(f)\n        save(p)\n",
        "`self.f` is a submodule that is set elsewhere",
    ),
    "kept in a loop": (
        "kept = []\nfor m in [model]:\n    f, p = make_functional(m)\n    kept.append((f, p))\n",
        "created in a loop",
    ),
    "kept in a loop as a function": (
        "kept = []\nfor m in [model]:\n    f, p = make_functional(m)\n    g = [vmap(f)]\n    kept.append(g)\n",
        "created in a loop",
    ),
    "in a class": ("class A:\n    f, p = make_functional(model)\n    save(p)\n", "created in a class"),
    "types": (
        "from functorch import FunctionalModule\nf, p = make_functional(model)\nf(p, x)\n"
        "def run(f: FunctionalModule, p): ...\n",
        "uses `functorch.FunctionalModule`",
    ),
    "a function that is made of itself": (
        "f, p = make_functional(model)\ng = vmap(g)\ng(p, x)\nf.cuda()\n",
        "`f.cuda` needs a module",
    ),
    "not assigned": ("make_functional(model)[0]\n", "not assigned"),
    "in a list": ("made = [make_functional(m) for m in (model, model)]\n", "not assigned"),
    "a comment": ("f, p = make_functional(  # the net\n    model)\nf(p, x)\n", "comment"),
    "shared line": ("f, p = make_functional(model); f(p, x)\n", "on one line"),
    "the signature of old": (
        "p, f, _ = make_functional(model)\nf(p, (x,))\n",
        "not a function and 1 of its states",
    ),
}


@pytest.mark.parametrize(("body", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_as_a_whole(body: str, why: str):
    text = HEAD + body
    findings, after = check(text)
    assert after.endswith(body)
    inside = [item for item in findings if item.start >= len(HEAD)]
    assert inside and all(item.fix is None for item in inside)
    assert any(why in (help_of(item) or "") for item in findings), [help_of(item) for item in findings]


def test_groups_that_have_nothing_in_common():
    _, after = check(
        HEAD
        + "def one():\n    f, p = make_functional(model)\n    return f(p, x)\n\n"
        + "def two():\n    g, q = make_functional(model)\n    return g(q, x), elsewhere(q)\n"
    )
    assert "torch.func.functional_call(f, p, (x,))" in after
    assert "def g(params, *args, **kwargs):" in after and "q = tuple(base_model.parameters())" in after


def test_models_that_are_functions_have_bases_of_their_own():
    body = """
def run():
    f, p = make_functional(model)
    g, q = make_functional(nn.Linear(3, 2))
    return [vmap(f, in_dims=(None, 0))(p, x), vmap(g, in_dims=(None, 0))(q, x)[0] * 0]

out = run()
"""
    _, after = check(HEAD + body)
    assert "base_model_2.named_parameters()" in after and "zip" not in after
    for one, other in zip(run(HEAD + body), run(after), strict=True):
        torch.testing.assert_close(one, other)


def test_import_with_a_message_where_it_fails():
    text = (
        "try:\n    from functorch import grad, make_functional\nexcept ImportError:\n    print('none')\n"
        "f, p = make_functional(model)\ny = f(p, 1)\n"
    )
    _, after = check(text)
    assert "    from functorch import grad\nexcept" in after and "p = dict(f.named_parameters())" in after
    alone = text.replace("grad, ", "")
    findings, after = check(alone)
    assert after == alone and "without the `try`" in (help_of(findings[-1]) or "")


def test_imports_of_which_nothing_makes_use():
    text = (
        "from functorch import FunctionalModule, combine_state_for_ensemble, make_functional\n\n\n"
        "def run(m, x):\n    from functorch import make_functional\n\n"
        "    f, p = make_functional(m)\n    return f(p, x)\n"
    )
    _, after = check(text)
    assert "functorch" not in after and "p = dict(f.named_parameters())" in after
    exported = "from functorch import make_functional\n\n__all__ = ['make_functional']\n"
    findings, after = check(exported)
    assert after == exported and findings


def test_guarded_import_is_left_alone():
    text = (
        "try:\n    from functorch import make_functional\nexcept ImportError:\n    make_functional = None\n"
        "f, p = make_functional(model)\nf(p, 1)\n"
    )
    findings, after = check(text)
    assert after == text and all(item.fix is None for item in findings)
