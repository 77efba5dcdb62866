"""Code that people reported as broken after an upgrade, in the shape of their programs.

Each row has code that must stay unreported, too, although it looks alike.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from harness.fixing import checked_and_fixed
from harness.program import run

CHECKED = ("--target", "2.13")


class Row(NamedTuple):
    """A reported cause.

    found: the codes that are expected, with their lines. fixed: the text after all fixes; None if there is no fix.
    """

    name: str
    found: list[tuple[str, int]]
    code: str
    quiet: str
    fixed: str | None = None


ROWS = [
    Row(
        "bool-minus",
        [("TM032", 7)],
        code="""\
import torch

class Batch:
    def __init__(self, rows, pad=0):
        width = max(len(row) for row in rows)
        src = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
        keep = 1 - (src == pad)
        self.src, self.keep = src, keep.float()
""",
        fixed="""\
import torch

class Batch:
    def __init__(self, rows, pad=0):
        width = max(len(row) for row in rows)
        src = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
        keep = ~(src == pad)
        self.src, self.keep = src, keep.float()
""",
        quiet="""\
import torch

class Batch:
    def __init__(self, rows, pad=0):
        width = max(len(row) for row in rows)
        src = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
        keep = 1 - (src == pad).float()
        self.src, self.keep = src, keep
""",
    ),
    Row(
        "bool-argmax",
        [("TM078", 6)],
        code="""\
import torch

def first_above(scores, level):
    share = torch.cumsum(torch.softmax(scores, 1), 1)
    hit = share > level
    return hit.argmax(1)
""",
        fixed="""\
import torch

def first_above(scores, level):
    share = torch.cumsum(torch.softmax(scores, 1), 1)
    hit = share > level
    return hit.byte().argmax(1)
""",
        quiet="""\
import torch

def first_above(scores, level):
    share = torch.cumsum(torch.softmax(scores, 1), 1)
    hit = share > level
    return hit.int().argmax(1)
""",
    ),
    Row(
        "parallel-parameters",
        [("TM443", 9)],
        code="""\
import torch
import torch.nn as nn

