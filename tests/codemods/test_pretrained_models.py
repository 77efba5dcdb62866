"""pretrained= on its way to a builder: what is followed, what the weights are called, and what is refused."""

from __future__ import annotations

import textwrap

import pytest
from harness.fixing import checked_and_fixed

from torchmigrate.findings import Applicability, Finding
from torchmigrate.report.reasons import help_of, reason_of

CODES = frozenset(["TM721", "TM722", "TM724", "TM725", "TM726", "TM729", "TM799"])
HEAD = "import functools\nimport torchvision\nfrom torchvision import models\n\n"
W = '"IMAGENET1K_V1"'


def check(body: str) -> tuple[list[Finding], str]:
    """The findings in a program, and what all fixes make of it (without the first lines)."""
    text = HEAD + textwrap.dedent(body).lstrip("\n")
    found, new = checked_and_fixed(text, CODES)
    return found, new.removeprefix(HEAD)


SAFE = {
    "a variable": ("f = models.resnet18\nf(pretrained=True)\n", f"f = models.resnet18\nf(weights={W})\n"),
    "one of two": (
        "f = models.resnet18 if small else models.resnet50\nf(pretrained=flag)\n",
        f"f = models.resnet18 if small else models.resnet50\nf(weights={W} if flag else None)\n",
    ),
    "a constant name": (
        "getattr(models, 'vgg11')(pretrained=False)\nmodels.__dict__['vgg11'](pretrained=True)\n",
        "getattr(models, 'vgg11')(weights=None)\nmodels.__dict__['vgg11'](weights='IMAGENET1K_V1')\n",
    ),
    "a table of a class": (
        """
        class Net:
            __factory = {18: models.resnet18, 34: models.resnet34}
            def __init__(self, depth, pretrained):
                self.base = Net.__factory[depth](pretrained=pretrained)
        """,
        f"""
        class Net:
            __factory = {{18: models.resnet18, 34: models.resnet34}}
            def __init__(self, depth, pretrained):
                self.base = Net.__factory[depth](weights={W} if pretrained else None)
        """,
    ),
    "builders that a function or an object gives": (
        """
        TABLE = {"a": models.resnet18, "b": models.vgg16}
        def pick(name):
            return TABLE[name]
        class Net:
            def __init__(self):
                self.make = models.resnet34
            def build(self, name):
                make = TABLE.get(name, models.resnet50)
                return self.make(pretrained=True), pick(name)(pretrained=True), make(pretrained=True)
        """,
        f"""
        TABLE = {{"a": models.resnet18, "b": models.vgg16}}
        def pick(name):
            return TABLE[name]
        class Net:
            def __init__(self):
                self.make = models.resnet34
            def build(self, name):
                make = TABLE.get(name, models.resnet50)
                return self.make(weights={W}), pick(name)(weights={W}), make(weights={W})
        """,
    ),
    "a name that meant something else before": (
        "f = wrap\nf(x)\nf = models.resnet18\nf(pretrained=True)\n",
        f"f = wrap\nf(x)\nf = models.resnet18\nf(weights={W})\n",
    ),
    "a long table": (
        "T = {" + "".join(f"{n}: models.resnet18, " for n in range(99)) + "}\nT[n](pretrained=True)\n",
        "T = {" + "".join(f"{n}: models.resnet18, " for n in range(99)) + f"}}\nT[n](weights={W})\n",
    ),
    "tables of tuples and dicts": (
        """
        A = {"a": (models.resnet18, 512), "b": (models.vgg16, 4096)}
        B = {"a": {"make": models.resnet18, "size": 512}}
        A[name][0](pretrained=True)
        make, size = A[name]
        make(pretrained=True)
        B[name]["make"](pretrained=True)
        """,
        f"""
        A = {{"a": (models.resnet18, 512), "b": (models.vgg16, 4096)}}
        B = {{"a": {{"make": models.resnet18, "size": 512}}}}
        A[name][0](weights={W})
        make, size = A[name]
        make(weights={W})
        B[name]["make"](weights={W})
        """,
    ),
    "loops": (
        """
        for make in (models.resnet18, models.vgg11):
            make(True)
        for name, other in {"a": models.resnet18}.items():
            other(pretrained=False)
        nets = [m(pretrained=True) for m in [models.resnet18, models.vgg11]]
        """,
        f"""
        for make in (models.resnet18, models.vgg11):
            make(weights={W})
        for name, other in {{"a": models.resnet18}}.items():
            other(weights=None)
        nets = [m(weights={W}) for m in [models.resnet18, models.vgg11]]
        """,
    ),
    "what a test is given": (
        """
        import pytest
        @pytest.mark.parametrize("size, make", [(3, models.resnet18), (4, models.vgg11)])
        def test(size, make):
            make(pretrained=True)
        """,
        f"""
        import pytest
        @pytest.mark.parametrize("size, make", [(3, models.resnet18), (4, models.vgg11)])
        def test(size, make):
            make(weights={W})
        """,
    ),
    "segmentation models and their backbones": (
        """
        S = [models.segmentation.fcn_resnet50, models.segmentation.deeplabv3_resnet50]
        S[0](pretrained=True)
        S[n](pretrained=False, pretrained_backbone=True)
        """,
        f"""
        S = [models.segmentation.fcn_resnet50, models.segmentation.deeplabv3_resnet50]
        S[0](weights="COCO_WITH_VOC_LABELS_V1")
        S[n](weights=None, weights_backbone={W})
        """,
    ),
    "a function that passes its keywords on": (
        """
        def build(*args, **kwargs):
            kwargs["init_weights"] = False
            return models.inception_v3(*args, **kwargs)
        a = build(num_classes=1008, pretrained=False)
        """,
        """
        def build(*args, **kwargs):
            kwargs["init_weights"] = False
            return models.inception_v3(*args, **kwargs)
        a = build(num_classes=1008, weights=None)
        """,
    ),
    "more arguments in a dict, and no weights": (
        "models.segmentation.fcn_resnet50(False, **options)\n",
        "models.segmentation.fcn_resnet50(weights=None, **options)\n",
    ),
}


