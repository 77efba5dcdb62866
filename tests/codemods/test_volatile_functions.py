"""Volatile variables that leave their function, or lose the flag on the way: old against new, and what is kept."""

from __future__ import annotations

import warnings

import pytest
import torch
from test_volatile import check, dedent

DQN = dedent("""
    def step(net, states, following, reward, mask, optimizer):
        ahead = Variable(following, volatile=True)
        now = Variable(states)
        values = net(now).gather(1, torch.zeros(4, 1).long())
        expected = Variable(torch.zeros(4))
        expected[mask] = net(ahead).max(1)[0]
        # the loss must not be volatile
        expected.volatile = False
        target = expected * 0.9 + reward
        loss = (values.squeeze(1) - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        return loss.item()
    """)


def test_the_end_of_volatile_is_the_end_of_the_block():
    helps, new = check(DQN)
    assert len(helps) == 2
    assert "    with torch.no_grad():\n        expected[mask] = net(ahead).max(1)[0]\n    # the loss" in new
    assert "volatile" not in new.replace("must not be volatile", "")
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 2)
    states, following, reward = torch.randn(4, 3), torch.randn(3, 3), torch.randn(4)
    mask = torch.tensor([True, False, True, True])
    space: dict[str, object] = {}
    exec(compile(new, "example.py", "exec"), space)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loss = space["step"](net, states, following, reward, mask, optimizer)  # type: ignore[operator]
    got = [parameter.grad.clone() for parameter in net.parameters()]
    # as torch 0.3 meant it: nothing flows through the values ahead
    net.zero_grad()
    ahead = torch.zeros(4)
    ahead[mask] = net(following).max(1)[0].detach()
    wanted = (net(states)[:, 0] - (ahead * 0.9 + reward)).pow(2).mean()
    wanted.backward()
    assert loss == wanted.item()
    assert all(torch.equal(one, parameter.grad) for one, parameter in zip(got, net.parameters(), strict=True))


BATCHES = dedent("""
    def batch(source, i, evaluation=False):
        data = Variable(source[i:i + 2], volatile=evaluation)
        return data, Variable(source[i:i + 2].sum(1))

    def evaluate(net, source, seen):
        total = 0
        for i in range(0, 4, 2):
            x, y = batch(source, i, evaluation=True)
            out = net(x)
            seen.append(out.requires_grad)
            total += (out.squeeze(1) - y).pow(2).mean().item()
        return total

    def train(net, source, seen):
        x, y = batch(source, 0)
        out = net(x)
        seen.append(out.requires_grad)
        (out.squeeze(1) - y).pow(2).mean().backward()
        x, y = batch(source, 2, False)
        return (net(x).squeeze(1) - y).pow(2).mean().item()

    def test(net, source, seen):
        return train(net, source, seen) + evaluate(net, source, seen)
    """)


def results(text: str) -> tuple[object, list[bool]]:
    torch.manual_seed(0)
    seen: list[bool] = []
    space: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text, "example.py", "exec"), space)
        value = space["test"](torch.nn.Linear(3, 1), torch.randn(4, 3), seen)  # type: ignore[operator]
    return value, seen


def test_callers_change_with_the_function_that_returns_one():
    helps, new = check(BATCHES)
    assert len(helps) == 1
    assert "def batch(source, i):\n    data = source[i:i + 2]\n" in new
    assert (
        "        with torch.no_grad():\n            x, y = batch(source, i)\n            out = net(x)\n"
        in new
    )
    assert "    x, y = batch(source, 0)\n" in new and "    x, y = batch(source, 2)\n" in new
    assert new.count("no_grad") == 1
    assert results(new) == (results(BATCHES)[0], [True, False, False])