class Tagger(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.out = nn.Linear(size, 2)
    def forward(self, x):
        x = x.to(next(self.parameters()).device)
        return self.out(x)

model = Tagger(5)
if torch.cuda.device_count() > 1:
    model = nn.DataParallel(model)
""",
        quiet="""\
import torch
import torch.nn as nn

class Tagger(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.out = nn.Linear(size, 2)
    def forward(self, x):
        x = x.to(next(self.parameters()).device)
        return self.out(x)

model = Tagger(5)
""",
    ),
    Row(
        "chunk-in-place",
        [("TM364", 9)],
        code="""\
import torch.nn as nn

class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Conv2d(64, 2, 3, padding=1)
    def forward(self, x, scale):
        u, v = self.head(x).chunk(2, dim=1)
        u *= scale
        return u, v
""",
        fixed="""\
import torch.nn as nn

class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Conv2d(64, 2, 3, padding=1)
    def forward(self, x, scale):
        u, v = self.head(x).chunk(2, dim=1)
        u = u * scale
        return u, v
""",
        quiet="""\
import torch.nn as nn

class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Conv2d(64, 2, 3, padding=1)
    def forward(self, x, scale):
        u, v = self.head(x).chunk(2, dim=1)
        u = u * scale
        return u, v
""",
    ),
    Row(
        "iterated-in-place",
        [("TM364", 6)],
        code="""\
import torch

def restore(batch, means, stds):
    picture = batch.clone()
    for channel, mean, std in zip(picture[0], means, stds):
        channel.mul_(std).add_(mean)
    return picture

x = torch.rand(1, 3, 8, 8, requires_grad=True)
restore(x, [0.4, 0.4, 0.4], [0.2, 0.2, 0.2])
""",
        quiet="""\
import torch

def restore(batch, means, stds):
    picture = batch.detach().clone()
    for channel, mean, std in zip(picture[0], means, stds):
        channel.mul_(std).add_(mean)
    return picture

x = torch.rand(1, 3, 8, 8, requires_grad=True)
restore(x, [0.4, 0.4, 0.4], [0.2, 0.2, 0.2])
""",
    ),
    Row(
        "optimizer-without-init",
        [("TM401", 4)],
        code="""\
from torch.optim import Optimizer

class Lookahead(Optimizer):
    def __init__(self, inner, steps=5, alpha=0.5):
        self.inner = inner
        self.steps, self.alpha, self.count = steps, alpha, 0
        self.param_groups = inner.param_groups
        self.state = inner.state

    def step(self, closure=None):
        self.count += 1
        return self.inner.step(closure)
""",
        fixed="""\
from torch.optim import Optimizer

class Lookahead(Optimizer):
    def __init__(self, inner, steps=5, alpha=0.5):
        super().__init__(inner.param_groups, inner.defaults)
        self.inner = inner
        self.steps, self.alpha, self.count = steps, alpha, 0
        self.param_groups = inner.param_groups
        self.state = inner.state

    def step(self, closure=None):
        self.count += 1
        return self.inner.step(closure)
""",
        quiet="""\
from torch.optim import Optimizer

class Lookahead(Optimizer):
    def __init__(self, inner, steps=5, alpha=0.5):
        super().__init__(inner.param_groups, dict(alpha=alpha))
        self.inner = inner
        self.steps, self.alpha, self.count = steps, alpha, 0

    def step(self, closure=None):
        self.count += 1
        return self.inner.step(closure)
""",
    ),
    Row(
        "sampler-data-source",
        [("TM614", 6)],
        code="""\
import random
from torch.utils.data import Sampler

class Shuffled(Sampler):
    def __init__(self, data, seed):
        super(Shuffled, self).__init__(data)
        self.data, self.seed = data, seed
    def __iter__(self):
        return iter(random.Random(self.seed).sample(range(len(self.data)), len(self.data)))
""",
        fixed="""\
import random
from torch.utils.data import Sampler

class Shuffled(Sampler):
    def __init__(self, data, seed):
        super(Shuffled, self).__init__()
        self.data, self.seed = data, seed
    def __iter__(self):
        return iter(random.Random(self.seed).sample(range(len(self.data)), len(self.data)))
""",
        quiet="""\
import random
from torch.utils.data import RandomSampler

class Shuffled(RandomSampler):
    def __init__(self, data, seed):
        super(Shuffled, self).__init__(data)
        self.seed = seed
""",
    ),
    Row(
        "version-prefix-float",
        [("TM091", 2)],
        code="""\
import torchvision
if float(torchvision.__version__[:3]) < 0.7:
    from torchvision.ops import _new_empty_tensor
    from torchvision.ops.misc import _output_size
""",
        quiet="""\
import torchvision
if tuple(int(part) for part in torchvision.__version__.split(".")[:2]) < (0, 7):
    from torchvision.ops import _new_empty_tensor
    from torchvision.ops.misc import _output_size
""",
    ),
    Row(
        "poisson-support",
        [("TM444", 4)],
        code="""\
import torch
observed = torch.tensor([50.1, 49.7, 50.4])
rate = torch.full((3,), 50.0)
poisson = torch.distributions.Poisson(rate)
print(poisson.log_prob(observed).sum())
""",
        fixed="""\
import torch
observed = torch.tensor([50.1, 49.7, 50.4])
rate = torch.full((3,), 50.0)
poisson = torch.distributions.Poisson(rate, validate_args=False)
print(poisson.log_prob(observed).sum())
""",
        quiet="""\
import torch
observed = torch.tensor([50.0, 49.0, 50.0])
rate = torch.full((3,), 50.0)
poisson = torch.distributions.Poisson(rate)
print(poisson.log_prob(observed).sum())
""",
    ),
    Row(
        "uniform-support",
        [("TM444", 4)],
        code="""\
import torch
from torch.distributions import Uniform

prior = Uniform(torch.zeros(3), torch.ones(3))

def inside(theta):
    return torch.isfinite(prior.log_prob(theta)).all(-1)
""",
        fixed="""\
import torch
from torch.distributions import Uniform

prior = Uniform(torch.zeros(3), torch.ones(3), validate_args=False)

def inside(theta):
    return torch.isfinite(prior.log_prob(theta)).all(-1)
""",
        quiet="""\
import torch
from torch.distributions import Uniform

prior = Uniform(torch.zeros(3), torch.ones(3), validate_args=False)

def inside(theta):
    return torch.isfinite(prior.log_prob(theta)).all(-1)
""",
    ),
    Row(
        "linear-with-bias",
        [("TM085", 2)],
        code="""\
import torch.nn as nn
from torch.nn.modules.linear import _LinearWithBias

class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.out_proj = _LinearWithBias(width, width)
""",
        quiet="""\
import torch.nn as nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.out_proj = NonDynamicallyQuantizableLinear(width, width)
""",
    ),
    Row(
        "symbolic-registry",
        [("TM658", 1)],
        code="""\
import torch.onnx.symbolic_registry as registry
from torch.onnx import symbolic_helper

def roll(g, x, shifts, dims):
    return g.op("mine::Roll", x)

registry.register_op("roll", roll, "", 11)
""",
        quiet="""\
from mine.onnx import symbolic_registry as registry
from torch.onnx import symbolic_helper

def roll(g, x, shifts, dims):
    return g.op("mine::Roll", x)

registry.register_op("roll", roll, "", 11)
""",
    ),
    Row(
        "example-outputs",
        [("TM650", 7)],
        code="""\
import torch

def convert(model, x, path, names):
    with torch.no_grad():
        y = model(x)
    options = dict(
        example_outputs=y, input_names=names, opset_version=11,
    )
    torch.onnx.export(model, (x,), path, **options)
""",
        quiet="""\
import torch

def convert(model, x, path, names):
    with torch.no_grad():
        y = model(x)
    options = dict(
        input_names=names, opset_version=18, dynamo=True,
    )
    torch.onnx.export(model, (x,), path, **options)
""",
    ),
    Row(
        "zero-gradients",
        [("TM333", 2)],
        code="""\
import torch
from torch.autograd.gradcheck import zero_gradients

def saliency(net, image, classes):
    image.requires_grad_()
    out = net(image)
    rows = []
    for c in range(classes):
        zero_gradients(image)
        out[0, c].backward(retain_graph=True)
        rows.append(image.grad.clone())
    return torch.stack(rows)
""",
        quiet="""\
import torch
from torch.autograd.gradcheck import gradcheck

def zero_gradients(x):
    if x.grad is not None:
        x.grad.detach_().zero_()

def saliency(net, image):
    zero_gradients(image)
    return gradcheck(net, image)
""",
    ),
    Row(
        "accuracy-view",
        [("TM082", 8)],
        code="""\
import torch

def accuracy(output, target, topk=(1,)):
    _, pred = output.topk(max(topk), 1, True, True)
    pred = pred.t()
    correct = pred.eq(target.view(1, -1).expand_as(pred))
    rows = []
    return [correct[:k].view(-1).float().sum(0, keepdim=True) for k in topk]
""",
        fixed="""\
import torch

def accuracy(output, target, topk=(1,)):
    _, pred = output.topk(max(topk), 1, True, True)
    pred = pred.t()
    correct = pred.eq(target.view(1, -1).expand_as(pred))
    rows = []
    return [correct[:k].reshape(-1).float().sum(0, keepdim=True) for k in topk]
""",
        quiet="""\
import torch

def accuracy(output, target, topk=(1,)):
    _, pred = output.topk(max(topk), 1, True, True)
    pred = pred.t()
    correct = pred.eq(target.view(1, -1).expand_as(pred)).contiguous()
    rows = []
    return [correct[:k].view(-1).float().sum(0, keepdim=True) for k in topk]
""",
    ),
    Row(
        "private-download",
        [("TM066", 4), ("TM066", 7)],
        code="""\
try:
    from torch.hub import _download_url_to_file
except ImportError:
    from torch.utils.model_zoo import _download_url_to_file

def fetch(url, path):
    _download_url_to_file(url, path, None, progress=True)
""",
        quiet="""\
try:
    from torch.hub import download_url_to_file
except ImportError:
    from torch.hub import _download_url_to_file as download_url_to_file

def fetch(url, path):
    download_url_to_file(url, path, None, progress=True)
""",
    ),
    Row(
        "makedir-exist-ok",
        [("TM753", 1)],
        code="""\
from torchvision.datasets.utils import check_integrity, makedir_exist_ok

def prepare(root, name):
    makedir_exist_ok(root + "/raw")
    return check_integrity(root + "/raw/" + name)
""",
        fixed="""\
from torchvision.datasets.utils import check_integrity
from os import makedirs

def prepare(root, name):
    makedirs(root + "/raw", exist_ok=True)
    return check_integrity(root + "/raw/" + name)
""",
        quiet="""\
import os
from torchvision.datasets.utils import check_integrity

def prepare(root, name):
    os.makedirs(root + "/raw", exist_ok=True)
    return check_integrity(root + "/raw/" + name)
""",
    ),
    Row(
        "conv-bn-relu",
        [("TM731", 8)],
        code="""\
import torch.nn as nn
from torchvision import models

class Gaze(nn.Module):
    def __init__(self):
        super().__init__()
        net = models.mobilenet_v2()
        net.features[-1] = models.mobilenet.ConvBNReLU(320, 256, kernel_size=1)
        self.backbone = net.features
""",
        fixed="""\
import torch.nn as nn
import torchvision
from torchvision import models

class Gaze(nn.Module):
    def __init__(self):
        super().__init__()
        net = models.mobilenet_v2()
        net.features[-1] = torchvision.ops.Conv2dNormActivation(320, 256, kernel_size=1, activation_layer=nn.ReLU6)
        self.backbone = net.features
""",
        quiet="""\
import torch.nn as nn
from torchvision import models, ops

class Gaze(nn.Module):
    def __init__(self):
        super().__init__()
        net = models.mobilenet_v2()
        net.features[-1] = ops.Conv2dNormActivation(320, 256, kernel_size=1, activation_layer=nn.ReLU6)
        self.backbone = net.features
""",
    ),
    Row(
        "datapoints",
        [("TM717", 4), ("TM716", 5)],
        code="""\
from torchvision import datapoints

def wrap(image, boxes, size):
    box = datapoints.BoundingBox(boxes, format=datapoints.BoundingBoxFormat.XYXY, spatial_size=size)
    return datapoints.Image(image), box
""",
        quiet="""\
from torchvision import tv_tensors

def wrap(image, boxes, size):
    box = tv_tensors.BoundingBoxes(boxes, format=tv_tensors.BoundingBoxFormat.XYXY, canvas_size=size)
    return tv_tensors.Image(image), box
""",
    ),
    Row(
        "affine-fillcolor",
        [("TM706", 6), ("TM707", 6)],
        code="""\
from PIL import Image
from torchvision import transforms

augment = transforms.Compose([
    transforms.RandomAffine(degrees=20, translate=(0.1, 0.1), scale=(0.8, 1.2),
                            shear=None, resample=Image.BILINEAR, fillcolor=(255, 255, 255)),
    transforms.ToTensor(),
])
""",
        fixed="""\
from PIL import Image
from torchvision import transforms

augment = transforms.Compose([
    transforms.RandomAffine(degrees=20, translate=(0.1, 0.1), scale=(0.8, 1.2),
                            shear=None, interpolation=Image.BILINEAR, fill=(255, 255, 255)),
    transforms.ToTensor(),
])
""",
        quiet="""\
from torchvision import transforms

augment = transforms.Compose([
    transforms.RandomAffine(degrees=20, translate=(0.1, 0.1), scale=(0.8, 1.2), shear=None,
                            interpolation=transforms.InterpolationMode.BILINEAR, fill=(255, 255, 255)),
    transforms.ToTensor(),
])
""",
    ),
    Row(
        "v2-underscore-transform",
        [("TM768", 6)],
        code="""\
import torch
from torchvision.transforms import v2

class Clamp(v2.Transform):
    _transformed_types = (torch.Tensor,)
    def _transform(self, inpt, params):
        return inpt.clamp(0, 1)
""",
        fixed="""\
import torch
from torchvision.transforms import v2

class Clamp(v2.Transform):
    _transformed_types = (torch.Tensor,)
    def transform(self, inpt, params):
        return inpt.clamp(0, 1)
""",
        quiet="""\
import torch
from torchvision.transforms import v2

class Clamp(v2.Transform):
    def transform(self, inpt, params):
        return self._transform(inpt)
    def _transform(self, inpt):
        return inpt.clamp(0, 1)
""",
    ),
    Row(
        "sox-chain",
        [("TM812", 5)],
        code="""\
import torchaudio

def faster(path, speed):
    info, _ = torchaudio.info(path)
    chain = torchaudio.sox_effects.SoxEffectsChain()
    chain.append_effect_to_chain("speed", speed)
    chain.append_effect_to_chain("rate", info.rate)
    chain.set_input_file(path)
    return chain.sox_build_flow_effects()
""",
        quiet="""\
import torchaudio

def faster(wave, rate, speed):
    return torchaudio.functional.speed(wave, rate, speed)
""",
    ),
    Row(
        "fb-matrix",
        [("TM821", 5)],
        code="""\
import torchaudio.functional as AF

class Mel:
    def bank(self, bins, low, high, rate):
        return AF.create_fb_matrix(bins, low, high, self.count, rate)
    count = 40
""",
        fixed="""\
import torchaudio.functional as AF

class Mel:
    def bank(self, bins, low, high, rate):
        return AF.melscale_fbanks(bins, low, high, self.count, rate)
    count = 40
""",
        quiet="""\
import torchaudio.functional as AF

class Mel:
    def bank(self, bins, low, high, rate):
        return AF.melscale_fbanks(bins, low, high, self.count, rate)
    count = 40
""",
    ),
    Row(
        "resampling-method",
        [("TM820", 3)],
        code="""\
import torchaudio

BEST = dict(lowpass_filter_width=64, resampling_method="kaiser_window", beta=14.77)

def resampler(old, new):
    return torchaudio.transforms.Resample(old, new, **BEST)
""",
        quiet="""\
import torchaudio

BEST = dict(lowpass_filter_width=64, resampling_method="sinc_interp_kaiser", beta=14.77)

def resampler(old, new):
    return torchaudio.transforms.Resample(old, new, **BEST)
""",
    ),
    Row(
        "stft-real",
        [("TM152", 6)],
        code="""\
import torch

class Front(torch.nn.Module):
    def forward(self, noisy, n_fft=400, hop=100):
        window = torch.hamming_window(n_fft, device=noisy.device)
        spec = torch.stft(noisy, n_fft, hop, window=window, onesided=True)
        real, imag = spec[..., 0], spec[..., 1]
        return torch.sqrt(real ** 2 + imag ** 2)
""",
        fixed="""\
import torch

class Front(torch.nn.Module):
    def forward(self, noisy, n_fft=400, hop=100):
        window = torch.hamming_window(n_fft, device=noisy.device)
        spec = torch.stft(noisy, n_fft, hop, window=window, onesided=True, return_complex=True)
        real, imag = spec.real, spec.imag
        return torch.sqrt(real ** 2 + imag ** 2)
""",
        quiet="""\
import torch

class Front(torch.nn.Module):
    def forward(self, noisy, n_fft=400, hop=100):
        window = torch.hamming_window(n_fft, device=noisy.device)
        spec = torch.stft(noisy, n_fft, hop, window=window, onesided=True, return_complex=True)
        return spec.abs()
""",
    ),
    Row(
        "istft-pair",
        [("TM149", 10)],
        code="""\
import torch

def uncompress(real, imag):
    mag = (real ** 2 + imag ** 2) ** 1.67
    phase = torch.atan2(imag, real)
    return torch.stack([mag * torch.cos(phase), mag * torch.sin(phase)], -1)

def enhance(net, real, imag, n_fft, hop):
    spec = uncompress(*net(real, imag)).squeeze(1)
    return torch.istft(spec, n_fft, hop, window=torch.hamming_window(n_fft), onesided=True)
""",
        fixed="""\
import torch

def uncompress(real, imag):
    mag = (real ** 2 + imag ** 2) ** 1.67
    phase = torch.atan2(imag, real)
    return torch.stack([mag * torch.cos(phase), mag * torch.sin(phase)], -1)

def enhance(net, real, imag, n_fft, hop):
    spec = uncompress(*net(real, imag)).squeeze(1)
    return torch.istft(torch.view_as_complex(spec.contiguous()), n_fft, hop, window=torch.hamming_window(n_fft), onesided=True)
""",
        quiet="""\
import torch

def uncompress(real, imag):
    mag = (real ** 2 + imag ** 2) ** 1.67
    phase = torch.atan2(imag, real)
    return torch.complex(mag * torch.cos(phase), mag * torch.sin(phase))

def enhance(net, real, imag, n_fft, hop):
    spec = uncompress(*net(real, imag)).squeeze(1)
    return torch.istft(spec, n_fft, hop, window=torch.hamming_window(n_fft), onesided=True)
""",
    ),
    Row(
        "optimizer-overloads",
        [("TM154", 17), ("TM155", 18), ("TM155", 20)],
        code="""\
import torch
from torch.optim.optimizer import Optimizer

class Rec(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999)):
        super().__init__(params, dict(lr=lr, betas=betas))
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad.data
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p.data)
                    state["exp_avg_sq"] = torch.zeros_like(p.data)
                exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
                beta1, beta2 = group["betas"]
                exp_avg.mul_(beta1).add_(1 - beta1, grad)
                exp_avg_sq.mul_(beta2).addcmul_(1 - beta2, grad, grad)
                denom = exp_avg_sq.sqrt().add_(1e-8)
                p.data.addcdiv_(-group["lr"], exp_avg, denom)
