"""Whether what a project saves may hold more than tensors, numbers and plain containers."""

from __future__ import annotations

import re

# Who writes with these keeps settings, and states of its own, as objects beside the weights.
WRITERS = (b"pytorch_lightning", b"lightning.pytorch", b"save_hyperparameters", b"deepspeed")
SAVES = b"torch.save"
# `"args": args` (argparse.Namespace), `"config": cfg` (OmegaConf, yacs) in a dictionary that is written out.
_OBJECT = re.compile(
    rb"['\"](?:\w*args|\w*cfg|\w*conf|\w*config|opts?|options|hparams|\w*hyper_?param\w*)['\"]\s*:\s*(?!str\(|dict\(|vars\()[A-Za-z_]"
)


def may_hold_objects(data: bytes) -> bool:
    """Whether a file saves settings as an object, or uses what does so."""
    if any(word in data for word in WRITERS):
        return True
    return SAVES in data and _OBJECT.search(data) is not None