@pytest.mark.parametrize("name", SAFE)
def test_followed(name):
    before, after = SAFE[name]
    found, new = check(before)
    assert new == textwrap.dedent(after).lstrip("\n")
    assert {item.fix.applicability for item in found if item.fix} == {Applicability.SAFE}


UNSAFE = {
    "more arguments in a dict": (
        "models.resnet18(flag, **options)\n",
        "models.resnet18(weights=models.ResNet18_Weights.IMAGENET1K_V1 if flag else None, **options)",
        "the argument may already be weights",
    ),
    "models whose weights have different names": (
        "T = [models.detection.fasterrcnn_resnet50_fpn, models.segmentation.fcn_resnet50]\nT[n](pretrained=True)\n",
        'T[n](weights="DEFAULT")',
        "best weights",
    ),
    "a module in an attribute": (
        """
        class Net:
            def __init__(self, name):
                self.tv = torchvision
                self.net = getattr(self.tv.models, name)(pretrained=True)
        """,
        'getattr(self.tv.models, name)(weights="IMAGENET1K_V1")',
        "attribute",
    ),
}


@pytest.mark.parametrize("name", UNSAFE)
def test_unsafe(name):
    before, part, reason = UNSAFE[name]
    found, new = check(before)
    assert part in new
    (item,) = found
    assert item.fix is not None and item.fix.applicability is Applicability.UNSAFE
    assert reason in (reason_of(item.fix) or "")