""",
        fixed="""\
import torch
from torch.optim.optimizer import Optimizer

class Rec(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999)):
        super().__init__(params, dict(lr=lr, betas=betas))
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad.data
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p.data)
                    state["exp_avg_sq"] = torch.zeros_like(p.data)
                exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
                beta1, beta2 = group["betas"]
                exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)
                exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
                denom = exp_avg_sq.sqrt().add_(1e-8)
                p.data.addcdiv_(exp_avg, denom, value=-group["lr"])
""",
        quiet="""\
import torch
from torch.optim.optimizer import Optimizer

class Rec(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999)):
        super().__init__(params, dict(lr=lr, betas=betas))
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad
                state = self.state[p]
                beta1, beta2 = group["betas"]
                state["exp_avg"].mul_(beta1).add_(grad, alpha=1 - beta1)
                state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
""",
    ),
    Row(
        "loader-iterator",
        [("TM615", 2)],
        code="""\
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _DataLoaderIter

class _MSIter(_DataLoaderIter):
    def __init__(self, loader):
        self.scale = loader.scale
        super().__init__(loader)

class MSLoader(DataLoader):
    def __iter__(self):
        return _MSIter(self)
""",
        quiet="""\
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

class MSLoader(DataLoader):
    def __iter__(self):
        return _MultiProcessingDataLoaderIter(self)
