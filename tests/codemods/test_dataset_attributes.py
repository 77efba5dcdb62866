"""TM773: former attributes of datasets whose class is chosen by name."""

from __future__ import annotations

import pytest
from harness.fixing import checked_and_fixed

CODES = ("TM773",)
HEAD = "import torch\nimport torchvision\nfrom torchvision import datasets\nfrom torchvision.datasets import CIFAR10\n\n\n"
REPORTED = {
    "a line above": "def f(name):\n    data = getattr(torchvision.datasets, name)(root)\n    return data.train_labels\n",
    "at once": "labels = getattr(datasets, name)(root, train=False).test_labels\n",
    "class in a variable": "cls = getattr(datasets, name)\nlabels = cls(root).train_labels\n",
    "table": 'KINDS = {"a": datasets.MNIST, "b": CIFAR10}\nlabels = KINDS[name](root).train_labels\n',
    "loader": "loader = torch.utils.data.DataLoader(CIFAR10(root))\nlabels = loader.dataset.train_labels\n",
    "images": "images = getattr(datasets, name)(root).test_data\n",
}
QUIET = {
    "new name": "labels = getattr(datasets, name)(root).targets\n",
    "other module": "labels = getattr(mine, name)(root).train_labels\n",
    "other class": 'KINDS = {"a": datasets.MNIST, "b": Mine}\nlabels = KINDS[name](root).train_labels\n',
    "unknown": "labels = dataset.train_labels\n",
    "written": "data = getattr(datasets, name)(root)\ndata.train_labels = []\n",
}


@pytest.mark.parametrize("text", REPORTED.values(), ids=REPORTED)
def test_former_attribute(text: str) -> None:
    found, fixed = checked_and_fixed(HEAD + text, CODES)
    assert [item.code for item in found] == ["TM773"]
    new = text.replace(".train_labels", ".targets").replace(".test_labels", ".targets")
    assert fixed == HEAD + new.replace(".test_data", ".data")


def test_subclass_that_changes_the_attribute() -> None:
    text = (
        "class Noisy(CIFAR10):\n    def __init__(self, root):\n        super().__init__(root)\n"
        "        self.train_labels = [0 for _ in self.train_labels]\n"
    )
    own = (
        text.replace("for _ in self.train_labels", "for _ in range(9)") + "        print(self.train_labels)\n"
    )
    assert [item.code for item in checked_and_fixed(HEAD + text, CODES)[0]] == ["TM773"]
    assert checked_and_fixed(HEAD + own, CODES)[0] == []


@pytest.mark.parametrize("text", QUIET.values(), ids=QUIET)
def test_other_attribute(text: str) -> None:
    assert checked_and_fixed(HEAD + text, CODES)[0] == []
