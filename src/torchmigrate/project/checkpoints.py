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
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import cached_property

from torchmigrate.patterns import pattern
from torchmigrate.source.trees import children, walk

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
_NUMBERS = frozenset(["int", "float", "str", "bool", "len", "repr", "complex", "bytes"])
_THROUGH = frozenset(
    (
        "list tuple set dict sorted sum max min abs round reversed zip OrderedDict deepcopy copy enumerate"
    ).split()
)
_GIVES_NUMBERS = frozenset(["item", "tolist", "isoformat", "strftime", "format", "size", "dim", "numel"])
_OF_TEXT = frozenset(["split", "strip", "lower", "upper", "replace", "rstrip", "lstrip", "join"])
_SAME = frozenset(
    (
        "cpu cuda to half float double long int bool byte contiguous clone squeeze unsqueeze view reshape t "
        "items values copy"
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
_DEEPEST = 60  # from value to value on the way to what a name holds

_Scope = ast.AST
_LEAVES = frozenset([ast.Name, ast.Constant, ast.alias])  # nodes that say nothing, and have none below them
_TELLING = frozenset(
    [
        *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Return),
        *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.For, ast.AsyncFor, ast.comprehension),
        *(ast.Call, ast.Dict, ast.Import, ast.With, ast.withitem),
    ]
)
_Key = tuple[_Scope | None, str]
_Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


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


class _Kind(IntEnum):
    """What a value is, from what is sure to be plain to what is not."""

    PLAIN = 0
    LIKELY = 1  # a count, a setting
    MEASURE = 2  # a result: a number of an unknown library
    UNKNOWN = 3
    OBJECT = 4


