"""Train a small classifier, as one wrote it for PyTorch 1.7."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable
from torch.cuda.amp import GradScaler, autocast
from torchvision import models


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = models.resnet18(pretrained=True)
        self.head = nn.Linear(1000, classes)
        nn.init.xavier_uniform(self.head.weight)

    def forward(self, x):
        return F.sigmoid(self.head(self.backbone(x)))


def whiten(x):
    """Rotate features to their principal axes."""
    values, vectors = torch.symeig(x.t() @ x, eigenvectors=True)
    return x @ vectors / values.sqrt()


def train(net, loader, epochs):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    criterion = nn.MSELoss(size_average=False)
    scaler = GradScaler()
    for _ in range(epochs):
        for x, y in loader:
            x, y = Variable(x.cuda()), Variable(y.cuda())
            with autocast():  # the forward pass only
                loss = criterion(net(x), y)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    net = Net(classes=10).cuda()
    net.load_state_dict(torch.load(parser.parse_args().checkpoint))
