import argparse
import os

import torch
import torch.nn as nn

from toy import Classifier, batches

try:
    from apex import amp

    APEX_AVAILABLE = True
except ModuleNotFoundError:
    APEX_AVAILABLE = False


class Trainer:
    def __init__(self, args):
        self.args = args
        self.global_step = 0
        self.model = Classifier().cuda()
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.use_amp = args.amp and APEX_AVAILABLE
        if self.use_amp:
            self.model, self.optimizer = amp.initialize(self.model, self.optimizer, opt_level=args.opt_level)
        if torch.cuda.device_count() > 1:
            self.model = nn.DataParallel(self.model)

    def _backward(self, loss):
        if self.use_amp:
            with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()

    def _clip_gradients(self):
        if self.use_amp:
            nn.utils.clip_grad_norm_(amp.master_params(self.optimizer), self.args.clip)
        else:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip)

    def train_epoch(self, loader):
        self.model.train()
        total = 0.0
        for images, labels in loader:
            images, labels = images.cuda(), labels.cuda()
            self.optimizer.zero_grad()
            logits = self.model(images)
            loss = self.criterion(logits, labels)
            self._backward(loss)
            self._clip_gradients()
            self.optimizer.step()
            self.global_step += 1
            total += loss.item()
        return total

    def evaluate(self, loader):
        self.model.eval()
        losses = []
        with torch.no_grad():
            for images, labels in loader:
                losses.append(self.criterion(self.model(images.cuda()), labels.cuda()).item())
        return sum(losses) / len(losses)

    def save(self, path):
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.global_step}
        if self.use_amp:
            state["amp"] = amp.state_dict()
        torch.save(state, path)

    def load(self, path):
        state = torch.load(path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.use_amp and "amp" in state:
            amp.load_state_dict(state["amp"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--opt-level", default="O1")
    parser.add_argument("--clip", type=float, default=0.5)
    args = parser.parse_args()
    trainer = Trainer(args)
    for epoch in range(2):
        print(epoch, trainer.train_epoch(batches()), trainer.evaluate(batches(2)))
        trainer.save("last.pt")
    trainer.load("last.pt")


if __name__ == "__main__":
    main()