""",
    ),
    Row(
        "cpp-standard",
        [("TM076", 5), ("TM076", 6)],
        code="""\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

standard = 14
cxx = [f"-std=c++{standard}", "-O3"]
nvcc = [f"-std=c++{standard}", "-U__CUDA_NO_HALF_OPERATORS__"]
setup(name="bvh", ext_modules=[CUDAExtension("_bvh", ["api.cu"], extra_compile_args={"cxx": cxx, "nvcc": nvcc})],
      cmdclass={"build_ext": BuildExtension})
""",
        quiet="""\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

standard = 20
cxx = [f"-std=c++{standard}", "-O3"]
nvcc = [f"-std=c++{standard}", "-U__CUDA_NO_HALF_OPERATORS__"]
setup(name="bvh", ext_modules=[CUDAExtension("_bvh", ["api.cu"], extra_compile_args={"cxx": cxx, "nvcc": nvcc})],
      cmdclass={"build_ext": BuildExtension})
""",
    ),
    Row(
        "capture-pre-autograd",
        [("TM665", 1)],
        code="""\
from torch._export import capture_pre_autograd_graph

def graph(model, inputs):
    return capture_pre_autograd_graph(model.eval(), inputs)
""",
        fixed="""\
import torch

def graph(model, inputs):
    return torch.export.export(model.eval(), inputs, strict=True).module()
