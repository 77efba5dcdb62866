"""Old Fourier transforms: what is rewritten, checked by running old and new, and what is refused.

The meaning of the old functions is taken from their documentation, once as sums over all elements (here), once
with numpy (`proofs.references`, which `old_torch` puts in the place of the removed functions).
"""

from __future__ import annotations

import itertools
import math
import textwrap
import warnings

import numpy as np
import pytest
import torch
from harness.program import FIX, FIX_ALL, only, run
from harness.program import fixed as fixed_by
from proofs.patches import old_torch

from torchmigrate.findings import Applicability, Finding
from torchmigrate.report.reasons import help_of, reason_of

CODES = ("TM149", "TM150", "TM151", "TM152", "TM153")
HEAD = "import math\nimport torch\nimport torch.nn.functional as F\n\n\n"


def findings(text: str, *options: str) -> list[Finding]:
    return run(text, *only(CODES), *options).findings


def fixed(text: str, *, unsafe: bool) -> str:
    return fixed_by(text, *only(CODES), *(FIX_ALL if unsafe else FIX))


def function(body: str, parameters: str = "x, y, w") -> str:
    lines = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return f"{HEAD}def compute({parameters}):\n{lines}\n"


def call(text: str, *arguments: torch.Tensor) -> object:
    space: dict[str, object] = {}
    exec(compile(text, "example.py", "exec"), space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return space["compute"](*(item.clone() for item in arguments))  # type: ignore[operator]


# ---- every literal form, against the documented sums ------------------------------------------------------


def dft(values: np.ndarray, ndim: int, sign: int) -> np.ndarray:
    """The sum over all elements that the documentation writes down, without any factor."""
    for axis in range(-ndim, 0):
        size = values.shape[axis]
        k = np.arange(size)
        matrix = np.exp(sign * 2j * math.pi * np.outer(k, k) / size)
        values = np.moveaxis(np.moveaxis(values, axis, -1) @ matrix, -1, axis)
    return values


def documented(
    kind: str, values: np.ndarray, ndim: int, normalized: bool, onesided: bool, sizes: tuple[int, ...]
):
    """`values` in the layout of the old functions, and the result in it."""
    count = math.prod(sizes)
    if kind in ("fft", "ifft"):
        given = values[..., 0] + 1j * values[..., 1]
        result = dft(given, ndim, -1 if kind == "fft" else 1)
        factor = count**-0.5 if normalized else (1 if kind == "fft" else 1 / count)
        return np.stack([(result * factor).real, (result * factor).imag], -1)
    if kind == "rfft":
        result = dft(values.astype(complex), ndim, -1) * (count**-0.5 if normalized else 1)
        if onesided:
            result = result[..., : sizes[-1] // 2 + 1]
        return np.stack([result.real, result.imag], -1)
    given = values[..., 0] + 1j * values[..., 1]
    result = dft(given, ndim, 1) * (count**-0.5 if normalized else 1 / count)
    return result.real


SIZES = [(6,), (7,), (4, 6), (5, 7), (4, 5), (3, 4, 6), (3, 4, 5), (2, 3, 7)]
FORMS = list(
    itertools.product(["fft", "ifft", "rfft", "irfft"], SIZES, [False, True], [True, False], [0, 1, 2])
)


@pytest.mark.parametrize(("kind", "sizes", "normalized", "onesided", "spelling"), FORMS)
def test_every_literal_form(kind, sizes, normalized, onesided, spelling):
    ndim = len(sizes)
    if kind in ("fft", "ifft"):
        if not onesided:
            return  # they have no such argument
        forms = [f"x, {ndim}, {normalized}", f"x, signal_ndim={ndim}, normalized={normalized}"]
        forms.append(f"normalized={normalized}, signal_ndim={ndim}, input=x")
    else:
        forms = [
            f"x, {ndim}, {normalized}, {onesided}",
            f"x, {ndim}, onesided={onesided}, normalized={normalized}",
            f"signal_ndim={ndim}, input=x, normalized={normalized}, onesided={onesided}",
        ]
        if kind == "irfft":
            forms = [
                f"{form}, {'signal_sizes=' if number else ''}{sizes}" for number, form in enumerate(forms)
            ]
    generator = np.random.default_rng(sum(sizes))
    signal = generator.standard_normal((2, *sizes))
    if kind == "irfft":
        # What an inverse is for: the transform of a real signal, all of it or its first half.
        full = dft(signal.astype(complex), ndim, -1)
        whole = np.stack([full.real, full.imag], -1)
        given = whole[..., : sizes[-1] // 2 + 1, :] if onesided else whole
        wanted = documented(kind, whole, ndim, normalized, onesided, sizes)
    else:
        given = signal if kind == "rfft" else generator.standard_normal((2, *sizes, 2))
        wanted = documented(kind, given, ndim, normalized, onesided, sizes)
    old = f"import torch\n\n\ndef compute(x):\n    return torch.{kind}({forms[spelling]})\n"
    guessed = kind == "irfft" and (ndim > 1 or not onesided)  # the spectrum is not known to be symmetric
    new = fixed(old, unsafe=guessed)
    assert f"torch.{kind}(" not in new
    result = call(new, torch.from_numpy(np.ascontiguousarray(given)))
    assert isinstance(result, torch.Tensor) and not result.is_complex()
    np.testing.assert_allclose(result.numpy(), wanted, atol=1e-10)


def test_an_input_that_is_not_laid_out_as_pairs():
    old = "import torch\n\n\ndef compute(x):\n    return torch.fft(x, 1)\n"
    given = torch.randn(2, 5, 3, dtype=torch.float64).transpose(0, 1).transpose(0, 2)[:, :, :]
    given = given.permute(0, 2, 1)  # (3, 5, 2) of which the last dimension has a stride of 15
    assert given.stride(-1) != 1
    with old_torch():
        wanted = call(old, given)
    torch.testing.assert_close(call(fixed(old, unsafe=False), given), wanted)


# ---- functions, old against new ---------------------------------------------------------------------------

# Name -> body, and what the complex form holds; None: there is none, the layout is kept.
BODIES: dict[str, tuple[str, str | None]] = {
    "convolution": (
        """
        f = torch.rfft(x, 1)
        g = torch.rfft(y, 1)
        product = torch.stack(
            [f[..., 0] * g[..., 0] - f[..., 1] * g[..., 1], f[..., 0] * g[..., 1] + f[..., 1] * g[..., 0]], dim=-1
        )
        return torch.irfft(product, 1, signal_sizes=x.shape[-1:])
        """,
        "product = f * g\n",
    ),
    "correlation": (
        """
        f, g = torch.rfft(x, 1), torch.rfft(y, 1)
        return torch.irfft(f, 1, signal_sizes=(x.size(-1),)) + torch.irfft(g, 1, signal_sizes=(x.size(-1),))
        """,
        None,
    ),
    "named parts": (
        """
        f = torch.rfft(x, 2, onesided=False)
        g = torch.rfft(y, 2, onesided=False)
        a = f[..., 0]
        b = f[..., 1]  # the imaginary part
        c, d = torch.unbind(g, -1)
        h = torch.stack((a * c + b * d, a * d - b * c), dim=-1)
        return torch.irfft(h, 2, onesided=False)
        """,
        "h = f.conj() * g\n",
    ),
    "named results": (
        """
        f = torch.rfft(x, 1, onesided=False)
        g = torch.rfft(y, 1, onesided=False)
        a, b = f[..., 0], f[..., 1]
        real = a * g[..., 0] - b * g[..., 1]
        imag = a * g[..., 1] + b * g[..., 0]
        h = torch.stack((real, imag), -1)
        return torch.irfft(h, 1, onesided=False)
        """,
        "g = torch.fft.fft(y)\n    h = f * g\n    return",
    ),
    "named results, one read elsewhere": (
        """
        f = torch.rfft(x, 1)
        g = torch.rfft(y, 1)
        a, b = f[..., 0], f[..., 1]
        real = a * g[..., 0] - b * g[..., 1]
        imag = a * g[..., 1] + b * g[..., 0]
        return torch.irfft(torch.stack((real, imag), -1), 1, signal_sizes=[5]), real
        """,
        "a, b = f.real, f.imag\n    real = a * g.real - b * g.imag\n",
    ),
    "named results on one line": (
        """
        f = torch.rfft(x, 1)
        a, b = f[..., 0], f[..., 1]
        if x.dim() > 1:
            real = a * a - b * b; imag = a * b + b * a
            x = torch.irfft(torch.stack((real, imag), -1), 1, signal_sizes=[5])
        return x
        """,
        "    if x.dim() > 1:\n        x = torch.fft.irfft(f * f, n=5)\n",
    ),
    "named results in a branch": (
        """
        f = torch.rfft(x, 1)
        a, b = f[..., 0], f[..., 1]
        if x.dim() > 1:
            real = a * a - b * b
        imag = a * b + b * a
        return torch.irfft(torch.stack((real, imag), -1), 1, signal_sizes=[5])
        """,
        "torch.complex(real, imag)",
    ),
    "parts read elsewhere": (
        """
        f = torch.rfft(x, 1)
        a, b = f.unbind(-1)
        h = torch.stack((a * a - b * b, 2 * a * b), -1)
        return torch.irfft(h, 1), a
        """,
        "a, b = f.real, f.imag\n",
    ),
    "squared": (
        """
        f = torch.rfft(x, 1)
        a, b = f.unbind(-1)
        h = torch.stack((a * a - b * b, a * b + b * a), -1)
        return torch.irfft(h, 1)
        """,
        "h = f * f\n",
    ),
    "both conjugated": (
        """
        f = torch.rfft(x, 1)
        g = torch.rfft(y, 1)
        h = torch.stack((f[..., 0] * g[..., 0] - g[..., 1] * f[..., 1], -f[..., 0] * g[..., 1] - f[..., 1] * g[..., 0]), -1)
        return torch.irfft(h, 1)
        """,
        "h = f.conj() * g.conj()\n",
    ),
    "conjugated": (
        """
        f = torch.rfft(x, 1)
        return torch.irfft(torch.stack((f[..., 0], -f[..., 1]), dim=-1), 1)
        """,
        "torch.fft.irfft(f.conj(), n=2 * f.size(-1) - 1)",
    ),
    "stacked behind all others": (
        """
        f = torch.rfft(x, 1)
        real = f.select(-1, 0) * w[:, :3]
        imag = torch.select(f, -1, 1)
        return torch.irfft(torch.stack((real, imag), real.dim()), 1)
        """,
        "return torch.fft.irfft(torch.complex(real, imag), n=2 * real.size(-1) - 1)\n",
    ),
    "another product": (
        """
        f = torch.rfft(x, 1)
        g = torch.rfft(y, 1)
        h = torch.stack((f[..., 0] * g[..., 0], f[..., 1] * g[..., 1]), -1)
        return torch.irfft(h, 1)
        """,
        "h = torch.complex(f.real * g.real, f.imag * g.imag)\n",
    ),
    "changed in between": (
        """
        f = torch.rfft(x, 1)
        a, b = f.unbind(-1)
        f = torch.rfft(y, 1)
        c, d = f.unbind(-1)
        h = torch.stack((a * c - b * d, a * d + b * c), -1)
        return torch.irfft(h, 1)
        """,
        "torch.complex(a * c - b * d, a * d + b * c)",
    ),
    "changed in a loop": (
        """
        f = torch.rfft(x, 1)
        a, b = f.unbind(-1)
        for _ in range(2):
            h = torch.stack((a * a - b * b, a * b + b * a), -1)
            f = f + h
        return torch.irfft(f, 1)
        """,
        "h = torch.complex(a * a - b * b, a * b + b * a)\n",
    ),
    "changed at the end of each round": (
        """
        f = torch.rfft(x, 1)
        for _ in range(2):
            a, b = f.unbind(-1)
            h = torch.stack((a * a - b * b, a * b + b * a), -1)
            f = f + h
        return torch.irfft(f, 1)
        """,
        "h = f * f\n",
    ),
    "parts of another round": (
        """
        f = torch.rfft(x, 1)
        for n in range(3):
            if n == 1:
                c, d = f.unbind(-1)
            f = torch.rfft(y * n, 1)
            if n == 2:
                f = torch.stack((c * c - d * d, c * d + d * c), -1)
        return torch.irfft(f, 1)
        """,
        "f = torch.complex(c * c - d * d, c * d + d * c)\n",
    ),
    "parts under other names": (
        """
        f = torch.rfft(x, 1)
        a, b = f[..., 0], f[..., 1]
        c = a
        h = torch.stack((c * c - b * b, c * b + b * c), -1)
        return torch.irfft(h, 1)
        """,
        "h = f * f\n",
    ),
    "a part that is changed in place": (
        """
        f = torch.rfft(x, 1)
        a, b = f[..., 0], f[..., 1]
        c = a.mul_(2)
        h = torch.stack((c * c - b * b, c * b + b * c), -1)
        return torch.irfft(h, 1)
        """,
        "c = a.mul_(2)\n",
    ),
    "numbers that are computed": (
        """
        count = x.size(0)
        scale = math.sqrt(count) + 1
        f = torch.rfft(x, 1) / scale
        return f[..., 0], f[..., 1] * 2
        """,
        "return f.real, f.imag * 2\n",
    ),
    "lengths": (
        """
        f = torch.rfft(x, 2, normalized=True)
        return f.pow(2).sum(-1), torch.sqrt((f ** 2).sum(dim=-1)), torch.norm(f, dim=-1), f.norm(2, -1), f.norm(p=2, dim=-1, keepdim=True)
        """,
        "return f.abs().square(), f.abs(), f.abs(), f.abs(), f.abs().unsqueeze(-1)\n",
    ),
    "more lengths": (
        """
        f = torch.fft(torch.stack((x, y), -1), 1)
        power = torch.sum(f * f, -1, keepdim=True)
        return power, torch.sum(f.square(), dim=-1) ** 0.5, torch.sum(torch.pow(f, 2), -1).sqrt() + 1
        """,
        "return power, f.abs(), f.abs() + 1\n",
    ),
    "phase only": (
        """
        f = torch.rfft(x, 1)
        f = f / torch.norm(f, dim=-1, keepdim=True)
        return torch.irfft(f, 1)
        """,
        "f = f / f.abs()\n",
    ),
    "a name for two things": (
        """
        spec = torch.rfft(x, 1)
        spec = torch.sqrt(spec.pow(2).sum(-1) + 1e-9)
        return spec.transpose(0, 1)
        """,
        "spec = torch.sqrt(spec.abs().square() + 1e-9)\n",
    ),
    "filter": (
        """
        f = torch.rfft(x, 2, onesided=False)
        back = torch.ifft(f * w.unsqueeze(-1) * 2.0, 2)
        return back[..., 0], back.view(-1, 2)[:, 0]
        """,
        "return back.real, back.view(-1).real\n",
    ),
    "filter, understood": (
        """
        f = torch.rfft(x, 2, onesided=False)
        even, odd = torch.ifft(f * (w + 1).unsqueeze(-1) / math.sqrt(2), 2).view(-1, x.size(-1), 2).unbind(-1)
        return even, odd
        """,
        None,
    ),
    "filter, with a name": (
        """
        f = torch.rfft(x, 2, onesided=False)
        mask = (w + 1)[..., None]
        g = torch.ifft(f * mask, 2).reshape(-1, x.size(-1), 2)
        return g[..., 0] + g[..., 1:, 1].sum(), g.shape[-2]
        """,
        "mask = (w + 1)\n",
    ),
    "real input to the complex one": (
        """
        f = torch.ifft(torch.stack([x, torch.zeros_like(x)], dim=-1), 2)
        return f[..., 0] * math.sqrt(4)
        """,
        "f = torch.fft.ifft2(x)\n    return f.real * math.sqrt(4)\n",
    ),
    "slices": (
        """
        f = torch.rfft(x, 1)
        low = f[..., :2, :]
        f = f[..., 1:, :].transpose(-2, -3).contiguous()
        return low[..., 0], f[..., 1:, 1], f.size(-2), f.size(0)
        """,
        "return low.real, f[..., 1:].imag, f.size(-1), f.size(0)\n",
    ),
    "branches": (
        """
        if x.dim() > 1:
            f = torch.rfft(x, 1)
        else:
            f = torch.rfft(x * 2, 1)
        for _ in range(2):
            f = f * 0.5
        return f[..., 0], f[..., 1]
        """,
        "return f.real, f.imag\n",
    ),
    "three dimensions counted": (
        """
        x = x.contiguous().view(-1, x.shape[-1])
        v = torch.cat([x[:, ::2], x[:, 1::2].flip([1])], dim=1)
        V = torch.rfft(v, 1, onesided=False)
        return V[:, :, 0] * w - V[:, :, 1] * w
        """,
        "return V.real * w - V.imag * w\n",
    ),
    "dimensions that nobody knows": (
        """
        V = torch.rfft(x, 1, onesided=False)
        return V[:, :, 0] * w - V[:, :, 1] * w
        """,
        None,
    ),
    "dimensions told by sizes": (
        """
        rows, columns = x.shape
        V = torch.rfft(x, 1)
        U = torch.rfft(y.permute(1, 0), 1)
        _, _ = y.size()
        return V[:, :, 0], torch.norm(V, dim=2), U[:, :, 1], torch.rfft(y, 1).select(2, 1)
        """,
        "return V.real, V.abs(), U.imag, torch.fft.rfft(y).imag\n",
    ),
    "dimensions told by sizes, of another value": (
        """
        rows, columns = x.shape
        x = x.unsqueeze(0)
        V = torch.rfft(x, 1)
        return V[:, :, 0]
        """,
        None,
    ),
    "dimensions told by sizes, perhaps": (
        """
        if x.dim() == 3:
            a, b, c = x.size()
        V = torch.rfft(x, 1)
        return V[:, :1, :, 0] if x.dim() == 3 else V[:, :, 0], V[:, :, 0]
        """,
        None,
    ),
    "dimensions told by sizes, too late": (
        """
        W = torch.rfft(y, 1)
        if x.dim() == 2:
            return W[:, :, 0]
        a, b, c = y.size()
        return W
        """,
        None,
    ),
    "dimensions told by sizes, a star": (
        """
        rows, *columns = x.shape
        V = torch.rfft(x, 1)
        return V[:, :, 0]
        """,
        None,
    ),
    "one of them handed on": (
        """
        f = torch.rfft(x, 1)
        g = torch.stack((f[..., 0] * w[:, :3], f[..., 1]), -1)
        h = torch.rfft(y, 1)
        back = torch.ifft(torch.stack((f[..., 0], f[..., 1] * 2), -1), 1)
        return torch.irfft(g, 1, signal_sizes=[5]), h, back
        """,
        "    g = torch.complex(f.real * w[:, :3], f.imag)\n    h = torch.view_as_real(torch.fft.rfft(y))\n"
        "    back = torch.view_as_real(torch.fft.ifft(torch.complex(f.real, f.imag * 2)))\n",
    ),
    "one of them handed on, and both read at once": (
        """
        f = torch.rfft(x, 1)
        h = torch.rfft(y, 1)
        g = torch.stack((f[..., 0] * h[..., 0], f[..., 1]), -1)
        return torch.irfft(g, 1, signal_sizes=[5]), h
        """,
        None,
    ),
    "one of two parts": (
        """
        f = torch.rfft(x, 1)
        return torch.unbind(f, -1)[0], f.unbind(dim=-1)[1], torch.rfft(y, 1).unbind(-1)[0]
        """,
        "return f.real, f.imag, torch.fft.rfft(y).real\n",
    ),
    "the first frequencies": (
        """
        V = torch.rfft(x, 1)
        return V[:, 0], V[:, 1]
        """,
        None,
    ),
    "columns": (
        """
        f = torch.rfft(x, 1)
        g = torch.cat((f[..., 1].unsqueeze(-1), f[..., 0].unsqueeze(-1)), dim=-1)
        return torch.irfft(g, 1)
        """,
        "g = torch.complex(f.imag, f.real)\n",
    ),
    "handed on": (
        """
        f = torch.rfft(x, 1)
        return f, f[..., 0]
        """,
        None,
    ),
    "changed in place": (
        """
        f = torch.rfft(x, 1)
        f *= 2
        return f[..., 0]
        """,
        None,
    ),
    "one part assigned": (
        """
        f = torch.rfft(x, 1)
        f[..., 1] = 0
        return torch.irfft(f, 1)
        """,
        None,
    ),
    "read by a lambda": (
        """
        f = torch.rfft(x, 1)
        g = lambda: f[..., 0]
        return g()
        """,
        None,
    ),
    "sometimes something else": (
        """
        f = x.unsqueeze(-1)
        if x.dim() > 1:
            f = torch.rfft(x, 1)
        return f[..., 0]
        """,
        None,
    ),
    "added to a real one": (
        """
        f = torch.rfft(x, 1) + 1
        return f[..., 0]
        """,
        None,
    ),
    "unknown factor": (
        """
        f = torch.rfft(x, 1, onesided=False) * w.unsqueeze(-1).expand(3, 5, 2)
        return f[..., 0]
        """,
        None,
    ),
    "nested": ("return torch.irfft(torch.rfft(x, 1), 1, signal_sizes=[5])", None),
    "a length that is not given": (
        """
        f = torch.rfft(x, 1)
        return torch.irfft(f, 1), torch.irfft(f, 1, signal_sizes=()), torch.irfft(f, 1, True, True, None)
        """,
        "return torch.fft.irfft(f, n=2 * f.size(-1) - 1), torch.fft.irfft(f, n=2 * f.size(-1) - 1)",
    ),
    "sizes that are not given": (
        """
        f = torch.rfft(x[:, :4], 2)
        return torch.irfft(torch.stack((f[..., 0], f[..., 1]), -1), 2), torch.irfft(f, 2, normalized=True)
        """,
        'torch.fft.irfft2(f, norm="ortho", s=(-1, 2 * f.size(-1) - 1))',
    ),
    "three sizes that are not given": (
        """
        f = torch.rfft(x.view(1, 3, 5), 3)
        g = torch.view_as_complex(f)
        return torch.irfft(torch.view_as_real(g), 3), torch.irfft(f, 3)
        """,
        "torch.fft.irfftn(g, dim=(-3, -2, -1), s=(-1, -1, 2 * g.size(-1) - 1)), ",
    ),
    "a length that is not given, of parts": (
        """
        real, imag = x[:, :3], y[:, :3]
        return torch.irfft(torch.stack((real, imag), dim=-1), 1)
        """,
        "torch.fft.irfft(torch.complex(real, imag), n=2 * real.size(-1) - 1)",
    ),
    "there and back": (
        "return torch.ifft(torch.fft(torch.stack((x, y), -1), 2), 2)[..., 1]",
        "torch.complex(x, y)",
    ),
    "a row of transforms": (
        "return [torch.rfft(row, 1)[..., 0] for row in x]",
        None,
    ),
    "unrelated pairs": (
        """
        points = torch.stack((x, y), -1)
        f = torch.rfft(x, 1)
        return points[..., 0], points * 2, torch.norm(points, dim=-1), f[..., 0]
        """,
        "points[..., 0], points * 2, torch.norm(points, dim=-1), f.real\n",
    ),
    "unrelated pairs without a name": (
        """
        f = torch.rfft(x, 1)
        return torch.stack((x, y), -1).pow(2).sum(-1), torch.ones(3, 2)[..., 1], f[..., 0]
        """,
        "return torch.stack((x, y), -1).pow(2).sum(-1), torch.ones(3, 2)[..., 1], f.real\n",
    ),
    "a factor that is read elsewhere": (
        """
        mask = w.unsqueeze(-1)
        f = torch.rfft(x, 1, onesided=False) * mask
        return f[..., 0], mask.shape[-1]
        """,
        None,
    ),
    "in a loop": (
        """
        s = torch.rfft(x, 1)
        for _ in range(3):
            z = torch.irfft(s, 1, signal_sizes=(5,))
            s = torch.rfft(z.clamp(min=0), 1)
            s = s / (s.norm(dim=-1, keepdim=True) + 1e-3)
        return s[..., 0]
        """,
        None,
    ),
    "in a loop, understood": (
        """
        s = torch.rfft(x, 1)
        for _ in range(3):
            z = torch.irfft(s, 1, signal_sizes=(5,))
            s = torch.rfft(z.clamp(min=0), 1)
            s = s / s.norm(dim=-1, keepdim=True)
        return s[..., 0]
        """,
        "s = s / s.abs()\n",
    ),
    "a walrus": ("return (f := torch.rfft(x, 1))[..., 0], f", None),
    "one of two": ("f = torch.rfft(x, 1) if x.dim() > 1 else torch.rfft(y, 1)\nreturn f[..., 0]", None),
    "tried": (
        """
        try:
            f = torch.rfft(x, 1)
        except ValueError:
            f = torch.rfft(y, 1)
        finally:
            pass
        with torch.no_grad():
            return f[..., 0]
        """,
        "return f.real\n",
    ),
    "a number of dimensions by name": (
        """
        count = x.dim() - 1
        return torch.fft(torch.stack((x, y), -1), count)
        """,
        "torch.view_as_real(torch.fft.fftn(torch.complex(x, y), dim=tuple(range(-count, 0))))",
    ),
    "a number of dimensions that is computed": (
        "return torch.fft(torch.stack((x, y), -1), x.dim() - 1)",
        "torch.view_as_real(torch.fft.fftn(torch.complex(x, y), dim=tuple(range(-(x.dim() - 1), 0))))",
    ),
    "a number of dimensions that asks for that of pairs": (
        "f = torch.rfft(x, 1, onesided=False)\nreturn torch.ifft(f, f.dim() - x.dim())[..., 0]",
        None,
    ),
    "sizes by name": (
        """
        sizes = x.shape[-1:]
        return torch.irfft(torch.rfft(x, 1, normalized=True), 1, normalized=True, signal_sizes=sizes)
        """,
        None,
    ),
    "stft": (
        """
        s = torch.stft(x.reshape(-1), 4, 2, window=torch.ones(4, dtype=x.dtype))
        real, imag = s[..., 0], s[..., 1]
        return torch.sqrt(torch.clamp(real ** 2 + imag ** 2, min=1e-7))
        """,
        "real, imag = s.real, s.imag\n",
    ),
    "stft, dimensions counted": (
        """
        s = torch.stft(x, 4, 2, window=torch.ones(4, dtype=x.dtype))
        t = s.permute(0, 2, 1, 3).contiguous()
        real, imag = s[:, :, :, 0], t[:, :, :, 1]
        return real, imag, (s ** 2).sum(3), torch.norm(t, dim=3), torch.unbind(t, 3)[0], s.size(1), s.shape[0]
        """,
        "real, imag = s.real, t.imag\n",
    ),
    "stft of one signal": (
        """
        s = torch.stft(x[0], 4, 2, window=torch.ones(4, dtype=x.dtype), onesided=True)
        return s[:, :, 0], s[..., 1]
        """,
        None,
    ),
    "stft, dimensions put elsewhere": (
        """
        s = torch.stft(x, 4, 2, window=torch.ones(4, dtype=x.dtype), onesided=True)
        s = s.permute(0, 3, 2, 1)
        return s[:, 0], s[..., 1]
        """,
        None,
    ),
    "stft, size of what may be the last dimension": (
        """
        s = torch.stft(x, 4, 2, window=torch.ones(4, dtype=x.dtype), onesided=True)
        return s.size(2), s[..., 1]
        """,
        None,
    ),
    "stft and back": (
        """
        window = torch.ones(4, dtype=x.dtype)
        s = torch.stft(x.reshape(-1), 4, 2, window=window)
        magnitude = s.pow(2).sum(-1).sqrt()
        phase = torch.atan2(s[..., 1], s[..., 0])
        s = torch.stack((magnitude * torch.cos(phase), magnitude * torch.sin(phase)), dim=-1)
        return torch.istft(s, 4, 2, window=window)
        """,
        "s = torch.complex(magnitude * torch.cos(phase), magnitude * torch.sin(phase))\n",
    ),
    "stft straight back": (
        """
        s = torch.stft(x.reshape(-1), 4, 2, window=torch.ones(4, dtype=x.dtype), onesided=True)
        return torch.istft(s, 4, 2, window=torch.ones(4, dtype=x.dtype))
        """,
        "return torch.istft(s, 4, 2,",
    ),
    "istft of a view": (
        """
        s = torch.stack([x[:, :3].t(), y[:, :3].t() * 0], dim=-1)
        s = s.view(3, 3, 2)
        return torch.istft(s, 4, 2, window=torch.ones(4, dtype=x.dtype))
        """,
        "s = s.view(3, 3)\n",
    ),
}
X = torch.randn(3, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
Y = torch.randn(3, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
W = torch.rand(3, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64) + 0.5


@pytest.mark.parametrize("name", BODIES)
def test_functions(name):
    body, expected = BODIES[name]
    old = function(body)
    with old_torch():
        wanted = call(old, X, Y, W)
    direct = fixed(old, unsafe=False)
    compare(call(direct, X, Y, W), wanted, name)
    complex_ = fixed(old, unsafe=True)
    compare(call(complex_, X, Y, W), wanted, name)
    assert not findings(complex_)
    if expected is None:
        assert complex_ == direct
    else:
        assert complex_ != direct
        assert expected in complex_
        assert "view_as" not in complex_ or "view_as" in expected


def compare(got: object, wanted: object, name: str) -> None:
    if isinstance(wanted, torch.Tensor):
        assert isinstance(got, torch.Tensor), name
        assert not got.is_complex(), name
        torch.testing.assert_close(got, wanted)
    elif isinstance(wanted, tuple | list):
        assert isinstance(got, tuple | list) and len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            compare(one, other, name)
    else:
        assert got == wanted


# ---- functions that multiply --------------------------------------------------------------------------------

HELPERS = """import torch


def mul(a, b):
    \"\"\"Complex product.\"\"\"
    assert a.size(-1) == 2
    r1, i1 = a[..., 0], a[..., 1]
    r2, i2 = b[..., 0], b[..., 1]
    return torch.stack([r1 * r2 - i1 * i2, r1 * i2 + i1 * r2], dim=-1)


def backwards(a, b):
    c, d = torch.unbind(b, -1)
    return torch.stack((a[..., 0] * c + a[..., 1] * d, a[..., 1] * c - a[..., 0] * d), dim=-1)


def conj(a):
    return torch.stack((a[..., 0], -a[..., 1]), dim=-1)


def conj_(a):
    a[..., 1] = -a[..., 1]
    return a


def flip(a):
    a[..., 1] *= -1
    return a


def other(a, b):
    return torch.stack((a[..., 0] * b[..., 0], a[..., 1] * b[..., 1]), dim=-1)


def changed(a, b):
    a = a * 2
    return torch.stack((a[..., 0] * b[..., 0] - a[..., 1] * b[..., 1], a[..., 0] * b[..., 1] + a[..., 1] * b[..., 0]), dim=-1)


def compute(x, y, w):
"""
# Body -> what the complex form holds; None: there is none.
MULTIPLIED = {
    "return torch.irfft(mul(torch.rfft(x, 1), torch.rfft(y, 1)), 1, signal_sizes=(5,))": (
        "torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(y), n=5)"
    ),
    "return torch.irfft(mul(conj_(torch.rfft(x, 1)), torch.rfft(y, 1)), 1, signal_sizes=(5,))": (
        "torch.fft.irfft(torch.fft.rfft(x).conj() * torch.fft.rfft(y), n=5)"
    ),
    "f = flip(torch.rfft(x, 1))\nreturn torch.irfft(mul(f, f + f) * 2, 1, signal_sizes=(5,))": (
        "torch.fft.irfft((f * (f + f)) * 2, n=5)"
    ),
    "f = torch.rfft(x, 1)\ng = torch.rfft(y, 1)\nreturn mul(conj(mul(f, g)), -g)[..., 0]": (
        "return ((f * g).conj() * (-g)).real"
    ),
    "f = torch.rfft(x, 1)\ng = backwards(f, torch.rfft(y, 1))\nreturn g.pow(2).sum(-1), f[..., 1]": (
        "g = f * torch.fft.rfft(y).conj()"
    ),
    "k = torch.stack((w[:, :3], y[:, :3]), -1)\nreturn torch.irfft(mul(torch.rfft(x, 1), k), 1, signal_sizes=(5,))": (
        "torch.fft.rfft(x) * k"
    ),
    "return torch.irfft(other(torch.rfft(x, 1), torch.rfft(y, 1)), 1, signal_sizes=(5,))": None,
    "return torch.irfft(changed(torch.rfft(x, 1), torch.rfft(y, 1)), 1, signal_sizes=(5,))": None,
    "f = torch.rfft(x, 1)\ng = conj_(f)\nreturn torch.irfft(mul(f, g), 1, signal_sizes=(5,))": None,
    "f = torch.rfft(x, 1)\ng = conj_(f.contiguous())\nreturn torch.irfft(mul(f, g), 1, signal_sizes=(5,))": None,
    "mul = other\nreturn torch.irfft(mul(torch.rfft(x, 1), torch.rfft(y, 1)), 1, signal_sizes=(5,))": None,
    "return torch.irfft(mul(b=torch.rfft(x, 1), a=torch.rfft(y, 1)), 1, signal_sizes=(5,))": None,
}


@pytest.mark.parametrize("body", MULTIPLIED)
def test_functions_that_multiply(body):
    old = HELPERS + textwrap.indent(body, "    ") + "\n"
    with old_torch():
        wanted = call(old, X, Y, W)
    direct, complex_ = fixed(old, unsafe=False), fixed(old, unsafe=True)
    compare(call(direct, X, Y, W), wanted, body)
    compare(call(complex_, X, Y, W), wanted, body)
    expected = MULTIPLIED[body]
    assert (complex_ == direct) == (expected is None)
    assert expected is None or expected in complex_


def test_a_method_that_multiplies_with_a_parameter():
    old = (
        HELPERS.replace("def compute(x, y, w):\n", "class Layer:\n")
        + "    @staticmethod\n    def times(a, b):\n        return torch.stack((a[..., 0] * b[..., 0] - a[..., 1] * b[..., 1],"
        " a[..., 0] * b[..., 1] + a[..., 1] * b[..., 0]), -1)\n\n"
        "    def __call__(self, x):\n        return self.times(torch.rfft(x, 1), self.weight)[..., 0]\n\n\n"
        "def compute(x, y, w):\n    layer = Layer()\n"
        "    layer.weight = torch.stack((y[:, :3], w[:, :3]), -1)\n    return layer(x)\n"
    )
    with old_torch():
        wanted = call(old, X, Y, W)
    new = fixed(old, unsafe=True)
    assert "return (torch.fft.rfft(x) * torch.view_as_complex(self.weight.contiguous())).real\n" in new
    compare(call(new, X, Y, W), wanted, "a method")
    twice = old.replace("    def __call__", "    def times(a, b):\n        return a\n\n    def __call__")
    assert "self.times(torch.view_as_real(torch.fft.rfft(x)), self.weight)" in fixed(twice, unsafe=True)


# ---- how safe -----------------------------------------------------------------------------------------------


def test_safe_first():
    (finding, *_) = found = findings(function("f = torch.rfft(x, 1)\nreturn torch.irfft(f, 1)"))
    assert len(found) == 2
    assert finding.fix is not None and finding.fix.applicability is Applicability.SAFE
    assert all(item.fix is finding.fix for item in found), "one fix for both"
    assert "`--unsafe-fixes` uses complex tensors throughout" in (help_of(finding) or "")


def test_unsafe_where_asked_for():
    text = function("f = torch.rfft(x, 1)\nreturn torch.irfft(f, 1)")
    (finding, *_) = findings(text, "--unsafe-fixes")
    assert finding.fix is not None and finding.fix.applicability is Applicability.UNSAFE
    assert "complex tensors replace pairs" in (reason_of(finding.fix) or "")


def test_old_releases():
    (finding,) = findings("import torch\ny = torch.rfft(x, 1)\n", "--minimum", "1.6")
    assert finding.fix is not None and finding.fix.applicability is Applicability.UNSAFE
    assert "needs torch 1.8" in (reason_of(finding.fix) or "")


@pytest.mark.parametrize(
    ("body", "safe"),
    [
        ("return torch.stft(x, 4)", False),
        ("return torch.stft(x, 4, onesided=True)", True),
        ("s = torch.stft(x, 4)\nreturn s[..., 0], s[..., 1]", True),
        ("s = torch.stft(x, 4)\nreturn s[..., 0], s", False),
        ("s = torch.stft(x, 4)\nreturn s[:, 0], s[:, 1]", False),
        ("return torch.stft(x, 4, return_complex=False)", True),
        ("s = torch.stft(x, 4)\nt = torch.stft(y, 4)\nreturn s[..., 0], t", False),
    ],
)
def test_stft_of_what_may_be_complex(body, safe):
    finding, *_ = findings(function(body))
    assert finding.fix is not None
    assert (finding.fix.applicability is Applicability.SAFE) == safe


# ---- values from elsewhere -----------------------------------------------------------------------------------

# Body -> whether the spectrum surely is that of a real signal of the same size.
SPECTRA = {
    "return torch.irfft(torch.rfft(x, 2), 2, signal_sizes=x.shape)": True,
    "f = spectrum(x)\nreturn torch.irfft(f, 2)": True,
    "f = spectrum(x) * 2 / len(x)\nreturn torch.irfft(f, 2)": True,
    "n = len(x) // 2 + 1\nf = torch.rfft(x, 2) * n\nreturn torch.irfft(f, 2)": True,
    "f, g = torch.rfft(x, 2), torch.rfft(y, 2)\nreturn torch.irfft(f, 2), torch.irfft(g, 2)": True,
    "f = spectrum(x) if w else spectrum(y)\nreturn torch.irfft(f, 2)": True,
    "pair = (spectrum(x), w)\npair[0].mul_(w)\nf, _ = pair\nreturn torch.irfft(f, 2)": False,
    "f = torch.rfft(x, 2)\nfor _ in range(3):\n    f = f + f\nreturn torch.irfft(f, 2)": True,
    "return torch.irfft(spectrum(x), 2, signal_sizes=x.shape)": False,
    "f = spectrum(x) * w\nreturn torch.irfft(f, 2)": False,
    "f = torch.rfft(x, 2).mul_(w)\nreturn torch.irfft(f, 2)": False,
    "f = spectrum(x)\nf[..., 0] = 0\nreturn torch.irfft(f, 2)": False,
    "f = spectrum(x)\nchange(f)\nreturn torch.irfft(f, 2)": False,
    "f = spectrum(x)\ng = f[1:]\ng.mul_(2)\nreturn torch.irfft(f, 2)": False,
    "f = torch.rfft(x, 2)\nif w:\n    f = torch.rfft(y, 2)\nreturn torch.irfft(f, 2, signal_sizes=x.shape)": False,
    "f = SHARED\nreturn torch.irfft(f, 2)": False,
}


@pytest.mark.parametrize("body", SPECTRA)
def test_spectra_of_real_signals(body):
    text = function(body) + (
        "\n\ndef spectrum(signal):\n    return torch.rfft(signal, 2)\n\n\n"
        "def change(f):\n    f.mul_(2)\n\n\nSHARED = torch.rfft(torch.ones(3, 3), 2)\n"
    )
    inverse = next(item for item in findings(text) if "irfft" in item.symbol)
    assert inverse.fix is not None
    assert (inverse.fix.applicability is Applicability.SAFE) == SPECTRA[body]


ISTFT = """import torch


def transform(x):
    return torch.stft(x, 4, onesided=True)


def _polar(size, angle):
    return torch.stack((size * torch.cos(angle), size * torch.sin(angle)), dim=-1)


class Layer:
    def __init__(self, x, spectrum):
        self.given = spectrum
        self.complex = torch.stft(x, 4, return_complex=True)
        self.either = torch.stft(x, 4) if len(x) else self.complex

    def forward(self, x):
        self.made = torch.stft(x, 4, onesided=True)
        scaled = self.made
        scaled *= len(x)
        self.scaled = scaled
        return self.made[..., 0]

    def back(self, x, public, private=None):
        return {}


def _private(pairs):
    return torch.istft(pairs, 4)


def public(pairs):
    return torch.istft(pairs, 4)


def use(x):
    return _private(transform(x)), public(transform(x))
"""


@pytest.mark.parametrize(
    ("spectrum", "value"),
    [
        ("self.made", "torch.view_as_complex(self.made)"),
        ("transform(x)", "torch.view_as_complex(transform(x))"),
        ("_polar(x, x)", "torch.view_as_complex(_polar(x, x))"),
        ("dict(a=transform(x))['a']", "torch.view_as_complex(dict(a=transform(x))['a'])"),
        ("[transform(x), x][0]", "torch.view_as_complex([transform(x), x][0])"),
        ("self.made if x else transform(x)", "torch.view_as_complex(self.made if x else transform(x))"),
        ("[s for s in self.made][0]", "torch.view_as_complex([s for s in self.made][0].contiguous())"),
        ("self.made * public", "torch.view_as_complex((self.made * public).contiguous())"),
        ("self.scaled", "torch.view_as_complex(self.scaled.contiguous())"),
        ("self.given", None),
        ("self.given * public", None),
        ("self.complex", None),
        ("self.either", None),
        ("torch.view_as_complex(self.made)", None),
        ("torch.stack((self.made, self.made), -1)", None),
        ("self.made.sum(-1)", None),
        ("public", None),
    ],
)
def test_istft_of_pairs_from_elsewhere(spectrum, value):
    text = ISTFT.replace("{}", f"torch.istft({spectrum}, 4)")
    new = fixed(text, unsafe=False)
    assert f"        return torch.istft({value or spectrum}, 4)\n" in new
    assert len(findings(text)) == len(findings(ISTFT)) + (value is not None)


def test_istft_of_what_others_may_call_with_complex_tensors():
    new, unsafe = fixed(ISTFT, unsafe=False), fixed(ISTFT, unsafe=True)
    assert "def _private(pairs):\n    return torch.istft(torch.view_as_complex(pairs), 4)\n" in new
    assert "def public(pairs):\n    return torch.istft(pairs, 4)\n" in new
    wrapped = "    return torch.istft(torch.view_as_complex(pairs.contiguous()), 4)\n"
    assert f"def public(pairs):\n{wrapped}" in unsafe
    reasons = [reason_of(item.fix) for item in findings(ISTFT) if item.fix and item.code == "TM149"]
    assert [reason and "other callers may pass a complex tensor" in reason for reason in reasons] == [
        None,
        True,
    ]


# ---- what is refused ----------------------------------------------------------------------------------------

REFUSED = {
    "stars": ("a = torch.rfft(x, 1)\nreturn torch.irfft(a, *w)", "cannot analyze the arguments"),
    "options": ("return torch.fft(x, **w), torch.ifft(y, 1)", "cannot analyze the arguments"),
    "one-sided or not": ("return torch.rfft(x, 1, onesided=w), torch.rfft(x, 1)", "only known at run time"),
    "four dimensions": ("return torch.fft(x, 4)", "not 1, 2 or 3"),
    "sizes": ("return torch.irfft(x, 2, signal_sizes=(4,))", "differs from the number of dimensions"),
    "no sizes": ("return torch.irfft(torch.rfft(x, 1), 1)", "the result has an odd length, 2 * n - 1"),
    "no sizes, computed": ("return torch.irfft(x * y, 2)", "assign its input to a variable"),
    "no sizes, no number": ("return torch.irfft(x, w)", "pass the number of dimensions"),
    "no call": ("f = torch.rfft\nreturn f(x, 1), torch.irfft(y, 1)", "passed on"),
    "comment": ("return torch.rfft(x,  # the signal\n    1)", "comment"),
    "effects": ("return torch.irfft(x, 1, onesided=False, signal_sizes=sizes())", "may have side effects"),
    "unknown": ("return torch.rfft(x, 1, half=True), torch.rfft(x, 1)", "cannot analyze the arguments"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    body, reason = REFUSED[name]
    text = function(body)
    found = findings(text)
    assert found
    assert all(item.fix is None for item in found), "all or nothing"
    assert all(reason in (help_of(item) or "") and "line " in (help_of(item) or "") for item in found)
    assert fixed(text, unsafe=True) == text


@pytest.mark.parametrize("default", ["None", "()", "[]"])
@pytest.mark.parametrize("star", ["", "*, "])
def test_sizes_that_are_none_by_default(default, star):
    text = function("return torch.irfft(x, 2, signal_sizes=sizes)", f"x, {star}sizes={default}")
    (finding,) = findings(text)
    assert finding.fix is None and "`signal_sizes` may be empty" in (help_of(finding) or "")
    assert findings(text.replace(f"={default}", "=(4, 4)"))[0].fix is not None


def test_functions_do_not_wait_for_each_other():
    text = function("return torch.rfft(x, *w)") + "\n\ndef other(x):\n    return torch.rfft(x, 1)\n"
    assert fixed(text, unsafe=True).endswith("    return torch.view_as_real(torch.fft.rfft(x))\n")


def test_istft_of_what_may_be_complex():
    assert not findings(function("return torch.istft(x, 4)"))
    assert not findings(function("return torch.istft(torch.complex(x, y), 4)"))
    assert not findings(function("s = torch.stft(x, 4, return_complex=True)\nreturn torch.istft(s, 4)"))


# ---- names and text -----------------------------------------------------------------------------------------


def test_imported_functions_go_with_their_uses():
    old = "from torch import irfft, rfft\n\n\ndef f(x):\n    return rfft(x, 1)\n\n\ndef g(x):\n    return irfft(x, 1)\n"
    new = fixed(old, unsafe=False)
    assert "from torch import" not in new
    assert "torch.view_as_real(torch.fft.rfft(x))" in new
    assert len({id(item.fix) for item in findings(old)}) <= 2


def test_an_import_that_is_still_needed_keeps_its_uses():
    """It fails, so that a fix of some uses would mend nothing."""
    old = "from torch import rfft\n\n\ndef f(x):\n    return rfft(x, 1)\n\n\ndef g(x):\n    return rfft(*x)\n"
    new = fixed(old, unsafe=False)
    assert new == old


def test_the_module_and_the_function_of_one_name():
    old = "import torch\nimport torch.fft\n\n\ndef f(x):\n    return torch.fft(x, 1), torch.fft.fft(x)\n"
    new = fixed(old, unsafe=False)
    assert "torch.view_as_real(torch.fft.fft(torch.view_as_complex(x.contiguous()))), torch.fft.fft(x)" in new


def test_the_function_imported_by_name():
    old = "import torch\nfrom torch import fft\n\n\ndef f(x):\n    return fft(x, 2)\n"
    new = fixed(old, unsafe=False)
    assert "from torch import fft\n" in new, "that is the module now"
    assert "torch.view_as_real(fft.fft2(torch.view_as_complex(x.contiguous())))" in new


def test_own_wrapper_with_the_old_name():
    old = (
        "import torch\n\n\ndef rfft(t):\n    return torch.rfft(t, 2, onesided=False)\n\n\n"
        "def f(x):\n    return rfft(x)[..., 0]\n"
    )
    assert fixed(old, unsafe=True) == old.replace(
        "torch.rfft(t, 2, onesided=False)", "torch.view_as_real(torch.fft.fft2(t))"
    )


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_argument_on_a_line_of_its_own(newline):
    old = function("return torch.stft(\n    x,\n    n_fft=4,\n    window=w,\n)").replace("\n", newline)
    added = "        window=w,\n        return_complex=True,\n    ))\n".replace("\n", newline)
    assert fixed(old, unsafe=True).endswith(added)
    commented = old.replace("window=w,", "window=w,  # all ones")
    beside = "window=w,  # all ones\n        return_complex=True,\n".replace("\n", newline)
    assert beside in fixed(commented, unsafe=True)


def test_comments_and_newlines_stay():
    old = function(
        """
        # both
        f = torch.rfft(  # forward
            x, 1  # one dimension
        )  # end
        a, b = f.unbind(-1)  # its parts
        h = torch.stack((a, -b), -1)
        return torch.irfft(h, 1)
        """
    ).replace("\n", "\r\n")
    new = fixed(old, unsafe=True)
    assert new.count("\r\n") == new.count("\n")
    for comment in ("# both", "# forward", "# one dimension", "# end", "# its parts"):
        assert new.count(comment) == 1
    assert "a, b" not in new and "h = f.conj()" in new


def test_old_code_behind_a_guard_is_left_alone():
    text = function(
        """
        if hasattr(torch, "irfft"):
            return torch.rfft(x, 1)
        return torch.fft.rfft(x)
        """
    )
    assert fixed(text, unsafe=True) == text


SIDES = """
import torch
try:
    import torch.fft as new_fft
except ImportError:
    new_fft = None


def _new(x):
    return torch.view_as_real(new_fft.rfft(x))


def _old(x):
    return torch.rfft(x, 1)


if new_fft is None:
    transform = _old
else:
    transform = _new


class Layer(torch.nn.Module):
    def _before(self, x):
        return torch.rfft(x, 2)

    def forward(self, x):
        if hasattr(torch, "fft") and hasattr(torch.fft, "rfft2"):
            return torch.fft.rfft2(x)
        return self._before(x)
"""


def test_private_functions_of_the_old_side_only():
    assert not findings(SIDES)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("_old", "old"),  # others may import it
        ("    transform = _new", "    transform = _old"),
        ("return torch.fft.rfft2(x)", "return self._before(x)"),
        ("return torch.fft.rfft2(x)", "return getattr(self, '_before')(x)"),
        ("    def _before", "    @register\n    def _before"),
        ("    transform = _new\n", "    transform = _new\nchoices = [_old]\n"),
    ],
)
def test_private_functions_that_may_be_called_elsewhere(old, new):
    assert len(findings(SIDES.replace(old, new))) == 1


def test_a_module_computes_for_others():
    old = "import torch\nx = torch.randn(8)\nspectrum = torch.rfft(x, 1)\nprint(spectrum[..., 0])\n"
    assert "spectrum = torch.view_as_real(torch.fft.rfft(x))\n" in fixed(old, unsafe=True)
