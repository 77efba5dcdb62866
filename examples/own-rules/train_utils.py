import torch


def make_scaler():
    return torch.amp.GradScaler("cuda")


def step(loss, optimizer, scaler):
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