""",
        quiet="""\
from torch.export import export

def graph(model, inputs):
    return export(model.eval(), inputs, strict=False).module()
""",
    ),
    Row(
        "pipeline-sync",
        [("TM563", 2)],
        code="""\
import torch.nn as nn
from torch.distributed.pipeline.sync import Pipe

def split(first, second):
    return Pipe(nn.Sequential(first.cuda(0), second.cuda(1)), chunks=8)
""",
        quiet="""\
import torch.nn as nn
from torch.distributed.pipelining import PipelineStage

def split(first, second, device):
    return PipelineStage(nn.Sequential(first, second), 0, 2, device)
""",
    ),
    Row(
        "prefetch-without-workers",
        [("TM079", 4)],
        code="""\
from torch.utils.data import DataLoader

def loader(data, workers=0, prefetch=2):
    return DataLoader(data, batch_size=1, num_workers=workers, prefetch_factor=prefetch)

def predict(rows):
    return [row for row in loader(rows)]
""",
        quiet="""\
from torch.utils.data import DataLoader

def loader(data, workers=4, prefetch=2):
    return DataLoader(data, batch_size=1, num_workers=workers, prefetch_factor=prefetch)

def predict(rows):
    return [row for row in loader(rows)]
""",
    ),
    Row(
        "shared-adam",
        [("TM442", 9)],
        code="""\
