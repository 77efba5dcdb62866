import argparse

import torch
import torch.nn as nn
from apex import amp, parallel

from toy import batches


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 8)
        self.bn = nn.BatchNorm1d(8)
        self.fc2 = nn.Linear(8, 3)

    def forward(self, x):
        return self.fc2(torch.relu(self.bn(self.fc1(x))))


def reduce_loss(loss, args):
    return loss.detach() / args.world_size


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--apex", action="store_true", help="use apex for mixed precision")
    parser.add_argument("--apex-opt-level", default="O1")
    parser.add_argument("--sync-bn", action="store_true")
    parser.add_argument("--world-size", type=int, default=1)
    args = parser.parse_args()
    model = Net()
    if args.sync_bn:
        model = parallel.convert_syncbn_model(model)
    model.cuda()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
    if args.apex:
        model, optimizer = amp.initialize(model, optimizer, opt_level=args.apex_opt_level)
    model_without_ddp = model
    if args.world_size > 1:
        model = parallel.DistributedDataParallel(model, delay_allreduce=True)
        model_without_ddp = model.module
    criterion = nn.CrossEntropyLoss()
    for epoch in range(2):
        model.train()
        for image, target in batches():
            output = model(image)
            loss = criterion(output, target)
            optimizer.zero_grad()
            if args.apex:
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
            else:
                loss.backward()
            optimizer.step()
            print(reduce_loss(loss, args).item())
        torch.save(model_without_ddp.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
