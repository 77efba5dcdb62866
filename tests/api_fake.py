"""An invented library history under the names of torch and torchvision, for tests of the API rules."""

from __future__ import annotations

from collections.abc import Mapping

from torchmigrate.versions.surface import Surface
from torchmigrate.versions.surface_file import encode
from torchmigrate.versions.surface_model import ApiEntry, DeprecatedParameter, EntryKind

MODULE = ApiEntry(EntryKind.MODULE)
OPEN = ApiEntry(EntryKind.MODULE, open=True)
VALUE = ApiEntry(EntryKind.VALUE)


def alias(target: str) -> ApiEntry:
    return ApiEntry(EntryKind.ALIAS, target=target)


def function(*signatures: str, gone: bool = False) -> ApiEntry:
    return ApiEntry(EntryKind.FUNCTION, signatures=signatures, gone=gone)


def cls(*signatures: str, bases: tuple[str, ...] = ()) -> ApiEntry:
    return ApiEntry(EntryKind.CLASS, signatures=signatures, bases=bases)


def warned(*signatures: str, said: str) -> ApiEntry:
    return ApiEntry(EntryKind.FUNCTION, signatures=signatures, deprecated=said, warns=True)


CONFIG = ApiEntry(EntryKind.MODULE, bases=("torch.configs.ConfigModule",))
_OLD_ARGUMENTS = (
    DeprecatedParameter("old is not None", "`old` is deprecated. Use `new` instead"),
    DeprecatedParameter("flag", "flag is deprecated"),
    DeprecatedParameter("kind == 'b'", "kind='b' is deprecated, use kind='a'"),
)