import torch

class SharedAdam(torch.optim.Adam):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, lr=lr)
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] = 0
                state["exp_avg"] = torch.zeros_like(p.data)
                state["exp_avg_sq"] = torch.zeros_like(p.data)
                state["exp_avg"].share_memory_()
""",
        quiet="""\
import torch

class SharedAdam(torch.optim.Adam):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, lr=lr)
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] = torch.tensor(0.0)
                state["exp_avg"] = torch.zeros_like(p.data)
""",
    ),
    Row(
        "full-label",
        [("TM445", 9)],
        code="""\
import torch
import torch.nn as nn

criterion = nn.BCELoss()
real, fake = 1, 0

def step(net, batch, device):
    size = batch.size(0)
    label = torch.full((size,), real, device=device)
    loss = criterion(net(batch).view(-1), label)
    loss.backward()
""",
        fixed="""\
import torch
import torch.nn as nn

criterion = nn.BCELoss()
real, fake = 1, 0

def step(net, batch, device):
    size = batch.size(0)
    label = torch.full((size,), real, device=device, dtype=torch.float)
    loss = criterion(net(batch).view(-1), label)
    loss.backward()
""",
        quiet="""\
import torch
import torch.nn as nn

criterion = nn.BCELoss()
real, fake = 1.0, 0.0

