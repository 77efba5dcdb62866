from importlib.util import find_spec

import torch
from PIL import Image
from support import collect, filled, module, numbers

# Releases of torchvision have one of these modules or the other, and never had both with `weights`.
if find_spec("torchvision.models.utils") is None:
    module("torchvision.models.utils", load_state_dict_from_url=None)
if find_spec("torchvision.transforms.functional_tensor") is None:
    module("torchvision.transforms.functional_tensor")

import program


def model(**kwargs):
    made = program.get_model(10, **kwargs)
    state = made.state_dict()
    return sorted(state)[:4], len(state), "loaded_weights" in state and state["loaded_weights"]


def transformed(train):
    """Of a picture with one colour, since what releases draw is not the same."""
    picture = program.get_transform(train)(Image.new("RGB", (40, 30), (51, 102, 204)))
    return list(picture.shape), picture[:, 100, 100]


def losses(**kwargs):
    targets = numbers(4, 3, seed=1).abs()
    return program.losses(
        numbers(4, 3), targets / targets.sum(1, keepdim=True), numbers(4, 4), numbers(4, 4, seed=1), **kwargs
    )


def loaded(state):
    torch.save(state, "state.pt")
    return program.load("state.pt")


results, raised = collect(
    model=lambda: model(),
    model_plain=lambda: model(pretrained=False),
    model_vgg=lambda: model(arch="vgg"),
    model_scratch=lambda: model(arch="scratch"),
    model_by_name=lambda: model(arch="squeezenet1_1"),
    model_frcnn=lambda: model(arch="frcnn"),
    transform=lambda: [transformed(False), transformed(True)],
    fpn=lambda: filled(program.FPN(), 0.05)(numbers(1, 256, 2, 2), numbers(1, 256, 4, 4)).detach(),
    anchors=lambda: program.anchors(2, 3),
    losses=lambda: losses(),
    losses_apart=lambda: losses(reduce=False),
    load=lambda: [loaded({"model": {"a": numbers(2)}}), loaded({"a": numbers(2)})],
    default_dtype=lambda: torch.zeros(1).dtype,
)
