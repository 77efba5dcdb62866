import argparse

import torch
import torch.nn as nn
from apex import amp

from toy import noise


class GAN:
    def __init__(self, lr):
        self.generator = nn.Sequential(nn.Linear(4, 6), nn.Tanh())
        self.discriminator = nn.Sequential(nn.Linear(6, 6), nn.LeakyReLU(), nn.Linear(6, 1))
        self.g_optimizer = torch.optim.Adam(self.generator.parameters(), lr=lr)
        self.d_optimizer = torch.optim.Adam(self.discriminator.parameters(), lr=lr)
        self.generator, self.g_optimizer = amp.initialize(self.generator, self.g_optimizer, opt_level="O1")
        self.discriminator, self.d_optimizer = amp.initialize(self.discriminator, self.d_optimizer, opt_level="O1")

    def train_discriminator(self, real, z):
        fake = self.generator(z).detach()
        d_loss = torch.relu(1 - self.discriminator(real)).mean() + torch.relu(1 + self.discriminator(fake)).mean()
        self.d_optimizer.zero_grad()
        with amp.scale_loss(d_loss, self.d_optimizer) as scaled_loss:
            scaled_loss.backward()
        self.d_optimizer.step()
        return d_loss.item()

    def train_generator(self, z):
        g_loss = -self.discriminator(self.generator(z)).mean()
        self.g_optimizer.zero_grad()
        with amp.scale_loss(g_loss, self.g_optimizer) as scaled_loss:
            scaled_loss.backward()
        self.g_optimizer.step()
        return g_loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.01)
    args = parser.parse_args()
    gan = GAN(args.lr)
    for i in range(6):
        d_loss = gan.train_discriminator(noise(4, 6, seed=i), noise(4, 4, seed=20 + i))
        g_loss = gan.train_generator(noise(4, 4, seed=40 + i))
        print(i, d_loss, g_loss)


if __name__ == "__main__":
    main()
