"""TM900: which models are found, where the line goes, and what stays the same when the code is run."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from harness.catalogue import catalogue
from harness.program import FIX_ALL, only
from harness.program import fixed as fixed_by
from harness.program import run as run_on
from harness.summary import HAS_TORCH

from torchmigrate.engine.results import FileResult
from torchmigrate.findings import Applicability, Finding
from torchmigrate.report.reasons import help_of, message_of, reason_of

NET = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
    def forward(self, x):
        return self.fc(x)

"""
# Trains `model`; the code before it builds and prepares the model.
LOOP = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in loader:
    model(x).sum().backward()
    optimizer.step()
"""


def run(text: str, *options: str) -> FileResult:
    return run_on(text, *only(["TM900"]), *options, path=Path("<case>", "case.py"))


def found(text: str, *options: str) -> list[Finding]:
    return run(text, *options).findings


def fixed(text: str, *options: str) -> str:
    """The text with unsafe fixes, which a second run leaves as it is."""
    return fixed_by(text, *only(["TM900"]), *FIX_ALL, *options, path=Path("<case>", "case.py"))


def added(text: str, *options: str) -> list[str]:
    """What the fixes add: each new line, with the line before it."""
    new = fixed(text, *options).splitlines()
    old = text.splitlines()
    lines = []
    for number, line in enumerate(new):
        if number >= len(old) or old[number] != line:
            lines.append(f"{new[number - 1].strip()} | {line}")
            old.insert(number, line)
    assert old == new
    return lines


def case(code: str) -> str:
    return NET + textwrap.dedent(code).lstrip("\n")


def obstacle(text: str) -> str:
    """Why the only finding of a text has no fix."""
    (finding,) = found(text)
    assert finding.fix is None
    assert help_of(finding) is not None
    assert fixed(text) == text
    return help_of(finding).partition(";")[0]


# ---- where the line goes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        ("model = Net()", "model = Net() | model = torch.compile(model)"),
        ("model = Net().to(device)", "model = Net().to(device) | model = torch.compile(model)"),
        ("model: nn.Module = Net()  # new", "model: nn.Module = Net()  # new | model = torch.compile(model)"),
        ("model = Net()\nmodel.cuda()", "model.cuda() | model = torch.compile(model)"),
        (
            "model = Net()\nmodel = model.to(device)",
            "model = model.to(device) | model = torch.compile(model)",
        ),
        ("model = Net()\nprint(model)\nmodel.to(device)", "model.to(device) | model = torch.compile(model)"),
        ("model = Net()\nif cuda:\n    model.cuda()", "model.cuda() | model = torch.compile(model)"),
        ("model = Net()\nif cuda: model.cuda()", "if cuda: model.cuda() | model = torch.compile(model)"),
        ("model = Net()\nmodel.apply(init)", "model.apply(init) | model = torch.compile(model)"),
        (
            "model = Net()\nmodel.fc = nn.Linear(4, 3)",
            "model.fc = nn.Linear(4, 3) | model = torch.compile(model)",
        ),
        (
            "model = Net().to(device)\nmodel = nn.parallel.DistributedDataParallel(model)",
            "model = Net().to(device) | model = torch.compile(model)",
        ),
        (
            "model = Net()\nmodel = nn.SyncBatchNorm.convert_sync_batchnorm(model)\nmodel = model.cuda()",
            "model = model.cuda() | model = torch.compile(model)",
        ),
        (
            "if small:\n    model = Net()\nelse:\n    model = Net().cuda()",
            "model = Net().cuda() | model = torch.compile(model)",
        ),
        (
            "try:\n    model = Net()\nexcept RuntimeError:\n    raise SystemExit",
            "model = Net() |     model = torch.compile(model)",
        ),
        ("model = Net(\n)  # why", ")  # why | model = torch.compile(model)"),
        ("model = Net().to(device)\nmodel.cuda()", "model.cuda() | model = torch.compile(model)"),
    ],
)
def test_place(build: str, expected: str):
    assert added(NET + build + LOOP) == [expected]


def test_nested_blocks():
    text = case("""
        def main():
            with session():
                for seed in range(3):
                    model = Net().cuda()
                    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                    for x in loader:
                        model(x).sum().backward()

        if __name__ == "__main__":
            main()
    """)
    assert added(text) == ["model = Net().cuda() |             model = torch.compile(model)"]


def test_later_moves_to_the_processor_are_for_something_else():
    text = NET + "model = Net().cuda()" + LOOP + "model.cpu()\nmodel.to('cpu')\nmodel.cuda()\n"
    assert added(text) == ["model = Net().cuda() | model = torch.compile(model)"]


def test_several_models_each_on_its_own():
    text = case("""
        G, D = Net(), Net()
        if cuda:
            G.cuda()
            D.cuda()
        optimizer = torch.optim.Adam(list(G.parameters()) + list(D.parameters()))
        for x in loader:
            D(G(x)).sum().backward()
        torch.save(G.state_dict(), "g.pt")
    """)
    assert added(text) == ["D.cuda() | D = torch.compile(D)", "D = torch.compile(D) | G.compile()"]
    assert [item.message.split("`")[1] for item in found(text)] == ["G", "D"]


def test_span_is_the_variable():
    text = NET + "model = Net()" + LOOP
    (finding,) = found(text)
    assert text[finding.start : finding.end] == "model"
    assert finding.start == text.index("model = Net()")
    assert message_of(finding) == "`model` is trained or called without `torch.compile`"


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_newlines(newline: str):
    text = (NET + "model = Net().cuda()" + LOOP).replace("\n", newline)
    line = f"model = torch.compile(model){newline}"
    assert fixed(text) == text.replace(f"cuda(){newline}", f"cuda(){newline}{line}")


@pytest.mark.parametrize(
    ("imports", "expected"),
    [
        ("import torch", ["model = torch.compile(model)"]),
        ("import torch as th", ["model = th.compile(model)"]),
        ("import torch\nimport torch.nn as nn", ["model = torch.compile(model)"]),
        ("from torch import nn, optim", ["import torch", "model = torch.compile(model)"]),
        (
            "try:\n    import torch\nexcept ImportError:\n    raise\ntorch.manual_seed(0)",
            ["model = torch.compile(model)"],
        ),
    ],
)
def test_spelling(imports: str, expected: list[str]):
    text = f"{imports}\nfrom nets import Net\nmodel = Net().cuda()\nopt = SGD(model.parameters())\ntrain(model)\n"
    assert [line.partition(" | ")[2] for line in added(text)] == expected


def test_torch_means_something_else():
    text = case("""
        def main(torch, loader):
            model = Net()
            optimizer = SGD(model.parameters())
            for x in loader:
                model(x)
    """)
    assert obstacle(text) == "`torch` has another meaning here"


# ---- in place -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        "torch.save(model.state_dict(), path)",
        "model.load_state_dict(torch.load(path))",
        "torch.save(model, path)",
        "torch.save({'model': model}, path)",
        "checkpoint = {'net': model}",
        "save_checkpoint(model, path)",
        "def save():\n    torch.save(model.state_dict(), path)",
        "def save(net):\n    torch.save(net.state_dict(), path)\nsave(model)",
        "bare = model.module if hasattr(model, 'module') else model\ntorch.save(bare.state_dict(), path)",
        "for name, parameter in model.named_parameters():\n    print(name)",
        "features = nn.Sequential(*list(model.children())[:-1])",
        "assert isinstance(model, Net)",
        "ema = copy.deepcopy(model)",
        "model.scale = 2",
    ],
)
def test_in_place_where_names_or_parts_matter(use: str):
    text = f"{NET}model = Net().cuda(){LOOP}{use}\n"
    assert added(text) == ["model = Net().cuda() | model.compile()"]


TRAINER = """
class Trainer:
    def __init__(self, loader, device, rank):
        self.loader = loader
        self.model = Net(){chain}
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1){wrap}
    def epoch(self):
        for x in self.loader:
            self.model(x).sum().backward()
            self.optimizer.step(){more}
