import argparse

import torch
from apex import amp

from toy import Encoder, dataset


class Trainer:
    def __init__(self, args, model, opt):
        self.args = args
        self.model = model
        self.opt = opt

    def prepare(self):
        if self.args.amp:
            [self.model], [self.opt] = amp.initialize([self.model], [self.opt], opt_level=self.args.amp_level)

    def optimize(self, loss, step):
        if self.args.amp:
            with amp.scale_loss(loss, self.opt) as scaled_loss:
                scaled_loss.backward()
            print(step, "scale", amp._amp_state.loss_scalers[0]._loss_scale)
        else:
            loss.backward()
        if self.args.clip > 0:
            params = amp.master_params(self.opt) if self.args.amp else self.model.parameters()
            torch.nn.utils.clip_grad_norm_(params, self.args.clip)
        self.opt.step()
        self.opt.zero_grad()

    def train(self, loader):
        self.prepare()
        for step, (x, y) in enumerate(loader):
            loss, _ = self.model(x, y)
            self.optimize(loss, step)
            print(loss.item())
        torch.save({"model": self.model.state_dict(), "amp": amp.state_dict() if self.args.amp else None}, "x.pt")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--amp_level", default="O1")
    parser.add_argument("--clip", type=float, default=0.3)
    args = parser.parse_args()
    model = Encoder()
    Trainer(args, model, torch.optim.Adam(model.parameters(), lr=0.02)).train(
        torch.utils.data.DataLoader(dataset(24), batch_size=4)
    )


if __name__ == "__main__":
    main()
