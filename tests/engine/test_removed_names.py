"""TM001: what it advises for names that torch itself removed."""

from __future__ import annotations

import pytest
from harness.program import only, run

from torchmigrate.engine.api_rules import suggest
from torchmigrate.engine.api_rules.api import Api
from torchmigrate.findings import Severity
from torchmigrate.report.reasons import message_of
from torchmigrate.versions.range import VersionRange


@pytest.mark.parametrize(
    ("name", "help_text"),
    [
        ("torch.Any", "import `Any` from `typing`"),
        ("torch.jit.OrderedDict", "import `OrderedDict` from `collections`"),
        ("torch.cuda.sys", "import `sys` directly"),
        ("torch.jit.Parameter", "use `torch.nn.Parameter`: this was another name for it"),
        ("torch.cuda.random.device", "use `torch.device`: this was another name for it"),
        ("torch.autograd.profiler.Interval", "`torch.autograd.profiler_util.Interval` has the same name"),
        # A value, a class attribute, or a module or class of another part of torch is something else.
        ("torch.nn.backends.thnn.backend", None),
        ("torch.attribute", None),
        ("torch.nn.attention.flex_attention.DeviceLikeType", None),
    ],
)
def test_help_of_names_that_torch_removed(name: str, help_text: str | None) -> None:
    assert suggest.help_of(Api(VersionRange(target="2.15")), name) == help_text


@pytest.mark.parametrize(
    ("setting", "help_text"),
    [
        ("log_level", "call `torch._logging.set_logs(dynamo=logging.DEBUG)` instead"),
        ("output_code", "call `torch._logging.set_logs(output_code=True)` instead"),
        (
            "translation_validation",
            "`torch.fx.experimental._config.translation_validation` has the same name",
        ),
    ],
)
def test_help_of_settings_that_torch_removed(setting: str, help_text: str) -> None:
    text = f"import torch._dynamo\ntorch._dynamo.config.{setting} = True\n"
    (finding,) = run(text, *only(["TM001"])).findings
    assert finding.help == help_text


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            "from torch.ao.quantization.quantize_fx import prepare_fx\nmodel = prepare_fx(model, {'': qconfig})\n",
            "`torch.ao.quantization.quantize_fx.prepare_fx` requires `example_inputs` since torch 1.13",
        ),
        (
            "import torchvision.transforms as T\nwhiten = T.LinearTransformation(matrix)\n",
            "`torchvision.transforms.LinearTransformation` requires `mean_vector` since torchvision 0.3",
        ),
        (
            "from torch.utils.tensorboard import SummaryWriter\nclass Log:\n    def __init__(self):\n"
            "        self.writer = SummaryWriter()\n    def save(self):\n"
            "        self.writer.export_scalars_to_json('all.json')\n",
            "`torch.utils.tensorboard.SummaryWriter.export_scalars_to_json` was removed in torch 1.2",
        ),
        (
            "from torchvision.datasets import StanfordCars\ncars = StanfordCars('.')\ncars.download()\n",
            "`torchvision.datasets.StanfordCars.download` was removed in torchvision 0.18",
        ),
        (
            "import torch.fx.symbolic_trace\n",
            "`torch.fx.symbolic_trace` is not a module since torch 1.10, so its import fails",
        ),
    ],
)
def test_programs_that_raise(program: str, message: str) -> None:
    (finding,) = run(program, *only(["TM001", "TM003"]), "--target", "2.15").findings
    assert message_of(finding) == message
    assert finding.severity is Severity.ERROR