"""


def trainer(chain: str = "", wrap: str = "", more: str = "") -> str:
    indented = (f"\n        {line}" if line else "" for line in (chain.strip("\n"), wrap))
    before, behind = indented
    chain = before if chain.startswith("\n") else chain
    return NET + TRAINER.format(chain=chain, wrap=behind, more=more)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (trainer(), "self.model = Net()"),
        (trainer(".to(device)"), "self.model = Net().to(device)"),
        (trainer("\nself.model.cuda(rank)"), "self.model.cuda(rank)"),
        (trainer("\nself.model = self.model.to(device)"), "self.model = self.model.to(device)"),
        (
            trainer(wrap="self.model = nn.parallel.DistributedDataParallel(self.model)"),
            "self.model = Net()",
        ),
        (trainer(more="\n    def save(self):\n        torch.save(self.model, 'm.pt')"), "self.model = Net()"),
    ],
)
def test_attributes_of_a_trainer(text: str, expected: str):
    assert added(text) == [f"{expected} |         self.model.compile()"]


@pytest.mark.parametrize(
    "text",
    [
        trainer(wrap="self.model = torch.jit.script(self.model)"),
        trainer(wrap="self.model = prepare(self.model)"),  # which may compile it
        trainer(more="\n    def again(self):\n        self.model = other()"),
        trainer() + "Trainer([], 'cpu', 0).model = torch.compile(Net())\n",
        trainer().replace("class Trainer:", "class Trainer(nn.Module):"),
        trainer(more="\n    def forward(self, x):\n        return self.model(x)"),  # of a module elsewhere
        trainer().replace("self.model(x).sum()", "x.sum()"),
    ],
)
def test_attributes_left_alone(text: str):
    assert found(text) == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            """
            def build(rank):
                model = Net()
                model.cuda(rank)
                model = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
                return model
            """,
            ["model.cuda(rank) |     model.compile()"],
        ),
        (
            """
            def build(device):
                model = Net().to(device)
                model.load_state_dict(torch.load("m.pt"))
                return model, torch.optim.SGD(model.parameters(), lr=0.1)
            """,
            ["model = Net().to(device) |     model.compile()"],
        ),
        (
            """
            def build(rank):
                net = nn.parallel.DistributedDataParallel(Net().cuda(rank), device_ids=[rank])
                return net
            """,
            [],  # no name that holds the model
        ),
    ],
)
def test_models_that_a_function_builds_for_others(code: str, expected: list[str]):
    assert added(case(code)) == expected


def test_a_builder_and_its_caller_are_one_finding():
    code = "def build(device):\n    net = Net()\n    net = nn.parallel.DistributedDataParallel(net)\n    return net\nmodel = build(0)\nmodel.train()"
    assert added(case(code) + LOOP) == ["model = build(0) | model = torch.compile(model)"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            """
            class Trainer:
                def __init__(self, device):
                    model = Net().to(device)
                    self.model = model
                    self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                def epoch(self, loader):
                    for x in loader:
                        self.model(x).sum().backward()
            """,
            ["model = Net().to(device) |         model = torch.compile(model)"],
        ),
        (
            """
            class Trainer:
                def __init__(self, net):
                    self.net = net
                def epoch(self, loader):
                    for x in loader:
                        self.net(x).sum().backward()
                def save(self):
                    torch.save(self.net.state_dict(), "m.pt")
            model = Net().cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            Trainer(model).epoch(loader)
            """,
            ["model = Net().cuda() | model.compile()"],
        ),
        (
            """
            model = Net()
            model = model.cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            def epoch():
                for x in loader:
                    model(x)
            """,
            ["model = model.cuda() | model = torch.compile(model)"],
        ),
    ],
)
def test_models_are_followed(code: str, expected: list[str]):
    assert added(case(code)) == expected


def test_state_of_parts_keeps_its_keys_anyway():
    text = f"{NET}model = Net().cuda(){LOOP}torch.save(model.fc.state_dict(), path)\n"
    assert added(text) == ["model = Net().cuda() | model = torch.compile(model)"]


# ---- what is a model ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "build"),
    [
        ("import torchvision", "torchvision.models.resnet18()"),
        ("from torchvision.models import resnet18", "resnet18(weights=None)"),
        ("from torchvision import models as m", "m.segmentation.fcn_resnet50()"),
        ("import timm", "timm.create_model('vit_tiny')"),
        ("from transformers import AutoModel", "AutoModel.from_pretrained('bert')"),
        ("import transformers", "transformers.BertForMaskedLM(config)"),
        ("import segmentation_models_pytorch as smp", "smp.Unet('resnet18')"),
        ("", "torch.hub.load('pytorch/vision', 'resnet18')"),
        ("import torch.nn as nn", "nn.Sequential(nn.Linear(1, 1), nn.ReLU())"),
    ],
)
def test_known_builders(imports: str, build: str):
    text = f"import torch\n{imports}\nmodel = {build}{LOOP}"
    assert added(text) == [f"model = {build} | model = torch.compile(model)"]


@pytest.mark.parametrize("use", ["model.to(device)", "model.cuda()", "model.train()", "model.eval()"])
def test_unknown_builders_by_their_uses(use: str):
    head = "import torch\nfrom nets import build\nmodel = build(3)\n"
    assert len(found(f"{head}{use}{LOOP}")) == 1
    assert not found(head + LOOP)  # parameters() alone may be anything


@pytest.mark.parametrize(
    "text",
    [
        # another base, in the file
        "import torch\nimport torch.nn as nn\nclass A(nn.Module): ...\nclass B(A): ...\nmodel = B()",
        "import torch\nfrom torch.nn import Module as M\nclass A(M): ...\nmodel = A()",
        "import torch\nimport torchvision\nclass A(torchvision.models.ResNet): ...\nmodel = A()",
    ],
)
def test_classes_of_the_file(text: str):
    assert len(found(text + LOOP)) == 1


# ---- what is left alone ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "uses",
    [
        "model = torch.compile(model)",
        "compiled = torch.compile(model)",
        "model.compile()",
        "if hasattr(torch, 'compile'):\n    model = torch.compile(model)",
        "if torch.__version__ >= '2.0':\n    model = torch.compile(model)",
        "model = torch.compile(backend='eager')(model)",
        "model = torch._dynamo.optimize()(model)",
        "step = torch.compile(step)\nstep(model)",
        "@torch.compile\ndef step(net, x):\n    return net(x)\nstep(model, x)",
        "def prepare(net):\n    net.compile()\nprepare(model)",
        "traced = torch.jit.trace(model, x)",
        "torch.jit.script(model).save('m.pt')",
        "torch.onnx.export(model, x, 'm.onnx')",
        "program = torch.export.export(model, (x,))",
        "model.qconfig = config\ntorch.ao.quantization.prepare(model, inplace=True)",
        "graph = torch.fx.symbolic_trace(model)",
        "model.fc = torch.compile(model.fc)",
        "model = accelerator.prepare(model)",
        "model, opt, loader = accelerator.prepare(model, opt, loader)",
        "engine, opt, _, _ = initialize(model=model, config=config)",
        "trainer.fit(model, loader)",
        "model.share_memory()",
        "mp.spawn(work, args=(model,))",
        "model = wrap(model)",
        "for model in models:\n    pass",
        "del model",
        "model = Net()",
        "def reset():\n    global model\n    model = None",
        "model = None",
    ],
)
def test_left_alone(uses: str):
    assert found(f"{NET}model = Net().cuda(){LOOP}{uses}\n") == []


@pytest.mark.parametrize(
    "code",
    [
        # only built
        """
        def build(device):
            model = Net().to(device)
            return model
        """,
        # called once
        """
        model = Net().cuda().eval()
        print(model(x))
        """,
        """
        for seed in range(3):
            model = Net().cuda()
            print(model(x))
        """,
        # parts of a module
        """
        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                layer = Net().cuda()
                for x in data:
                    layer(x)
                self.layer = layer
        """,
        """
        part = Net().cuda()
        whole = nn.Sequential(part, nn.ReLU())
        optimizer = torch.optim.SGD(whole.parameters(), lr=0.1)
        for x in loader:
            part(x), torch.jit.script(whole)
        """,
        # only methods are used: those are not compiled
        """
        model = Net().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in loader:
            model.loss(x).backward()
        """,
        # no model
        """
        criterion = nn.CrossEntropyLoss().cuda()
        for x in loader:
            criterion(x).backward()
        """,
        """
        class DiceLoss(nn.Module):
            pass
        dice = DiceLoss().cuda()
        for x in loader:
            dice(x).backward()
        """,
        # compiled, scripted or taken over by its own class or builder
        """
        @torch.compile
        class Fast(nn.Module):
            pass
        model = Fast().cuda()
        for x in loader:
            model(x)
        """,
        """
        class Scripted(torch.jit.ScriptModule):
            pass
        model = Scripted().cuda()
        for x in loader:
            model(x)
        """,
        """
        def build():
            return torch.jit.script(Net())
        model = build().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in loader:
            model(x)
        """,
        """
        model = build(compile_model=fast).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in loader:
            model(x)
        """,
        """
        def test_training():
            model = Net().cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for x in range(3):
                model(x)
        """,
    ],
)
def test_no_place_for_it(code: str):
    assert found(case(code)) == []


@pytest.mark.parametrize(
    "line",
    [
        "import pytorch_lightning as pl",
        "from lightning.pytorch import Trainer",
        "import torch_xla.core.xla_model as xm",
        "from accelerate import Accelerator",
        "import deepspeed",
        "import pytest",
        "import torchopt",
        "from opacus import PrivacyEngine",
        "import torch.distributed.rpc",
        "from torch.distributed import rpc",
    ],
)
def test_files_of_other_programs(line: str):
    assert found(f"{line}\n{NET}model = Net().cuda(){LOOP}") == []


def test_lightning_modules_by_their_base():
    text = "import torch\nfrom mine import LightningModule\nclass A(LightningModule): ...\nmodel = A().cuda()"
    assert found(text.replace("mine", "pytorch_lightning") + LOOP) == []


# ---- found, without a fix -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "why"),
    [
        ("model = Net(); model.cuda()", "other statements are on the same line"),
        ("if small: model = Net()\nelse: model = Net().cuda()", None),
        (
            "if one:\n    model = Net().cuda()\nelse:\n    model = Net()\n    model = DDP(model.cuda())",
            "it is prepared and used or wrapped in the same statement",
        ),
        (
            "model = Net()\nmodel = DDP(model.cuda())",
            "it is prepared and used or wrapped in the same statement",
        ),
        ("model = Net()\nmodel(x)\nmodel.cuda()", "it is moved to a device after its first use"),
        (
            "model = Net().cuda()\nmodel = nn.DataParallel(model)",
            "the copies that `DataParallel` creates would run the compiled code of the original: use "
            "`DistributedDataParallel` first",
        ),
        ("model = Net()\nmodel = FSDP(model)", "with FSDP, compile the sharded model"),
    ],
)
def test_report_only(build: str, why: str | None):
    text = NET + build + LOOP
    if why is None:
        assert len(added(text)) == 1
    else:
        assert obstacle(text) == why


def test_not_always_built():
    text = case("""
        if project:
            model = Net()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if project:
            model.cuda()
        for x in loader:
            if project:
                model(x).sum().backward()
    """)
    assert obstacle(text) == "it is created under a condition"


@pytest.mark.parametrize(
    ("backward", "refused"),
    [
        ("backward(retain_graph=True)", "retain_graph"),
        ("backward(create_graph=again)", "create_graph"),
        ("backward(retain_graph=False)", None),
        ("backward()", None),
    ],
)
def test_second_backward(backward: str, refused: str | None):
    text = (NET + "model = Net()" + LOOP).replace("backward()", backward)
    if refused:
        assert (
            obstacle(text) == f"the file computes gradients with `{refused}=`, which compiled models reject"
        )
    else:
        assert len(added(text)) == 1


# ---- releases and suppressions ----------------------------------------------------------------------------


WRAPPED = NET + "model = Net()" + LOOP
IN_PLACE = WRAPPED + "torch.save(model.state_dict(), path)\n"


@pytest.mark.parametrize(
    ("text", "options", "level", "needs"),
    [
        (WRAPPED, (), Applicability.UNSAFE, ""),
        (WRAPPED, ("--minimum", "2.0"), Applicability.UNSAFE, ""),
        (
            WRAPPED,
            ("--minimum", "1.13"),
            Applicability.UNSAFE,
            "needs torch 2.0, but the project supports torch 1.13; ",
        ),
        (WRAPPED, ("--target", "2.0"), Applicability.UNSAFE, ""),
        (IN_PLACE, ("--minimum", "2.1"), Applicability.UNSAFE, ""),
        (
            IN_PLACE,
            ("--minimum", "2.0"),
            Applicability.UNSAFE,
            "needs torch 2.1, but the project supports torch 2.0; ",
        ),
        (
            IN_PLACE,
            ("--target", "2.0"),
            Applicability.DISPLAY,
            "needs torch 2.1, but the target is torch 2.0",
        ),
    ],
)
def test_releases(text: str, options: tuple[str, ...], level: Applicability, needs: str):
    (finding,) = found(text, *options)
    assert finding.fix is not None
    assert finding.fix.applicability is level
    assert (reason_of(finding.fix) or "").startswith(needs or "the first calls compile")


def test_nothing_before_2_0():
    assert found(WRAPPED, "--target", "1.13") == []


def test_off_unless_selected():
    (rule,) = (rule for rule in catalogue().rules if rule.code == "TM900")
    assert rule.opt_in


def test_suppressed():
    text = WRAPPED.replace("model = Net()", "model = Net()  # torchmigrate: ignore[TM900] too small")
    assert found(text) == []
    assert fixed(text) == text


# ---- on real torch ----------------------------------------------------------------------------------------


TRAINING = NET + textwrap.dedent("""
    torch.manual_seed(0)
    model = Net().to("cpu")
    loader = [torch.randn(8, 4) for _ in range(3)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for x in loader:
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        output = model(torch.ones(2, 4))
""")
SAVING = TRAINING + "saved = model.state_dict()\n"

if HAS_TORCH:

    @pytest.fixture
    def compiled_quickly(monkeypatch: pytest.MonkeyPatch) -> list[object]:
        """Compiles by tracing alone, without generating code; what was compiled."""
        import torch

        real, compiled = torch.compile, []

        def quick(model: object, *args: object, **options: object) -> object:
            compiled.append(model)
            return real(model, *args, **{**options, "backend": "eager"})

        monkeypatch.setattr(torch, "compile", quick)
        return compiled

    def execute(text: str) -> dict[str, object]:
        values: dict[str, object] = {"__name__": "case"}
        exec(compile(text, "case.py", "exec"), values)
        return values

    @pytest.mark.parametrize("text", [TRAINING, SAVING], ids=["wrapped", "in place"])
    def test_same_training(text: str, compiled_quickly: list[object]):
        import torch

        before = execute(text)
        assert compiled_quickly == []
        after = execute(fixed(text))
        assert len(compiled_quickly) == 1
        assert before["losses"] == after["losses"]
        assert torch.equal(before["output"], after["output"])

    def test_keys(compiled_quickly: list[object]):
        plain = ["fc.weight", "fc.bias"]
        before, wrapped, in_place = (
            execute(text)["model"] for text in (TRAINING, fixed(TRAINING), fixed(SAVING))
        )
        assert list(before.state_dict()) == list(in_place.state_dict()) == plain
        assert list(wrapped.state_dict()) == [f"_orig_mod.{key}" for key in plain]
        assert type(in_place).__name__ == "Net"
        assert type(wrapped).__name__ == "OptimizedModule"

    def test_copies_of_data_parallel_run_the_original(compiled_quickly: list[object]):
        """Why `DataParallel` is reported only: a copy has parameters of its own, and does not use them."""
        import torch

        model = torch.nn.Linear(2, 1, bias=False)
        x = torch.ones(1, 2)

        def scaled(module: torch.nn.Module) -> float:
            copy = module._replicate_for_data_parallel()
            inner = copy._modules.get("_orig_mod", copy)
            inner.weight, inner.bias = torch.zeros(1, 2), None
            return copy(x).item()

        assert scaled(model) == 0
        model.compile()
        assert scaled(model) == model(x).item() != 0

    def test_compiled_models_refuse_a_second_backward():
        import torch

        def compiled() -> torch.nn.Module:
            torch._dynamo.reset()
            linear = torch.nn.Linear
            model = torch.nn.Sequential(linear(4, 8), torch.nn.Sigmoid(), linear(8, 1))
            return torch.compile(model, backend="aot_eager")

        model, x = compiled(), torch.ones(3, 4, requires_grad=True)
        with pytest.raises(RuntimeError, match="double backward"):
            torch.autograd.grad(model(x).sum(), x, create_graph=True)[0].sum().backward()
        model, x = compiled(), torch.ones(3, 4)
        model(x).sum().backward()
        with pytest.raises(RuntimeError, match="retain_graph"):
            model(x).sum().backward(retain_graph=True)
