"""Every topic of a migration, with a program that is reported and has a fix or advice."""

from __future__ import annotations

import pytest
from harness.fixing import checked_and_fixed

# Topic, code, program, and the fixed program; None: advice.
TOPICS = [
    (
        "AMP",
        "TM201",
        "import torch\nwith torch.cuda.amp.autocast():\n    loss = model(x)\n",
        'import torch\nwith torch.amp.autocast("cuda"):\n    loss = model(x)\n',
    ),
    (
        "profiler",
        "TM604",
        "import torch\nwith torch.profiler.profile(use_cuda=False) as p:\n    model(x)\n",
        "import torch\nwith torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:\n    model(x)\n",
    ),
    (
        "RPC",
        "TM564",
        'import torch.distributed.rpc as rpc\nrpc.init_rpc("a", backend=rpc.BackendType.PROCESS_GROUP)\n',
        'import torch.distributed.rpc as rpc\nrpc.init_rpc("a", backend=rpc.BackendType.TENSORPIPE)\n',
    ),
    (
        "complex",
        "TM151",
        "import torch\nz = torch.rfft(x, 1)\n",
        "import torch\nz = torch.view_as_real(torch.fft.rfft(x))\n",
    ),
    (
        "fft",
        "TM150",
        "import torch\nz = torch.fft(x, 1)\n",
        "import torch\nz = torch.view_as_real(torch.fft.fft(torch.view_as_complex(x.contiguous())))\n",
    ),
    (
        "join",
        "TM578",
        "import torch\nimport torch.distributed as dist\n\n\ndef train(model, loader):\n"
        "    count = torch.tensor(len(loader))\n    dist.all_reduce(count, op=dist.ReduceOp.MIN)\n"
        "    for _, batch in zip(range(count.item()), loader):\n        model(batch)\n",
        None,
    ),
    (
        "init",
        "TM410",
        "from torch.nn import init\ninit.xavier_uniform(layer.weight)\n",
        "from torch.nn import init\ninit.xavier_uniform_(layer.weight)\n",
    ),
    (
        "TF32",
        "TM947",
        "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True\n",
        'import torch\ntorch.backends.cuda.matmul.fp32_precision = "tf32"\n',
    ),
    (
        "MPS",
        "TM033",
        "import torch\nfound = torch.has_mps\n",
        "import torch\nfound = torch.backends.mps.is_built()\n",
    ),
    ("TorchArrow", "TM862", 'import torcharrow as ta\nframe = ta.dataframe({"a": [1, 2]})\n', None),
    (
        "TorchData",
        "TM817",
        "from torchdata.datapipes.iter import FileLister\nfiles = FileLister(root)\n",
        "from torch.utils.data.datapipes.iter import FileLister\nfiles = FileLister(root)\n",
    ),
    ("complex32", "TM240", "import torch\nz = torch.fft.fft(x).half()\n", None),
    (
        "forward AD",
        "TM300",
        "from functorch import jvp\nout = jvp(f, (x,), (t,))\n",
        "from torch.func import jvp\nout = jvp(f, (x,), (t,))\n",
    ),
    (
        "BetterTransformer",
        "TM863",
        "from optimum.bettertransformer import BetterTransformer\nmodel = BetterTransformer.transform(model)\n",
        None,
    ),
    ("nvFuser", "TM084", 'import torch\nwith torch.jit.fuser("fuser2"):\n    y = model(x)\n', None),
    (
        "FSDP",
        "TM521",
        "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
        "with FSDP.state_dict_type(model, kind):\n    state = model.state_dict()\n",
        None,
    ),
    (
        "compile",
        "TM941",
        'import torch\nimport torch._dynamo\nmodel = torch._dynamo.optimize("inductor")(model)\n',
        'import torch\nimport torch._dynamo\nmodel = torch.compile(model, backend="inductor")\n',
    ),
    (
        "SDPA",
        "TM635",
        "import torch\nwith torch.backends.cuda.sdp_kernel(True, False, False, False):\n    y = model(x)\n",
        "import torch\nwith torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):\n    y = model(x)\n",
    ),
    (
        "functorch",
        "TM300",
        "from functorch import vmap\ny = vmap(f)(x)\n",
        "from torch.func import vmap\ny = vmap(f)(x)\n",
    ),
    ("collectives", "TM561", "import torch.distributed as dist\ndist.all_reduce_multigpu(tensors)\n", None),
    (
        "default device",
        "TM024",
        'import torch\ntorch.set_default_tensor_type("torch.cuda.FloatTensor")\n',
        None,
    ),
    (
        "X86 quantization",
        "TM943",
        'import torch\nq = torch.ao.quantization.get_default_qconfig("fbgemm")\n',
        'import torch\nq = torch.ao.quantization.get_default_qconfig("x86")\n',
    ),
    (
        "DTensor",
        "TM502",
        "from torch.distributed._tensor import distribute_tensor\nt = distribute_tensor(x, mesh)\n",
        "from torch.distributed.tensor import distribute_tensor\nt = distribute_tensor(x, mesh)\n",
    ),
    (
        "tensor parallel",
        "TM565",
        "from torch.distributed.tensor.parallel import PairwiseParallel\nplan = PairwiseParallel()\n",
        None,
    ),
    (
        "torchvision",
        "TM722",
        "from torchvision.models import resnet18\nmodel = resnet18(pretrained=False)\n",
        "from torchvision.models import resnet18\nmodel = resnet18(weights=None)\n",
    ),
    ("torchaudio", "TM803", "import torchaudio\ninfo = torchaudio.info(path)\n", None),
    ("torchtext", "TM853", "from torchtext.legacy.data import Field\ntext = Field()\n", None),
]


@pytest.mark.parametrize(("code", "text", "new"), [row[1:] for row in TOPICS], ids=[row[0] for row in TOPICS])
def test_topic_is_reported(code: str, text: str, new: str | None) -> None:
    found, fixed = checked_and_fixed(text, [code])
    assert {item.code for item in found} == {code}
    assert fixed == (new or text)
    assert all(item.fix is not None or item.help is not None for item in found)
