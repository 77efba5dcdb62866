import argparse

import torch
import torch.nn as nn

from toy import Classifier, batches

try:
    from apex.fp16_utils import *
    from apex import amp
    from apex.optimizers import FusedSGD
except ImportError:  # will be 3.x series
    print("This is not an error. If you want to use low precision, please install the apex with cuda support.")

parser = argparse.ArgumentParser(description="Training")
parser.add_argument("--lr", default=0.05, type=float)
parser.add_argument("--fp16", action="store_true", help="use float16 instead of float32, which will save about 50% memory")
opt = parser.parse_args()
fp16 = opt.fp16


def train_model(model, criterion, optimizer, scheduler, num_epochs=25):
    for epoch in range(num_epochs):
        for phase in ["train", "val"]:
            if phase == "train":
                model.train(True)
            else:
                model.train(False)
            running_loss = 0.0
            for inputs, labels in batches():
                inputs, labels = inputs.cuda().detach(), labels.cuda().detach()
                optimizer.zero_grad()
                if phase == "val":
                    with torch.no_grad():
                        outputs = model(inputs)
                else:
                    outputs = model(inputs)
                _, preds = torch.max(outputs.data, 1)
                loss = criterion(outputs, labels)
                del inputs
                # backward + optimize only if in training phase
                if phase == "train":
                    if fp16:  # we use optimier to backward loss
                        with amp.scale_loss(loss, optimizer) as scaled_loss:
                            scaled_loss.backward()
                    else:
                        loss.backward()
                    optimizer.step()
                running_loss += loss.item()
            print("{} Loss: {:.4f}".format(phase, running_loss))
        scheduler.step()
    return model


model = Classifier()
optimizer_ft = torch.optim.SGD(model.parameters(), lr=opt.lr, momentum=0.9, nesterov=True)
exp_lr_scheduler = torch.optim.lr_scheduler.StepLR(optimizer_ft, step_size=1, gamma=0.1)
model = model.cuda()
if fp16:
    # model = network_to_half(model)
    # optimizer_ft = FP16_Optimizer(optimizer_ft, static_loss_scale = 128.0)
    model, optimizer_ft = amp.initialize(model, optimizer_ft, opt_level="O1")

criterion = nn.CrossEntropyLoss()
model = train_model(model, criterion, optimizer_ft, exp_lr_scheduler, num_epochs=2)
