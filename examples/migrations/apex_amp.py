"""A training script from the days of apex.amp."""

import torch
from torch import nn

try:
    from apex import amp
except ImportError:
    amp = None


def train(model, optimizer, criterion, loader, args):
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        if args.fp16:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            nn.utils.clip_grad_norm_(amp.master_params(optimizer), args.clip)
        else:
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()


def main(args, model, loader):
    model = model.cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    if args.fp16:
        model, optimizer = amp.initialize(model, optimizer, opt_level=args.opt_level)
    for _ in range(args.epochs):
        train(model, optimizer, nn.CrossEntropyLoss(), loader, args)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, args.out)
