"""Hand-written attention: what is rewritten, checked by running both, and what is refused."""

from __future__ import annotations

import sys
import textwrap
import types

import pytest
import torch
from harness.fixing import checked_and_fixed

from torchmigrate.report.reasons import help_of

HEAD = """\
import math
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from einops import einsum
"""


def einsum(one: torch.Tensor, other: torch.Tensor, pattern: str) -> torch.Tensor:
    """`einops.einsum` for words of any length."""
    letters: dict[str, str] = {"->": "->", "...": "..."}
    short = ""
    for word in pattern.replace(",", " ,").split():
        short += word if word == "," else letters.setdefault(word, chr(ord("a") + len(letters)))
    return torch.einsum(short, one, other)


sys.modules.setdefault("einops", types.ModuleType("einops")).__dict__.setdefault("einsum", einsum)


def check(text: str) -> tuple[list[str], str]:
    """The help of every finding, and the fixed text."""
    found, new = checked_and_fixed(text, ["TM901"])
    return [help_of(finding) or "" for finding in found], new


def function(body: str) -> str:
    return f"{HEAD}\ndef attend(q, k, v, mask):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


def module(body: str, init: str = "") -> str:
    lines = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    made = "".join(f"        {line}\n" for line in init.splitlines())
    return (
        f"{HEAD}\nclass Attention(nn.Module):\n    def __init__(self, dim=8):\n        super().__init__()\n"
        f"{made}\n    def forward(self, q, k, v, mask):\n{lines}\n"
    )


def run(text: str, mask: torch.Tensor | None, shape: tuple[int, ...]) -> list[torch.Tensor]:
    """What the code gives, and the gradients, on the same tensors each time."""
    torch.manual_seed(0)
    q, k, v = (
        torch.randn(*shape, length, 8, dtype=torch.float64, requires_grad=True) for length in (5, 5, 5)
    )
    space: dict[str, object] = {}
    exec(compile(text, "example.py", "exec"), space)
    called = space["attend"] if "attend" in space else space["Attention"]().double().eval()  # type: ignore[operator]
    out = called(q, k, v, mask)  # type: ignore[operator]
    (out * torch.linspace(0, 1, out.numel(), dtype=out.dtype).view_as(out)).sum().backward()
    return [out.detach(), *(item.grad for item in (q, k, v) if item.grad is not None)]


