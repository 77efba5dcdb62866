"""apex.amp to torch.amp: whole files, run before and after; and what is refused."""

from __future__ import annotations

import textwrap
import types
from typing import Any, ClassVar

import pytest
import torch
from apex_fake import installed
from harness.fixing import checked_and_fixed
from harness.program import FIX_ALL, fixed, only
from harness.program import run as checked

from torchmigrate.codemods.apex.amp import RULES
from torchmigrate.report.reasons import help_of

CODES = frozenset(RULES)
HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn


def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def batches(count=6):
    generator = torch.Generator().manual_seed(1)
    for number in range(count):
        x = torch.randn(4, 6, generator=generator)
        yield (x * float("inf") if number == BAD else x), torch.randn(4, 3, generator=generator)
"""


def check(text: str, codes: frozenset[str] = CODES) -> tuple[list[str], str]:
    """The help of every finding, and the fixed text."""
    found, new = checked_and_fixed(text, codes)
    if new != text:
        assert "apex" not in new.replace("apex_", "")
        assert not checked_and_fixed(new, codes)[0]
        compile(new, "train.py", "exec")
    return [help_of(finding) or "" for finding in found], new


def script(body: str) -> str:
    return f"{HEAD}\n\n{textwrap.dedent(body).strip()}\n"


def run(text: str, **options: Any) -> list[torch.Tensor]:
    """What `main` gives; bfloat16 on the CPU stands for half precision."""
    args = types.SimpleNamespace(**{"fp16": True, "clip": 0.5, "opt_level": "O1", "steps": 1, **options})
    space: dict[str, Any] = {"__name__": "train", "BAD": 3 if args.fp16 else None}  # an overflow
    exec(compile(text.replace('"cuda"', '"cpu"'), "train.py", "exec"), space)
    found = space["main"](args)
    return [torch.as_tensor(item).float() for item in found]


SCRIPTS = {
    "one function": """
        from apex import amp


        def main(args):
            model = make()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model, optimizer = amp.initialize(model, optimizer, opt_level="O1", verbosity=0)
            losses = []
            for x, y in batches():
                optimizer.zero_grad()
                out = model(x)
                loss = F.mse_loss(out, y)
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
                torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), args.clip)
                optimizer.step()
                losses.append(loss.item())
            return [*model.parameters(), losses]
    """,
    "both branches": """
        try:
            from apex import amp

            HAS_APEX = True
        except ImportError:
            HAS_APEX = False


        def train(model, optimizer, args):
            for x, y in batches():
                loss = F.mse_loss(model(x), y)
                if args.fp16:
                    with amp.scale_loss(loss, optimizer) as scaled_loss:
                        scaled_loss.backward()
                    torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), args.clip)
                else:
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
                optimizer.step()
                model.zero_grad()


        @torch.no_grad()
        def validate(model):
            model.eval()
            return [F.mse_loss(model(x), y) for x, y in batches(3)]


        def main(args):
            if args.fp16 and not HAS_APEX:
                raise RuntimeError("install apex")
            model = make()
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            if args.fp16:
                model, optimizer = amp.initialize(model, optimizer, opt_level=args.opt_level)
            train(model, optimizer, args)
            return [*model.parameters(), *validate(model)]
    """,
    "trainer": """
        import apex


        class Trainer:
            def __init__(self, model, args):
                self.args = args
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
                self.model, self.optimizer = apex.amp.initialize(
                    model, optimizer, enabled=args.fp16, opt_level="O1", loss_scale="dynamic"
                )

            def step(self, x, y):
                pred = self.model(x)
                loss = self.loss(pred, y)
                self.optimizer.zero_grad()
                with apex.amp.scale_loss(loss, self.optimizer) as scaled:
                    scaled.backward()
                self.optimizer.step()

            def loss(self, pred, y):
                return F.smooth_l1_loss(pred, y)

            def evaluate(self):
                self.model.eval()
                with torch.no_grad():
                    return [self.model(x) for x, _ in batches(2)]


        def main(args):
            trainer = Trainer(make(), args)
            for x, y in batches():
                trainer.step(x, y)
            return [*trainer.model.parameters(), *trainer.evaluate()]
    """,
    "accumulation": """
        from apex import amp


        def main(args):
            model = make()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model, optimizer = amp.initialize(model, optimizer, opt_level=args.opt_level)
            norms = []
            for number, (x, y) in enumerate(batches(8)):
                loss = F.mse_loss(model(x), y)
                loss = loss / 2
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
                if (number + 1) % 2 == 0:
                    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
                    norms.append(norm.item())
                    optimizer.step()
                    optimizer.zero_grad()
            return [*model.parameters(), [n for n in norms if n == n and n < 1e9]]
    """,
    "two optimizers": """
        from apex import amp


        def main(args):
            first, second = make(), nn.Linear(3, 3)
            opt_first = torch.optim.SGD(first.parameters(), lr=0.1)
            opt_second = torch.optim.SGD(second.parameters(), lr=0.1)
            [first, second], [opt_first, opt_second] = amp.initialize(
                [first, second], [opt_first, opt_second], opt_level="O1", num_losses=2
            )
            for x, y in batches(3):
                opt_first.zero_grad()
                loss_first = F.mse_loss(first(x), y)
                with amp.scale_loss(loss_first, opt_first, loss_id=0) as scaled:
                    scaled.backward()
                opt_first.step()

                opt_second.zero_grad()
                fake = first(x).detach()
                loss_second = F.mse_loss(second(fake), y)
                with amp.scale_loss(loss_second, opt_second, loss_id=1) as scaled:
                    scaled.backward()
                opt_second.step()
            return [*first.parameters(), *second.parameters()]
    """,
    "step in a function": """
        from apex import amp


        def run_step(batch, model, criterion=F.mse_loss):
            x, y = batch
            return criterion(model(x), y)


        def train_one(model, optimizer, batch, scale=1.0):
            loss = run_step(batch, model)
            loss = loss * scale
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()
            return loss


        def fit(model, optimizer):
            for batch in batches():
                train_one(model, optimizer, batch)
                model.zero_grad()


        def main(args):
            model = make()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model, optimizer = amp.initialize(model, optimizer)
            fit(model, optimizer)
            return model.parameters()
    """,
    "condition on the level": """
        try:
            from apex import amp
        except ImportError:
            amp = None


        def main(args):
            if args.opt_level != "O0":
                assert amp is not None, "amp not installed!"
            model = make()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            if args.opt_level != "O0":
                model, optimizer = amp.initialize(model, optimizer, opt_level=args.opt_level)
            for x, y in batches():
                optimizer.zero_grad()
                loss = F.mse_loss(model(x), y)
                if args.opt_level != "O0":
                    with amp.scale_loss(loss, optimizer) as scaled_loss:
                        scaled_loss.backward()
                    if args.clip:
                        norm = torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), args.clip)
                    else:
                        norm = 0.0
                else:
                    loss.backward()
                    if args.clip:
                        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
                    else:
                        norm = 0.0
                optimizer.step()
            return model.parameters()
    """,
    "gradients used before they are unscaled": """
        from apex import amp


        def main(args):
            model = make()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model, optimizer = amp.initialize(model, optimizer, enabled=args.fp16, opt_level="O2")
            # a hack for the first step
            optimizer.zero_grad()
            optimizer.step()
            for number, (x, y) in enumerate(batches(8)):
                loss = F.mse_loss(model(x), y)
                delay_unscale = (number + 1) % 2 != 0
                with amp.scale_loss(loss, optimizer, delay_unscale=delay_unscale) as scaled_loss:
                    scaled_loss.backward()
                    if not delay_unscale:
                        # as all processes do
                        grads = [p.grad.data for p in model.parameters() if p.grad is not None]
                        for grad in grads:
                            grad.div_(2)
                if (number + 1) % 2 == 0:
                    torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), args.clip)
                    optimizer.step()
                    optimizer.zero_grad()
            return model.parameters()
    """,
    "gradients used in each backward pass": """
        from apex import amp


        def main(args):
            model = make()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model, optimizer = amp.initialize(model, optimizer, enabled=args.fp16)
            for x, y in batches(8):
                loss = F.mse_loss(model(x), y)
                optimizer.zero_grad()
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
                    for p in model.parameters():
                        p.grad.mul_(0.5)
                optimizer.step()
            return model.parameters()
    """,
    "on one line": """
        from apex import amp


        def main(args):
            model = make()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            if args.fp16:
                model, optimizer = amp.initialize(model, optimizer)
            for x, y in batches(8):
                loss = F.mse_loss(model(x), y)
                optimizer.zero_grad()
                if args.fp16:
                    with amp.scale_loss(loss, optimizer) as scaled_loss: scaled_loss.backward()  # scaled
                else:
                    loss.backward()
                optimizer.step()
            return model.parameters()
    """,
    "clipped after each backward pass": """
        from apex import amp


        def main(args):
            model = make()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            if args.fp16:
                model, optimizer = amp.initialize(model, optimizer, opt_level=args.opt_level)
            total = 0.0
            for number, (x, y) in enumerate(batches(8)):
                loss = F.mse_loss(model(x), y) / args.steps
                if args.fp16:
                    with amp.scale_loss(loss, optimizer) as scaled_loss:
                        scaled_loss.backward()
                    torch.nn.utils.clip_grad_norm_(
                        amp.master_params(optimizer), args.clip
                    )
                else:
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(
                        model.parameters(), args.clip
                    )
                total = loss.item()
                if (number + 1) % args.steps == 0:
                    optimizer.step()
                    model.zero_grad()
            return [*model.parameters(), total]
    """,
    "initialized in both branches": """
        from apex import amp


        def main(args):
            model = make()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            if args.steps > 1:
                model, optimizer = amp.initialize(model, optimizer, enabled=args.fp16, opt_level="O2")
                model = nn.DataParallel(model)
            else:
                model, optimizer = amp.initialize(model, optimizer, enabled=args.fp16, opt_level="O1")
            to_save = {"model": model, "optimizer": optimizer, "amp": amp}
            saved = {name: part.state_dict() for name, part in to_save.items()}
            for x, y in batches():
                loss = F.mse_loss(model(x), y)
                optimizer.zero_grad()
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
                optimizer.step()
            return [*model.parameters(), len(saved)]
    """,
    "import where it is used": """
        def main(args):
            model = make()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            if args.fp16:
                try:
                    from apex import amp
                except ImportError:
                    raise ImportError("Please install apex from https://www.github.com/nvidia/apex")
                model, optimizer = amp.initialize(model, optimizer, opt_level="O1")

            for x, y in batches():
                out = model(x)
                loss = (out - y).pow(2).mean()
                if args.fp16:
                    with amp.scale_loss(loss, optimizer) as scaled_loss:
                        scaled_loss.backward()
                else:
                    loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            return model.parameters()
    """,
}


@pytest.mark.parametrize("options", [{}, {"fp16": False, "opt_level": "O0"}], ids=["mixed", "single"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_train_the_same(name: str, options: dict[str, Any]) -> None:
    text = script(SCRIPTS[name])
    findings, after = check(text)
    assert len(findings) >= 2
    assert "GradScaler" in after
    assert "torch.autocast" in after
    with installed():
        wanted = run(text, **options)
    found = run(after, **options)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


def test_old_loops_learn_in_mixed_precision() -> None:
    """The comparison means something: single precision gives other weights."""
    text = script(SCRIPTS["accumulation"])
    with installed():
        mixed = run(text)
    single = run(check(text)[1], opt_level="O0", steps=0)
    assert not torch.equal(mixed[0], single[0])


class Spy(torch.amp.GradScaler):
    """A scaler that keeps a log of what is done, with the gradients of the first weight."""

    log: ClassVar[list[tuple[str, float]]] = []

    def _note(self, name: str) -> None:
        self.log.append((name, self.get_scale()))

    def scale(self, outputs: Any) -> Any:
        self._note("scale")
        return super().scale(outputs)

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        weight = optimizer.param_groups[0]["params"][0]
        before = weight.grad.clone()
        super().unscale_(optimizer)
        if self.is_enabled() and bool(torch.isfinite(before).all()):
            torch.testing.assert_close(weight.grad * self.get_scale(), before)
            assert float(weight.grad.abs().max()) < 10
        self._note("unscale_")

    def step(self, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
        weight = optimizer.param_groups[0]["params"][0]
        norm = torch.nn.utils.get_total_norm([item.grad for item in optimizer.param_groups[0]["params"]])
        assert not bool(torch.isfinite(norm)) or float(norm) < 0.5001  # clipped, in the true scale
        old, fine = weight.detach().clone(), bool(torch.isfinite(norm))
        result = super().step(optimizer, *args, **kwargs)
        assert torch.equal(old, weight) is not fine  # the step is left out after an overflow, and only then
        self._note("step")
        return result

    def update(self, new_scale: Any = None) -> None:
        super().update(new_scale)
        self._note("update")


def test_every_iteration_in_the_right_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.amp, "GradScaler", Spy)
    monkeypatch.setattr(Spy, "log", [])
    run(check(script(SCRIPTS["one function"]))[1])
    names = [name for name, _ in Spy.log]
    assert names == ["scale", "unscale_", "step", "update"] * 6
    scales = [scale for name, scale in Spy.log if name == "update"]
    assert scales == [65536.0] * 3 + [32768.0] * 3  # halved after the overflow in the fourth


@pytest.mark.parametrize("name", SCRIPTS)
def test_twice_changes_nothing(name: str) -> None:
    after = check(script(SCRIPTS[name]))[1]
    assert check(after) == ([], after)


@pytest.mark.parametrize("name", SCRIPTS)
def test_line_ends_and_tabs(name: str) -> None:
    text = script(SCRIPTS[name])
    after = check(text)[1]
    assert check(text.replace("\n", "\r\n"))[1] == after.replace("\n", "\r\n")
    if "`" not in text:
        assert check(text.replace("    ", "\t"))[1] == after.replace("    ", "\t")


BASE = """
from apex import amp


