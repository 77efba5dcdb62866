"""Other spellings of one public name: where a library defines it against where it publishes it."""

from __future__ import annotations

import re
from functools import lru_cache


def _plain_start(pattern: str) -> str:
    """The plain characters that a pattern begins with."""
    found = re.match(r"(?:\w|\\\.)+", pattern)
    return found[0].replace("\\", "") if found is not None else ""


# (how names for it begin, pattern, replacement), tried in order, each at the start of the name; the first
# that changes it wins.
# Checked against torch 2.13.0 by tests/semantics/test_public_names.py.
_SPELLINGS = [
    (_plain_start(pattern), pattern, new)
    for pattern, new in (
        (r"torch\.functional\.(?=\w)", "torch."),
        (r"torch\.nn\.modules\.\w+\.(?=[A-Z])", "torch.nn."),
        (r"torch\.nn\.modules\.(?=[A-Z])", "torch.nn."),
        (r"torch\.nn\.parameter\.(?=[A-Z])", "torch.nn."),
        (r"torch\.nn\.utils\.(weight|spectral)_norm\.(?=(?:remove_)?\1_norm\b)", "torch.nn.utils."),
        (r"torch\.nn\.utils\.(?:clip_grad|convert_parameters)\.(?=[a-z])", "torch.nn.utils."),
        (r"torch\.nn\.parallel\.distributed\.(?=[A-Z])", "torch.nn.parallel."),
        (r"torch\.nn\.parallel\.data_parallel\.(?=[A-Z])", "torch.nn.parallel."),
        (r"torch\.utils\.data\.(?:dataloader|dataset|sampler|_utils\.collate)\.(?=\w)", "torch.utils.data."),
        (r"torch\.utils\.data\.distributed\.(?=D)", "torch.utils.data."),
        (r"torch\.autograd\.variable\.(?=V)", "torch.autograd."),
        (r"torch\.autograd\.function\.(?=F)", "torch.autograd."),
        (r"torch\.optim\.(?:adadelta|adagrad|adam|adamax|adamw|asgd|lbfgs|nadam|optimizer|radam|rmsprop|rprop|"
         r"sgd|sparse_adam)\.(?=[A-Z])", "torch.optim."),
        (r"torch\.distributions\.(?!constraint)[a-z]\w*\.(?!ExpRelaxed|LogitRelaxed)(?=[A-Z])",
         "torch.distributions."),
        (r"torch\.serialization\.(?=(?:load|save)\b)", "torch."),
        (r"torch\.tensor\.Tensor\b", "torch.Tensor"),
        (r"torch\._tensor\.Tensor\b", "torch.Tensor"),
        (r"torch\.cuda\.amp\.(?:autocast_mode|grad_scaler)\.(?=\w)", "torch.cuda.amp."),
        (r"torch\.amp\.(?:autocast_mode|grad_scaler)\.(?=[A-Za-z])", "torch.amp."),
        (r"torch\.autocast\b", "torch.amp.autocast"),
        (r"torch\.GradScaler\b", "torch.amp.GradScaler"),
        (r"torch\.distributed\.distributed_c10d\.(?=\w)", "torch.distributed."),
        (r"torch\.cuda\.memory\.(?=\w)", "torch.cuda."),
        (r"torch\.testing\._comparison\.(?=\w)", "torch.testing."),
        (r"torchvision\.transforms\.transforms\.(?=\w)", "torchvision.transforms."),
        (r"torchvision\.models\.(?:alexnet|convnext|densenet|efficientnet|googlenet|inception|maxvit|mnasnet|"
         r"mobilenet|mobilenetv2|mobilenetv3|regnet|resnet|shufflenetv2|squeezenet|swin_transformer|vgg|"
         r"vision_transformer)\.(?=[A-Za-z])", "torchvision.models."),
        (r"torchvision\.models\.(detection|segmentation|video)\.(?:faster_rcnn|fcos|keypoint_rcnn|mask_rcnn|"
         r"retinanet|ssd|ssdlite|deeplabv3|fcn|lraspp|resnet|s3d|mvit|swin_transformer)\.(?=[A-Za-z])",
         r"torchvision.models.\1."),
        (r"torchaudio\.functional\.functional\.(?=\w)", "torchaudio.functional."),
        (r"torchaudio\.transforms\._transforms\.(?=\w)", "torchaudio.transforms."),
    )
]  # fmt: skip


@lru_cache(maxsize=8192)
def public_name(name: str) -> str:
    """The public spelling of a qualified name; the name itself where there is no other."""
    for start, pattern, new in _SPELLINGS:
        if name.startswith(start):  # most patterns are never needed, so that they are not compiled before
            changed = re.sub(pattern, new, name, count=1)
            if changed != name:
                return changed
    return name
