import argparse
import math

import torch
from apex import amp

from toy import Encoder, dataset


def setup(args):
    model = Encoder()
    model.to(args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.learning_rate, momentum=0.9)
    if args.fp16:
        model, optimizer = amp.initialize(models=model, optimizers=optimizer, opt_level=args.fp16_opt_level)
        amp._amp_state.loss_scalers[0]._loss_scale = 2**20
    return args, model, optimizer


def train(args, model, optimizer):
    model.zero_grad()
    global_step = 0
    for step, batch in enumerate(torch.utils.data.DataLoader(dataset(24), batch_size=4)):
        batch = tuple(t.to(args.device) for t in batch)
        x, y = batch
        loss = model(x, y)[0]
        if args.gradient_accumulation_steps > 1:
            loss = loss / args.gradient_accumulation_steps
        if args.fp16:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        if (step + 1) % args.gradient_accumulation_steps == 0:
            if args.fp16:
                torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), args.max_grad_norm)
            else:
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
            optimizer.step()
            optimizer.zero_grad()
            global_step += 1
            print(global_step, loss.item() * args.gradient_accumulation_steps)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--learning_rate", default=3e-2, type=float)
    parser.add_argument("--max_grad_norm", default=1.0, type=float)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--fp16_opt_level", type=str, default="O2")
    parser.add_argument("--loss_scale", type=float, default=0, help="Loss scaling, only used when fp16 set to True.")
    args = parser.parse_args()
    args.device = torch.device("cuda")
    args, model, optimizer = setup(args)
    train(args, model, optimizer)


if __name__ == "__main__":
    main()