def test_the_flag_of_a_caller():
    text = dedent("""
        class Runner:
            def wrap(self, x, volatile=False, gpu=False):
                x = x.cuda() if gpu else x
                return Variable(x, volatile=volatile)

            def run(self, net, xs, train=True):
                for x in xs:
                    x = self.wrap(x, not train, gpu=False)
                    loss = net(x).mean()
                    if train:
                        loss.backward()
        """)
    _, new = check(text)
    assert "def wrap(self, x, gpu=False):" in new and "        return x\n" in new
    assert "                x = self.wrap(x, gpu=False)\n" in new
    assert "            with torch.set_grad_enabled(train):\n" in new


def test_a_static_method():
    text = dedent("""
        class Engine:
            @staticmethod
            def forward(model, x, volatile=True):
                x = Variable(x, volatile=volatile)
                return model(x)

            def test(self, x):
                return Engine.forward(self.model, x).data

            def train(self, x):
                Engine.forward(self.model, x, volatile=False).sum().backward()
        """)
    _, new = check(text)
    assert "        with torch.set_grad_enabled(not volatile):\n            return model(x)\n" in new
    assert "        return Engine.forward(self.model, x).data\n" in new and "volatile=False).sum()" in new


def test_a_function_that_keeps_its_parameter():
    text = dedent("""
        def wrap(x, volatile=False):
            if volatile:
                print(x.size())
            return Variable(x, volatile=volatile)
        print(net(wrap(x, volatile=True)).data)
        """)
    _, new = check(text)
    assert "def wrap(x, volatile=False):" in new and "    return x\n" in new
    assert "with torch.no_grad():\n    print(net(wrap(x, volatile=True)).data)\n" in new


def test_as_volatile_as_another():
    text = dedent("""
        def forward(self, x):
            h = Variable(x.data.new(2).zero_(), volatile=x.volatile)
            return self.rnn(x, h)
        """)
    _, new = check(text)
    assert "    h = x.data.new(2).zero_()\n    return self.rnn(x, h)\n" in new


def test_what_else_is_called_volatile():
    text = dedent("""
        def trade(net, x, market):
            market.volatile = False
            x = Variable(x, volatile=True)
            print(net(x).data)
        """)
    helps, new = check(text)
    assert new == text and "of something else" in helps[0]


def test_functions_inside_of_one_change_with_it():
    text = dedent("""
        def translate(self, beam, net):
            def var(a): return Variable(a, volatile=True)
            def twice(a):
                return var(a.repeat(1, 2))
            context = twice(net.start)
            for i in range(3):
                out = net(var(beam), context)
                print(out.data)
        """)
    helps, new = check(text)
    assert len(helps) == 1 and "def var(a): return a\n" in new
    assert "        with torch.no_grad():\n            out = net(var(beam), context)\n" in new or (
        "    with torch.no_grad():\n        context = twice(net.start)\n" in new
    )


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("def wrap(x):\n    return Variable(x, volatile=True)", "some callers"),
        (
            "def wrap(x):\n    return Variable(x, volatile=True)\nhooks = [wrap]\nprint(net(wrap(x)))",
            "some callers",
        ),
        (
            "def wrap(x, v):\n    return Variable(x, volatile=v)\ndef f(x, loss):\n    a = wrap(x, True)\n"
            "    b = net(a)\n    b.backward()",
            "`backward()` is called on",
        ),
        ("def wrap(x, v):\n    return Variable(x, volatile=v)\nnet(wrap(*x))", "cannot analyze"),
        (
            "def wrap(x, v):\n    v = v or x\n    return Variable(x, volatile=v)\nnet(wrap(x, True))",
            "do not know",
        ),
        (
            "@jit\ndef wrap(x):\n    return Variable(x, volatile=True)\nprint(net(wrap(x)))",
            "some callers",
        ),
        ("def wrap(x):\n    return Variable(x, volatile=True)\nf = lambda x: net(wrap(x))", "lambda"),
        (
            "def wrap(x, v=True):\n    return Variable(x, volatile=v)\nprint(net(wrap(x,  # this\n  v=True)))",
            "between the arguments",
        ),
        (
            "def wrap(x, v):\n    return Variable(x, volatile=v)\nclass A:\n    x = wrap(y, True)",
            "some callers",
        ),
    ],
)
def test_kept(body: str, why: str):
    text = dedent(body + "\n")
    helps, new = check(text)
    assert new == text
    assert helps and all(why in said for said in helps), helps


