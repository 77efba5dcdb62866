import argparse

import torch
import torch.nn as nn
from apex import amp

from toy import Classifier, Engine, batches


def main(opt):
    model = Classifier().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    model, optimizer = amp.initialize(model, optimizer, opt_level=opt)
    criterion = nn.CrossEntropyLoss().cuda()

    def train_step(engine, batch):
        x, y = (item.cuda() for item in batch)
        optimizer.zero_grad()
        y_pred = model(x)
        loss = criterion(y_pred, y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        return loss.item()

    def eval_step(engine, batch):
        model.eval()
        with torch.no_grad():
            x, y = batch
            return model(x), y

    trainer = Engine(train_step)
    evaluator = Engine(eval_step)
    print(trainer.run(batches()))
    for logits, _ in evaluator.run(batches(2)):
        print(logits.float().sum().item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--opt", type=str, default="O1")
    main(parser.parse_args().opt)
