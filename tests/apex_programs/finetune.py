import argparse
import logging
import os

import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from toy import Encoder, dataset

logger = logging.getLogger(__name__)


def train(args, train_dataset, model, tokenizer):
    """Train the model"""
    args.train_batch_size = 4 * max(1, args.n_gpu)
    train_dataloader = DataLoader(train_dataset, batch_size=args.train_batch_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, eps=1e-8)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    if args.fp16:
        try:
            from apex import amp
        except ImportError:
            raise ImportError("Please install apex from https://www.github.com/nvidia/apex to use fp16 training.")
        model, optimizer = amp.initialize(model, optimizer, opt_level=args.fp16_opt_level)

    # multi-gpu training (should be after apex fp16 initialization)
    if args.n_gpu > 1:
        model = torch.nn.DataParallel(model)

    # Distributed training (should be after apex fp16 initialization)
    if args.local_rank != -1:
        model = torch.nn.parallel.DistributedDataParallel(
            model, device_ids=[args.local_rank], output_device=args.local_rank, find_unused_parameters=True
        )

    global_step = 0
    tr_loss, logging_loss = 0.0, 0.0
    model.zero_grad()
    for _ in range(int(args.num_train_epochs)):
        for step, batch in enumerate(train_dataloader):
            model.train()
            batch = tuple(t.to(args.device) for t in batch)
            inputs = {"input_ids": batch[0], "labels": batch[1]}
            outputs = model(**inputs)
            loss = outputs[0]  # model outputs are always tuple in transformers (see doc)

            if args.n_gpu > 1:
                loss = loss.mean()  # mean() to average on multi-gpu parallel training
            if args.gradient_accumulation_steps > 1:
                loss = loss / args.gradient_accumulation_steps

            if args.fp16:
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
            else:
                loss.backward()

            tr_loss += loss.item()
            if (step + 1) % args.gradient_accumulation_steps == 0:
                if args.fp16:
                    torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), args.max_grad_norm)
                else:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)

                optimizer.step()
                scheduler.step()  # Update learning rate schedule
                model.zero_grad()
                global_step += 1

                if args.local_rank in [-1, 0] and args.logging_steps > 0 and global_step % args.logging_steps == 0:
                    results = evaluate(args, model, tokenizer)
                    print("eval", results, (tr_loss - logging_loss) / args.logging_steps)
                    logging_loss = tr_loss
    return global_step, tr_loss / global_step


def evaluate(args, model, tokenizer, prefix=""):
    eval_loss = 0.0
    for batch in DataLoader(dataset(8, seed=5), batch_size=4):
        model.eval()
        with torch.no_grad():
            outputs = model(input_ids=batch[0], labels=batch[1])
            tmp_eval_loss, logits = outputs[:2]
            eval_loss += tmp_eval_loss.mean().item()
    return eval_loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--learning_rate", default=5e-3, type=float)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=2)
    parser.add_argument("--max_grad_norm", default=1.0, type=float)
    parser.add_argument("--num_train_epochs", default=2.0, type=float)
    parser.add_argument("--logging_steps", type=int, default=2)
    parser.add_argument("--fp16", action="store_true", help="Whether to use 16-bit (mixed) precision (through NVIDIA apex)")
    parser.add_argument(
        "--fp16_opt_level",
        type=str,
        default="O1",
        help="For fp16: Apex AMP optimization level selected in ['O0', 'O1', 'O2', and 'O3'].",
    )
    parser.add_argument("--local_rank", type=int, default=-1)
    args = parser.parse_args()
    args.n_gpu, args.device = 1, torch.device("cuda")
    model = Encoder()
    model.to(args.device)
    global_step, tr_loss = train(args, dataset(24), model, None)
    print(" global_step = %s, average loss = %s" % (global_step, tr_loss))


if __name__ == "__main__":
    main()
