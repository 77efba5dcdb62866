"""Every example with a fix in other layouts and surroundings; `check_layouts` says what must hold."""

from __future__ import annotations

import pytest
from harness.catalogue import catalogue, example_id, loaded_rules
from harness.fixing import checked_and_fixed

from torchmigrate.authoring import variations as layouts
from torchmigrate.authoring.layouts import check_layouts

RULES = [pytest.param(item, id=example_id(item)) for item in loaded_rules() if not item.rule.files]


@pytest.mark.parametrize("item", RULES)
def test_layouts(item):
    failures = list(check_layouts(item, catalogue()))
    assert not failures, "\n\n".join(map(str, failures))


CALL = "import torch\n\ny = torch.old(a, k=b)\n"


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("parentheses", "y = torch.old((a), k=(b))"),
        ("one-a-line", "y = torch.old(\n    a,\n    k=b,\n)"),
        ("comment-between", "y = torch.old(\n    a  # before 29-1\n    ,  # after 29-1\n    k=b  # 34-2\n)"),
        ("backslashes", "y = torch \\\n    .old( \\\n    a, \\\n    k=b \\\n)"),
        ("semicolons", "beside_it = 0;y = torch.old(a, k=b);beside_it = 0;"),
    ],
)
def test_layout(name, after):
    text = layouts.laid_out(name, layouts.Code(CALL))
    assert text is not None
    assert text.partition("\n\n")[2] == after + "\n"


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("lambda", "y = (lambda: torch.old(a, k=b))()"),
        ("fstring-double", 'y = f"<{torch.old(a, k=b)}>"'),
        ("await", "async def beside_it():\n    return await torch.old(a, k=b)"),
        ("decorator", "@torch.old(a, k=b)\ndef beside_it():\n    pass"),
    ],
)
def test_surrounding(name, after):
    code = layouts.Code(CALL)
    text = layouts.surrounded(name, code, layouts.statements(code, {3}))
    assert text == f"import torch\n\n{after}\n"


# ---- what other layouts have broken ------------------------------------------------------------------

SCALE = """\
import torch
class Scale(torch.autograd.Function):
    def __init__(self, factor):
        self.factor = factor
    def forward(self, x):
        return x * self.factor
    def backward(self, g):
        return g * self.factor
"""
APEX = """\
import torch
from apex import amp
def train(model, optimizer, args):
    loss = model(args)
    with amp.scale_loss(loss, optimizer) as scaled:
        scaled.backward()
    optimizer.step()
def main(model, optimizer, args):
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
"""
ARGUMENTS = "import torch\nimport argparse\nparser = argparse.ArgumentParser()\n"


@pytest.mark.parametrize(
    ("code", "before", "after"),
    [
        # Parentheses around an argument, with comments in which there are others.
        (
            "TM332",
            f"{SCALE}y = Scale(0.1)((a\n    + b  # (\n))\n",
            "y = Scale.apply((a\n    + b  # (\n), 0.1)\n",
        ),
        ("TM332", f"{SCALE}y = (Scale)(0.1)(a)\n", "y = (Scale.apply)(a, 0.1)\n"),
        ("TM220", f"{APEX}    train(model, optimizer, (args  # )\n    ))\n", "(args  # )\n    ), scaler)\n"),
        ("TM220", f"{APEX}    train(model, optimizer, args  # (\n    )\n", "args, scaler  # (\n    )\n"),
        (
            "TM573",
            f'{ARGUMENTS}parser.add_argument(("--local_rank"))\n',
            '(("--local_rank"), "--local-rank")\n',
        ),
        (
            "TM573",
            f'{ARGUMENTS}parser.add_argument(  # (\n    "--local_rank"  # )\n)\n',
            '(  # (\n    "--local_rank", "--local-rank"  # )\n)\n',
        ),
        (
            "TM152",
            "import torch\ns = torch.stft(x, 512,\n    # window=torch.hann_window(\n    window=w,\n)\n",
            "stft(x, 512,\n    # window=torch.hann_window(\n    window=w,\n    return_complex=True,\n))\n",
        ),
        (
            "TM152",
            "import torch\ns = torch.stft((x  # (x\n    ), (512), window=(w)  # )\n)\n",
            "stft((x  # (x\n    ), (512), window=(w), return_complex=True  # )\n))\n",
        ),
        (
            "TM149",
            "import torch\ndef f(z, w):\n    return torch.istft(torch.view_as_real(input=z), 8, window=w)\n",
            "    return torch.istft(z, 8, window=w)\n",
        ),
        (
            "TM799",
            "import torchvision\nnet = vars(torchvision.models)[arch]((False  # (\n))\n",
            "net = vars(torchvision.models)[arch](weights=(None  # (\n))\n",
        ),
        (
            "TM799",
            "import torchvision.models as m\nnet = m.__dict__[arch](pretrained=(  # p\n    args\n    .p))\n",
            '(weights=(  # p\n    "IMAGENET1K_V1" if args\n    .p else None))\n',
        ),
        # Tabs outside, spaces inside.
        (
            "TM331",
            "import torch\nfrom torch.autograd import Variable\ndef f(model, xs):\n\tif xs:\n\t    x = Variable(xs, "
            "volatile=True)\n\t    # note\n\t    y = model(x)\n\t    return y\n",
            "\t    with torch.no_grad():\n\t    \tx = xs\n\t    \t# note\n\t    \ty = model(x)\n\t    return y\n",
        ),
        # Names and commas of imports on lines of their own.
        (
            "TM300",
            "from functorch import (\n    vmap  # a\n    ,  # b\n    make_fx\n)\ny = vmap(f)(x)\nmake_fx(f)\n",
            "from functorch import (\n    make_fx\n)\nfrom torch.func import vmap\ny = vmap(f)(x)\nmake_fx(f)\n",
        ),
        (
            "TM696",
            "from torch.utils.cpp_extension import (\n    # old(\n    check_compiler_abi_compatibility\n    # ,\n)\n"
            'fine = check_compiler_abi_compatibility("g++")\n',
            "import (\n    # old(\n    get_compiler_abi_compatibility_and_version\n    # ,\n)\n"
            'fine = get_compiler_abi_compatibility_and_version("g++")[0]\n',
        ),
        # Statements that share a line.
        (
            "TM809",
            "import torchaudio\nwave, rate = torchaudio.load_wav(path); play(wave)  # loud\n",
            "wave, rate = torchaudio.load(path); wave = wave * 32768; play(wave)  # loud\n",
        ),
    ],
)
def test_mended(code, before, after):
    """`after` is the end of the fixed text."""
    family = {"TM220": [f"TM22{digit}" for digit in range(9)]}
    _, text = checked_and_fixed(before, family.get(code, [code]))
    assert text.endswith(after)


@pytest.mark.parametrize(
    ("code", "before"),
    [
        (
            "TM799",
            'from torchvision.models import resnet\nprint(f"{resnet.__dict__[name](pretrained=flag)}")\n',
        ),
        ("TM721", "from torchvision.models.resnet import (  # urls\n    model_urls\n)\n"),
    ],
)
def test_only_reported(code, before):
    found, text = checked_and_fixed(before, [code])
    assert found and text == before
