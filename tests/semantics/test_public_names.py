"""Public spellings of names; against the installed torch where there is one."""

from __future__ import annotations

import importlib.util

import pytest

from torchmigrate.semantics.public_names import public_name

SAME = [
    ("torch.functional.norm", "torch.norm"),
    ("torch.nn.modules.loss.MSELoss", "torch.nn.MSELoss"),
    ("torch.nn.modules.Module", "torch.nn.Module"),
    ("torch.nn.parameter.Parameter", "torch.nn.Parameter"),
    ("torch.nn.utils.weight_norm.weight_norm", "torch.nn.utils.weight_norm"),
    ("torch.nn.utils.spectral_norm.remove_spectral_norm", "torch.nn.utils.remove_spectral_norm"),
    ("torch.nn.utils.clip_grad.clip_grad_norm_", "torch.nn.utils.clip_grad_norm_"),
    ("torch.nn.utils.convert_parameters.parameters_to_vector", "torch.nn.utils.parameters_to_vector"),
    ("torch.distributions.beta.Beta", "torch.distributions.Beta"),
    ("torch.distributions.studentT.StudentT", "torch.distributions.StudentT"),
    ("torch.distributions.transforms.ExpTransform", "torch.distributions.ExpTransform"),
    ("torch.nn.parallel.distributed.DistributedDataParallel", "torch.nn.parallel.DistributedDataParallel"),
    ("torch.utils.data.dataloader.DataLoader", "torch.utils.data.DataLoader"),
    ("torch.utils.data.dataset.TensorDataset", "torch.utils.data.TensorDataset"),
    ("torch.utils.data._utils.collate.default_collate", "torch.utils.data.default_collate"),
    ("torch.utils.data.distributed.DistributedSampler", "torch.utils.data.DistributedSampler"),
    ("torch.autograd.variable.Variable", "torch.autograd.Variable"),
    ("torch.autograd.function.Function", "torch.autograd.Function"),
    ("torch.optim.sgd.SGD", "torch.optim.SGD"),
    ("torch.optim.optimizer.Optimizer", "torch.optim.Optimizer"),
    ("torch.serialization.load", "torch.load"),
    ("torch._tensor.Tensor", "torch.Tensor"),
    ("torch.cuda.amp.autocast_mode.autocast", "torch.cuda.amp.autocast"),
    ("torch.cuda.amp.grad_scaler.GradScaler", "torch.cuda.amp.GradScaler"),
    ("torch.amp.autocast_mode.autocast", "torch.amp.autocast"),
    ("torch.autocast", "torch.amp.autocast"),
    ("torch.GradScaler", "torch.amp.GradScaler"),
    ("torch.distributed.distributed_c10d.all_reduce", "torch.distributed.all_reduce"),
    ("torch.cuda.memory.memory_reserved", "torch.cuda.memory_reserved"),
    ("torch.testing._comparison.assert_close", "torch.testing.assert_close"),
]
ONLY_SPELLED = [
    ("torchvision.models.resnet.resnet18", "torchvision.models.resnet18"),
    ("torchvision.models.detection.faster_rcnn.fasterrcnn_resnet50_fpn",
     "torchvision.models.detection.fasterrcnn_resnet50_fpn"),
    ("torchvision.transforms.transforms.Resize", "torchvision.transforms.Resize"),
    ("torch.functional", "torch.functional"),
    ("torch.distributions.constraints.Constraint", "torch.distributions.constraints.Constraint"),
    ("torch.distributions.relaxed_categorical.ExpRelaxedCategorical",
     "torch.distributions.relaxed_categorical.ExpRelaxedCategorical"),
    ("torch.distributions.kl.register_kl", "torch.distributions.kl.register_kl"),
    ("torch.serialization.add_safe_globals", "torch.serialization.add_safe_globals"),
    ("torch.optim.lr_scheduler.StepLR", "torch.optim.lr_scheduler.StepLR"),
]  # fmt: skip
HAS_TORCH = importlib.util.find_spec("torch") is not None


@pytest.mark.parametrize(("name", "public"), SAME + ONLY_SPELLED)
def test_public_spelling(name: str, public: str) -> None:
    assert public_name(name) == public


@pytest.mark.parametrize(("name", "public"), SAME if HAS_TORCH else [])
def test_both_spellings_are_one_object(name: str, public: str) -> None:
    def load(dotted: str) -> object:
        module, _, attribute = dotted.rpartition(".")
        return getattr(importlib.import_module(module), attribute)

    assert load(name) is load(public)