def step(net, batch, device):
    size = batch.size(0)
    label = torch.full((size,), real, device=device)
    loss = criterion(net(batch).view(-1), label)
    loss.backward()
""",
    ),
    Row(
        "mnist-processed",
        [("TM772", 7)],
        code="""\
import os
import torch
from torchvision.datasets import MNIST

class Noisy(MNIST):
    def reload(self):
        name = self.training_file if self.train else self.test_file
        self.data, self.targets = torch.load(os.path.join(self.processed_folder, name))
""",
        quiet="""\
import os
import torch
from torchvision.datasets import MNIST

class Noisy(MNIST):
    def reload(self):
        self.data, self.targets = self._load_data()
""",
    ),
    Row(
        "scheduler-super-verbose",
        [("TM451", 6)],
        code="""\
from torch.optim.lr_scheduler import _LRScheduler

class Poly(_LRScheduler):
    def __init__(self, optimizer, start, steps, now=None):
        self.start, self.steps, self.ctr = start, steps, 0
        super().__init__(optimizer, now if now is not None else -1, False)

    def step(self, now=None):
        pass
""",
        fixed="""\
from torch.optim.lr_scheduler import _LRScheduler

class Poly(_LRScheduler):
    def __init__(self, optimizer, start, steps, now=None):
        self.start, self.steps, self.ctr = start, steps, 0
        super().__init__(optimizer, now if now is not None else -1)

    def step(self, now=None):
        pass
""",
        quiet="""\
from torch.optim.lr_scheduler import LRScheduler

class Poly(LRScheduler):
    def __init__(self, optimizer, start, steps, now=None):
        self.start, self.steps, self.ctr = start, steps, 0
        super().__init__(optimizer, now if now is not None else -1)

    def step(self, now=None):
        pass
""",
    ),
    Row(
        "circular-padding",
        [("TM447", 8)],
        code="""\
import torch.nn as nn