def main(args):
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in batches():
        loss = F.mse_loss(model(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
"""


def changed(*pairs: tuple[str, str]) -> str:
    text = BASE
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return f"{HEAD}{text}"


STEP = "        optimizer.step()\n"
LOOP = "    for x, y"
REFUSED = {
    "clipped with what is replaced": (
        [
            (
                STEP,
                "        nn.utils.clip_grad_norm_(model.parameters(), args.clip.most)\n        args.clip = other()\n"
                "        if args.ready:\n            optimizer.step()\n",
            )
        ],
        "where the optimizer may not step",
    ),
    "step before without `zero_grad`": (
        [(LOOP, f"    optimizer.zero_grad()\n    prepare(model)\n    optimizer.step()\n{LOOP}")],
        "steps before a backward pass",
    ),
    "switched off in one branch": (
        [
            (
                '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
                '    if args.many:\n        model, optimizer = amp.initialize(model, optimizer, opt_level="O0")\n'
                '    else:\n        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
            )
        ],
        "calls `amp.initialize` again",
    ),
    "other objects in one branch": (
        [
            (
                '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
                "    if args.many:\n        model, optimizer = amp.initialize(make(), optimizer)\n"
                "    else:\n        model, optimizer = amp.initialize(model, optimizer)\n",
            )
        ],
        "calls `amp.initialize` again",
    ),
    "saved with what is not known": (
        [(LOOP, f'    helpers = {{"amp": amp, "batches": batches}}\n{LOOP}')],
        "`amp` is passed on",
    ),
    "restored before it is made": (
        [
            (
                '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
                "    resume(model, amp)\n    model, optimizer = amp.initialize(model, optimizer)\n",
            )
        ],
        "runs before `amp.initialize`",
    ),
    "star of fp16_utils that is used": (
        [
            ("from apex import amp", "from apex.fp16_utils import *\nfrom apex import amp"),
            (STEP, f"{STEP}        print(tofp16(loss))\n"),
        ],
        "is older than amp: replace it first",
    ),
    "a loop of backward passes": (
        [
            ("        with amp", "        for _ in range(2):\n          with amp"),
            (
                "            scaled_loss.backward()\n",
                "            scaled_loss.backward(retain_graph=True)\n"
                "          nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n",
            ),
        ],
        "where the optimizer may not step",
    ),
    "closure": ([("optimizer.step()", "optimizer.step(lambda: loss)")], "a closure"),
    "amp as an object": ([(LOOP, f"    helper(amp)\n{LOOP}")], "`amp` is passed on"),
    "half precision": ([("make()", "make().half()")], "remove `.half()`"),
    "half precision later": ([(LOOP, f"    model.half()\n{LOOP}")], "remove `.half()`"),
    "two items": ([("as scaled_loss:", "as scaled_loss, model.no_sync():")], "needs a `with` of its own"),
    "by hand": (
        [
            ("with amp.scale_loss(loss, optimizer) as scaled_loss:", "if True:"),
            ("            scaled_loss.", "            amp.scale_loss(loss, optimizer).__enter__()."),
        ],
        "without `with`",
    ),
    "the function itself": ([(LOOP, f"    register(amp.scale_loss)\n{LOOP}")], "is passed on as a function"),
    "scaled loss behind": (
        [(STEP, f"        print(scaled_loss)\n{STEP}")],
        "used outside of `amp.scale_loss`",
    ),
    "scaled loss beside": (
        [("scaled_loss.backward()", "scaled_loss.backward()\n            print(scaled_loss.item())")],
        "only the backward pass and code for scaled gradients",
    ),
    "another backward pass": (
        [("scaled_loss.backward()", "scaled_loss.backward()\n            (2 * loss).backward()")],
        "only the backward pass and code for scaled gradients",
    ),
    "gradients of one of several backward passes": (
        [
            ("scaled_loss.backward()", "scaled_loss.backward()\n            average(model)"),
            (STEP, "        if args.ready:\n            optimizer.step()\n"),
        ],
        "are used before apex unscales",
    ),
    "norm of each backward pass": (
        [
            (
                STEP,
                "        norm = torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)\n"
                "        if args.ready:\n            optimizer.step()\n",
            )
        ],
        "where the optimizer may not step",
    ),
    "clipped under a condition": (
        [
            (
                STEP,
                "        if args.clip:\n            nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
                "        if args.ready:\n            optimizer.step()\n",
            )
        ],
        "where the optimizer may not step",
    ),
    "clipped to what changes": (
        [
            (
                STEP,
                "        nn.utils.clip_grad_norm_(model.parameters(), limit)\n        limit = 2 * limit\n"
                "        if args.ready:\n            optimizer.step()\n",
            )
        ],
        "where the optimizer may not step",
    ),
    "initialized twice": (
        [(LOOP, f"    model, optimizer = amp.initialize(model, optimizer)\n{LOOP}")],
        "calls `amp.initialize` again",
    ),
    "both back-ends": (
        [(LOOP, f"    with torch.cuda.amp.autocast():\n        pass\n{LOOP}")],
        "the file also uses `torch.cuda.amp.autocast`",
    ),
    "clipped elsewhere": (
        [
            (
                "def main",
                "def clip(model):\n    nn.utils.clip_grad_norm_(model.parameters(), 1)\n\n\ndef main",
            ),
            (STEP, f"        if args.ready:\n            clip(model)\n{STEP}        clip(model)\n"),
        ],
        "clipped away from the step",
    ),
    "not scaled": ([(STEP, f"        (loss * 2).backward()\n{STEP}")], "without `amp.scale_loss`"),
    "another optimizer": (
        [(STEP, f"{STEP}        embedding_optimizer.step()\n")],
        "would step with scaled gradients",
    ),
    "step before": ([(LOOP, f"    optimizer.step()\n{LOOP}")], "steps before a backward pass"),
    "starred": ([('opt_level="O1"', "**args.amp")], "cannot analyze the arguments"),
    "level": ([('"O1"', '"01"')], "there is no opt level '01'"),
    "shared line": ([("optimizer.step()", "optimizer.step(); print(1)")], "more than one statement"),
    "one of several branches": (
        [
            (
                "    model, optimizer = amp",
                "    if args.a:\n        pass\n    elif args.b:\n        model, optimizer = amp",
            )
        ],
        "one of several branches",
    ),
    "patched functions": (
        [("def main", "@amp.float_function\ndef norm(x):\n    return x\n\n\ndef main")],
        "does not replace `apex.amp.float_function`",
    ),
    "printed": (
        [("    model, optimizer = amp.init", "    print(amp.init"), ('"O1")', '"O1"))')],
        "is not assigned",
    ),
    "no step": ([(STEP, "        engine.step(optimizer)\n")], "pass the scaler on"),
    "no forward pass": (
        [("F.mse_loss(model(x), y)", "next(losses)")],
        "cannot find where the model computes",
    ),
    "suppressed": ([(LOOP, f"    amp.load_state_dict(args.amp)  # noqa: TM223\n{LOOP}")], "is suppressed"),
    "other branch": (
        [
            (
                "        with amp.scale_loss(loss, optimizer) as scaled_loss:\n"
                "            scaled_loss.backward()\n",
                "        if args.fp16:\n            with amp.scale_loss(loss, optimizer) as scaled_loss:\n"
                "                scaled_loss.backward()\n        else:\n            (2 * loss).backward()\n",
            )
        ],
        "do different things",
    ),
    "a function of another module in half precision": (
        [(LOOP, f'    amp.register_half_function(args, "einsum")\n{LOOP}')],
        "does not replace `apex.amp.register_half_function`",
    ),
    "casts switched off": (
        [(LOOP, f"    with amp.disable_casts():\n        print(args)\n{LOOP}")],
        "does not replace `apex.amp.disable_casts`",
    ),
    "outputs": ([('opt_level="O1"', "cast_model_outputs=torch.float16")], "`cast_model_outputs` has no"),
    "not initialised here": (
        [('    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n', "")],
        "this file does not call `amp.initialize`",
    ),
    "calls that may not be seen": (
        [
            (
                LOOP,
                f"    epoch(model, optimizer)\n    getattr(log, 'epoch')\n    return []\n\n\ndef epoch(model, optimizer):\n{LOOP}",
            ),
        ],
        "some of its calls may not be visible",
    ),
    "steps in a callback": (
        [
            ("def main", "def train(model, optimizer):\n    optimizer.step()\n\n\ndef main"),
            (STEP, "        run(train, model, optimizer)\n"),
        ],
        "pass the scaler on",
    ),
    "changed names": (
        [
            (
                '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
                "    if args.fp16:\n        level = choose()\n"
                "        model, optimizer = amp.initialize(model, optimizer, opt_level=level)\n",
            )
        ],
        "`level` changes before `amp.initialize`",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_understood_is_left_alone(name: str) -> None:
    pairs, reason = REFUSED[name]
    text = changed(*pairs)
    findings, after = check(text)
    assert after == text
    assert findings
    assert all(reason in item for item in findings)


KEPT = {
    "clipped in a function": (
        [
            (
                "def main",
                "def clip(model):\n    nn.utils.clip_grad_norm_(model.parameters(), 1)\n\n\ndef main",
            ),
            (STEP, f"        clip(model)\n{STEP}"),
        ],
        "        scaler.unscale_(optimizer)\n        clip(model)\n        scaler.step(optimizer)\n",
    ),
    "clipped with what stays": (
        [
            (
                STEP,
                "        nn.utils.clip_grad_norm_(model.parameters(), args.clip.most)\n        args.done = True\n"
                "        if args.ready:\n            optimizer.step()\n",
            )
        ],
        "            nn.utils.clip_grad_norm_(model.parameters(), args.clip.most)\n            scaler.step(optimizer)",
    ),
    "empty step under a condition": (
        [(LOOP, f"    optimizer.zero_grad()\n    if args.first:\n        optimizer.step()\n{LOOP}")],
        "    if args.first:\n        optimizer.step()\n    for x",
    ),
    "branches that do more": (
        [
            (
                '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
                '    if args.many:\n        model, optimizer = amp.initialize(model, optimizer, opt_level="O2")\n'
                "        model = nn.DataParallel(model)\n    else:\n"
                '        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
            )
        ],
        '    scaler = torch.amp.GradScaler("cuda")\n    if args.many:\n        model = nn.DataParallel(model)\n'
        "    else:\n        pass\n    for x",
    ),
    "saved with others": (
        [(LOOP, f'    to_save = {{"model": model, "optimizer": optimizer, "amp": amp}}\n{LOOP}')],
        '    to_save = {"model": model, "optimizer": optimizer, "amp": scaler}\n',
    ),
    "restored by a function": (
        [(LOOP, f"    resume_from_checkpoint(args.path, model, amp=amp)\n    run.track_state(amp)\n{LOOP}")],
        "    resume_from_checkpoint(args.path, model, amp=scaler)\n    run.track_state(scaler)\n",
    ),
    "star of fp16_utils": (
        [("from apex import amp", "from apex.fp16_utils import *\nfrom apex import amp")],
        "        scaler.scale(loss).backward()\n",
    ),
    "star of fp16_utils beside": (
        [
            (
                "from apex import amp",
                "try:\n    from apex.fp16_utils import *\n    from apex import amp\nexcept ImportError:\n    print(1)",
            )
        ],
        "        yield (x * float(\"inf\") if number == BAD else x), torch.randn(4, 3, generator=generator)\n\n\ndef main",
    ),
    "horovod": (
        [
            ("scaled_loss.backward()", "scaled_loss.backward()\n            optimizer.synchronize()"),
            (STEP, f"        with optimizer.skip_synchronize():\n    {STEP}"),
        ],
        "        scaler.scale(loss).backward()\n        optimizer.synchronize()\n"
        "        with optimizer.skip_synchronize():\n            scaler.step(optimizer)\n            scaler.update()\n",
    ),
    "clipped more often than stepped": (
        [
            (
                STEP,
                "        torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)\n"
                "        if args.ready:\n            optimizer.step()\n",
            )
        ],
        "        if args.ready:\n            scaler.unscale_(optimizer)\n"
        "            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n            scaler.step(optimizer)\n",
    ),
    "O0": ([('"O1"', '"O0"')], 'GradScaler("cuda", enabled=False)'),
    "level from the outside": ([('"O1"', "args.level")], 'enabled=args.level != "O0")'),
    "level made of text": ([('"O1"', '"O" + args.level')], 'enabled="O" + args.level != "O0")'),
    "fixed scale": ([('"O1"', '"O2", loss_scale="128.0"')], 'GradScaler("cuda", init_scale=128.0)'),
    "enabled": ([('opt_level="O1"', "args.on")], "enabled=bool(args.on))"),
    "name taken": ([(LOOP, f"    scaler = Standard()\n{LOOP}")], "grad_scaler.step(optimizer)"),
    "wrapped": (
        [(LOOP, f"    net = nn.DataParallel(model)\n{LOOP}"), ("model(x)", "net(x)")],
        "loss = F.mse_loss(net(x), y)\n        scaler.scale(loss)",
    ),
    "two backward passes": (
        [
            (
                "scaled_loss.backward()",
                "scaled_loss.backward(retain_graph=True)\n            scaled_loss.backward()",
            )
        ],
        "        scaler.scale(loss).backward(retain_graph=True)\n        scaler.scale(loss).backward()\n",
    ),
    "gradients by hand": (
        [(STEP, f"        for p in model.parameters():\n            p.grad.clamp_(-1, 1)\n{STEP}")],
        "        scaler.unscale_(optimizer)\n        for p in",
    ),
    "master parameters of an unknown model": (
        [
            ("model(x)", "run_model(model, x)"),
            ("def main", "def run_model(net, x):\n    return net(x)\n\n\ndef main"),
            (STEP, f"        norm = total(amp.master_params(optimizer))\n{STEP}"),
        ],
        '[p for group in optimizer.param_groups for p in group["params"]]',
    ),
    "a scale for each branch": (
        [
            (
                '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
                '    if args.scale == 0:\n        model, optimizer = amp.initialize(model, optimizer, loss_scale="dynamic")\n'
                "    else:\n        model, optimizer = amp.initialize(model, optimizer, loss_scale=args.scale)\n",
            )
        ],
        '    scaler = torch.amp.GradScaler("cuda")\n    for x',
    ),
    "a test in parentheses beside that for apex": (
        [
            ("from apex import amp", "try:\n    from apex import amp\nexcept ImportError:\n    amp = None"),
            (
                '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
                "    if args.on and amp is not None and (args.a or args.b):\n"
                '        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
            ),
        ],
        "enabled=bool(args.on and (args.a or args.b)))",
    ),
    "a test that begins and ends with parentheses": (
        [
            (
                '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
                "    if (args.a) and (args.b):\n"
                '        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
            ),
        ],
        "enabled=bool((args.a) and (args.b)))",
    ),
    "the other branch of a test in parentheses": (
        [
            (
                '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
                "    if (args.a or args.b) and args.c:\n        print()\n    else:\n"
                '        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
            ),
        ],
        "enabled=not ((args.a or args.b) and args.c))",
    ),
    "comments": (
        [
            (
                "        with amp.scale_loss(loss, optimizer) as scaled_loss:\n",
                "        # above\n        with amp.scale_loss(loss, optimizer) as scaled_loss:  # beside\n"
                "            # below\n",
            )
        ],
        "        # above\n        # beside\n        # below\n        scaler.scale(loss).backward()\n",
    ),
    "another name for it": (
        [("from apex import amp", "import apex.amp as amp")],
        "scaler.step(optimizer)\n        scaler.update()\n",
    ),
    "text over several lines": (
        [("F.mse_loss(model(x), y)", 'F.mse_loss(model(x, """\ntext\n"""), y)')],
        '            loss = F.mse_loss(model(x, """\ntext\n"""), y)\n',
    ),
    "every second optimizer": (
        [
            ("model.parameters(), lr=0.1)\n", "model.parameters(), lr=0.1)\n    critic, other = make(), Adam()\n"),
            ("model, optimizer = amp.initialize(model, optimizer,", "[model, critic], [optimizer, other] = "
             "amp.initialize([model, critic], [optimizer, other],"),
            (STEP, f"{STEP}        if args.ready:\n            loss = critic(x)\n            with amp.scale_loss("
             "loss, other) as scaled:\n                scaled.backward()\n            other.step()\n"),
        ],
        "            scaler.step(other)\n        scaler.update()\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_spellings(name: str) -> None:
    pairs, wanted = KEPT[name]
    _, after = check(changed(*pairs))
    assert wanted in after


FORM = """
import torch
from apex import amp
from apex.fp16_utils import FP16_Optimizer

{body}
"""
MEMBERS: dict[str, tuple[str, list[str]]] = {
    "an attribute of the object": (
        """
        class Engine:
            def backward(self, loss):
                with amp.scale_loss(loss, self._optimizer) as scaled:
                    scaled.backward()

            def step(self):
                for group in self._optimizer.param_groups:
                    torch.nn.utils.clip_grad_norm_(group["params"], 1.0)
                self._optimizer.step()
                self.schedule.step()


        class Other:
            def step(self):
                self._optimizer.step()
        """,
        ['torch.nn.utils.clip_grad_norm_(group["params"], 1.0)', "self._optimizer.step()"],
    ),
    "handed to a function": (
        """
        def update(opt):
            opt.step()

        def other(opt):
            opt.step()

        def train(loss, first):
            with amp.scale_loss(loss, first) as scaled:
                scaled.backward()
            update(first)
        """,
        ["opt.step()"],
    ),
    "a list": (
        """
        def train(loss, optimizers):
            with amp.scale_loss(loss, optimizers) as scaled:
                scaled.backward()
            for each in optimizers:
                each.step()
        """,
        ["each.step()"],
    ),
    "the branch without apex": (
        """
        def train(loss, model, optimizer, fp16):
            if fp16:
                with amp.scale_loss(loss, optimizer) as scaled:
                    scaled.backward()
                optimizer.step()
            else:
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
        """,
        ["optimizer.step()"],
    ),
    "clipping through apex beside": (
        """
        def train(loss, model, optimizer, fp16):
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
            if fp16:
                torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)
            else:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        """,
        ["optimizer.step()"],
    ),
    "before the backward pass, or behind the step": (
        """
        def train(loss, model, optimizer):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
            optimizer.step()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        """,
        ["optimizer.step()"],
    ),
    "a scaler is there": (
        """
        def train(loss, model, optimizer, scaler: torch.amp.GradScaler):
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
            optimizer.step()
        """,
        [],
    ),
    "the optimizer of fp16_utils": (
        """
        def train(model, critic, adam, batches, loss_of):
            model.half()
            critic.half()
            parameters = list(model.named_parameters())
            optimizer = FP16_Optimizer(adam, static_loss_scale=128.0)
            for x in batches:
                optimizer.backward(loss_of(model(x)))
                if optimizer.overflow:
                    print(optimizer.loss_scale)
                optimizer.clip_master_grads(1.0)
                optimizer.step()
                optimizer.zero_grad()
        """,
        [
            "model.half()",
            "optimizer.backward(loss_of(model(x)))",
            "optimizer.overflow",
            "optimizer.loss_scale",
            "optimizer.clip_master_grads(1.0)",
            "optimizer.step()",
        ],
    ),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_what_belongs_to_it_without_its_name(name: str) -> None:
    body, wanted = MEMBERS[name]
    text = FORM.format(body=textwrap.dedent(body).strip())
    found = checked(text, *only(["TM227"])).findings
    assert [text[item.start : item.end] for item in found] == wanted
    assert all(help_of(item) and ("scaler" in help_of(item)) for item in found)


def test_a_suppressed_step_keeps_the_file() -> None:
    text = changed((STEP, "        optimizer.step()  # noqa: TM227\n"))
    findings, after = check(text, CODES | {"TM227"})
    assert after == text
    assert all("is suppressed" in item for item in findings)


UNUSED = {
    "star": ("from apex.fp16_utils import *\nprint(1)\n", "print(1)\n"),
    "in a try": (
        "import torch\ntry:\n    from apex import amp\nexcept ImportError:\n    raise ImportError('no apex')\nprint(torch)\n",
        "import torch\nprint(torch)\n",
    ),
    "in a try that goes on without it": (
        "try:\n    from apex import amp\nexcept ImportError:\n    print('no apex')\nprint(1)\n",
        None,
    ),
    "with a flag": (
        "try:\n    from apex import amp\n    ready = True\nexcept ImportError:\n    ready = False\nprint(ready)\n",
        None,
    ),
    "exported": ("from apex import amp\n__all__ = ['amp']\n", None),
    "another module of it": ("import apex.amp\nprint(apex.parallel)\n", None),
}


@pytest.mark.parametrize("name", UNUSED)
def test_an_import_that_nothing_uses(name: str) -> None:
    text, wanted = UNUSED[name]
    assert checked(text, *only(CODES), *FIX_ALL).new_text == wanted


NUMBERS = {
    "from": (
        "from apex.fp16_utils import to_python_float\nprint(to_python_float(a + b))\n",
        "print((a + b).item())\n",
    ),
    "module": (
        "from apex import fp16_utils as f\nprint(f.to_python_float(x.data))\n",
        "print(x.data.item())\n",
    ),
    "star": ("from apex.fp16_utils import *\nprint(to_python_float(x))\n", "print(x.item())\n"),
    "a function": (
        "from apex.fp16_utils import to_python_float\nprint(map(to_python_float, losses))\n",
        None,
    ),
    "beside another name": (
        "from apex.fp16_utils import network_to_half, to_python_float\nprint(to_python_float(network_to_half(x)))\n",
        None,
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_tensors(name: str) -> None:
    text, wanted = NUMBERS[name]
    assert checked(text, *only(CODES), *FIX_ALL).new_text == wanted


IMAGENET = """\
import torch
import torch.nn as nn

try:
    from apex.parallel import DistributedDataParallel as DDP
    from apex.fp16_utils import *
    from apex import amp, optimizers
except ImportError:
    raise ImportError("Please install apex to run this example.")


def main(args, model, loader):
    if args.sync_bn:
        import apex

        model = apex.parallel.convert_syncbn_model(model)
    optimizer = torch.optim.SGD(model.parameters(), args.lr)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    if args.distributed:
        model = DDP(model, message_size=10000000, delay_allreduce=True)
    criterion = nn.CrossEntropyLoss().cuda()
    for input, target in loader:
        loss = criterion(model(input), target)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        print(to_python_float(loss))
"""


def test_apex_parallel_changes_with_amp() -> None:
    result = checked(IMAGENET)
    assert {item.severity.label for item in result.findings if item.code not in ("TM226", "TM227")} == {
        "error"
    }
    assert len({item.fix for item in result.findings}) == 1
    new = fixed(IMAGENET, *FIX_ALL)
    assert "apex.parallel" not in new and "fp16_utils" not in new and "from apex import optimizers" in new
    assert "model = DDP(model, device_ids=[torch.cuda.current_device()])" in new
    assert "SyncBatchNorm.convert_sync_batchnorm(model)" in new
    assert "print(loss.item())" in new


def test_apex_parallel_changes_where_amp_stays() -> None:
    text = IMAGENET.replace("to_python_float(loss)", "tofp16(loss)")
    result = checked(text)
    fixable = {item.code for item in result.findings if item.fix is not None}
    assert fixable == {"TM230", "TM231"}
    assert all(item.blocked_by for item in result.findings if item.code in ("TM220", "TM221", "TM225"))


PARALLEL = {
    "reference": (
        "import apex\nimport torch\nbuild(norm_layer=apex.parallel.SyncBatchNorm)\n",
        "import torch\nbuild(norm_layer=torch.nn.SyncBatchNorm)\n",
    ),
    "test of the class": (
        "from apex.parallel import DistributedDataParallel as DDP\nprint(isinstance(model, DDP))\n",
        "from torch.nn.parallel import DistributedDataParallel as DDP\nprint(isinstance(model, DDP))\n",
    ),
    "defaults": (
        "import apex.parallel\nimport torch\n"
        "n = apex.parallel.SyncBatchNorm(3, 1e-5, channel_last=False, fuse_relu=False)\n",
        "import torch\nn = torch.nn.SyncBatchNorm(3, 1e-5)\n",
    ),
    "submodule": (
        "from apex.parallel.optimized_sync_batchnorm import SyncBatchNorm\nn = SyncBatchNorm(3)\n",
        "from torch.nn import SyncBatchNorm\nn = SyncBatchNorm(3)\n",
    ),
    "advice": (
        "from apex.parallel import DistributedDataParallel\nm = DistributedDataParallel(m, shared_param=True)\n",
        None,
    ),
    "no equivalent": ("from apex.parallel.LARC import LARC\no = LARC(o)\n", None),
    "what apex still has": ("from apex.optimizers import FusedAdam\no = FusedAdam(p)\n", None),
}


@pytest.mark.parametrize("name", PARALLEL)
def test_apex_parallel(name: str) -> None:
    text, wanted = PARALLEL[name]
    result = checked(text, *FIX_ALL)
    assert result.new_text == wanted
    if wanted is None:
        errors = [item.severity.label for item in result.findings]
        assert errors == ([] if "optimizers" in text else ["error"])


def test_apex_was_there_with_torch_2_6() -> None:
    text = "from apex.parallel import DistributedDataParallel as DDP\nmodel = DDP(model)\n"
    assert [item.severity.label for item in checked(text, "--target", "2.6").findings] == ["info"]
    assert [item.severity.label for item in checked(text, "--target", "2.7").findings] == ["error"]


def test_the_branch_of_apex_is_what_goes() -> None:
    text = textwrap.dedent(
        """
        import torch
        from apex import amp

        def train(model, optimizer, backend, loss):
            if backend == "apex":
                model, optimizer = amp.initialize(model, optimizer)
            elif backend == "native":
                scaler = torch.cuda.amp.GradScaler()
            if backend == "native":
                scaler.scale(loss).backward()
            else:
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
        """
    )
    findings, after = check(text)
    assert after == text
    assert [item.partition("; ")[2].partition(",")[0] for item in findings] == [
        "remove the import",
        "remove the apex branch",
        "remove the apex branch",
    ]
    assert "`backend == 'apex'` (line 6)" in findings[1]
    assert "the `else` of `backend == 'native'` (line 10)" in findings[2]


def test_names_that_a_star_import_cannot_give() -> None:
    text = "from apex.fp16_utils import *\nmodel = network_to_half(model)\nprint(other, tofp16)\n"
    found = checked(text, *only(CODES | {"TM228"})).findings
    assert [text[item.start : item.end] for item in found][1:] == ["network_to_half", "tofp16"]


BUILDER = """
from apex import amp


def setup(opt):
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if opt.fp16 and (opt.a or opt.b):
        model, optimizer = amp.initialize(model, optimizer, opt_level=opt.level)
    return model, optimizer


def main(args):
    model, optimizer = setup(args)
    for x, y in batches():
        loss = F.mse_loss(model(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
"""
BUILDERS = {
    "the condition as it is written outside": (
        ("", ""),
        'GradScaler("cuda", enabled=bool(args.fp16 and (args.a or args.b)) and args.level != "O0")',
    ),
    "a comparison": (
        ("opt.fp16 and (opt.a or opt.b)", "opt.n > 1"),
        'enabled=args.n > 1 and args.level != "O0")',
    ),
    "a call": (("opt.fp16 and (opt.a or opt.b)", "opt.test(1)"), None),
    "a variable of the builder": (("opt.fp16 and (opt.a or opt.b)", "model"), None),
    "called twice": (
        ("model, optimizer = setup(args)", "setup(args)\n    model, optimizer = setup(args)"),
        None,
    ),
    "in a loop": (
        ("    model, optimizer = setup", "    while True:\n        model, optimizer = setup"),
        None,
    ),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_the_scaler_of_a_builder_is_made_where_it_is_called(name: str) -> None:
    (old, new), wanted = BUILDERS[name]
    text = HEAD + (BUILDER.replace(old, new) if old else BUILDER)
    findings, after = check(text)
    if wanted is None:
        assert after == text
        assert all("; " in item for item in findings)
    else:
        assert f"{wanted}\n    model, optimizer = setup(args)\n" in after
        assert "def setup(opt):\n    model = make()\n" in after


AS_ARGUMENT = """
from apex import amp


def train(model, optimizer, handle, args=None):
    for x, y in batches():
        loss = F.mse_loss(model(x), y)
        with handle.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()


def main(args):
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer)
    train(model, optimizer, amp)
"""


def test_amp_as_an_argument() -> None:
    text = HEAD + AS_ARGUMENT
    found = checked(text, *only(CODES)).findings
    assert "handle.scale_loss" in [text[item.start : item.end] for item in found]
    after = check(text)[1]
    assert "def train(model, optimizer, scaler, args=None):" in after
    assert "scaler.scale(loss).backward()" in after and "train(model, optimizer, scaler)" in after


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("train(model, optimizer, amp)", "train(model, optimizer, amp)\n    train(model, optimizer, args)"),
        ("train(model, optimizer, amp)", "train(model, optimizer, amp)\n    run(train)"),
        ("    for x, y", "    keep(handle)\n    for x, y"),
    ],
)
def test_amp_as_an_argument_that_may_be_something_else(old: str, new: str) -> None:
    text = HEAD + AS_ARGUMENT.replace(old, new)
    findings, after = check(text)
    assert after == text and all("; " in item for item in findings)


def test_what_stays_and_does_nothing_is_named() -> None:
    text = changed(
        (
            "from apex import amp",
            "try:\n    from apex import amp\n    READY = True\nexcept ImportError:\n    READY = False",
        ),
        ('opt_level="O1"', 'opt_level="O1", keep_batchnorm_fp32=args.keep, loss_scale=args.scale'),
        (LOOP, f"    print(READY)\n{LOOP}"),
    )
    (fix,) = {item.fix for item in checked(text, *only(CODES)).findings}
    assert fix is not None
    said = [reason.text for reason in fix.held_by]
    assert "`READY` is always True from now on" in said
    assert "the options `args.keep` and `args.scale` have no use now: remove what is left of them" in said


FORMS: dict[str, tuple[list[tuple[str, str]], str]] = {
    "a function that autocast runs in half precision": (
        [(LOOP, f'    amp.register_half_function(torch, "einsum")\n{LOOP}')],
        '    scaler = torch.amp.GradScaler("cuda")\n    for x',
    ),
    "a function inside, above the call": (
        [
            (
                "    model, optimizer = amp",
                "    def evaluate():\n        return model(args.x)\n\n    model, optimizer = amp",
            ),
            (STEP, f"{STEP}        evaluate()\n"),
        ],
        '        with torch.autocast("cuda"):\n            return model(args.x)\n',
    ),
    "a loss in an object that the function is given": (
        [
            ("        loss = F.mse_loss(", "        args.loss = F.mse_loss("),
            ("scale_loss(loss,", "scale_loss(args.loss,"),
        ],
        '        with torch.autocast("cuda"):\n            args.loss = F.mse_loss(model(x), y)\n'
        "        scaler.scale(args.loss).backward()\n",
    ),
    "losses in a list": (
        [
            (
                "        loss = F.mse_loss(model(x), y)\n",
                "        losses = []\n        for part in x:\n            losses.append(F.mse_loss(model(part), y))\n"
                "        loss = sum(losses) / len(losses)\n",
            )
        ],
        '        with torch.autocast("cuda"):\n            for part in x:\n                losses.append(F.mse_loss(model(part), y))\n',
    ),
    "a test of the module's names": (
        [(LOOP, f'    if args.saved and "load_state_dict" in amp.__dict__:\n        amp.load_state_dict(args.saved)\n{LOOP}')],
        "    if args.saved:\n        scaler.load_state_dict(args.saved)\n",
    ),
    "half precision when training is over": (
        [(STEP, f"{STEP}    model.half()\n    print(model(args.x))\n")],
        '    model.half()\n    with torch.autocast("cuda"):\n        print(model(args.x))\n',
    ),
    "a level that is one with mixed precision": (
        [
            (
                '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
                '    if args.level == "O2":\n        model, optimizer = amp.initialize(model, optimizer, opt_level=args.level)\n',
            )
        ],
        'GradScaler("cuda", enabled=args.level == "O2")\n',
    ),
    "a flag for amp that other parts of apex share": (
        [
            ("from apex import amp", "try:\n    from apex import amp, RNN\n    READY = True\nexcept ImportError:\n    READY = False"),
            (
                '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
                "    if READY and args.on:\n        model, optimizer = amp.initialize(model, optimizer)\n",
            ),
        ],
        'GradScaler("cuda", enabled=bool(args.on))\n',
    ),
    "a scale that is set": (
        [(LOOP, f"    amp._amp_state.loss_scalers[0]._loss_scale = 2**10\n{LOOP}")],
        '    scaler = torch.amp.GradScaler("cuda", init_scale=2**10)\n    for x',
    ),
    "a scale that is read": (
        [(STEP, f"{STEP}        print(amp._amp_state.loss_scalers[0].loss_scale())\n")],
        "        print(scaler.get_scale())\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_a_use(name: str) -> None:
    pairs, wanted = FORMS[name]
    text = changed(*pairs)
    after = fixed(text, *only(CODES), *FIX_ALL)
    assert wanted in after
    assert "amp." not in after.replace("torch.amp.", "")


def test_without_an_optimizer_the_model_comes_alone() -> None:
    text = changed(
        ("    optimizer = torch", "    optimizer = None\n    if args.train:\n        optimizer = torch"),
        ("    model, optimizer = amp.init", "    made = amp.init"),
        (LOOP, f"    model, optimizer = made if args.train else (made, None)\n{LOOP}"),
    )
    findings, after = check(text)
    assert after == text and all("returns the model alone" in item for item in findings)
