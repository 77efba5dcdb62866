import argparse

import torch
from torch import nn
import torch.nn.functional as F
from torch.optim import Adam

from toy import noise

try:
    from apex import amp
    APEX_AVAILABLE = True
except:
    APEX_AVAILABLE = False


def loss_backwards(fp16, loss, optimizer, **kwargs):
    if fp16:
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward(**kwargs)
    else:
        loss.backward(**kwargs)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 6))

    def forward(self, x):
        return F.l1_loss(self.net(x), x)


class Trainer(object):
    def __init__(self, model, *, train_lr=1e-2, train_num_steps=6, gradient_accumulate_every=2, fp16=False):
        super().__init__()
        self.model = model
        self.gradient_accumulate_every = gradient_accumulate_every
        self.train_num_steps = train_num_steps
        self.opt = Adam(model.parameters(), lr=train_lr)
        self.step = 0
        assert not fp16 or fp16 and APEX_AVAILABLE, "Apex must be installed in order for mixed precision training to be turned on"
        self.fp16 = fp16
        if fp16:
            (self.model, self.ema), self.opt = amp.initialize([self.model, Denoiser()], self.opt, opt_level="O1")

    def train(self):
        while self.step < self.train_num_steps:
            for i in range(self.gradient_accumulate_every):
                data = noise(4, 6, seed=self.step + i)
                loss = self.model(data)
                print(f"{self.step}: {loss.item()}")
                loss_backwards(self.fp16, loss / self.gradient_accumulate_every, self.opt)
            self.opt.step()
            self.opt.zero_grad()
            self.step += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    args = parser.parse_args()
    trainer = Trainer(Denoiser(), fp16=args.fp16)
    trainer.train()


main()