class Token(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.conv = nn.Conv1d(
            width, out, kernel_size=3,
            padding=2, padding_mode="circular")
""",
        fixed="""\
import torch.nn as nn

class Token(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.conv = nn.Conv1d(
            width, out, kernel_size=3,
            padding=1, padding_mode="circular")
""",
        quiet="""\
import torch.nn as nn

class Token(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.conv = nn.Conv1d(
            width, out, kernel_size=3,
            padding=2, padding_mode="zeros")
""",
    ),
    Row(
        "load-normalization",
        [("TM807", 5)],
        code="""\
import torchaudio

def read_batch(paths):
    return [
        torchaudio.load(path, normalization=True, channels_first=True)[0] for path in paths
    ]
""",
        fixed="""\
import torchaudio

def read_batch(paths):
    return [
        torchaudio.load(path, channels_first=True)[0] for path in paths
    ]
""",
        quiet="""\
import audio as torchaudio

def read_batch(paths):
    return [
        torchaudio.load(path, normalization=True, channels_first=True)[0] for path in paths
    ]
""",
    ),
    Row(
        "opt-state",
        [("TM066", 1)],
        code="""\
from torch.cuda.amp.grad_scaler import OptState, _refresh_per_optimizer_state

class Scaler:
    def reset(self, states):
        states.update(_refresh_per_optimizer_state())
        return OptState.READY
""",
        fixed="""\
from torch.cuda.amp.grad_scaler import OptState
from torch.amp.grad_scaler import _refresh_per_optimizer_state

class Scaler:
    def reset(self, states):
        states.update(_refresh_per_optimizer_state())
        return OptState.READY
""",
        quiet="""\
from torch.amp.grad_scaler import OptState, _refresh_per_optimizer_state

class Scaler:
    def reset(self, states):
        states.update(_refresh_per_optimizer_state())
        return OptState.READY
""",
    ),
    Row(
        "layer-is-causal",
        [("TM441", 7)],
        code="""\
import torch.nn as nn

class Layer(nn.TransformerEncoderLayer):
    def __init__(self, width, heads):
        super().__init__(width, heads)

    def forward(self, src, src_mask=None, src_key_padding_mask=None):
        return self.norm1(src + self._sa_block(src, src_mask, src_key_padding_mask))

class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        layer = Layer(width, 4)
        self.layers = nn.TransformerEncoder(layer, 2)
""",
        fixed="""\
import torch.nn as nn

class Layer(nn.TransformerEncoderLayer):
    def __init__(self, width, heads):
        super().__init__(width, heads)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=None):
        return self.norm1(src + self._sa_block(src, src_mask, src_key_padding_mask))

class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        layer = Layer(width, 4)
        self.layers = nn.TransformerEncoder(layer, 2)
""",
        quiet="""\
import torch.nn as nn

class Layer(nn.TransformerEncoderLayer):
    def __init__(self, width, heads):
        super().__init__(width, heads)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        return self.norm1(src + self._sa_block(src, src_mask, src_key_padding_mask))

class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        layer = Layer(width, 4)
        self.layers = nn.TransformerEncoder(layer, 2)
""",
    ),
    Row(
        "quotient-of-topk",
        [("TM133", 6)],
        code="""\
import torch

def junctions(heat, offset, width):
    flat = heat.reshape(-1)
    scores, index = torch.topk(flat, k=300)
    y = (index / width).float() + torch.gather(offset[1], 0, index)
    x = (index % width).float() + torch.gather(offset[0], 0, index)
    return torch.stack((x, y), 1), scores
""",
        fixed="""\
import torch

def junctions(heat, offset, width):
    flat = heat.reshape(-1)
    scores, index = torch.topk(flat, k=300)
    y = (index // width).float() + torch.gather(offset[1], 0, index)
    x = (index % width).float() + torch.gather(offset[0], 0, index)
    return torch.stack((x, y), 1), scores
""",
        quiet="""\
import torch

def junctions(heat, offset, width):
    flat = heat.reshape(-1)
    scores, index = torch.topk(flat, k=300)
    y = (index // width).float() + torch.gather(offset[1], 0, index)
    x = (index % width).float() + torch.gather(offset[0], 0, index)
    return torch.stack((x, y), 1), scores
""",
    ),
    Row(
        "tensor-dataset-names",
        [("TM080", 4)],
        code="""\
import torch.utils.data as D

def loaders(train, labels):
    return D.DataLoader(D.TensorDataset(data_tensor=train, target_tensor=labels), 50, True)
""",
        quiet="""\
import torch.utils.data as D

def loaders(train, labels):
    return D.DataLoader(D.TensorDataset(train, labels), 50, True)
""",
    ),
    Row(
        "cuda-device-id",
        [("TM081", 6)],
        code="""\
import torch.nn as nn

class Net(nn.Module):
    def place(self, gpus):
        if gpus:
            self.cuda(device_id=gpus[0])
        return self
""",
        fixed="""\
import torch.nn as nn

class Net(nn.Module):
    def place(self, gpus):
        if gpus:
            self.cuda(device=gpus[0])
        return self
""",
        quiet="""\
import torch.nn as nn

class Net(nn.Module):
    def place(self, gpus):
        if gpus:
            self.cuda(device=gpus[0])
        return self
""",
    ),
]


def _line(text: str, start: int) -> int:
    return text.count("\n", 0, start) + 1


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_reported_cause(row: Row) -> None:
    codes = [code for code, _ in row.found]
    found, fixed = checked_and_fixed(row.code, codes)
    assert [(item.code, _line(row.code, item.start)) for item in found] == row.found
    assert fixed == (row.fixed or row.code)
    assert set(codes) <= {item.code for item in run(row.code, *CHECKED).findings}, "it is on by default"


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_code_that_looks_alike_is_not_reported(row: Row) -> None:
    assert run(row.quiet, *CHECKED).findings == []