# By torch release, what is new (an entry) and what goes (None).
TORCH: dict[tuple[int, int], dict[str, ApiEntry | None]] = {
    (1, 2): {
        "torch": MODULE,
        "torch.Tensor": cls("(*args)"),
        "torch.Tensor.view": function("(*shape)"),
        "torch.Tensor.unique_to_one": function("()"),
        "torch.zeros": function("(*size, out=None, dtype=None)"),
        "torch.float32": VALUE,
        "torch.backport": OPEN,
        "torch._C": MODULE,
        "torch._C.Group": cls("()"),
        "torch._C.Group.old": VALUE,
        "torch.Group": alias("torch._C.Group"),
        "torch.nn": MODULE,
        "torch.nn.Linear": cls("(in_features, out_features, bias=True)"),
        "torch.nn.Gone": cls("(size)"),
        "torch.nn.Module": cls("()"),
        "torch.nn.Rnn": cls("(size, depth=1, old=None)"),
        "torch.nn.Rnn.made": function("(size, depth=0)"),
        "torch.nn.Rnn.unrolled": function("()"),
        "torch.nn.Rnn.fed": function("(x, old=None)"),
        "torch.nn.Scaler": cls("(factor, offset=0)"),
        "torch.nn.functional": MODULE,
        "torch.nn.functional.relu": function("(input, inplace=False)"),
        "torch.attic": MODULE,
        "torch.attic.sums": function("(input, dim=0)"),
        "torch.attic.deep": MODULE,
        "torch.attic.deep.thing": function("(x)"),
        "torch.linalg": MODULE,
        "torch.linalg.documented": function("(input, tol=None)"),
        "torch.maths": MODULE,
        "torch.maths.raised": function("(x, y)"),
        "torch.maths.summed": function("(input, dim=None)"),
        "torch.maths.scaled": function("(input, scale=1, bias=None, async_op=False)"),
        "torch.maths.renamed": function("(input, tensor2)"),
        "torch.maths.short": function("(input, dim=None, keep=False)"),
        "torch.maths.moved": function("(input, size=None, inplace=False)"),
        "torch.maths.many": function("(a)"),
        "torch.maths.forward": function("(a, old=1)"),
        "torch.maths.comes_and_goes": function("(a)"),
        "torch.maths.prepared": function("(model, config=None, checks=True)"),
        "torch.maths.fused": function("(conv, norm)"),
        "torch.maths.forwarded": function("(*args, **kwargs)"),
        "torch.maths.overloaded": function("(a)"),
        "torch.traced": MODULE,
        "torch.traced.Tracer": cls("()"),
        "torch.traced.other": function("(x)"),
    },
    (1, 5): {
        "torch.maths.raised": function("(x, y)", gone=True),
        "torch.maths.scaled": function("(input, scale=1, *, bias=None)"),
        "torch.maths.renamed": function("(input, other)"),
        "torch.maths.short": function("(input, dim=None)"),
        "torch.maths.moved": function("(input, mode='sum', size=None, inplace=False)"),
        "torch.linalg.documented": function("(input, atol=None)"),
        "torch.maths.many": function("(a)", "(a, b, c)"),
        "torch.maths.forward": function("(a, **kwargs)"),
        "torch.maths.comes_and_goes": None,
        "torch.nn.Rnn": cls("(size, depth=1)"),
        "torch.nn.Rnn.made": function("(*, size=None, depth=0)"),
        "torch.nn.Rnn.fed": function("(x, hidden)"),
        "torch.nn.Scaler": cls("(factor, offset)"),
        "torch.maths.prepared": function("(model, config, inputs, checks=True)"),
        "torch.maths.fused": function("(training, conv, norm)"),
        "torch.maths.forwarded": function("(x, y)"),
        "torch.maths.overloaded": function("(a, b)", "(a, *, c)"),
        "torch.traced": function("(model)"),
        "torch.traced.Tracer": None,
        "torch.traced.other": None,
    },
    (1, 8): {
        "torch.attic": None,
        "torch.attic.sums": None,
        "torch.attic.deep": None,
        "torch.attic.deep.thing": None,
        "torch.maths.sums": function("(input, dim=0, *, dtype=None)"),
        "torch.nn.Gone": None,
        "torch._C.Group.old": None,
        "torch.Tensor.unique_to_one": None,
        "torch.nn.Rnn.unrolled": None,
    },
    (2, 0): {
        "torch.func": MODULE,
        "torch.nn.Rnn": cls("(size, depth=1, *, fresh=False)"),
        "torch.func.vmap": function("(func, in_dims=0)"),
        "torch.zeros": function("(*size, out=None, dtype=None, pin_memory=False)"),
        "torch.maths.comes_and_goes": function("(a)"),
        "torch.func.grad": function("(func)"),
        "torch.aging": MODULE,
        "torch.aging.fresh": function("(x)"),
        "torch.aging.warned": function("(x)"),
        "torch.aging.documented": function("(x)"),
        "torch.aging.owned": function("(x)"),
        "torch.aging._private": function("(x)"),
        "torch.aging.Old": cls("(x)"),
        "torch.aging.options": function("(x, old=None, flag=False, kind='a', *, new=None)"),
        "torch.aging.module": MODULE,
        "torch.aging.module.f": function("(x)"),
        "torch.aging.module.g": function("(x)"),
        "torch.configs": MODULE,
        "torch.configs.ConfigModule": ApiEntry(EntryKind.CLASS, open=True),
        "torch.configs.ConfigModule.patch": function("(arg1=None, arg2=None, **kwargs)"),
        "torch._inductor": OPEN,
        "torch._inductor.config": CONFIG,
        "torch._inductor.config.verbose": VALUE,
        "torch._inductor.config.gone": VALUE,
        "torch._inductor.config.moved": VALUE,
        "torch._inductor.config.unread": VALUE,
        "torch._inductor.config.old": VALUE,
        "torch._inductor.config.renamed": VALUE,
        "torch._inductor.config.cpp": cls(),
        "torch._inductor.config.cpp.threads": VALUE,
        "torch._inductor.config.cpp.gone": VALUE,
        "torch.compile": function("(model, *, options=None, backend='inductor')"),
        "torch.config": CONFIG,
    },
    (2, 5): {
        "torch.aging.warned": warned(
            "(x)", said="`torch.aging.warned` is deprecated. Use `torch.aging.fresh`"
        ),
        "torch.aging.documented": ApiEntry(
            EntryKind.FUNCTION, signatures=("(x)",), deprecated="This function is deprecated"
        ),
        "torch.aging.owned": warned("(x)", said="deprecated"),
        "torch.aging._private": warned("(x)", said="deprecated"),
        "torch.aging.Old": ApiEntry(
            EntryKind.CLASS, signatures=("(x)",), deprecated="Old will go; use `gone_as_well`", warns=True
        ),
        "torch.aging.options": ApiEntry(
            EntryKind.FUNCTION,
            signatures=("(x, old=None, flag=False, kind='a', *, new=None)",),
            parameters=_OLD_ARGUMENTS,
        ),
        "torch.aging.module": ApiEntry(
            EntryKind.MODULE, deprecated="torch.aging.module is deprecated", warns=True
        ),
        "torch._inductor.config.gone": None,
        "torch._inductor.config.moved": None,
        "torch._inductor.config.unread": ApiEntry(EntryKind.VALUE, unread=True),
        "torch._inductor.config.old": ApiEntry(
            EntryKind.VALUE,
            target="torch._inductor.config.verbose",
            deprecated="use verbose instead",
            warns=True,
        ),
        "torch._inductor.config.cpp.gone": None,
        "torch._inductor.config.renamed": ApiEntry(EntryKind.VALUE, target="torch._inductor.config.fresh"),
        "torch._inductor.config.second": ApiEntry(EntryKind.VALUE, target="torch._inductor.config.verbose"),
        "torch._inductor.config.fresh": VALUE,
        "torch.config.moved": VALUE,
    },
    (2, 15): {},
}
TORCHVISION: dict[tuple[int, int], dict[str, ApiEntry | None]] = {
    (0, 2): {"torchvision": MODULE, "torchvision.pieces": MODULE, "torchvision.pieces.cut": function("(x)")},
    (0, 15): {"torchvision.pieces.cut": None, "torchvision.fresh": MODULE},
}


def surface(library: str, changes: Mapping[tuple[int, int], Mapping[str, ApiEntry | None]]) -> Surface:
    """The data of a library with these changes."""
    releases: list[tuple[tuple[int, ...], dict[str, ApiEntry]]] = []
    held: dict[str, ApiEntry] = {}
    for version, changed in changes.items():
        for name, entry in changed.items():
            if entry is None:
                del held[name]
            else:
                held[name] = entry
        releases.append((version, dict(held)))
    return Surface(encode(library, releases))
