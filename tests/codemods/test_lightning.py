"""Lightning 1 to 2: a program runs on a small trainer of each kind, before and after the fixes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from harness.fixing import checked_and_fixed
from harness.program import FIX_ALL, fixed, only, run

CODES = ("TM880", "TM881", "TM882", "TM883", "TM884", "TM885", "TM886", "TM888", "TM889", "TM896")

# What trainers of both kinds do, as far as these programs need it.
COMMON = """
class LightningModule:
    def log(self, name, value): print("log", name, value)
    def on_train_epoch_start(self): pass
    def on_train_epoch_end(self): pass
    def on_validation_epoch_start(self): pass
    def on_validation_epoch_end(self): pass
    def on_test_epoch_start(self): pass
    def on_test_epoch_end(self): pass
class Callback: pass
class TQDMProgressBar:
    def __init__(self, refresh_rate): self.refresh_rate = refresh_rate
def detached(output):
    return output if isinstance(output, dict) else {"loss": output}
"""
OLD = (
    COMMON
    + """
class Trainer:
    def __init__(self, gpus=None, max_epochs=1, accelerator=None, checkpoint_callback=True, weights_summary="top",
                 progress_bar_refresh_rate=None, resume_from_checkpoint=None, replace_sampler_ddp=True, callbacks=()):
        self.epochs, self.path = max_epochs, resume_from_checkpoint
        print("trainer", "gpu" if gpus else "cpu", gpus or 1, checkpoint_callback, weights_summary is not None,
              progress_bar_refresh_rate, replace_sampler_ddp)
    def fit(self, module, data):
        print("from", self.path)
        for _ in range(self.epochs):
            module.on_train_epoch_start()
            outputs = []
            for index, batch in enumerate(data):
                outputs.append(detached(module.training_step(batch, index)))
                module.optimizer_step(0, index, "optimizer", 0, lambda: "closure", on_tpu=False)
            module.training_epoch_end(outputs)
    def validate(self, module, data):
        module.on_validation_epoch_start()
        outputs = [module.validation_step(batch, index) for index, batch in enumerate(data)]
        module.validation_epoch_end([item for item in outputs if item is not None])
"""
)
NEW = (
    COMMON
    + """
class Trainer:
    def __init__(self, *, devices="auto", max_epochs=1, accelerator="auto", enable_checkpointing=True,
                 enable_model_summary=True, enable_progress_bar=True, use_distributed_sampler=True, callbacks=()):
        self.epochs = max_epochs
        rates = [item.refresh_rate for item in callbacks]
        rate = 0 if not enable_progress_bar else rates[0] if rates else None
        print("trainer", accelerator, 1 if devices == "auto" else devices, enable_checkpointing,
              enable_model_summary, rate, use_distributed_sampler)
    def fit(self, module, data, ckpt_path=None):
        assert not hasattr(module, "training_epoch_end") and not hasattr(module, "validation_epoch_end")
        print("from", ckpt_path)
        for _ in range(self.epochs):
            module.on_train_epoch_start()
            for index, batch in enumerate(data):
                module.training_step(batch, index)
                module.optimizer_step(0, index, "optimizer", lambda: "closure")
            module.on_train_epoch_end()
    def validate(self, module, data):
        module.on_validation_epoch_start()
        for index, batch in enumerate(data):
            module.validation_step(batch, index)
        module.on_validation_epoch_end()
