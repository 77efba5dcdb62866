import argparse

import torch
from torch import nn

from toy import Encoder, dataset

try:
    from apex import amp
    _has_apex = True
except ImportError:
    _has_apex = False


def is_apex_available():
    return _has_apex


class Trainer:
    def __init__(self, model, args, train_dataset=None):
        self.model = model.to(args.device)
        self.args = args
        self.train_dataset = train_dataset
        self.optimizer, self.lr_scheduler = None, None

    def get_optimizers(self, num_training_steps):
        if self.optimizer is not None:
            return self.optimizer, self.lr_scheduler
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.args.learning_rate)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 1.0)
        return optimizer, scheduler

    def train(self, model_path=None):
        train_dataloader = [{"input_ids": x, "labels": y} for x, y in self.train_dataset]
        optimizer, scheduler = self.get_optimizers(num_training_steps=10)
        model = self.model
        if self.args.fp16:
            if not is_apex_available():
                raise ImportError("Please install apex from https://www.github.com/nvidia/apex to use fp16 training.")
            model, optimizer = amp.initialize(model, optimizer, opt_level=self.args.fp16_opt_level)
        if self.args.n_gpu > 1:
            model = torch.nn.DataParallel(model)
        tr_loss = 0.0
        model.zero_grad()
        for epoch in range(3):
            for step, inputs in enumerate(train_dataloader):
                tr_loss += self._training_step(model, inputs, optimizer)
                if (step + 1) % self.args.gradient_accumulation_steps == 0:
                    if self.args.fp16:
                        torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), self.args.max_grad_norm)
                    else:
                        torch.nn.utils.clip_grad_norm_(model.parameters(), self.args.max_grad_norm)
                    optimizer.step()
                    scheduler.step()
                    model.zero_grad()
            print(tr_loss)
        return tr_loss

    def _training_step(self, model: nn.Module, inputs, optimizer) -> float:
        model.train()
        for k, v in inputs.items():
            inputs[k] = v.to(self.args.device)
        outputs = model(**inputs)
        loss = outputs[0]
        if self.args.n_gpu > 1:
            loss = loss.mean()
        if self.args.gradient_accumulation_steps > 1:
            loss = loss / self.args.gradient_accumulation_steps
        if self.args.fp16:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        return loss.item()

    def evaluate(self, loader):
        model = self.model
        model.eval()
        for inputs in loader:
            with torch.no_grad():
                outputs = model(**inputs)
                print(outputs[0].mean())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--fp16_opt_level", default="O1")
    parser.add_argument("--learning_rate", type=float, default=1e-2)
    parser.add_argument("--max_grad_norm", type=float, default=0.5)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=2)
    args = parser.parse_args()
    args.device, args.n_gpu = torch.device("cuda"), 1
    loader = torch.utils.data.DataLoader(dataset(24), batch_size=4)
    trainer = Trainer(Encoder(), args, train_dataset=loader)
    print(trainer.train())


if __name__ == "__main__":
    main()