TRIANGLE = torch.ones(5, 5).tril()
FUNCTIONS = {
    "plain": ("w = torch.softmax(q @ k.transpose(-2, -1), dim=-1)\nreturn w @ v", "scale=1.0"),
    "nested": ("return torch.matmul(F.softmax(torch.matmul(q, k.mT) * 0.5, -1), v)", "scale=0.5"),
    "methods": ("w = q.matmul(k.transpose(-1, -2)).div(3.0).softmax(-1)\nreturn w.matmul(v)", "1.0 / 3.0"),
    "root": ("s = q @ k.mT / math.sqrt(q.shape[-1])\nreturn s.softmax(dim=-1) @ v", "(q, k, v)"),
    "half power": ("s = q @ k.mT * k.size(-1) ** -0.5\nreturn s.softmax(dim=-1) @ v", "(q, k, v)"),
    "other root": (
        "s = q @ k.mT / np.sqrt(2 * q.size(-1))\nreturn s.softmax(dim=-1) @ v",
        "1.0 / np.sqrt(2 * q.size(-1))",
    ),
    "sizes": ("b, h, n, d = q.shape\ns = q @ k.mT / d**0.5\nreturn s.softmax(-1) @ v", "1.0 / (d**0.5)"),
    "scaled in front": ("s = (q * 0.5) @ k.mT\nreturn s.softmax(dim=-1) @ v", "q * 0.5, k, v, scale=1.0"),
    "transposed before": (
        "t = k.transpose(2, 3)\nreturn torch.softmax(q @ t, dim=3) @ v",
        "t.transpose(-2, -1)",
    ),
    "permuted": ("return torch.softmax(q @ k.permute(0, 1, 3, 2), dim=-1) @ v", "(q, k, v"),
    "einsum": (
        """
        dots = torch.einsum('b h i d, b h j d -> b h i j', q, k) * 0.3
        attn = dots.softmax(dim=-1)
        out = torch.einsum('b h i j, b h j d -> b h i d', attn, v)
        return out
        """,
        "scale=0.3",
    ),
    "einsum, swapped": (
        "a = torch.einsum('...jd,...id->...ij', k, q).softmax(-1)\nreturn torch.einsum('...ij,...jd->...id', a, v)",
        "(q, k, v",
    ),
    "added mask": ("s = q @ k.mT\ns = s + mask\nreturn s.softmax(-1) @ v", "attn_mask=mask"),
    "added in place": ("s = q @ k.mT\ns *= 0.5\ns += mask\nreturn s.softmax(-1) @ v", "attn_mask=mask"),
    "mask first": ("s = q @ k.mT\ns = mask + s\nreturn s.softmax(-1) @ v", "attn_mask=mask"),
    "mask of zeros": (
        "s = (q @ k.mT).masked_fill(mask == 0, float('-inf'))\nreturn s.softmax(-1) @ v",
        "mask != 0",
    ),
    "mask method": ("s = (q @ k.mT).masked_fill(mask.eq(0), -1e9)\nreturn s.softmax(-1) @ v", "mask.ne(0)"),
    "inverted mask": (
        "m = mask.bool()\ns = q @ k.mT\ns = s.masked_fill(~m, -torch.inf)\nreturn s.softmax(-1) @ v",
        "attn_mask=m,",
    ),
    "mask of what goes": (
        "m = mask == 0\ns = q @ k.mT\ns.masked_fill_(m, torch.finfo(s.dtype).min)\nreturn s.softmax(-1) @ v",
        "attn_mask=~m",
    ),
    "where": (
        "s = torch.where(mask.bool(), q @ k.mT, float('-inf'))\nreturn s.softmax(-1) @ v",
        "attn_mask=mask.bool()",
    ),
    "where, inverted": (
        "s = torch.where(mask == 0, -math.inf, q @ k.mT)\nreturn s.softmax(-1) @ v",
        "attn_mask=mask != 0",
    ),
    "if there is a mask": (
        """
        s = q @ k.mT
        if mask is not None:
            s = s.masked_fill(mask == 0, -1e9)
        return s.softmax(-1) @ v
        """,
        "attn_mask=mask != 0 if mask is not None else None",
    ),
    "if there is a mask to add": (
        "s = q @ k.mT\nif mask is not None:\n    s += mask\nreturn s.softmax(-1) @ v",
        "attn_mask=mask,",
    ),
    "no dropout": (
        "w = (q @ k.mT).softmax(-1)\nw = F.dropout(w, p=0.1, training=False)\nreturn w @ v",
        "dropout_p=0.1 if False else 0.0",
    ),
    "dimensions in another order": (
        """
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        s = torch.einsum('bqhd,bkhd->bhqk', q, k) / math.sqrt(q.size(-1))
        w = s.softmax(-1)
        return torch.einsum('bhqk,bkhd->bqhd', w, v)
        """,
        "v.transpose(1, 2),",
    ),
    "dimensions in another order, values first": (
        "s = torch.einsum('b h j d, b h i d -> b h i j', k, q)\nw = s.softmax(3)\n"
        "return torch.einsum('bhje,bhij->bihe', v, w)",
        ".transpose(1, 2)",
    ),
    "words": (
        "s = einsum(q, k, 'batch head row d, batch head column d -> batch head row column')\n"
        "return einsum(s.softmax(-1), v, '... i j, ... j d -> ... i d')",
        "(q, k, v, scale=1.0)",
    ),
    "values first": (
        "w = (q @ k.mT).softmax(-1)\nt = v.mT\nreturn (t @ w.transpose(-2, -1)).mT",
        "t.transpose(-2, -1), scale=1.0",
    ),
    "values first, transposed before": (
        "w = (q @ k.mT).softmax(-1)\nw = w.permute(0, 1, 3, 2).contiguous()\nreturn torch.matmul(v.mT, w)",
        "(q, k, v, scale=1.0).transpose(-2, -1)",
    ),
    "single precision": (
        "s = q @ k.mT\nw = F.softmax(s.float(), dim=-1).type_as(s)\nreturn w @ v",
        "(q, k, v, scale=1.0)",
    ),
    "single precision, by argument": (
        "dtype = q.dtype\nw = F.softmax(q @ k.mT, dim=-1, dtype=torch.float32).to(dtype)\nreturn w @ v",
        "(q, k, v, scale=1.0)",
    ),
    "value of a variable": (
        "s = q @ k.mT\nhidden = -torch.finfo(s.dtype).max\ns = s.masked_fill(mask == 0, hidden)\n"
        "return s.softmax(-1) @ v",
        "attn_mask=mask != 0, scale=1.0",
    ),
    "mask prepared": (
        """
        s = q @ k.mT
        if mask is not None:
            mask = mask.view(1, 1, 5, 5) == 0
            hidden = -torch.finfo(s.dtype).max
            s = s.masked_fill(mask, hidden)
        return s.softmax(-1) @ v
        """,
        "attn_mask=~mask if mask is not None else None",
    ),
    "mask prepared, in place": (
        "s = q @ k.mT\nif mask is not None:\n    keep = mask.bool()\n    s.masked_fill_(~keep, -1e9)\n"
        "return s.softmax(-1) @ v",
        "attn_mask=keep if mask is not None else None",
    ),
    "mask before the scale": (
        "s = (q @ k.mT).masked_fill(mask == 0, -1e9) / math.sqrt(8)\nreturn s.softmax(-1) @ v",
        "attn_mask=mask != 0, scale=1.0 / math.sqrt(8)",
    ),
    "made on the way": (
        "s = q @ k.mT\nbias = mask * 3\ns = s + bias.exp()\nreturn s.softmax(-1) @ v",
        "attn_mask=bias.exp()",
    ),
    "branches": (
        """
        if mask is None:
            s = q @ k.mT
            out = s.softmax(-1) @ v
        else:
            s = q @ k.mT + mask
            out = s.softmax(-1) @ v
        return out
        """,
        "attn_mask=mask",
    ),
    "layer on the spot": ("return nn.Softmax(dim=-1)(q @ k.mT) @ v", "(q, k, v, scale=1.0)"),
    "in parentheses": ("w = (q @ k.mT).softmax(-1)\nreturn (w @ v).transpose(1, 2)", "scale=1.0).transpose"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_compute_the_same(name: str) -> None:
    body, wanted = FUNCTIONS[name]
    text = function(body)
    findings, after = check(text)
    assert len(findings) == (2 if name == "branches" else 1)
    assert "scaled_dot_product_attention" in after
    assert wanted in after
    assert "softmax" not in after.partition("def ")[2]
    # In double precision, what was computed in single precision is not any more.
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if name.startswith("single") else {}
    for one, other in zip(run(text, TRIANGLE, (2, 3)), run(after, TRIANGLE, (2, 3)), strict=True):
        torch.testing.assert_close(one, other, **tolerance)
    assert check(after) == ([], after)


@pytest.mark.parametrize(
    "name",
    [
        "if there is a mask",
        "if there is a mask to add",
        "mask prepared",
        "mask prepared, in place",
        "branches",
    ],
)
def test_without_the_mask(name: str) -> None:
    text = function(FUNCTIONS[name][0])
    for one, other in zip(run(text, None, (2, 3)), run(check(text)[1], None, (2, 3)), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("w = F.softmax(torch.bmm(q, k.transpose(1, 2)), dim=2)\nreturn torch.bmm(w, v)", "(q, k, v, scale"),
        ("w = F.softmax(q.bmm(k.permute(0, 2, 1)), dim=-1)\nreturn w.bmm(v)", "(q, k, v, scale"),
        (
            "w = torch.einsum('bct,bcs->bts', q.mT, k.mT * 0.5)\nw = torch.softmax(w.float(), dim=-1).type(w.dtype)\n"
            "return torch.einsum('bts,bcs->bct', w, v.mT)",
            "q, (k.mT * 0.5).transpose(-2, -1), v",
        ),
        ("w = torch.bmm(q, k.mT).softmax(2)\nreturn torch.bmm(v.mT, w.transpose(1, 2))", "(q, k, v, scale"),
        ("t = k.transpose(1, 2)\nreturn F.softmax(q @ t, dim=-1) @ v", "t.transpose(-2, -1)"),
        ("return F.softmax(q @ k.transpose(1, 2), dim=-1) @ v", "k.transpose(1, 2).transpose(-2, -1)"),
    ],
)
def test_three_dimensions(body: str, wanted: str) -> None:
    text = function(body)
    after = check(text)[1]
    assert wanted in after
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if ".float()" in body else {}
    for one, other in zip(run(text, None, (4,)), run(after, None, (4,)), strict=True):
        torch.testing.assert_close(one, other, **tolerance)


MODULES = {
    "scale of the class": ("s = q @ k.mT * self.scale\nreturn s.softmax(-1) @ v", "self.scale = dim ** -0.5"),
    "scale or default": (
        "s = q @ k.mT * self.scale\nreturn s.softmax(-1) @ v",
        "qk_scale = None\nself.scale = qk_scale or dim ** -0.5",
    ),
    "layers": (
        "a = q @ k.mT\na = self.softmax(a)\na = self.drop(a)\nreturn a @ v",
        "self.softmax = nn.Softmax(dim=-1)\nself.drop = nn.Dropout(0.1)",
    ),
    "layers in a row": (
        "return self.attend(q @ k.mT) @ v",
        "self.attend = nn.Sequential(nn.Softmax(dim=-1), nn.Dropout(0.1))",
    ),
    "training": (
        "a = (q @ k.mT).softmax(-1)\nreturn F.dropout(a, self.p, self.training) @ v",
        "self.p = 0.1",
    ),
    "causal": (
        "T = q.size(-2)\na = (q @ k.mT).masked_fill(self.bias[:, :, :T, :T] == 0, float('-inf'))\n"
        "return a.softmax(-1) @ v",
        "self.register_buffer('bias', torch.tril(torch.ones(9, 9)).view(1, 1, 9, 9))",
    ),
    "not causal": (
        "T = q.size(-2)\na = (q @ k.mT).masked_fill(self.bias[:, :, :T, 1:T + 1] == 0, float('-inf'))\n"
        "return a.softmax(-1) @ v",
        "self.register_buffer('bias', torch.tril(torch.ones(9, 9), 2).view(1, 1, 9, 9))",
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_compute_the_same(name: str) -> None:
    text = module(*MODULES[name])
    after = check(text)[1]
    assert "scaled_dot_product_attention" in after
    assert ("is_causal=True" in after) == (name == "causal")
    for one, other in zip(run(text, None, (2, 3)), run(after, None, (2, 3)), strict=True):
        torch.testing.assert_close(one, other)


def test_dropout_is_applied_in_training_only() -> None:
    after = check(module(*MODULES["layers"]))[1]
    assert "dropout_p=self.drop.p if self.drop.training else 0.0" in after
    assert (
        "p=self.attend[1].p if self.attend[1].training else 0.0"
        in check(module(*MODULES["layers in a row"]))[1]
    )
    assert "dropout_p=self.p if self.training else 0.0" in check(module(*MODULES["training"]))[1]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("w = (q @ k.mT).softmax(-1)\nreturn w @ v, w", "`w` is returned as well"),
        ("w = (q @ k.mT).softmax(-1)\nout = w @ v\nprint(w)\nreturn out", "`w` is used elsewhere"),
        ("w = (q @ k.mT).softmax(-1)\nout = w @ v\nw = w + 1\nreturn out", "`w` is used elsewhere"),
        ("s = q @ k.mT\ns = s - s.mean()\nreturn s.softmax(-1) @ v", "cannot analyze the mask"),
        ("s = (q @ k.mT + mask) * 0.5\nreturn s.softmax(-1) @ v", "the mask is added before"),
        ("s = q @ k.mT * mask\nreturn s.softmax(-1) @ v", "the scale may be a tensor"),
        ("s = q @ k.mT * 2 * 3\nreturn s.softmax(-1) @ v", "the scores are scaled twice"),
        ("s = (q @ k.mT).masked_fill(mask == 0, -1e9) + mask\nreturn s.softmax(-1) @ v", "there are several masks"),
        (
            "s = q @ k.mT\nif mask.all():\n    s = s + mask\nif mask.any():\n    s = s + mask\nreturn s.softmax(-1) @ v",
            "there are several masks",
        ),
        ("s = (q @ k.mT).masked_fill(mask == 0, -1e9) * -0.5\nreturn s.softmax(-1) @ v", "by a value that may be negative"),
        ("w = F.softmax((q @ k.mT).float(), -1)\nreturn w @ v.float()", "its result is not cast back"),
        ("w = F.softmax(q @ k.mT, -1).half()\nreturn w @ v.half()", "to another dtype"),
        ("q = q.float()\nw = F.softmax(q @ k.float().mT, -1).to(v.dtype)\nreturn w @ v", "query and key are cast"),
        ("w = (q @ k.mT).softmax(-1)\nreturn v @ w.transpose(1, 2)", "dimensions of the weights are permuted"),
        ("s = (q @ k.mT).view(2, 3, 5, 5)\nreturn s.softmax(-1) @ v", "the scores are reshaped"),
        ("s = torch.baddbmm(mask, q, k, beta=0)\nreturn s.softmax(-1) @ v", "used in another operation"),
        ("s = q @ k.mT + mask\ns += mask.T * 2\nreturn s.softmax(-1) @ v", "there are several masks"),
        ("w = (q @ k.mT).softmax(-1)\nif mask:\n    w = F.dropout(w, 0.1)\nreturn w @ v", "`w` changes in a branch"),
        ("w = nn.Dropout(0.1)((q @ k.mT).softmax(-1))\nreturn w @ v", "created in place"),
        (
            "s = q @ k.mT\nif mask.any():\n    mask = mask.logical_not()\n    s = s.masked_fill(mask, -1e9)\n"
            "return s.softmax(-1) @ v",
            "may have changed",
        ),
        (
            "s = q @ k.mT\nif mask is not None:\n    q = q * 2\n    s = s.masked_fill(mask == 0, -1e9)\n"
            "return s.softmax(-1) @ v",
            "`q` is reassigned",
        ),
        (
            "s = q @ k.mT\nhidden = -1e9\nif mask is None:\n    hidden = 0.0\n"
            "s = s.masked_fill(mask == 0, hidden)\nreturn s.softmax(-1) @ v",
            "another value",
        ),
        (
            "s = q @ k.mT\nif mask is not None:\n    w = (s + mask).softmax(-1)\nelse:\n    w = s.softmax(-1)\n"
            "return w @ v",
            "`w` changes in a branch",
        ),
        (
            "w = (q @ k.mT).softmax(-1)\nif mask is not None:\n    w = mask(w)\nreturn w @ v, w",
            "`w` is returned as well",
        ),
        ("s = (q @ k.mT).masked_fill(mask == 0, 0.0)\nreturn s.softmax(-1) @ v", "another value"),
        ("w = F.softmax(q @ k.mT, dim=-1, dtype=torch.float32)\nreturn w @ v", "another dtype"),
        ("w = (q @ k.mT).softmax(-1)\nw = w * mask\nreturn w @ v", "the weights are used in another operation"),
        ("s = q @ k.mT\nif mask is not None:\n    s = s + mask\nelse:\n    s = s + 1\nreturn s.softmax(-1) @ v", "change in several branches"),
        ("s = q @ k.mT\nq = q + 1\nreturn s.softmax(-1) @ v + q", "reassigned before"),
        ("s = q @ k.mT\ns = s.masked_fill(mask[:, :s.size(-1)] == 0, -1e9)\nreturn s.softmax(-1) @ v", "used elsewhere"),
        ("return torch.softmax(q @ k.mT, dim=2) @ v", "may not be over the keys"),
        ("w = (q @ k.mT).softmax(-1); return w @ v", "on one line"),
        (
            "s = torch.einsum('bhid,bjd->bhij', q, k[:, 0])\nw = s.softmax(-1)\n"
            "return torch.einsum('bhij,bhjd->bhid', w, v)",
            "not a product of each query with each key",
        ),
        (
            "s = torch.einsum('bhid,bhjd->bhij', q, k)\nw = s.softmax(-1)\n"
            "return torch.einsum('bhij,bhid->bhjd', w, v)",
            "not a product over the keys",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(body: str, why: str) -> None:
    text = function(body)
    findings, after = check(text)
    assert len(findings) == 1
    assert why in findings[0]
    assert after == text


@pytest.mark.parametrize(
    "body",
    [
        "return torch.softmax(q, dim=-1) @ v",
        "return torch.softmax(q @ k.mT, dim=-1).sum()",
        "return torch.softmax(q @ k.mT, dim=0) @ v",
        "return v @ torch.softmax(q @ k.mT, dim=-1)",
        "w = torch.softmax(q @ k.mT, dim=-1)\nw = other()\nreturn w @ v",
        "if hasattr(F, 'scaled_dot_product_attention'):\n    return F.scaled_dot_product_attention(q, k, v)\n"
        "return torch.softmax(q @ k.mT, dim=-1) @ v",
        "return softmax(q @ k.T) @ v",
    ],
)
def test_what_is_no_attention(body: str) -> None:
    text = function(body)
    assert check(text) == ([], text)


def test_a_tensor_as_scale_is_refused() -> None:
    body = "s = q @ k.mT * self.scale\nreturn s.softmax(-1) @ v"
    text = module(body, "self.scale = nn.Parameter(torch.ones(1))")
    findings, after = check(text)
    assert "the scale may be a tensor" in findings[0]
    assert after == text


def test_comments_of_steps_go_with_them() -> None:
    text = function(
        """
        # the scores
        s = q @ k.mT  # (b, h, n, m)
        # the weights
        w = s.softmax(-1)  # "rows" of '#'
        return w @ v  # done
        """
    )
    after = check(text)[1]
    assert [line.partition("#")[2] for line in after.splitlines() if "#" in line] == [" the scores", " done"]


def test_a_comment_above_the_product_is_enough() -> None:
    text = function(
        """
        x = q + 1  # kept

        # the scores
        s = q @ k.mT
        if mask is not None:
            # hide some
            s = s + mask
        w = s.softmax(-1)
        # the values
        return w @ v
        """
    )
    after = check(text)[1]
    assert [line.partition("#")[2] for line in after.splitlines() if "#" in line] == [" kept", " the values"]
