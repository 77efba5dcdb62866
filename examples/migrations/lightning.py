"""A classifier with Lightning 1.5."""

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.seed import seed_everything
from torch.nn.functional import cross_entropy


class Classifier(pl.LightningModule):
    def __init__(self, model, lr=1e-3):
        super().__init__()
        self.model, self.lr = model, lr

    def training_step(self, batch, batch_idx):
        images, labels = batch
        return cross_entropy(self.model(images), labels)

    def validation_step(self, batch, batch_idx):
        images, labels = batch
        return {"right": (self.model(images).argmax(1) == labels).float()}

    def validation_epoch_end(self, outputs):
        self.log("accuracy", torch.cat([output["right"] for output in outputs]).mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)

    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_idx, optimizer_closure, **kwargs):
        optimizer.step(closure=optimizer_closure)


def train(model, data, path):
    seed_everything(1)
    trainer = pl.Trainer(gpus=1, max_epochs=3, progress_bar_refresh_rate=20, resume_from_checkpoint=path)
    trainer.fit(Classifier(model), *data)
