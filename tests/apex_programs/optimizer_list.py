import argparse

import apex
import torch
import torch.nn as nn
import torch.nn.functional as F

from toy import pairs

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.02)
args = parser.parse_args()

backbone = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
head = nn.Linear(8, 3)
optimizers = [torch.optim.SGD(backbone.parameters(), lr=args.lr), torch.optim.Adam(head.parameters(), lr=args.lr)]
[backbone, head], optimizers = apex.amp.initialize([backbone, head], optimizers, opt_level="O1")


def run_epoch(epoch):
    for x, y in pairs():
        features = backbone(x)
        loss = F.mse_loss(head(features), y)
        for optimizer in optimizers:
            optimizer.zero_grad()
        with apex.amp.scale_loss(loss, optimizers) as scaled_loss:
            scaled_loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        print(epoch, loss.item())


for epoch in range(2):
    run_epoch(epoch)