REFUSED = {
    "an attribute that a subclass has, too": (
        """
        class A:
            table = {"a": models.resnet18}
            def build(self, name):
                return self.table[name](pretrained=True)
        class B(A):
            table = {"a": OwnNet}
        """,
        "may also be another function",
    ),
    "a table with something else in it": (
        "T = {'a': models.resnet18, 'own': OwnNet}\nT[n](pretrained=True)\n",
        "may also be another function",
    ),
    "a table that gets something else": (
        "T = {'a': models.resnet18}\nT['own'] = OwnNet\nT[n](pretrained=True)\n",
        "may also be another function",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_recipe(name):
    before, told = REFUSED[name]
    found, new = check(before)
    assert new == textwrap.dedent(before).lstrip("\n")
    (item,) = found
    assert item.fix is None and told in (help_of(item) or "") and "weights" in (help_of(item) or "")


QUIET = {
    "other builders": "T = {'a': mine.resnet18}\nT[n](pretrained=True)\nf = mine.vgg11\nf(pretrained=True)\n",
    "a name that is bound to something else": "f = models.resnet18\nf = wrap(f)\nf(pretrained=True)\n",
    "a function that gives others, too": """
        def pick(own):
            if own:
                return OwnNet
            return models.resnet18
        pick(True)(num_classes=3)
        """,
    "a parameter": "def build(make=models.resnet18):\n    return make(pretrained=True)\n",
    "a choice by the release": """
        from packaging.version import Version
        def build():
            if Version(torchvision.__version__) < Version("0.13"):
                options = {"pretrained": True}
            else:
                options = {"weights": models.ResNet18_Weights.DEFAULT}
            return models.resnet18(**options)
        """,
    "a fallback for old releases": """
        def build(name):
            make = TABLE[name]
            try:
                return make(weights="DEFAULT")
            except TypeError:
                return make(pretrained=True)
        TABLE = {"a": models.resnet18}
        """,
    "a dict for other functions": "def f():\n    o = {'pretrained': True}\n    return mine(**o)\n",
    "a function that knows both": """
        def build(*args, **kwargs):
            if old and "weights" in kwargs:
                kwargs["pretrained"] = kwargs["weights"] is not None
                del kwargs["weights"]
            return models.inception_v3(*args, **kwargs)
        a = build(pretrained=False)
        """,
    "a function that does more with its keywords": """
        def build(**kwargs):
            print(kwargs["pretrained"])
            return models.resnet18(**kwargs)
        build(pretrained=True)
        @register
        def other(**kwargs):
            return models.resnet18(**kwargs)
        other(pretrained=True)
        """,
    "a pinned tag of the hub": "import torch\ntorch.hub.load('pytorch/vision:v0.10.0', 'vgg11', pretrained=True)\n",
    "a dict of the file": "model_urls = {'resnet18': 'https://x/y.pth'}\nurl = model_urls['resnet18']\n",
}


@pytest.mark.parametrize("name", QUIET)
def test_nothing_is_found(name):
    assert check(QUIET[name])[0] == []


def test_urls_of_one_dict_change_together():
    body = """
        from torchvision.models.resnet import model_urls
        from torchvision.models import vgg
        a = model_urls["resnet18"]
        b = vgg.model_urls["vgg16"]
        model_urls["own"] = mine
        """
    found, new = check(body)
    assert 'a = model_urls["resnet18"]' in new and "b = models.VGG16_Weights.IMAGENET1K_V1.url" in new
    assert any("also used in line 9" in (help_of(item) or "") for item in found)


URLS = """
    from torchvision.models.resnet import model_urls
    model_urls["resnet18"] = model_urls["resnet18"].replace("https://", "http://")
    try:
        net = {body}
    except{caught}:
        net = load(model_urls["resnet18"])
    """


def test_urls_that_a_handler_needs_keep_the_dict():
    body = URLS.format(
        body="load(models.ResNet18_Weights.IMAGENET1K_V1.url)", caught=" AttributeError"
    )  # older releases lack it
    found, new = check(body)
    assert new == textwrap.dedent(body).lstrip("\n")
    assert all(item.fix is None for item in found)
    assert any("also used in line 10" in (help_of(item) or "") for item in found)


def test_urls_in_a_handler_for_other_errors_change_with_the_dict():
    found, new = check(URLS.format(body="models.resnet18()", caught=""))
    assert new == (
        "try:\n    net = models.resnet18()\n"
        "except:\n    net = load(models.ResNet18_Weights.IMAGENET1K_V1.url)\n"
    )
    (fix,) = {id(item.fix): item.fix for item in found if item.fix is not None}.values()
    assert fix.applicability is Applicability.UNSAFE


def test_an_unused_import_of_urls_goes():
    _, new = check("from torchvision.models.resnet import ResNet, model_urls\nResNet\n")
    assert new == "from torchvision.models.resnet import ResNet\nResNet\n"


ADVICE = {
    "a partial": "make = functools.partial(models.resnet18, pretrained=True)\nmake()\n",
    "a partial in a table": "T = {'a': functools.partial(models.vgg11, pretrained=flag)}\n",
    "a dict of arguments": "def f():\n    o = {'pretrained': True}\n    return models.resnet18(**o)\n",
    "a dict in the call": "models.vgg11(**dict(pretrained=True))\n",
}


@pytest.mark.parametrize("name", ADVICE)
def test_only_advice(name):
    found, new = check(ADVICE[name])
    assert new == ADVICE[name]
    assert [item.fix for item in found] == [None]


def test_nothing_is_done_inside_of_f_strings():
    body = "f = models.vgg11\nprint(f'{f(pretrained=True)}')\n"
    assert check(body)[1] == body


def test_weights_in_the_place_of_the_flag_get_their_name() -> None:
    text = "from torchvision import models\nnet = models.vgg16(models.VGG16_Weights.IMAGENET1K_V1, False)\n"
    _, new = checked_and_fixed(text, CODES)
    assert new.endswith("models.vgg16(weights=models.VGG16_Weights.IMAGENET1K_V1, progress=False)\n")
