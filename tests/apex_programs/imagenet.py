import argparse

import torch
import torch.nn as nn

from toy import Classifier, batches

try:
    from apex.parallel import DistributedDataParallel as DDP
    from apex.fp16_utils import *
    from apex import amp, optimizers
    from apex.multi_tensor_apply import multi_tensor_applier
except ImportError:
    raise ImportError("Please install apex from https://www.github.com/nvidia/apex to run this example.")


def parse():
    parser = argparse.ArgumentParser(description="training")
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--sync_bn", action="store_true", help="enabling apex sync BN.")
    parser.add_argument("--opt-level", type=str, default="O1")
    parser.add_argument("--keep-batchnorm-fp32", type=str, default=None)
    parser.add_argument("--loss-scale", type=str, default=None)
    return parser.parse_args()


def main():
    global best, args
    args = parse()
    print("opt_level = {}".format(args.opt_level))
    print("loss_scale = {}".format(args.loss_scale), type(args.loss_scale))
    args.distributed = False
    best = 0
    model = Classifier()
    if args.sync_bn:
        import apex

        print("using apex synced BN")
        model = apex.parallel.convert_syncbn_model(model)
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)

    # Initialize Amp.  It accepts either values or strings for the optional override arguments.
    model, optimizer = amp.initialize(
        model,
        optimizer,
        opt_level=args.opt_level,
        keep_batchnorm_fp32=args.keep_batchnorm_fp32,
        loss_scale=args.loss_scale,
    )
    if args.distributed:
        # delay_allreduce delays all communication to the end of the backward pass.
        model = DDP(model, delay_allreduce=True)
    criterion = nn.CrossEntropyLoss().cuda()
    for epoch in range(args.epochs):
        train(batches(), model, criterion, optimizer, epoch)
        prec1 = validate(batches(2), model, criterion)
        best = max(prec1, best)
    print(best)


class Prefetcher:
    def __init__(self, loader):
        self.loader = iter(loader)

    def next(self):
        try:
            return next(self.loader)
        except StopIteration:
            return None, None


def train(train_loader, model, criterion, optimizer, epoch):
    losses = AverageMeter()
    model.train()
    prefetcher = Prefetcher(train_loader)
    input, target = prefetcher.next()
    i = 0
    while input is not None:
        i += 1
        adjust_learning_rate(optimizer, epoch, i)

        # compute output
        output = model(input)
        loss = criterion(output, target)

        # compute gradient and do SGD step
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()

        if i % 2 == 0:
            if args.distributed:
                reduced_loss = reduce_tensor(loss.data)
            else:
                reduced_loss = loss.data
            # to_python_float incurs a host<->device sync
            losses.update(to_python_float(reduced_loss), input.size(0))
            torch.cuda.synchronize()
            print("Epoch: [{0}][{1}] Loss {loss.val:.10f} ({loss.avg:.4f})".format(epoch, i, loss=losses))
        input, target = prefetcher.next()


def validate(val_loader, model, criterion):
    losses = AverageMeter()
    model.eval()
    for input, target in val_loader:
        with torch.no_grad():
            output = model(input)
            loss = criterion(output, target)
        losses.update(to_python_float(loss.data), input.size(0))
    return losses.avg


class AverageMeter(object):
    def __init__(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def adjust_learning_rate(optimizer, epoch, step):
    for group in optimizer.param_groups:
        group["lr"] = 0.1 / (1 + epoch)


def reduce_tensor(tensor):
    rt = tensor.clone()
    torch.distributed.all_reduce(rt)
    return rt


if __name__ == "__main__":
    main()
