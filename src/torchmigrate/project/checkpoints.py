"""What files save: only tensors, numbers and plain containers, or other objects as well.

`torch.load(..., weights_only=True)` reads numbers, text, bytes, lists, tuples, `dict`, `set`, `OrderedDict`,
`Counter`, tensors, parameters, and `torch.Size`, `dtype`, `device`. It refuses the others: numbers and arrays
of NumPy, `argparse.Namespace`, `defaultdict`, `deque`, `frozenset`, named tuples, enums, dates, paths,
classes, functions of a program, `torch.__version__` (a class of its own), whole models and optimizers.
Measured with torch 2.13; what it reads is listed by `_get_allowed_globals` in
torch/_weights_only_unpickler.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Hashable, Iterator
from enum import IntEnum
from functools import cached_property

from torchmigrate.patterns import pattern
from torchmigrate.semantics.flow.domain import NOTHING, UNKNOWN, Domain, Sentinel, Values
from torchmigrate.semantics.flow.steps import VALUE, Path, Step
from torchmigrate.semantics.flow.values import ValueFlow
from torchmigrate.source.trees import children, last_name

# Code that writes with these stores settings, and its own states, as objects next to the weights.
WRITERS = (b"pytorch_lightning", b"lightning.pytorch", b"save_hyperparameters", b"deepspeed")
SAVES, RENAMES = b"torch.save", b"import torch as "
STATES = b"state_dict("
GROUPS = b"param_groups"  # where an optimizer keeps its rates, which are in its state dict
# `"args": args` (argparse.Namespace), `"config": cfg` (OmegaConf, yacs) in a dictionary that is written out.
_OBJECT = pattern(
    rb"['\"](?:\w*args|\w*cfg|\w*conf|\w*config|opts?|options|hparams|\w*hyper_?param\w*)['\"]"
    rb"\s*:\s*(?!str\(|dict\(|vars\()[A-Za-z_]"
)
# The text before `net.state_dict()` as an entry: `"model":`, `checkpoint["model"] =`, `dict(model=`
_ENTRY = rb"(?:['\"]\s*:|\]\s*=|\w=)\s*[\w.\[\]()]*\Z"
_LONGEST = 200  # bytes that are looked at for it
_NAME = pattern(r"[^'\"/\\\s{}]{3,}\Z")

# What names say of values that are not seen: counts, weights, and results of computing, which may be
# numbers of NumPy (`np.sum(hits) / count`).
_STEPS = pattern(r"(?i)^(?:\w+_)?n?(?:epoch|step|iter|iteration)s?$")
_WEIGHTS = pattern(r"(?i)state_?dict$|weights$|(?:^|_)sd$|^(?:model|optim\w*|sched\w*|ema|scaler|net)_state$")
_MEASURES = pattern(
    r"(?i)(?:^|_)(?:\w*loss(?:es)?|acc(?:uracy)?(?:[@_]?\d)?|scores?|metrics?|best|prec(?:ision)?\d?|recall|err(?:or)?|mae|mse|"
    r"rmse|m?iou|m?ap|psnr|ssim|auc|f1|bleu|[wc]er|fitness|rewards?|results?|ppl|perplexity|mean|std|avg|average|val|"
    r"sum|count|num|n|total)(?:$|_(?!model|net|fn|func|module|meter|state|config|args))"
)
PARAMETER = pattern(r"\w\.\w|(?:weight|bias)$")  # keys of a state dict
_STATE_KEY = pattern(r"(?i)state|model|net|weight|param|optim")
_COUNTS = pattern(
    r"(?i)epoch|(?:^|_)(?:steps?|idx|seed|arch|name|lr|learning_rate|n?batch(?:es)?|batch_size)$"
)
_KNOWN = pattern(r"(?i)^num_class(?:es)?$|^params_(?:ema|d)$")
_NUMERIC = pattern(rb"\b(?:numpy|sklearn|scipy|pandas)\b")
# Their objects have the methods of tensors.
_LIKE_TENSORS = pattern(rb"\b(?:torch_geometric|torch_sparse|tensordict|dgl)\b")
_SETTINGS = pattern(r"(?i)^_?(?:args?|opts?|options?|cfg|conf|config|h?params|hps|flags)$")
_THROUGH = frozenset(
    (
        "list tuple set dict sorted sum max min abs round reversed zip OrderedDict deepcopy copy enumerate"
    ).split()
)
_GIVES_NUMBERS = frozenset(
    "parameters named_parameters item tolist isoformat strftime format size dim numel".split()
)
_SAME = frozenset(
    (
        "cpu cuda to half float double long int bool byte contiguous clone squeeze unsqueeze view reshape t "
        "items values copy get detach split strip lower upper replace rstrip lstrip join"
    ).split()
)
_FACTORIES = frozenset(
    (
        "tensor as_tensor from_numpy zeros ones empty full rand randn randint randperm arange linspace eye "
        "cat stack vstack hstack zeros_like ones_like full_like get_rng_state get_rng_state_all softmax "
        "squeeze unsqueeze flatten reshape transpose permute clamp exp log sqrt abs matmul mm bmm einsum "
        "flip tril triu cumsum bincount gather argmax where mean sum normalize Tensor "
        "FloatTensor LongTensor Parameter"
    ).split()
)
# What is never read, though it looks plain.
_REFUSED = frozenset(["defaultdict", "deque", "frozenset", "namedtuple", "slice", "timedelta", "datetime"])
_RATES = frozenset(["lr", "initial_lr", "momentum", "weight_decay", "betas", "eps"])
_TIMES_RATES = frozenset(["LambdaLR", "MultiplicativeLR"])  # they multiply rates by what a function gives
_OPTIMIZER = pattern(r"(?i)(?:^|_)(?:opt|optim|optimi[sz]er)s?(?:_|\d*$)|^optim|optimi[sz]er")
# `save_labels(path)` writes what `load_labels(path)` reads.
_WAYS = frozenset(["save", "write", "store", "dump", "load", "read", "restore", "resume"])
_PATHS = frozenset(["join", "joinpath", "Path", "str", "expanduser", "abspath"])
_DEEPEST = 60  # from value to value on the way to the end of a path


def may_hold_settings(data: bytes) -> bool:
    """Whether a file saves settings as an object, or uses what does so."""
    if any(word in data for word in WRITERS):
        return True
    return may_write(data) and _OBJECT.search(data) is not None


def is_numeric(data: bytes) -> bool:
    """Whether a file computes with NumPy, or what gives its numbers."""
    return _NUMERIC.search(data) is not None


def last_in_string(name: str) -> re.Pattern[bytes]:
    """A name as the last one in a string, as of a path."""
    word = re.escape(name.encode("utf-8", "replace"))
    return re.compile(rb"%s(?<![^'\"/\\\s{}]%s)['\"]" % (word, word))


def may_write(data: bytes) -> bool:
    """Whether a file may write checkpoints: `torch.save`, or `th.save` after `import torch as th`."""
    return SAVES in data or (RENAMES in data and b".save(" in data)


def may_save(data: bytes) -> bool:
    """Whether a file may write checkpoints, or make what another one writes."""
    return (
        may_write(data)
        or GROUPS in data
        or any(
            re.search(
                _ENTRY,
                data[max(0, data.rfind(b"\n", 0, found.start()), found.start() - _LONGEST) : found.start()],
            )
            for found in re.finditer(re.escape(STATES), data)
        )
    )


class Kind(IntEnum):
    """What a value is, from what is sure to be plain to what is not."""

    PLAIN = 0
    LIKELY = 1  # a count, a setting
    MEASURE = 2  # a result: a number of an unknown library
    UNKNOWN = 3
    OBJECT = 4
    OWN = 5  # all that an object has: `self.__dict__`


_BUILTINS = {
    **dict.fromkeys("int float str bool len repr complex bytes range".split(), Kind.PLAIN),
    "type": Kind.OBJECT,
    "vars": Kind.LIKELY,
}
_UNKNOWN: Values[Kind] = frozenset([UNKNOWN])


class Kinds(Domain[Kind]):
    """What the values of a file are; of a container: what its items are.

    Args:
        data: the text of the file.
    """

    def __init__(self, flow: ValueFlow, data: bytes) -> None:
        super().__init__(flow)
        self._like_tensors = _LIKE_TENSORS.search(data) is not None
        self.sets_objects = False  # whether the state of an optimizer holds numbers of NumPy
        self.unknown: set[str] = set()  # functions that are called, and that nothing is known of

    def worst(self, node: ast.AST) -> Kind:
        """The kind that is the least plain of those that a value may be."""
        return max((_kind(each) for each in self.of(node)), default=Kind.PLAIN)

    def start(self, node: ast.AST) -> Kind | None:
        if isinstance(node, (ast.Constant, ast.JoinedStr)):
            return Kind.PLAIN
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node)
        return self._of_call(node) if isinstance(node, ast.Call) else None

    def _of_call(self, node: ast.Call) -> Kind | None:
        function, name, root = node.func, last_name(node.func), _root(node.func)
        if name.endswith("state_dict"):
            return Kind.OBJECT if self.sets_objects and is_of_optimizer(node) else None
        if name in _REFUSED or "numpy" in (name, root) or root == "np":
            return Kind.OBJECT
        if isinstance(function, ast.Name):
            is_own = name == "vars" and last_name(next(iter(node.args), function)) == "self"
            return Kind.OWN if is_own else _BUILTINS.get(name)
        is_plain = (
            name in _GIVES_NUMBERS
            or (name == "time" and root == "time")
            or (name == "detach" and not self._like_tensors)
            or (name in _FACTORIES and self._is_of_torch(function))
        )
        return Kind.PLAIN if is_plain else None

    def _is_of_torch(self, node: ast.AST) -> bool:
        return self.flow.imported(node).startswith("torch.")

    def _of_attribute(self, node: ast.Attribute) -> Kind | None:
        root, name = _root(node), node.attr
        if root in ("np", "numpy"):
            return Kind.PLAIN if name in ("inf", "nan", "pi", "e") else Kind.OBJECT
        if name == "__dict__" and root == "self":
            return Kind.OWN
        if name == "__class__" or (name == "__version__" and self._is_of_torch(node)):
            return Kind.OBJECT
        if name in ("weight", "bias", "grad", "shape", "__name__", "__version__"):
            return Kind.PLAIN
        return Kind.LIKELY if _SETTINGS.search(last_name(node.value)) else None

    def through(self, node: ast.AST) -> Values[Kind]:
        added: Values[Kind] = NOTHING
        if isinstance(node, (ast.Call, ast.arg)):  # that may make a container
            written = [step for _, step in self.flow.written(node)]
            added = added.union(*[self.of(step.node, step.path) for step in written if step.node])
        return added | self._made(node)

    def _made(self, node: ast.AST) -> Values[Kind]:
        if isinstance(node, ast.Call):
            return self._made_by(node)
        if isinstance(node, (ast.Dict, ast.List, ast.Set)):
            held = self.of(node, (VALUE,))
            return held if children(node) else held | {Kind.LIKELY}  # other code may fill it
        if isinstance(node, ast.Attribute):
            given = self.flow.classes.outside.get(node.attr, ())
            return self.of(node.value) if node.attr == "data" else self.join(*given) or _UNKNOWN
        if isinstance(node, (ast.DictComp, ast.Subscript, ast.Starred)):
            return self.of(node.value)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return self.of(node.elt)
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Tuple, ast.AugAssign)):
            return self.join(*[part for part in children(node) if isinstance(part, ast.expr)])
        return _UNKNOWN

    def _made_by(self, node: ast.Call) -> Values[Kind]:
        function, name = node.func, last_name(node.func)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if name.endswith("state_dict"):
            return frozenset([Kind.PLAIN])
        if name in _THROUGH and (
            isinstance(function, ast.Name) or _root(function) in ("copy", "collections")
        ):
            return self.join(*given) if given else frozenset([Kind.LIKELY])
        if isinstance(function, ast.Attribute) and name in _SAME:
            return self.of(function.value)
        if name[:1].isupper():
            return frozenset([Kind.OBJECT])
        self.unknown.add(name)
        return _UNKNOWN

    def part(self, node: ast.AST, path: Path) -> Values[Kind]:
        called = last_name(node.func) if isinstance(node, ast.Call) else ""
        is_key = path[-1] == 0 and called in ("items", "enumerate", "named_parameters")
        return frozenset([Kind.PLAIN]) if is_key else self.of(node)

    def _work(self, step: Step) -> Values[Kind]:
        found = super()._work(step)
        if not isinstance(step.node, (ast.Name, ast.Attribute)):
            return found
        named = _by_name(last_name(step.node))  # which counts where the value is not known
        return frozenset(kind if _kind(kind) > Kind.UNKNOWN else min(_kind(kind), named) for kind in found)


class Saved:
    """What one file saves, or makes for another that does.

    Args:
        flow: of the file.
        data: its text.
    """

    def __init__(self, flow: ValueFlow, data: bytes) -> None:
        self.flow = flow
        self.kinds = Kinds(flow, data)
        self._numeric = is_numeric(data)
        self.sets_objects = GROUPS in data and any(map(self.is_object, self._rates()))
        if self.sets_objects:
            self.kinds.sets_objects = True
            self.kinds.forget()

    def _rates(self) -> Iterator[ast.AST]:
        """What rates of optimizers are set to: `group["lr"] = np.interp(...)`."""
        yield from (value for _, key, value in self._entries if key in _RATES)
        for call in self._calls(_TIMES_RATES):
            if len(call.args) > 1:
                yield ast.Call(call.args[1], [], [])

    def _calls(self, names: Container[str]) -> list[ast.Call]:
        return [call for call in self.flow.names.nodes(ast.Call) if last_name(call.func) in names]

    @cached_property
    def _entries(self) -> list[tuple[Hashable, str, ast.AST]]:
        """What is written to dictionaries: which one, the key, and the value."""
        found: list[tuple[Hashable, str, ast.AST]] = []
        for node in self.flow.names.nodes(ast.Subscript):
            outer = self.flow.names.parents.get(node)
            if isinstance(node.ctx, ast.Store) and isinstance(outer, ast.Assign):
                found.append((self._key(node.value), _text(node.slice), outer.value))
        for call in self._calls(["update"]):
            if isinstance(call.func, ast.Attribute):
                key = self._key(call.func.value)
                found += [(key, name, value) for name, value in _items(call)]
        return found

    def _key(self, node: ast.AST) -> Hashable:
        """What tells a dictionary from others: its variable, its attribute, or itself."""
        if isinstance(node, ast.Name):
            scope = self.flow.index.holder(node)
            return (scope.node if scope is not None else None, node.id)
        return node.attr if isinstance(node, ast.Attribute) else node

    @cached_property
    def saves(self) -> list[tuple[ast.expr, ast.expr]]:
        """What is saved, and where."""
        calls = [use.call for use in self.flow.names.uses if use.call and "torch.save" in use.candidates]
        every = [(argument(call, 0, "obj"), argument(call, 1, "f")) for call in calls]
        return [(what, path) for what, path in every if what is not None and path is not None]

    @property
    def holds_objects(self) -> bool:
        """Whether other objects may be in a dictionary that has state dicts in it and may be saved."""
        worst = max(self._companions, default=Kind.PLAIN)
        most = Kind.LIKELY if self._numeric else Kind.MEASURE
        saves_own = any(Kind.OWN in self.kinds.of(what) for what, _ in self.saves)
        return self.sets_objects or worst > most or saves_own

    @property
    def measured_by(self) -> frozenset[str]:
        """The functions that results in such a dictionary may come from."""
        return frozenset(self.kinds.unknown if Kind.MEASURE in self._companions else ())

    @cached_property
    def _companions(self) -> set[Kind]:
        """The kinds of what is in dictionaries that have state dicts in them and may be saved."""
        saved = {self._key(what) for what, _ in self.saves}
        held: dict[Hashable, list[tuple[str, ast.AST]]] = {}
        made: list[ast.Dict | ast.Call] = [*self.flow.names.nodes(ast.Dict)]
        for node in [*made, *self._calls(["dict", "OrderedDict"])]:
            outer = self.flow.names.parents.get(node)
            name = outer.targets[0] if isinstance(outer, ast.Assign) else node
            held.setdefault(self._key(name), []).extend(_items(node))
        for key, text, value in self._entries:
            held.setdefault(key, []).append((text, value))
        return {
            self._of_entry(text, value)
            for key, entries in held.items()
            if any(_is_state(value) for _, value in entries)
            or (key in saved and any(_STATE_KEY.search(text) for text, _ in entries))
            for text, value in entries
        }

    def _of_entry(self, key: str, value: ast.AST) -> Kind:
        """The kind of an entry of a dictionary, by its key where the value does not say."""
        kind = self.kinds.worst(value)
        if kind is not Kind.UNKNOWN:
            return kind
        return Kind.LIKELY if PARAMETER.search(key) else _by_name(key)

    @cached_property
    def plainly(self) -> dict[str, bool]:
        """Names of files that are saved to -> whether that is sure to be plain each time."""
        found: dict[str, bool] = {}
        for what, path in self.saves:
            name = self.name_of(path)
            if name is not None:
                found[name] = found.get(name, True) and self.is_plain(what)
        return found

    def saved_as(self, name: str) -> list[ast.expr]:
        """What is saved under a name, as in `plainly`."""
        return [what for what, path in self.saves if self.name_of(path) == name]

    def is_plain(self, what: ast.AST) -> bool:
        """Whether a value is sure to be plain."""
        return self.kinds.worst(what) is Kind.PLAIN

    def is_object(self, what: ast.AST) -> bool:
        """Whether a value is sure to be another object than a plain one."""
        return self.kinds.worst(what) is Kind.OBJECT

    def name_of(self, path: ast.AST) -> str | None:
        """The key of a file in `plainly`.

        The end of its name, or else, in this file only, the attribute that has it (`self.path`,
        `args.form.format(epoch)`), or the parameter of a function that is named after what it does
        (`load_labels(path)`, `save_labels(path)`).
        """
        end = self._end_of(path)
        if isinstance(end, ast.Constant) and isinstance(end.value, str):
            _, slash, name = end.value.replace("\\", "/").rpartition("/")
            outer = self.flow.names.parents.get(end)
            is_end = isinstance(outer, ast.JoinedStr) or (
                isinstance(outer, ast.BinOp) and not isinstance(outer.op, ast.Div)
            )
            return name if (slash or not is_end) and _NAME.match(name) else None
        if isinstance(end, ast.Attribute):
            return ast.unparse(end) if _root(end) else None
        function = self.flow.index.home_of(end)
        if not isinstance(end, ast.Name) or not isinstance(function, ast.FunctionDef):
            return None
        words = function.name.strip("_").split("_")
        rest = [word for word in words if word not in _WAYS]
        bound = self.flow.index.scope_at(function).bindings.get(end.id, ())
        if len(rest) == len(words) or len(bound) != 1 or not isinstance(bound[0].node, ast.arg):
            return None
        owner = self.flow.names.parents.get(function)
        return f"{getattr(owner, 'name', '')}:{'_'.join(rest)}:{end.id}"

    def _end_of(self, path: ast.AST) -> ast.AST:
        """The last part of a path: `"labels.pt"` of `os.path.join(place, "labels.pt")`, or of a file that is
        opened there; the last attribute on the way to it, if it is not written out."""
        attribute: ast.AST | None = None
        for _ in range(_DEEPEST):
            last: ast.AST | None = None
            made = path.context_expr if isinstance(path, ast.withitem) else path
            if isinstance(path, (ast.Name, ast.Attribute)):
                attribute = path if isinstance(path, ast.Attribute) else attribute
                steps = self.flow.sources(path)
                last = steps[0].node if len(steps) == 1 and not steps[0].path else None
            elif isinstance(path, ast.BinOp):
                last = path.right
            elif isinstance(path, ast.JoinedStr) and path.values:
                last = path.values[-1]
            elif (
                isinstance(made, ast.Call)
                and last_name(made.func) in _PATHS
                and made.args
                and not made.keywords
            ):
                last = made.args[-1]
            elif isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id == "open":
                last = next(iter(made.args), None)
            elif isinstance(made, ast.Call) and last_name(made.func) in ("open", "format"):
                last = made.func.value if isinstance(made.func, ast.Attribute) else None
            if last is None or not isinstance(last, (ast.expr, ast.withitem)):
                break
            path = last
        return path if attribute is None or isinstance(path, ast.Constant) else attribute


def _items(node: ast.Dict | ast.Call) -> Iterator[tuple[str, ast.AST]]:
    """The entries that a dictionary is written with; no key for all of another one."""
    if isinstance(node, ast.Dict):
        yield from ((_text(key), value) for key, value in zip(node.keys, node.values, strict=True))
    else:
        yield from (("", item) for item in node.args)
        yield from ((item.arg or "", item.value) for item in node.keywords)


def is_of_optimizer(call: ast.Call) -> bool:
    """Whether a method seems to be one of an optimizer: `self.optim.state_dict()`."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    while isinstance(owner, ast.Subscript):
        owner = owner.value
    return owner is not None and _OPTIMIZER.search(last_name(owner)) is not None


def argument(call: ast.Call, index: int, name: str) -> ast.expr | None:
    """What a call passes as a parameter."""
    if len(call.args) > index:
        return call.args[index]
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _kind(value: Kind | Sentinel) -> Kind:
    return Kind.UNKNOWN if isinstance(value, Sentinel) else value


def _by_name(name: str) -> Kind:
    if _STEPS.search(name):
        return Kind.PLAIN
    if _MEASURES.search(name) and not _KNOWN.search(name):
        return Kind.MEASURE
    is_likely = any(words.search(name) for words in (_WEIGHTS, _COUNTS, _KNOWN))
    return Kind.LIKELY if is_likely else Kind.UNKNOWN


def _is_state(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func).endswith("state_dict")


def _text(key: ast.expr | None) -> str:
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""


def _root(node: ast.AST) -> str:
    """The name at the beginning of `a.b.c`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return last_name(node)
