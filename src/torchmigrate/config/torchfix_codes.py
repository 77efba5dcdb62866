"""What TorchFix calls the things that our rules find: its codes, and which of ours stand for them.

`# noqa: TOR101` hides our codes, `--select TOR101` selects them, `explain TOR101` lists them, and
a page of the documentation is made of this table (`tools/torchfix_table.py`). All of release 0.7.0 is in it,
and what its repository has gained since (the last commit is of 2025).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

RELEASED, LATER = "0.7.0", "after 0.7.0"


class TorchFixCode(Struct, frozen=True):
    """A code of TorchFix. rules: what it reports, a qualified name or a few words -> our codes."""

    summary: str
    rules: Mapping[str, tuple[str, ...]]
    on_by_default: bool = True
    since: str = RELEASED

    @property
    def ours(self) -> tuple[str, ...]:
        """Our codes, each once, in order."""
        return tuple(sorted({code for codes in self.rules.values() for code in codes}))


_REMOVED = {
    "torch.solve": ("TM102",),
    "torch.symeig": ("TM100",),
    "torch.matrix_rank": ("TM117",),
    "torch.lstsq": ("TM103",),
}
_DEPRECATED = {
    "torch.backends.cuda.sdp_kernel": ("TM635",),
    "torch.chain_matmul": ("TM118",),
    "torch.cholesky": ("TM106",),
    "torch.ger": ("TM110",),
    "torch.lu": ("TM111",),
    "torch.lu_solve": ("TM112",),
    "torch.nn.UpsamplingBilinear2d": ("TM496",),
    "torch.nn.UpsamplingNearest2d": ("TM495",),
    "torch.nn.utils.weight_norm": ("TM497",),
    "torch.norm": ("TM120",),
    "torch.qr": ("TM104",),
    "torch.range": ("TM096",),
    "torch.svd": ("TM105",),
    "torch.testing.assert_allclose": ("TM025",),
    "torch.triangular_solve": ("TM115",),
    "torch.utils._pytree._register_pytree_node": ("TM097",),
    "functorch.functionalize": ("TM300",),
    "functorch.grad": ("TM300",),
    "functorch.hessian": ("TM300",),
    "functorch.jacfwd": ("TM300",),
    "functorch.jacrev": ("TM300",),
    "functorch.jvp": ("TM300",),
    "functorch.vjp": ("TM300",),
    "functorch.vmap": ("TM300",),
    "torch.cpu.amp.autocast": ("TM201",),
    "torch.cuda.amp.autocast": ("TM201",),
    "torch.cuda.amp.custom_bwd": ("TM203",),
    "torch.cuda.amp.custom_fwd": ("TM203",),
}
# Names that the codes of the release gained later.
LATER_NAMES = frozenset(name for name in _DEPRECATED if ".amp." in name)
_COLLATE = {
    "torch.utils.data._utils.collate.default_collate": ("TM997",),
    "torch.utils.data._utils.collate.default_convert": ("TM997",),
}

CODES: Mapping[str, TorchFixCode] = {
    "TOR001": TorchFixCode("Use of removed function", _REMOVED),
    "TOR002": TorchFixCode(
        "Likely typo `require_grad` in assignment", {"assignment to `.require_grad`": ("TM995",)}
    ),
    "TOR003": TorchFixCode(
        "`checkpoint` without `use_reentrant`", {"torch.utils.checkpoint.checkpoint": ("TM601",)}
    ),
    "TOR004": TorchFixCode("Import of removed function", _REMOVED),
    "TOR101": TorchFixCode("Use of deprecated function", _DEPRECATED),
    "TOR102": TorchFixCode("`torch.load` without `weights_only`", {"torch.load": ("TM600",)}),
    "TOR103": TorchFixCode("Import of deprecated function", _DEPRECATED),
    "TOR104": TorchFixCode("Use of non-public function", _COLLATE),
    "TOR105": TorchFixCode("Import of non-public function", _COLLATE),
    "TOR106": TorchFixCode("Use `torch.log1p(x)`", {"`torch.log(1 + x)`": ("TM990",)}),
    "TOR107": TorchFixCode("Use `torch.special.expm1(x)`", {"`torch.exp(x) - 1`": ("TM991",)}),
    "TOR108": TorchFixCode(
        "Use `torch.logsumexp`", {"`torch.log(torch.sum(torch.exp(x), dim))`": ("TM992",)}, since=LATER
    ),
    "TOR201": TorchFixCode(
        "Parameter `pretrained` is deprecated",
        {
            "`pretrained=` of a model": ("TM722", "TM723"),
            "`pretrained=` of a detection or segmentation model": ("TM725",),
            "`pretrained_backbone=`": ("TM726",),
        },
    ),
    "TOR202": TorchFixCode(
        "`v2.ToTensor()` is deprecated", {"torchvision.transforms.v2.ToTensor": ("TM710",)}
    ),
    "TOR203": TorchFixCode(
        "`import torchvision.models as models`",
        {
            "torchvision.datasets": ("TM996",),
            "torchvision.models": ("TM996",),
            "torchvision.transforms": ("TM996",),
        },
    ),
    "TOR401": TorchFixCode(
        "DataLoader with synchronized implementation",
        {"torch.utils.data.DataLoader": ("TM993",)},
        on_by_default=False,
    ),
    "TOR402": TorchFixCode(
        "Gradient set to zero instead of None",
        {"`zero_grad(set_to_none=False)`": ("TM994",)},
        on_by_default=False,
        since=LATER,
    ),
    "TOR901": TorchFixCode(
        "Use `torch.library._scoped_library`", {"torch.library.Library": ("TM998",)}, on_by_default=False
    ),
}


@lru_cache(maxsize=256)
def ours(prefix: str) -> frozenset[str]:
    """Our codes for a code of TorchFix or the beginning of one, such as `TOR1`; empty if it has none such."""
    return frozenset(code for name, entry in CODES.items() if name.startswith(prefix) for code in entry.ours)
