import argparse

import torch

from toy import Classifier, batches

try:
    from apex import amp
except ImportError:
    amp = None


class Learner:
    def __init__(self, config, net, opt):
        self.config = config
        self.net = net
        self.opt = opt
        self.setup()

    def setup(self):
        if self.config.amp and amp is not None:
            self.net, self.opt = amp.initialize(self.net, self.opt, opt_level="O1")

    def backward(self, loss):
        if self.config.amp:
            with amp.scale_loss(loss, self.opt) as scaled:
                scaled.backward()
        else:
            loss.backward()

    def fit(self, epochs):
        for epoch in range(epochs):
            self.net.train()
            for batch in batches():
                loss = self.compute(batch)
                self.opt.zero_grad()
                self.backward(loss)
                self.opt.step()
                print(epoch, loss.item())

    def compute(self, batch):
        x, y = batch
        return torch.nn.functional.cross_entropy(self.net(x), y)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    net = Classifier()
    Learner(parser.parse_args(), net, torch.optim.SGD(net.parameters(), lr=0.1)).fit(2)