def test_targets_of_which_the_flag_had_no_effect():
    text = dedent("""
        def train(net, criterion, images, targets):
            targets = [Variable(item, volatile=True) for item in targets]
            loss = criterion(net(images), targets)
            loss.backward()
        """)
    _, new = check(text)
    assert "    targets = [item for item in targets]\n    loss = criterion(net(images), targets)\n" in new
    assert "no_grad" not in new


def test_the_images_of_a_loss_are_no_targets():
    text = dedent("""
        def train(net, criterion, images, targets):
            images = Variable(images, volatile=True)
            loss = criterion(net(images), targets)
            loss.backward()
        """)
    helps, new = check(text)
    assert new == text and "`backward()` is called on" in helps[0]


def test_attributes_with_which_a_method_computes():
    text = dedent("""
        class Model:
            def forward(self):
                self.fake = self.net(self.real)

            def test(self, x, seen):
                self.real = Variable(x, volatile=True)
                self.forward()
                seen.append(self.fake.requires_grad)
                return self.fake.data.sum().item()

        def test(net, x, seen):
            model = Model()
            model.net = net
            return model.test(x, seen)
        """)
    _, new = check(text)
    assert "        with torch.no_grad():\n            self.real = x\n            self.forward()\n" in new
    assert results(new) == (results(text)[0], [False])


def test_what_is_kept_in_a_list_that_trains_stays_outside():
    text = dedent("""
        def fit(net, x, y, losses):
            a = Variable(x, volatile=True)
            one = net(a)
            losses.append(net(y))
            two = net(a) + one
            print(two.data)
            sum(losses).backward()
        """)
    _, new = check(text)
    assert "    with torch.no_grad():\n        one = net(a)\n    losses.append(net(y))\n    with torch" in new


def test_names_of_the_module():
    text = dedent("""
        x = Variable(x, volatile=True)
        boxes = make(3)
        print(net(x).data)
        save(boxes)
        """)
    _, new = check(text)
    assert "boxes = make(3)\n" in new and "no_grad" in new


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        # What only one branch makes without gradients is no reason to take those of the other.
        (
            "def f(net, x, y, p):\n    if p:\n        h = net(Variable(x, volatile=True)).data.sum()\n"
            "    else:\n        h = net(y)\n    return h",
            "    else:\n        h = net(y)\n    return h",
        ),
        # Nor is what stands between, if the function returns it.
        (
            "def f(net, x, y):\n    h = Variable(x, volatile=True)\n    a = net(h)\n    b = net(y)\n"
            "    c = net(a).data\n    return b, c",
            "    b = net(y)\n    with torch.no_grad():\n        c = net(a).data\n",
        ),
        # A container that the caller gives is the way out of the function.
        (
            "def f(net, x, y, out):\n    h = Variable(x, volatile=True)\n    a = net(h)\n"
            "    out.append(net(y))\n    c = net(a).data\n    return c",
            "    out.append(net(y))\n    with torch.no_grad():\n        c = net(a).data\n",
        ),
    ],
)
def test_what_else_the_function_computes_keeps_its_gradients(body: str, kept: str):
    _, new = check(dedent(body + "\n"))
    assert kept in new and "volatile" not in new


def test_callers_of_a_method_in_derived_classes():
    text = dedent("""
        class Agent:
            def wrap(self, x, volatile=False):
                return Variable(x, volatile=volatile)

        class Player(Agent):
            def play(self, x):
                return self.net(self.wrap(x, True)).data
        """)
    _, new = check(text)
    assert "def wrap(self, x):" in new
    assert "        with torch.no_grad():\n            return self.net(self.wrap(x)).data\n" in new
