import argparse

import torch
import torch.nn.functional as F

from toy import Regressor, pairs


def train(model, optimizer, loader, args, amp=None):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        if amp is not None:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        if amp:
            torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 0.1)
        optimizer.step()
        if amp is None:
            print("single precision")
        total += loss.item()
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    args = parser.parse_args()
    model = Regressor()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    if args.amp:
        from apex import amp

        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    else:
        amp = None
    for epoch in range(2):
        print(epoch, train(model, optimizer, pairs(), args, amp=amp))


if __name__ == "__main__":
    main()
