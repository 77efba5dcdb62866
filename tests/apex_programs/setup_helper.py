import argparse

import torch
import torch.nn as nn

from toy import Classifier, batches

try:
    from apex import amp
    HAS_APEX = True
except ImportError:
    HAS_APEX = False


def setup(args):
    """Everything that training needs."""
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    if args.fp16:
        if not HAS_APEX:
            raise RuntimeError("--fp16 needs apex")
        model, optimizer = amp.initialize(model, optimizer, opt_level=args.fp16_opt_level)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    return model, optimizer, scheduler


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--fp16_opt_level", default="O1")
    args = parser.parse_args()
    model, optimizer, scheduler = setup(args)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(2):
        for images, labels in batches():
            logits = model(images)
            loss = criterion(logits, labels)
            if args.fp16:
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
            else:
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        scheduler.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
