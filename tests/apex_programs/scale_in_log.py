import argparse

import torch
from apex import amp
from torch import nn

from toy import Regressor, pairs

parser = argparse.ArgumentParser()
parser.add_argument("--opt_level", default="O1")
parser.add_argument("--accumulate", type=int, default=2)
args = parser.parse_args()

model = Regressor().cuda()
criterion = nn.SmoothL1Loss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
model, optimizer = amp.initialize(model, optimizer, opt_level=args.opt_level)

for epoch in range(2):
    for i, (x, y) in enumerate(pairs()):
        pred = model(x.cuda())
        loss = criterion(pred, y.cuda()) / args.accumulate
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        if (i + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
            print("epoch {} iter {} loss {:.5f} loss scale {}".format(
                epoch, i, loss.item(), amp._amp_state.loss_scalers[0].loss_scale()))
