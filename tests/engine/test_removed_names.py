"""TM001: what it advises for names that torch itself removed."""

from __future__ import annotations

import pytest
from harness.program import only, run

from torchmigrate.engine.api_rules import suggest
from torchmigrate.engine.api_rules.api import Api
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
