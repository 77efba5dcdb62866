import functools
import sys
import types

import torch
from support import collect, filled, module, numbers, on_cpu
from torch import nn

# Networks of nobody's size in the place of those that are downloaded.


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.fc = filled(nn.Linear(3, 2048), 0.1), None

    def forward(self, x):
        return self.fc(torch.relu(self.body(x)))


class Pixels(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = filled(nn.Conv2d(3, 4, 1))

    def forward(self, x):
        return {"out": self.body(x)}


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = filled(nn.Linear(3, 2))

    def forward(self, ids):
        return types.SimpleNamespace(logits=self.body(ids))


class Pretrained:
    """AutoTokenizer and AutoModelForSequenceClassification."""

    def __init__(self, made):
        self.from_pretrained = lambda name: made()


def tokenizer():
    return lambda text, return_tensors: {"ids": numbers(1, 3, seed=len(text))}


segmentation = types.SimpleNamespace(deeplabv3_resnet50=lambda weights: Pixels())
module(
    "torchvision",
    models=types.SimpleNamespace(resnet50=lambda weights: Backbone(), segmentation=segmentation),
)
module("timm", create_model=lambda name, pretrained: filled(nn.Linear(3, 2)))
module(
    "transformers", AutoTokenizer=Pretrained(tokenizer), AutoModelForSequenceClassification=Pretrained(Words)
)
if hasattr(torch, "compile"):
    torch.compile = functools.partial(torch.compile, backend="eager")
if hasattr(nn.Module, "compile"):
    nn.Module.compile = functools.partialmethod(nn.Module.compile, backend="eager")

import program  # noqa: E402 (wants all of these)

del sys.modules["transformers"]  # torch 2.0 looks for more of it when it compiles


def finetuned():
    torch.manual_seed(0)
    made = nn.Linear
    nn.Linear = lambda *sizes: filled(made(*sizes), 0.1)
    try:
        program.finetune(
            [(numbers(4, 3, seed=seed), torch.tensor([0, 1, 2, 0])) for seed in range(3)], "cpu", 3
        )
    finally:
        nn.Linear = made
    state = torch.load("resnet.pt")
    return sorted(state), [state[name] for name in sorted(state)]


with on_cpu():
    results, raised = collect(
        finetune=finetuned,
        evaluate=lambda: program.evaluate([numbers(2, 3), numbers(4, 3)]),
        classify=lambda: [item.detach() for item in program.classify(["some", "thing"])],
        segment=lambda: list(program.segment([numbers(1, 3, 2, 2)])),
    )
