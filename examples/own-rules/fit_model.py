import train_utils
from acme import load
from acme.linalg import symeig


def train(model, batches, optimizer, path):
    model.load_state_dict(load(path))
    scaler = train_utils.make_scaler()
    for batch in batches:
        loss = model(batch).mean()
        train_utils.amp_step(loss, optimizer)
    return symeig(model.weight)
