"""Fine-tunes a transformer, written for torch 2.2."""

import torch
from torch.cuda.amp import GradScaler, autocast
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.checkpoint import checkpoint


def attention(q, k, v):
    with torch.backends.cuda.sdp_kernel(enable_flash=True, enable_math=False, enable_mem_efficient=False):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def step(model, head, batch, optimizer, scaler):
    with autocast(dtype=torch.float16):
        hidden = checkpoint(model, batch["input"])
        loss = head(hidden, batch["label"])
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss.detach()


def main(model, head, loader, path):
    model.load_state_dict(torch.load(path))
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = ReduceLROnPlateau(optimizer, verbose=True)
    scaler = GradScaler()
    for batch in loader:
        schedule.step(step(model, head, batch, optimizer, scaler))
    torch.onnx.export(model, torch.zeros(1, 8), "model.onnx")
