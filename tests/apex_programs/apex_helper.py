import argparse

import torch
import torch.nn as nn

from toy import Classifier, batches


def initialize_apex(model, optimizer, apex_level=None, apex_verbosity=0):
    if apex_level is not None:
        try:
            from apex import amp
        except ImportError:
            raise ImportError("Install Apex to train model with mixed precision.")

        model, optimizer = amp.initialize(model, optimizer, opt_level=apex_level, verbosity=apex_verbosity)

    return model, optimizer


class Trainer:
    def __init__(self, model, apex_level=None, max_grad_norm=1, batch_split=2):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        self.model, self.optimizer = initialize_apex(self.model, self.optimizer, apex_level=apex_level)
        self.apex_level = apex_level
        self.max_grad_norm = max_grad_norm
        self.batch_split = batch_split
        self.criterion = nn.CrossEntropyLoss()

    def _loss(self, preds, labels):
        return self.criterion(preds, labels)

    def _backward(self, loss):
        if self.apex_level is not None:
            try:
                from apex import amp
            except ImportError:
                raise ImportError("Install Apex to train model with mixed precision.")

            with amp.scale_loss(loss, self.optimizer) as scale_loss:
                scale_loss.backward()
        else:
            loss.backward()

    def _clip_grad_norm(self):
        if self.apex_level is not None:
            try:
                from apex import amp
            except ImportError:
                raise ImportError("Install Apex to train model with mixed precision.")

            torch.nn.utils.clip_grad_norm_(amp.master_params(self.optimizer), self.max_grad_norm)
        else:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_grad_norm)

    def train(self, loader):
        for i, (inputs, labels) in enumerate(loader):
            pred_logits = self.model(inputs)
            loss = self._loss(pred_logits, labels)
            self._backward(loss)
            print(i, loss.item())
            if (i + 1) % self.batch_split == 0:
                self._clip_grad_norm()
                self.optimizer.step()
                self.optimizer.zero_grad()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--apex_level", default="O1")
    args = parser.parse_args()
    Trainer(Classifier(), args.apex_level).train(batches(8))


main()