"""
)
PROGRAM = '''
import pytorch_lightning as pl


class Net(pl.LightningModule):
    def training_step(self, batch, batch_idx):
        loss = batch * 2
        {returned}

    def training_epoch_end(self, outputs):
        """The losses of an epoch."""
        self.log("train", [item["loss"] for item in outputs])

    def validation_step(self, batch, batch_idx):
        if batch > 2:
            return {{"l": batch}}  # a large one
        result = {{"l": -batch}}
        return result

    def validation_epoch_end(self, outs):
        if not outs:
            return
        self.log("val", [item["l"] for item in outs])

    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_idx, optimizer_closure, on_tpu=False):
        print(optimizer, optimizer_closure())


def main(path):
    trainer = pl.Trainer({arguments})
    trainer.fit(Net(), [1, 2, 3])
    trainer.validate(Net(), [1, 2, 3])
    trainer.validate(Net(), [])


main("last.ckpt")
'''
ARGUMENTS = (
    "gpus=2, max_epochs=2, checkpoint_callback=False, weights_summary=None, progress_bar_refresh_rate=0",
    "max_epochs=1, gpus=0, progress_bar_refresh_rate=20, resume_from_checkpoint=path",
    "gpus=None, weights_summary='top', resume_from_checkpoint=None, replace_sampler_ddp=False",
    "gpus=[0, 1], resume_from_checkpoint='first.ckpt', checkpoint_callback=True",
    "gpus=len(path)",
)


def printed(directory: Path, library: str, program: str) -> str:
    """What a program prints with a library."""
    package = directory / "pytorch_lightning"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"{library}\nfrom . import callbacks\n")
    (package / "callbacks.py").write_text("from pytorch_lightning import TQDMProgressBar\n")
    (directory / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=directory, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + program
    return done.stdout


@pytest.mark.parametrize("arguments", ARGUMENTS)
@pytest.mark.parametrize(
    "returned", ['return {"loss": loss, "n": 1}', "return loss", "out = dict(loss=loss)\n        return out"]
)
def test_a_program_prints_the_same_on_both(tmp_path: Path, arguments: str, returned: str) -> None:
    program = PROGRAM.format(arguments=arguments, returned=returned)
    new = fixed(program, *only(CODES), *FIX_ALL)
    assert not run(new, *only(CODES)).findings
    assert printed(tmp_path / "new", NEW, new) == printed(tmp_path / "old", OLD, program)


CLASS = "import pytorch_lightning as pl\n\n\nclass Net(pl.LightningModule):\n"
STEP = "    def test_step(self, batch, batch_idx{0}):\n        {1}\n\n"
END = "    def test_epoch_end(self, outputs):\n        self.log('t', sum(outputs))\n"
KEPT = {
    "no step": CLASS + END,
    "several loaders": CLASS + STEP.format(", dataloader_idx=0", "return batch") + END,
    "the hook is there": CLASS
    + STEP.format("", "return batch")
    + END
    + "\n    def on_test_epoch_end(self): pass\n",
    "the start is there": CLASS
    + STEP.format("", "return batch")
    + END
    + "\n    def on_test_epoch_start(self): pass\n",
    "nothing is returned": CLASS + STEP.format("", "self.log('x', batch)") + END,
    "the step is called": CLASS
    + STEP.format("", "return batch")
    + END
    + "\n    def f(self): self.test_step(1, 2)\n",
    "the end is called": CLASS
    + STEP.format("", "return batch")
    + END
    + "\n    def f(self): self.test_epoch_end([])\n",
    "a generator": CLASS + STEP.format("", "yield batch") + END,
    "another hook": CLASS
    + STEP.format("", "return batch")
    + END
    + "\n    def test_step_end(self, x): return x\n",
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_not_clear_is_only_reported(name: str) -> None:
    found, new = checked_and_fixed(KEPT[name], ["TM885"])
    assert [item.symbol for item in found] == ["pytorch_lightning.LightningModule.test_epoch_end"]
    assert found[0].blocked_by
    assert new == KEPT[name]


def test_outputs_that_nothing_reads_need_no_list() -> None:
    text = CLASS + "    def test_epoch_end(self, outputs):\n        self.log('t', self.metric.compute())\n"
    found, new = checked_and_fixed(text, ["TM885"])
    assert len(found) == 1
    assert new == text.replace("test_epoch_end(self, outputs)", "on_test_epoch_end(self)")


def test_a_class_of_the_file_between() -> None:
    text = (
        CLASS + "    pass\n\n\nclass Other(Net):\n    def training_epoch_end(self, outputs):\n        pass\n"
    )
    found, new = checked_and_fixed(text, ["TM885"])
    assert len(found) == 1
    assert "def on_train_epoch_end(self):" in new


HOOKS = [
    (
        "optimizer_step(self, epoch, batch_idx, optimizer, optimizer_idx, closure)",
        "optimizer_step(self, epoch, batch_idx, optimizer, closure)",
    ),
    (
        "optimizer_zero_grad(self, epoch, batch_idx, optimizer, optimizer_idx)",
        "optimizer_zero_grad(self, epoch, batch_idx, optimizer)",
    ),
    (
        "backward(self, loss, optimizer, optimizer_idx, *, retain=False)",
        "backward(self, loss, *, retain=False)",
    ),
    (
        "on_train_batch_end(self, outputs, batch, batch_idx, dataloader_idx)",
        "on_train_batch_end(self, outputs, batch, batch_idx)",
    ),
    ("on_train_epoch_end(self, outputs)", "on_train_epoch_end(self)"),
    (
        "lr_scheduler_step(self, scheduler, optimizer_idx, metric)",
        "lr_scheduler_step(self, scheduler, metric)",
    ),
    (
        "training_step(self, batch, batch_idx, optimizer_idx=0)",
        "training_step(self, batch, batch_idx)",
    ),
    # These work as they are.
    ("on_train_batch_end(self, outputs, batch, batch_idx, dataloader_idx=0)", None),
    ("optimizer_step(self, epoch, batch_idx, optimizer, closure, on_tpu=False)", None),
    ("optimizer_step(self, *args, **kwargs)", None),
    ("on_validation_batch_end(self, outputs, batch, batch_idx, dataloader_idx)", None),
    ("configure_optimizers(self)", None),
]


@pytest.mark.parametrize(("old", "new"), HOOKS)
def test_parameters_of_hooks(old: str, new: str | None) -> None:
    text = f"{CLASS}    def {old}:\n        print(1)\n"
    found, after = checked_and_fixed(text, ["TM886"])
    assert len(found) == (new is not None)
    assert after == text.replace(old, new or old)


def test_a_parameter_that_is_used_stays() -> None:
    text = f"{CLASS}    def training_step(self, batch, batch_idx, optimizer_idx):\n        return optimizer_idx\n"
    found, after = checked_and_fixed(text, ["TM886"])
    assert [str(item.blocked_by[0].text) for item in found] == ["`optimizer_idx` is used"]
    assert after == text


def test_either_package() -> None:
    """`lightning.pytorch` and `pytorch_lightning` are one library: an import of either is no test of a release."""
    text = (
        "try:\n    import lightning.pytorch as pl\nexcept ImportError:\n    import pytorch_lightning as pl\n\n\n"
        "class Net(pl.LightningModule):\n    def training_epoch_end(self, outputs):\n        pass\n\n\n"
        "trainer = pl.Trainer(gpus=1)\n"
    )
    found, _ = checked_and_fixed(text, ["TM880", "TM885"])
    assert [item.code for item in found] == ["TM885", "TM880"]


@pytest.mark.parametrize(
    "guarded",
    [
        "if Version(pl.__version__) < Version('2.0'):\n    trainer = pl.Trainer(gpus=1)\n",
        "if Version(importlib.metadata.version('pytorch-lightning')) < Version('2'):\n    pl.Trainer(gpus=1)\n",
        "try:\n    trainer = pl.Trainer(devices=1)\nexcept TypeError:\n    trainer = pl.Trainer(gpus=1)\n",
    ],
)
def test_code_for_older_releases_is_left_alone(guarded: str) -> None:
    imports = (
        "import importlib.metadata\nimport pytorch_lightning as pl\nfrom packaging.version import Version\n"
    )
    found, _ = checked_and_fixed(imports + guarded, ["TM880"])
    assert not found
