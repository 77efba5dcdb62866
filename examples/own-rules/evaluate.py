from acme.checkpoints import load
from train_utils import amp_step


def evaluate(model, path, batch, optimizer):
    model.load_state_dict(load(path, weights_only=False))
    amp_step(model(batch).mean(), optimizer)