class Saved:
    """What one file saves, or makes for another that does.

    Args:
        tree: the file.
        data: its bytes.
    """

    def __init__(self, tree: ast.Module, data: bytes) -> None:
        self.tree = tree
        self._numeric = is_numeric(data)
        self._like_tensors = _LIKE_TENSORS.search(data) is not None
        # What a name gets in a scope (attributes: in the file), each with the scope that it is written in.
        self._values: dict[_Key, list[tuple[ast.expr | None, _Scope]]] = {}
        self._outer: dict[_Scope, _Scope | None] = {tree: None}
        self._classes: dict[_Scope, str] = {}  # method -> its class
        self._dicts: list[tuple[_Scope, ast.Dict | ast.Call]] = []
        # `name["key"] = value`
        self._entries: list[tuple[_Scope, str, str, ast.expr]] = []
        self._saves: list[tuple[_Scope, ast.expr, ast.expr]] = []
        self._opened: dict[ast.Call, ast.expr] = {}  # calls that save to an open file, with its path
        self._kinds: dict[_Key, _Kind] = {}
        self._open: list[_Key] = []
        self._asked: set[str] = set()  # functions that nothing is known of
        self._torch = {"torch", *(_names_of_torch(tree) if RENAMES in data else ())}
        self._rates: list[tuple[_Scope, ast.expr]] = []  # what rates of optimizers are set to
        self._walk(tree)
        if GROUPS in data:
            self._rates += [(scope, value) for scope, _, key, value in self._entries if key in _RATES]
        # Whether the state of an optimizer holds numbers of NumPy: `group["lr"] = np.interp(...)`.
        self.sets_objects = False
        self.sets_objects = any(self._kind(value, scope, 0) is _Kind.OBJECT for scope, value in self._rates)

    # ---- questions -----------------------------------------------------------------------------------

    @property
    def holds_objects(self) -> bool:
        """Whether other objects may be in a dictionary that has state dicts in it and may be saved."""
        worst = max(self._companions, default=_Kind.PLAIN)
        most = _Kind.LIKELY if self._numeric else _Kind.MEASURE
        return self.sets_objects or worst > most or self._saves_own_state

    @cached_property
    def _saves_own_state(self) -> bool:
        """Whether all that an object has is saved: `torch.save(self.__dict__, path)`, or entry by entry."""
        saved = {self._key(what, scope) for scope, what, _ in self._saves} - {None}
        values = [(scope, what) for scope, what, _ in self._saves]
        for scope, name, _, value in self._entries:
            if self._bound(scope, name) in saved:
                values.append((scope, value))
        return any(
            any(map(_is_own_state, walk(each)))
            for scope, value in values
            for each in [value, *self._held(value, scope)]
        )

    def _held(self, node: ast.expr, scope: _Scope) -> list[ast.expr]:
        known = self.values_of(node, scope) if isinstance(node, (ast.Name, ast.Attribute)) else []
        return [value for value in known if value is not None]

    @property
    def measured_by(self) -> frozenset[str]:
        """The functions that results in such a dictionary may come from."""
        asked = self._asked if self._companions and self.plainly is not None else ()
        return frozenset(asked if _Kind.MEASURE in self._companions else ())

    @cached_property
    def _companions(self) -> set[_Kind]:
        """The kinds of what is in dictionaries that have state dicts in them and may be saved."""
        makes = {value: key for key, values in self._values.items() for value, _ in values if value}
        saved = {self._key(what, scope) or what for scope, what, _ in self._saves}
        held: dict[_Key | ast.expr, list[tuple[str, ast.expr, _Scope]]] = {}
        for scope, node in self._dicts:
            entries = held.setdefault(makes.get(node, node), [])
            entries += [(key, value, scope) for key, value in _items(node)]
        for scope, name, key, value in self._entries:
            held.setdefault(self._bound(scope, name), []).append((key, value, scope))
        return {
            self._of_entry(key, value, scope)
            for name, entries in held.items()
            if any(_is_state(value) for _, value, _ in entries)
            or (name in saved and any(_STATE_KEY.search(key) for key, _, _ in entries))
            for key, value, scope in entries
        }

    @cached_property
    def plainly(self) -> dict[str, bool]:
        """Names of files that are saved to -> whether that is sure to be plain each time."""
        found: dict[str, bool] = {}
        for scope, what, path in self._saves:
            name = self.written_as(path, scope)
            if name is not None:
                found[name] = found.get(name, True) and self.is_plain(what, scope)
        return found

    def saved_as(self, name: str) -> Iterator[ast.expr]:
        """What is saved under a name, as in `plainly`."""
        return (what for scope, what, path in self._saves if self.written_as(path, scope) == name)

    def is_plain(self, what: ast.expr, scope: ast.AST) -> bool:
        """Whether a value of a function, or of the module, is sure to be plain."""
        return self._kind(what, scope, 0) is _Kind.PLAIN and self._key(what, scope) not in self._changed

    def is_object(self, what: ast.expr, scope: ast.AST) -> bool:
        """Whether a value of a function, or of the module, is sure to be another object than a plain one."""
        return self._kind(what, scope, 0) is _Kind.OBJECT

    @cached_property
    def _changed(self) -> set[_Key]:
        """What gets entries that may be anything."""
        return {
            self._bound(scope, name)
            for scope, name, _, value in self._entries
            if self._kind(value, scope, 0) is not _Kind.PLAIN
        }

    def written_as(self, path: ast.expr, scope: ast.AST) -> str | None:
        """The key of a file in `plainly`.

        The end of its name, or else, in this file only, the attribute that has it (`self.path`,
        `args.form.format(epoch)`), or the parameter of a function that is named after what it does
        (`load_labels(path)`, `save_labels(path)`).

        Args:
            scope: the function, or the module, that the path is read in.
        """
        name = file_name(path, lambda read: self.values_of(read, scope))
        if name is not None:
            return name
        if isinstance(path, ast.Call) and isinstance(path.func, ast.Attribute) and path.func.attr == "format":
            path = path.func.value
        if isinstance(path, ast.Call) and path.args and not path.keywords and _called(path) in _PATHS:
            path = path.args[-1]  # `os.path.join(self.root, self.file)`
        if isinstance(path, ast.Attribute):
            return ast.unparse(path) if _root(path) is not None else None
        if not isinstance(path, ast.Name) or not isinstance(scope, ast.FunctionDef):
            return None
        words = scope.name.strip("_").split("_")
        rest = [word for word in words if word not in _WAYS]
        is_parameter = self.values_of(path, scope) == [None] and (scope, path.id) in self._values
        if len(rest) == len(words) or not is_parameter:
            return None
        return f"{self._classes.get(scope, '')}:{'_'.join(rest)}:{path.id}"

    def values_of(self, node: ast.Name | ast.Attribute, scope: ast.AST) -> list[ast.expr | None]:
        """What a variable, or an attribute, may have; None: unknown."""
        return [value for value, _ in self._values.get(self._key(node, scope) or (None, ""), [])]

    # ---- what values are -----------------------------------------------------------------------------

    def _of_entry(self, key: str, value: ast.expr, scope: _Scope) -> _Kind:
        """The kind of an entry of a dictionary, by its key where the value does not say."""
        kind = self._kind(value, scope, 0)
        if kind is not _Kind.UNKNOWN:
            return kind
        return _Kind.LIKELY if PARAMETER.search(key) else _by_name(key)

    def _kind(self, node: ast.expr, scope: _Scope | None, depth: int) -> _Kind:
        """The kind of a value; of a container: the kind of its elements."""
        depth += 1
        if depth > _DEEPEST:
            return _Kind.UNKNOWN
        if isinstance(node, (ast.Constant, ast.JoinedStr)):
            return _Kind.PLAIN
        if isinstance(node, ast.Call):
            return self._of_call(node, scope, depth)
        if isinstance(node, ast.Name):
            return self._of_name(node.id, scope, depth)
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node, scope, depth)
        parts: Sequence[ast.expr]
        if isinstance(node, (ast.List, ast.Dict)) and not children(node):
            return _Kind.LIKELY  # other code may fill it
        if isinstance(node, ast.Dict):
            parts = node.values
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            parts = node.elts
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            parts = [node.elt]
        elif isinstance(node, (ast.DictComp, ast.Subscript, ast.Starred, ast.NamedExpr)):
            parts = [node.value]
        elif isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        elif isinstance(node, ast.UnaryOp):
            parts = [node.operand]
        elif isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.BoolOp):
            parts = node.values
        elif isinstance(node, ast.IfExp):
            parts = [node.body, node.orelse]
        else:
            return _Kind.UNKNOWN
        return self._worst(parts, scope, depth)

    def _worst(self, parts: Sequence[ast.expr], scope: _Scope | None, depth: int) -> _Kind:
        return max((self._kind(part, scope, depth) for part in parts), default=_Kind.PLAIN)

    def _of_call(self, node: ast.Call, scope: _Scope | None, depth: int) -> _Kind:
        kind = self._of_known_call(node, scope, depth)
        if kind is _Kind.UNKNOWN:
            self._asked.add(_called(node))
        return kind

    def _of_known_call(self, node: ast.Call, scope: _Scope | None, depth: int) -> _Kind:
        function, name, root = node.func, _called(node), _root(node.func)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if name.endswith("state_dict"):
            return _Kind.OBJECT if self.sets_objects and is_of_optimizer(node) else _Kind.PLAIN
        if name in _REFUSED:
            return _Kind.OBJECT
        if isinstance(function, ast.Lambda):
            return self._kind(function.body, scope, depth)
        if isinstance(function, ast.Name):
            if name in _NUMBERS or name == "range":
                return _Kind.PLAIN
            if name in _THROUGH:
                return self._worst(given, scope, depth) if given else _Kind.LIKELY
            if name == "vars":
                return _Kind.LIKELY
            if name == "type":
                return _Kind.OBJECT
            return _Kind.OBJECT if name[:1].isupper() else self._of_result(name, scope, depth)
        if not isinstance(function, ast.Attribute):
            return _Kind.UNKNOWN
        if name in _GIVES_NUMBERS or (root == "time" and name == "time"):
            return _Kind.PLAIN
        if name == "numpy" or root in ("np", "numpy"):
            return _Kind.OBJECT
        if root in self._torch or root in ("F", "nn"):
            if name in _FACTORIES:
                return _Kind.PLAIN
            return _Kind.OBJECT if name[:1].isupper() else _Kind.UNKNOWN
        if name == "detach" and not self._like_tensors:
            return _Kind.PLAIN
        if name in ("parameters", "named_parameters"):
            return _Kind.PLAIN
        if name in _THROUGH and root in ("copy", "collections"):
            return self._worst(given, scope, depth)
        if name in _SAME or name in _OF_TEXT or name == "get" or name == "detach":
            return self._kind(function.value, scope, depth)
        if root == "self" and isinstance(function.value, ast.Name):
            return self._of_result(f".{name}", scope, depth)
        return _Kind.OBJECT if name[:1].isupper() else _Kind.UNKNOWN

    def _of_result(self, function: str, scope: _Scope | None, depth: int) -> _Kind:
        """The kind of what a function of the file gives, or a variable that has a lambda."""
        found = self._values.get(self._bound(scope, function), [])
        bodies = [(value.body, value) for value, _ in found if isinstance(value, ast.Lambda)]
        if bodies and len(bodies) == len(found):
            return max(self._kind(body, at, depth) for body, at in bodies)
        return self._of_name(f"{function}()", scope, depth)

    def _of_attribute(self, node: ast.Attribute, scope: _Scope | None, depth: int) -> _Kind:
        root = _root(node)
        if root in ("np", "numpy"):
            return _Kind.PLAIN if node.attr in ("inf", "nan", "pi", "e") else _Kind.OBJECT
        if node.attr == "__class__" or (node.attr == "__version__" and root in self._torch):
            return _Kind.OBJECT
        if node.attr in ("weight", "bias", "grad", "shape", "__name__", "__version__"):
            return _Kind.PLAIN
        if node.attr == "data":
            return self._kind(node.value, scope, depth)
        owner = node.value.attr if isinstance(node.value, ast.Attribute) else root
        if owner is not None and _SETTINGS.search(owner):
            return _Kind.LIKELY
        return self._of_name(f".{node.attr}", scope, depth)

    def _of_name(self, name: str, scope: _Scope | None, depth: int) -> _Kind:
        key = self._bound(scope, name)
        if key in self._kinds:
            return self._kinds[key]
        if key in self._open:  # `best = max(best, now)`
            return _Kind.PLAIN if key == self._open[-1] else _Kind.UNKNOWN
        self._open.append(key)
        values = self._values.get(key, [])
        kind = max(
            (_Kind.UNKNOWN if item is None else self._kind(item, at, depth) for item, at in values),
            default=_Kind.UNKNOWN,
        )
        self._open.pop()
        if kind is not _Kind.OBJECT and not name.endswith("()"):
            kind = min(kind, _by_name(name.removeprefix(".")))
        self._kinds[key] = kind
        return kind

    # ---- values in scopes -------------------------------------------------------------------------------

    def _key(self, node: ast.expr, scope: _Scope | None) -> _Key | None:
        if isinstance(node, ast.Name):
            return self._bound(scope, node.id)
        return (None, f".{node.attr}") if isinstance(node, ast.Attribute) else None

    def _bound(self, scope: _Scope | None, name: str) -> _Key:
        """Where a name that is read in a scope has its values; attributes are of the whole file."""
        if name.startswith("."):
            return None, name
        while scope is not None and (scope, name) not in self._values:
            scope = self._outer[scope]
        return scope, name

    def _bind(self, target: ast.expr, value: ast.expr | None, scope: _Scope) -> None:
        if isinstance(target, ast.Name):
            self._values.setdefault((scope, target.id), []).append((value, scope))
        elif isinstance(target, ast.Attribute):
            self._values.setdefault((None, f".{target.attr}"), []).append((value, scope))
        elif isinstance(target, ast.Starred):
            self._bind(target.value, value, scope)
        elif isinstance(target, (ast.Tuple, ast.List)):
            alike = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
            for number, item in enumerate(target.elts):
                self._bind(item, value.elts[number] if alike else None, scope)  # type: ignore[union-attr]
        elif isinstance(target, ast.Subscript) and value is not None:
            key, held = target.slice, target.value
            while isinstance(held, ast.Subscript):
                held = held.value
            name = _name(held)
            if name is not None:
                text = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
                self._entries.append((scope, name, text, value))

    def _loop(self, target: ast.expr, items: ast.expr, scope: _Scope) -> None:
        """What the variables of a loop get: keys and numbers are plain, all else are elements of the
        iterable."""
        pairs = isinstance(items, ast.Call) and _called(items) in ("items", "enumerate", "named_parameters")
        if pairs and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            self._bind(target.elts[0], ast.Constant(0), scope)
            self._bind(target.elts[1], items, scope)
            return
        self._bind(target, None if isinstance(target, (ast.Tuple, ast.List)) else items, scope)

    def _walk(self, tree: ast.Module) -> None:
        # Each node with its scope, and the class or function that it is in.
        left: list[tuple[ast.AST, _Scope, ast.AST]] = [(tree, tree, tree)]
        while left:
            node, scope, owner = left.pop()
            if node.__class__ in _TELLING:  # a fifth of them
                self._see(node, scope, owner)
                if isinstance(node, _Function):
                    scope = owner = node
                elif isinstance(node, ast.ClassDef):
                    owner = node
            for child in children(node):
                if child.__class__ not in _LEAVES:
                    left.append((child, scope, owner))

    def _see(self, node: ast.AST, scope: _Scope, owner: ast.AST) -> None:
        """Note what one node says."""
        if isinstance(node, ast.Call):
            self._call(node, scope)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value, scope)
        elif isinstance(node, _Function):
            self._outer[node] = scope
            if isinstance(owner, ast.ClassDef):
                self._classes[node] = owner.name
            arguments = node.args
            for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
                self._values.setdefault((node, argument.arg), []).append((None, node))
            for item in (arguments.vararg, arguments.kwarg):
                if item is not None:
                    self._values.setdefault((node, item.arg), []).append((None, node))
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr, ast.AugAssign)):
            if node.value is not None:
                self._bind(node.target, node.value, scope)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            self._loop(node.target, node.iter, scope)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._bind(node.optional_vars, None, scope)
        elif isinstance(node, ast.With):
            self._opened.update(_saves_to_opened(node))
        elif isinstance(node, ast.Dict):
            self._dicts.append((scope, node))
        elif isinstance(node, ast.Return) and isinstance(scope, ast.FunctionDef):
            self._returned(node, scope)

    def _returned(self, node: ast.Return, function: ast.FunctionDef) -> None:
        """What a call of a function gives: `name()`, of a method `.name()`."""
        is_method = function in self._classes
        key = (None, f".{function.name}()") if is_method else (self._outer[function], f"{function.name}()")
        self._values.setdefault(key, []).append((node.value or ast.Constant(None), function))

    def _call(self, node: ast.Call, scope: _Scope) -> None:
        name = _called(node)
        if name in ("dict", "OrderedDict"):
            self._dicts.append((scope, node))
        elif name == "update" and isinstance(node.func, ast.Attribute):
            held = _name(node.func.value)
            for item in node.args if held is not None else ():
                self._entries.append((scope, held or "", "", item))
            for keyword in node.keywords if held is not None else ():
                self._entries.append((scope, held or "", keyword.arg or "", keyword.value))
        elif name in _TIMES_RATES and len(node.args) > 1:
            self._rates.append((scope, ast.Call(node.args[1], [], [])))
        elif name == "append" and isinstance(node.func, ast.Attribute) and node.args:
            self._bind(node.func.value, node.args[0], scope)
        elif name == "save" and isinstance(node.func, ast.Attribute) and _root(node.func) in self._torch:
            what = node.args[0] if node.args else keyword_value(node, "obj")
            path = node.args[1] if len(node.args) > 1 else keyword_value(node, "f")
            if what is not None and path is not None:
                self._saves.append((scope, what, self._opened.get(node, path)))


