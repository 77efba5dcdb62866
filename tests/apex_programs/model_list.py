import torch
from apex import amp

from toy import pairs

config = {"lr": 0.05, "apex": {"level": "O1"}}
models = {"a": torch.nn.Linear(6, 8), "b": torch.nn.Linear(8, 3)}
optimizer = torch.optim.SGD([{"params": m.parameters()} for m in models.values()], lr=config["lr"])
nets, optimizer = amp.initialize(list(models.values()), optimizer, opt_level=config["apex"]["level"])
loss_of = torch.nn.MSELoss()


def step(batch):
    x, y = batch
    hidden = nets[0](x)
    out = nets[1](torch.relu(hidden))
    total = loss_of(out, y)
    optimizer.zero_grad()
    with amp.scale_loss(total, optimizer) as scaled:
        scaled.backward()
    optimizer.step()
    return {"loss": total.item()}


for batch in pairs(8):
    print(step(batch))
