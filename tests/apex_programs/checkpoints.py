import argparse
import os

import torch
from torch import nn
from apex import amp

from toy import Classifier, batches


def save_checkpoint(path, model, optimizer, epoch):
    torch.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "amp": amp.state_dict(), "epoch": epoch},
        path,
    )


def load_checkpoint(path, model, optimizer):
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    amp.load_state_dict(checkpoint["amp"])
    return checkpoint["epoch"] + 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--opt-level", type=str, choices=["O0", "O1", "O2", "O3"], default="O1")
    args = parser.parse_args()
    model = Classifier().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    model, optimizer = amp.initialize(model, optimizer, opt_level=args.opt_level)
    start = load_checkpoint(args.checkpoint, model, optimizer) if os.path.exists(args.checkpoint) else 0
    for epoch in range(start, 2):
        for x, y in batches():
            loss = criterion(model(x), y)
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        save_checkpoint(args.checkpoint, model, optimizer, epoch)
        print(epoch, loss.item())
    print(load_checkpoint(args.checkpoint, model, optimizer))


if __name__ == "__main__":
    main()
