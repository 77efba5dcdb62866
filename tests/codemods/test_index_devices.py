"""TM090: a tensor on the CPU that is indexed by one on a CUDA device."""

from __future__ import annotations

import pytest
from harness.fixing import checked_and_fixed

CODES = ("TM090",)
HEAD = "import torch\nimport torch.nn as nn\n\n\n"
INDICES = (
    "torch.tensor([0, 2]).cuda()",
    "torch.randint(0, 3, (4,), device='cuda')",
    "torch.full((3,), True, dtype=torch.bool, device='cuda:1')",
    "torch.zeros(3, device=torch.device('cuda')) > 0",
    "torch.cuda.LongTensor([0, 1])",
    "torch.zeros_like(y, device='cuda').sum(0)",
    "y.cuda().topk(2)[1]",
    "~(y.to('cuda') > 0)",
)
TABLES = (
    "torch.linspace(0, 1, 10)",
    "1.0 - torch.linspace(0, 1, 10)",
    "torch.sqrt(torch.cumprod(torch.ones(3), dim=0))",
    "torch.stack([torch.ones(3), torch.zeros(3)])",
    "torch.from_numpy(n).float()",
)
CLEAN = {
    "buffer": (
        "class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('t', torch.ones(3))\n\n"
        "    def forward(self, i):\n        return self.t[i.cuda()]\n"
    ),
    "parameter": (
        "class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.t = nn.Parameter(torch.ones(3))\n\n"
        "    def forward(self, i):\n        return self.t[i.cuda()]\n"
    ),
    "moved": "def f(i):\n    t = torch.ones(3)\n    t = t.cuda()\n    return t[i.cuda()]\n",
    "moved by a branch": "def f(i, c):\n    t = torch.ones(3)\n    if c:\n        t = t.cuda()\n    return t[i.cuda()]\n",
    "any device": "def f(i, d):\n    return torch.ones(3)[i.to(d)]\n",
    "chosen device": (
        "d = 'cuda' if torch.cuda.is_available() else 'cpu'\n\n\ndef f(i):\n    return torch.ones(3)[i.to(d)]\n"
    ),
    "default device": "torch.set_default_device('cuda')\nt = torch.ones(3)[torch.arange(2).cuda()]\n",
    "device context": "with torch.device('cuda'):\n    t = torch.ones(3)[torch.arange(2).cuda()]\n",
    "one number": "t = torch.ones(3)\na = t[torch.arange(3).cuda().sum()]\nb = t[torch.tensor(2, device='cuda')]\n",
    "loop": "t = torch.ones(3)\nfor i in torch.arange(3).cuda():\n    print(t[i])\n",
    "enumerated": "t = torch.ones(3)\nfor n, i in enumerate(torch.arange(3).cuda()):\n    print(t[i], t[n])\n",
    "list": "t = [torch.ones(3)]\na = t[torch.zeros(1).long().cuda()]\n",
    "tuple": "t = torch.ones(3).split(1)\na = t[torch.zeros(1).long().cuda()]\n",
    "number on the CPU": "t = torch.tensor(2.0) * y\na = t[torch.arange(3).cuda()]\n",
    "index on the CPU": "t = torch.ones(3).cuda()\na = t[torch.arange(3)]\n",
}


@pytest.mark.parametrize("index", INDICES)
def test_index_on_cuda_is_copied_to_the_cpu(index: str) -> None:
    text = HEAD + f"def f(y):\n    i = {index}\n    return torch.ones(3)[i], torch.ones(3, 3)[:, {index}]\n"
    found, fixed = checked_and_fixed(text, CODES)
    assert len(found) == 2
    assert "torch.ones(3)[i.cpu()]" in fixed


@pytest.mark.parametrize("table", TABLES)
def test_tensor_on_the_cpu_is_indexed(table: str) -> None:
    text = HEAD + f"def f(n, i):\n    t = {table}\n    i = i.cuda()\n    t[i] = 1\n    return t[i].view(-1)\n"
    found, fixed = checked_and_fixed(text, CODES)
    assert len(found) == 2
    assert fixed == text.replace("t[i]", "t[i.cpu()]")


@pytest.mark.parametrize("text", CLEAN.values(), ids=CLEAN)
def test_what_works_is_not_reported(text: str) -> None:
    assert checked_and_fixed(HEAD + text, CODES)[0] == []
