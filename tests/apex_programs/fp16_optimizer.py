import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from toy import Regressor, pairs

try:
    from apex.fp16_utils import FP16_Optimizer, network_to_half
except ImportError:
    raise ImportError("Please install apex.")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--static-loss-scale", type=float, default=128.0)
    parser.add_argument("--clip", type=float, default=1.0)
    args = parser.parse_args()
    model = Regressor().cuda()
    if args.fp16:
        model = network_to_half(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    if args.fp16:
        optimizer = FP16_Optimizer(optimizer, static_loss_scale=args.static_loss_scale)
    for epoch in range(2):
        for x, y in pairs():
            optimizer.zero_grad()
            loss = F.mse_loss(model(x.cuda()).float(), y.cuda())
            if args.fp16:
                optimizer.backward(loss)
                optimizer.clip_master_grads(args.clip)
            else:
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            print(loss.item())


main()
