import argparse

import torch
import torch.nn as nn
from apex import amp
from apex.parallel import DistributedDataParallel as ApexDDP

from toy import Classifier, batches


def train(model, criterion, optimizer, loader, args):
    model.train()
    optimizer.zero_grad()
    for i, (inputs, targets) in enumerate(loader):
        inputs, targets = inputs.cuda(non_blocking=True), targets.cuda(non_blocking=True)
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss = loss / args.batches_per_step
        last = (i + 1) % args.batches_per_step == 0
        with amp.scale_loss(loss, optimizer, delay_unscale=not last) as scaled_loss:
            scaled_loss.backward()
        if last:
            grad_norm = torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), args.grad_clip)
            optimizer.step()
            optimizer.zero_grad()
            print("loss %.6f norm %.6f" % (loss.item(), grad_norm))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches-per-step", type=int, default=3)
    parser.add_argument("--grad-clip", type=float, default=0.8)
    parser.add_argument("--static-loss-scale", type=float, default=1.0)
    parser.add_argument("--dynamic-loss-scale", action="store_true")
    parser.add_argument("--distributed", action="store_true")
    args = parser.parse_args()
    model = Classifier().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    model, optimizer = amp.initialize(
        model,
        optimizer,
        opt_level="O1",
        loss_scale="dynamic" if args.dynamic_loss_scale else args.static_loss_scale,
    )
    if args.distributed:
        model = ApexDDP(model)
    for epoch in range(2):
        train(model, nn.CrossEntropyLoss(), optimizer, batches(), args)


if __name__ == "__main__":
    main()
