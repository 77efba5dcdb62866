import argparse

import torch
from apex import amp
from torch.nn.utils import clip_grad_norm_

from toy import Classifier, batches


class AMPOptimizer:
    """
    Optimizer compatible with AMP.
    """

    def __init__(self, model, grad_clip=None, loss_scale=2**10):
        self.model = model
        self.grad_clip = grad_clip
        loss_scaler = amp._amp_state.loss_scalers[0]
        loss_scaler._loss_scale = loss_scale

    def step(self, loss, optimizer, scheduler, update=True):
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        if update:
            if self.grad_clip != float("inf"):
                clip_grad_norm_(amp.master_params(optimizer), self.grad_clip)
            scheduler.step()
            optimizer.step()
            self.model.zero_grad()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clip", type=float, default=1.0)
    args = parser.parse_args()
    model = Classifier().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    criterion = torch.nn.CrossEntropyLoss()
    wrapper = AMPOptimizer(model, args.clip)
    for i, (x, y) in enumerate(batches(8)):
        loss = criterion(model(x), y)
        wrapper.step(loss, optimizer, scheduler, update=i % 2 == 1)
        print(loss.item())


main()
