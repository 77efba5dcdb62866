import argparse

import torch
from apex import amp

from toy import Regressor, noise


def get_optimizer(params, name, lr):
    if name == "sgd":
        return torch.optim.SGD(params, lr)
    return torch.optim.Adam(params, lr)


def backward(loss, opt, cfg, loss_id):
    if cfg.use_amp:
        with amp.scale_loss(loss, opt, loss_id=loss_id) as scaled:
            scaled.backward()
    else:
        loss.backward()


def main(cfg):
    G, D = torch.nn.Linear(6, 6), Regressor()
    opt_G = get_optimizer(G.parameters(), cfg.opt, 0.01)
    opt_D = get_optimizer(D.parameters(), cfg.opt, 0.01)
    if cfg.use_amp:
        (G, D), (opt_G, opt_D) = amp.initialize([G, D], [opt_G, opt_D], opt_level=cfg.opt_level, num_losses=2)
    for i in range(5):
        real, z = noise(4, 6, seed=i), noise(4, 6, seed=50 + i)
        fake = G(z)
        loss_D = D(fake.detach()).mean() - D(real).mean()
        opt_D.zero_grad()
        backward(loss_D, opt_D, cfg, 0)
        opt_D.step()
        loss_G = -D(fake).mean()
        opt_G.zero_grad()
        backward(loss_G, opt_G, cfg, 1)
        opt_G.step()
        print("%d %s %s" % (i, loss_D.item(), loss_G.item()))


parser = argparse.ArgumentParser()
parser.add_argument("--amp", dest="use_amp", action="store_true")
parser.add_argument("--opt", default="adam")
parser.add_argument("--opt_level", default="O1")
main(parser.parse_args())