def _saves_to_opened(node: ast.With) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls that save to a file which a `with` opens, with its path."""
    paths: dict[str, ast.expr] = {}
    for item in node.items:
        made, name = item.context_expr, item.optional_vars
        if isinstance(made, ast.Call) and isinstance(name, ast.Name) and made.args:
            if isinstance(made.func, ast.Name) and made.func.id == "open":
                paths[name.id] = made.args[0]
            elif isinstance(made.func, ast.Attribute) and made.func.attr == "open":
                paths[name.id] = made.func.value  # `path.open("wb")`
    for inner in walk(ast.Module(node.body, [])) if paths else ():
        if isinstance(inner, ast.Call) and _called(inner) == "save" and len(inner.args) > 1:
            path = inner.args[1]
            if isinstance(path, ast.Name) and path.id in paths:
                yield inner, paths[path.id]


def _is_own_state(node: ast.AST) -> bool:
    """Whether a node is `self.__dict__` or `vars(self)`."""
    held: ast.expr | None = None
    if isinstance(node, ast.Attribute) and node.attr == "__dict__":
        held = node.value
    elif isinstance(node, ast.Call) and _called(node) == "vars" and node.args:
        held = node.args[0]
    return isinstance(held, ast.Name) and held.id == "self"


def _names_of_torch(tree: ast.Module) -> Iterator[str]:
    """What a file calls torch: `import torch as th`."""
    for node in walk(tree):
        if isinstance(node, ast.Import):
            yield from (item.asname for item in node.names if item.name == "torch" and item.asname)


def file_name(
    path: ast.expr, values: Callable[[ast.Name | ast.Attribute], list[ast.expr | None]]
) -> str | None:
    """The last part of a path where it is written there: `os.path.join(place, "labels.pt")`.

    Args:
        values: what a variable, or an attribute, may have; None: unknown.
    """
    for _ in range(_DEEPEST):
        last: ast.expr | None = None
        if isinstance(path, ast.Call) and path.args and not path.keywords:
            last = path.args[-1] if _called(path) in _PATHS else None
        elif isinstance(path, ast.BinOp) and isinstance(path.op, ast.Div):
            last = path.right
        elif isinstance(path, (ast.Name, ast.Attribute)):
            found = values(path)
            last = found[0] if len(found) == 1 else None
        if last is None:
            break
        path = last
    end = path
    if isinstance(path, ast.BinOp):
        end = path.right
    elif isinstance(path, ast.JoinedStr) and path.values:
        end = path.values[-1]
    if not (isinstance(end, ast.Constant) and isinstance(end.value, str)):
        return None
    _, slash, name = end.value.replace("\\", "/").rpartition("/")
    return name if (slash or end is path) and _NAME.match(name) else None


def is_of_optimizer(call: ast.Call) -> bool:
    """Whether a method seems to be one of an optimizer: `self.optim.state_dict()`."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    while isinstance(owner, ast.Subscript):
        owner = owner.value
    name = _name(owner) if owner is not None else None
    return name is not None and _OPTIMIZER.search(name.removeprefix(".")) is not None


def keyword_value(call: ast.Call, name: str) -> ast.expr | None:
    """What a call passes by a keyword."""
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _by_name(name: str) -> _Kind:
    if _STEPS.search(name):
        return _Kind.PLAIN
    if _MEASURES.search(name) and not _KNOWN.search(name):
        return _Kind.MEASURE
    is_likely = any(words.search(name) for words in (_WEIGHTS, _COUNTS, _KNOWN))
    return _Kind.LIKELY if is_likely else _Kind.UNKNOWN


def _is_state(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _called(node).endswith("state_dict")


def _items(node: ast.Dict | ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """The entries of `{...}` or `dict(...)`; no name for what is taken over from another."""
    if isinstance(node, ast.Call):
        yield from ((item.arg or "", item.value) for item in node.keywords)
        return
    for key, value in zip(node.keys, node.values, strict=True):
        yield key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else "", value


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return f".{node.attr}" if isinstance(node, ast.Attribute) else None


def _root(node: ast.expr) -> str | None:
    """The name at the beginning of `a.b.c`, also through calls and subscripts."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
