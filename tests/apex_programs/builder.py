import argparse

import torch
from apex import amp

from toy import Classifier, batches


def make(args):
    model = Classifier().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    return model, optimizer


def build_loss():
    return torch.nn.CrossEntropyLoss().cuda()


def train_epoch(model, optimizer, criterion, loader):
    meter = []
    for images, target in loader:
        output = model(images.cuda())
        loss = criterion(output, target.cuda())
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        torch.nn.utils.clip_grad_value_(amp.master_params(optimizer), 0.5)
        optimizer.step()
        meter.append(loss.item())
    return sum(meter)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()
    model, optimizer = make(args)
    criterion = build_loss()
    model, optimizer = amp.initialize(model, optimizer, opt_level="O2", loss_scale="dynamic", verbosity=0)
    for epoch in range(2):
        print(train_epoch(model, optimizer, criterion, batches()))


main()
