"""Records what a running program does at the places of outdated names: the kinds of the objects.

It runs in the program's own Python, where torchmigrate need not be installed: Python 3.6 or newer, nothing
but the standard library, torch from 1.0 on or none. So annotations that old Pythons cannot evaluate are text.

torch itself is left as it is. A file of the project is compiled with a call around what a name that the rules
speak of is looked up on, and around what is passed to it: `x.symeig(a)` runs as `seen(7, x).symeig(seen(8,
a))`, where `seen` gives back the same object. pytest rewrites asserts in the same way. So functions stay the
same objects, `hasattr` of a removed name is false, exceptions are the program's own, and what reads the
source (`torch.jit.script`, `inspect`) sees the source. No compiled file is written, and none is read.

Only kinds are kept: classes, dtypes, numbers of dimensions, layouts, and whether the first two arguments of a
call have the same shape; no value, no size, no text of the user.
"""

import ast
import builtins
import hashlib
import json
import os
import re
import sys
import threading
import time
import tokenize
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from types import CodeType

    Where = tuple[int, int]  # a line, and a column in bytes
    New = Callable[[int, int, str, str], int]
    Seen = Callable[..., Any]  # (place, value, pair)

VERSION = 1
DIRECTORY = ".torchmigrate"
FILE = "evidence.json"
SETTINGS = "TORCHMIGRATE_RECORD"  # the variable that names the file with the settings of a recording
MOST_KINDS = 24  # at one place; of more nothing is known
ANY = "*"  # stands for them
MOST_BYTES = 16 * 1024 * 1024  # of a file that is merged
MOST_WARNINGS = 8  # at one line
SHAPES = "shapes"  # the slot that says whether the first two arguments have the same shape
_SEEN = "__torchmigrate_seen__"
_EVERY = 30.0  # seconds between what is written while the program runs
_LIBRARIES = frozenset(["torch", "torchvision", "torchaudio", "torchtext", "functorch", "apex"])
_NOT_OURS = frozenset(
    ["site-packages", "dist-packages", ".venv", "venv", ".tox", ".nox", ".eggs", ".git", "node_modules"]
)
# Methods that operators stand for, and the operators; an index has the place of its own.
OPERATORS = {"__truediv__": "/", "__floordiv__": "//", "__sub__": "-", "__getitem__": "["}
_OPERATORS = {ast.Div: "__truediv__", ast.FloorDiv: "__floordiv__", ast.Sub: "__sub__"}
_RECORDED_ARGUMENTS = (
    ast.Name,
    ast.Attribute,
    ast.Call,
    ast.Subscript,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.BoolOp,
    ast.IfExp,
)


# ---- the places of a file --------------------------------------------------------------------------------


class _Places:
    """Puts calls of `seen` around the receivers and arguments of some names in a syntax tree.

    names: those that are looked for. new: gives the number of a place: (line, column in bytes of the name,
    name, slot), where a slot is "receiver", "0" (the first argument) or "device" (a keyword). The place of an
    operator is where its right operand begins.
    """

    def __init__(self, names: "Collection[str]", tokens: "dict[ast.AST, Where]", new: "New") -> None:
        self.names = names
        self.tokens = tokens
        self.new = new
        self.imported: set[str] = set()
        self.count = 0

    def tree(self, tree: "ast.Module") -> int:
        """Change a module in place; how many places there are."""
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    self.imported.add((alias.asname or alias.name).partition(".")[0])
        self._children(tree)
        return self.count

    def _children(self, node: "ast.AST") -> None:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "pattern", "type_params"):
                continue  # annotations may become text; patterns hold no calls
            if isinstance(value, list):
                for index, item in enumerate(value):
                    if isinstance(item, ast.AST):
                        value[index] = self._visit(item)
            elif isinstance(value, ast.AST):
                setattr(node, name, self._visit(value))

    def _visit(self, node: Any) -> Any:
        if isinstance(node, ast.JoinedStr) or type(node).__name__ in ("TemplateStr", "TypeAlias"):
            return node  # positions in there are unknown before Python 3.12
        if isinstance(node, ast.Assert) and self.skips_asserts:
            return node
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, wrapped=False)
        if isinstance(node, ast.BinOp):
            return self._operation(node)
        self._children(node)
        if isinstance(node, ast.Subscript) and "__getitem__" in self.names:
            self._indices(node)
        return node

    skips_asserts = False  # pytest writes them anew, from what they look like

    def _call(self, node: "ast.Call") -> "ast.Call":
        function = node.func
        where: Where | None = None
        name = ""
        if isinstance(function, ast.Attribute):
            node.func = self._attribute(function, wrapped=False)
            if function.attr in self.names:
                where, name = self._where(function), function.attr
        elif isinstance(function, ast.Name):
            if function.id in self.names and function.id in self.imported:
                where, name = (function.lineno, function.col_offset), function.id
        else:
            node.func = self._visit(function)
        pair: int | None = None
        if where is not None and _is_pair(node.args):
            pair = self.new(where[0], where[1], name, SHAPES)
        slots = True  # arguments are counted up to a star
        for index, argument in enumerate(node.args):
            slots = slots and not isinstance(argument, ast.Starred)
            new = self._visit(argument)
            if where is not None and slots and isinstance(new, _RECORDED_ARGUMENTS):
                compared = None if pair is None or index > 1 else pair if index else ~pair
                new = self._around(new, (where, name), str(index), compared)
            node.args[index] = new
        for keyword in node.keywords:
            new = self._visit(keyword.value)
            if where is not None and keyword.arg is not None and isinstance(new, _RECORDED_ARGUMENTS):
                new = self._around(new, (where, name), keyword.arg)
            keyword.value = new
        return node

    def _operation(self, node: "ast.BinOp") -> "ast.BinOp":
        """An operator; `1 / x` and `x / 2.0` give floats whatever `x` is."""
        left, right = node.left, node.right
        self._children(node)
        name = _OPERATORS.get(type(node.op), "")
        divided = isinstance(node.op, ast.Div)
        if name in self.names and not (divided and (_is_number(left) or _is_number(right, float))):
            place = (right.lineno, right.col_offset), OPERATORS[name]
            if isinstance(node.left, _RECORDED_ARGUMENTS):
                node.left = self._around(node.left, place, "0")
            if isinstance(node.right, _RECORDED_ARGUMENTS):
                node.right = self._around(node.right, place, "1")
        return node

    def _indices(self, node: "ast.Subscript") -> None:
        """What may be a mask in a subscript."""
        holder: Any = node.slice if type(node.slice).__name__ == "Index" else node  # before Python 3.9
        field = "slice" if holder is node else "value"
        index = getattr(holder, field)
        if isinstance(index, ast.Tuple):
            index.elts[:] = [self._index(item) for item in index.elts]
        else:
            setattr(holder, field, self._index(index))

    def _index(self, index: "ast.expr") -> "ast.expr":
        is_sum = isinstance(index, ast.BinOp) and isinstance(index.op, ast.Add)
        if not isinstance(index, _RECORDED_ARGUMENTS) or isinstance(index, ast.Compare) or is_sum:
            return index
        return self._around(index, ((index.lineno, index.col_offset), OPERATORS["__getitem__"]), "0")

    def _attribute(self, node: "ast.Attribute", wrapped: bool) -> "ast.Attribute":
        """An attribute; of a chain that begins with what is imported, only its last name counts."""
        value: ast.AST = node.value
        mine = node.attr in self.names and not wrapped
        if isinstance(value, ast.Attribute):
            inner: ast.AST = value
            while isinstance(inner, ast.Attribute):
                inner = inner.value
            imported = isinstance(inner, ast.Name) and inner.id in self.imported
            node.value = self._attribute(value, wrapped=wrapped or (mine and imported))
        else:
            node.value = self._visit(value)
        if mine and not _is_super(value):
            where = self._where(node)
            if where is not None:
                node.value = self._around(node.value, (where, node.attr), "receiver")
        return node

    def _where(self, node: Any) -> "Where | None":
        """Line and column (in bytes) at which the name of an attribute stands."""
        end = getattr(node, "end_col_offset", None)
        if end is not None:
            return node.end_lineno, end - len(node.attr.encode("utf-8"))
        return self.tokens.get(node)  # Python 3.7

    def _around(
        self, value: "ast.expr", place: "tuple[Where, str]", slot: str, pair: "int | None" = None
    ) -> "ast.Call":
        self.count += 1
        (line, column), name = place
        number = self.new(line, column, name, slot)
        call = ast.Call(func=ast.Name(id=_SEEN, ctx=ast.Load()), args=[_constant(number), value], keywords=[])
        if pair is not None:
            call.args.append(_constant(pair))
        for new in (call, call.func, call.args[0], *call.args[2:]):
            ast.copy_location(new, value)
        return call


def _is_pair(arguments: "list[ast.expr]") -> bool:
    """Whether the first two arguments of a call are both recorded."""
    return len(arguments) > 1 and all(isinstance(each, _RECORDED_ARGUMENTS) for each in arguments[:2])


def _constant(number: int) -> "ast.expr":
    return ast.Num(n=number) if sys.version_info < (3, 8) else ast.Constant(value=number)


def _is_number(node: "ast.AST", kind: "type | tuple[type, ...]" = (int, float)) -> bool:
    return isinstance(getattr(node, "n" if sys.version_info < (3, 8) else "value", None), kind)


def _is_super(node: "ast.AST") -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _positions_by_tokens(tree: "ast.AST", data: bytes, names: "Iterable[str]") -> "dict[ast.AST, Where]":
    """Attribute -> where its name stands, for Python 3.7, which does not say where expressions end."""
    found: dict[str, list[Where]] = {name: [] for name in names}
    before = None
    lines = iter(data.splitlines(True))
    for token in tokenize.tokenize(lambda: next(lines, b"")):
        if (
            token.type == tokenize.NAME
            and before is not None
            and before.string == "."
            and token.string in found
        ):
            line = token.line[: token.start[1]]
            found[token.string].append((token.start[0], len(line.encode("utf-8"))))
        if token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.NEWLINE, tokenize.INDENT):
            before = token
    places: dict[ast.AST, Where] = {}
    taken: set[tuple[str, Where]] = set()

    def place(node: "ast.AST") -> "Where":
        """The last position in an expression, after those in it are placed."""
        last = (getattr(node, "lineno", 0), getattr(node, "col_offset", -1))
        if isinstance(node, ast.JoinedStr):
            return last
        for child in ast.iter_child_nodes(node):
            last = max(last, place(child))
        if isinstance(node, ast.Attribute) and node.attr in found:
            for position in found[node.attr]:
                if position > last and (node.attr, position) not in taken:
                    taken.add((node.attr, position))
                    places[node] = position
                    return position
        return last

    place(tree)
    return places


# ---- what is recorded ------------------------------------------------------------------------------------


class Recorder:
    """What was seen in this process.

    root: the directory whose files are recorded. parts: where this process writes. names: to be looked for.
    """

    def __init__(self, root: str, parts: str, names: "Iterable[str]") -> None:
        self.root = os.path.realpath(root)
        self.parts = parts
        self.names = frozenset(names)
        self.numbers: list[
            tuple[str, int, int, str, str]
        ] = []  # of each place: the file, line, column, name, slot
        self.known: list[set[Any]] = []  # of each place: what is known already
        self.kinds: list[set[str]] = []  # of each place: the kinds that were seen
        self.gone: set[int] = set()  # the places whose name was not there
        self.files: dict[str, str] = {}  # path relative to the root -> hash of its bytes
        self.lines: dict[str, list[bytes]] = {}  # the same -> the bytes of its lines
        self.warnings: dict[tuple[str, int], set[str]] = {}  # (file, line) -> texts
        self.shapes: dict[tuple[int, int], Any] = {}  # (thread, place) -> that of a first argument
        self.special: dict[type, Callable[[Any], Any]] = {}  # class -> what tells its objects apart
        self.lock = threading.RLock()
        self.process = os.getpid()
        self.written = time.time()
        self.changed = False
        self.part: str | None = None
        self.in_globals = False

    # ---- compiling ---------------------------------------------------------------------------------------

    def is_ours(self, path: "str | None") -> "str | None":
        """The path of a file relative to the root, with slashes; None: it is not of the project."""
        if not path or not path.endswith(".py"):
            return None
        path = os.path.realpath(path)
        if not path.startswith(self.root + os.sep):
            return None
        parts = path[len(self.root) + 1 :].split(os.sep)
        return None if _NOT_OURS.intersection(parts[:-1]) else "/".join(parts)

    def instrument(
        self, data: bytes, path: str, tree: "ast.Module | None" = None, skips_asserts: bool = False
    ) -> "ast.Module | None":
        """The tree of a file with calls of `seen`; None: there is nothing to be recorded in it.

        tree: its own, which is changed.
        """
        name = self.is_ours(path)
        if name is None:
            return None
        words = set(re.findall(r"[A-Za-z_]\w*", data.decode("utf-8", "replace")))
        names = self.names if "torch" in words else self.names.difference(OPERATORS)
        if words.isdisjoint(names) and names.isdisjoint(OPERATORS):
            return None
        fresh = tree if tree is not None else ast.parse(data, filename=path)
        tokens: dict[ast.AST, Where] = {}
        if sys.version_info < (3, 8):
            tokens = _positions_by_tokens(fresh, data, names)
        with self.lock:
            before = len(self.numbers)

            def new(line: int, column: int, attribute: str, slot: str) -> int:
                self.numbers.append((name, line, column, attribute, slot))
                self.known.append(set())
                self.kinds.append(set())
                return len(self.numbers) - 1

            places = _Places(names, tokens, new)
            places.skips_asserts = skips_asserts
            try:
                count = places.tree(fresh)
            except BaseException:
                if tree is None:
                    del self.numbers[before:], self.known[before:], self.kinds[before:]
                raise
            if count:
                self.files[name] = hashlib.sha256(data).hexdigest()
                self.lines[name] = _lines(data)
        return fresh if count else None

    def put_in_globals(self) -> None:
        """Let the modules of the project have `seen` themselves: torch 2.0 compiles no other builtins."""
        if self.in_globals:
            for module in list(sys.modules.values()):
                path = getattr(module, "__file__", None)
                if isinstance(path, str) and self.is_ours(path) in self.files:
                    vars(module)[_SEEN] = getattr(builtins, _SEEN)

    # ---- seeing ------------------------------------------------------------------------------------------

    def make_seen(self, is_compiling: "Callable[[], bool] | None" = None) -> "Seen":
        """The function that the program calls at every place.

        is_compiling: whether `torch.compile` is reading the program, which then sees nothing of it.
        """
        known, special, slowly, compare = self.known, self.special, self._new, self._compare

        def seen(place: int, value: Any, pair: "int | None" = None) -> Any:
            try:
                if pair is not None:
                    compare(pair, value)
                kind = type(value)
                key: Any = kind
                if kind in special:
                    key = special[kind](value)
                if key in known[place]:
                    return value
                slowly(place, value, key)
            except Exception:  # whatever an object of the program does when it is looked at
                pass
            return value

        if is_compiling is None:
            return seen

        def seen_unless_compiling(place: int, value: Any, pair: "int | None" = None) -> Any:
            if is_compiling():
                return value
            return seen(place, value, pair)

        return seen_unless_compiling

    def _new(self, place: int, value: Any, key: Any) -> None:
        """Something that was not seen at a place before."""
        with self.lock:
            kind = type(value)
            if kind is key and kind not in self.special:
                tell = self._what_tells(kind)
                if tell is not None:
                    self.special[kind] = tell
                    key = tell(value)
            if len(self.known[place]) <= 4 * MOST_KINDS:
                self.known[place].add(key)
            self.kinds[place].add(_described(value, kind))
            if len(self.kinds[place]) > MOST_KINDS:
                self.kinds[place] = {ANY}
            if self.numbers[place][4] == "receiver" and _is_gone(value, self.numbers[place][3]):
                self.gone.add(place)
            self.changed = True
            if time.time() - self.written > _EVERY:
                self.write()

    def _compare(self, pair: int, value: Any) -> None:
        """Keep the shape of a first argument (of ~pair), or compare that of a second one with it."""
        shape, thread = _shape(value), threading.get_ident()
        if pair < 0:
            self.shapes[thread, ~pair] = shape
            return
        first = self.shapes.pop((thread, pair), None)
        if first is None or shape is None:
            return
        said = "shape:same" if first == shape else "shape:other"
        if said not in self.kinds[pair]:
            with self.lock:
                self.kinds[pair].add(said)
                self.changed = True

    def _what_tells(self, kind: type) -> "Callable[[Any], Any] | None":
        """What tells the objects of a class apart; None: they are all the same to us."""
        torch = sys.modules.get("torch")
        tensor = getattr(torch, "Tensor", None)
        if tensor is not None and tensor in kind.__mro__:
            return _tensor_key(torch, kind)
        if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
            return lambda value: (kind, value.dtype, value.ndim)
        if kind is type(sys):
            return lambda value: id(value)
        if type in kind.__mro__:
            return lambda value: value
        return None

    # ---- writing -----------------------------------------------------------------------------------------

    def evidence(self) -> "dict[str, Any]":
        """All that was seen, as it is written."""
        files: dict[str, Any] = {}
        for place, kinds in enumerate(self.kinds):
            if not kinds:
                continue
            name, line, column, attribute, slot = self.numbers[place]
            lines = self.lines[name]
            shown = _column(lines[line - 1], column) if line <= len(lines) else column
            entry = files.setdefault(name, {"sha256": self.files[name], "places": {}})
            slots = entry["places"].setdefault("%d:%d %s" % (line, shown + 1, attribute), {})
            slots[slot] = _joined(slots.get(slot, ()), kinds)
            if place in self.gone:
                slots["gone"] = [attribute]
        for (name, line), texts in list(self.warnings.items()):
            if name in self.files:
                entry = files.setdefault(name, {"sha256": self.files[name], "places": {}})
                entry.setdefault("warnings", {})[str(line)] = sorted(texts)
        return {"version": VERSION, "files": files}

    def write(self) -> None:
        """Write what this process has seen."""
        with self.lock:
            if not self.changed or os.getpid() != self.process:
                return
            self.written = time.time()
            try:
                if self.part is None:
                    stamp = hashlib.sha256(os.urandom(16)).hexdigest()[:12]
                    self.part = os.path.join(self.parts, "%d-%s.json" % (os.getpid(), stamp))
                if os.path.isdir(self.parts):
                    write_json(self.part, self.evidence())
                    self.changed = False
            except OSError:
                pass  # a full disk must not end the program

    def forked(self) -> None:
        """Go on in a child process, which writes a part of its own."""
        self.lock = threading.RLock()
        self.process = os.getpid()
        self.part = None
        self.changed = any(self.kinds)

    # ---- warnings ----------------------------------------------------------------------------------------

    def warned(self, message: Any) -> None:
        """Keep a warning of torch, at the innermost line of the project that led to it."""
        frame: Any = sys._getframe(2)
        name = path = None
        library = False
        while frame is not None:
            path = frame.f_code.co_filename
            name = self.is_ours(path)
            if name is not None:
                break
            library = library or frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES
            frame = frame.f_back
        text = str(message.message)
        if name is None or path is None or not (library or "Triggered internally" in text):
            return
        said = "%s: %s" % (message.category.__name__, _without_values(text))
        texts = self.warnings.setdefault((name, frame.f_lineno), set())
        if len(texts) < MOST_WARNINGS:
            texts.add(said)
            self.changed = True
            if name not in self.files and os.path.isfile(path):
                with open(path, "rb") as stream:
                    data = stream.read(MOST_BYTES)
                self.files[name], self.lines[name] = hashlib.sha256(data).hexdigest(), _lines(data)


def _tensor_key(torch: Any, kind: type) -> "Callable[[Any], Any]":
    """What tells tensors apart; nothing that a program put into torch is called."""
    if not _is_plain(torch, kind):
        return lambda value: kind
    modes: Any = getattr(torch._C, "_len_torch_function_stack", None)
    disabled: Any = getattr(torch._C, "DisableTorchFunction", None)

    def key(value: Any) -> Any:
        if modes is not None and modes():
            with disabled():
                return kind, value.dtype, value.dim(), value.layout
        return kind, value.dtype, value.dim(), value.layout

    return key


def _is_plain(torch: Any, kind: type) -> bool:
    """Whether the properties of a tensor are torch's own; a subclass may compute them."""
    return kind is torch.Tensor or kind is getattr(getattr(torch, "nn", None), "Parameter", None)


def _shape(value: Any) -> "tuple[int, ...] | None":
    """The shape of a tensor, an array or a number; None: it has none, or to ask would be noticed."""
    kind = type(value)
    if kind in (int, float, complex):
        return ()
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        return tuple(value.shape)
    torch: Any = sys.modules.get("torch")
    if torch is None or not _is_plain(torch, kind):
        return None
    tracing: Any = getattr(torch._C, "_get_tracing_state", None)
    modes: Any = getattr(torch._C, "_len_torch_function_stack", None)
    if (tracing is not None and tracing() is not None) or (modes is not None and modes()):
        return None
    return tuple(value.shape)


def _described(value: Any, kind: type) -> str:
    """The kind of an object, as text."""
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)
    name = "%s.%s" % (kind.__module__, kind.__qualname__)
    if tensor is not None and tensor in kind.__mro__:
        if not _is_plain(torch, kind):
            return "tensor::::%s" % name
        _, dtype, dimensions, layout = _tensor_key(torch, kind)(value)
        return "tensor:%s:%d:%s" % (str(dtype).partition(".")[2], dimensions, str(layout).partition(".")[2])
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        return "array:%s:%d" % (value.dtype.kind, value.ndim)
    if kind is type(sys):
        return "import:%s" % value.__name__
    if type in kind.__mro__:
        return "class:%s.%s" % (value.__module__, value.__qualname__)
    if kind.__module__ == "builtins":
        return "object:%s" % kind.__name__
    base = next((cls for cls in kind.__mro__ if cls.__module__.partition(".")[0] in _LIBRARIES), None)
    if base is not None:
        return "object:%s:%s.%s" % (name, base.__module__, base.__qualname__)
    return "object:%s" % name


def _is_gone(value: Any, name: str) -> bool:
    """Whether an object surely lacks an attribute; nothing of the program is called to see that."""
    if type(value) is type(sys):
        if name in vars(value):
            return False
        if value.__name__ == "torch":
            return name not in getattr(value, "_lazy_modules", ()) and not hasattr(type(value), name)
        return "__getattr__" not in vars(value)
    torch = sys.modules.get("torch")
    if type(value) is getattr(torch, "Tensor", None):
        return not any(name in vars(cls) for cls in type(value).__mro__)
    return False


def _lines(data: bytes) -> "list[bytes]":
    """The lines of a file as bytes of UTF-8, as `ast` counts them."""
    try:
        encoding, _ = tokenize.detect_encoding(iter(data.splitlines(True)).__next__)
        text = data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError, StopIteration):
        text = data.decode("utf-8", "replace")
    return [line.encode("utf-8") for line in re.split("\r\n|\r|\n", text)]


def _column(line: bytes, column: int) -> int:
    """The characters before a column that counts bytes."""
    return len(line[:column].decode("utf-8", "replace"))


def _joined(one: "Iterable[str]", other: "Iterable[str]") -> "list[str]":
    kinds = set(one) | set(other)
    return [ANY] if ANY in kinds or len(kinds) > MOST_KINDS else sorted(kinds)


def _without_values(text: str) -> str:
    """The text of a warning without what may be the user's: paths, numbers, and what is in quotes."""
    text = text.partition("(Triggered internally")[0]
    text = re.sub(r"'[^']*'|\"[^\"]*\"|\S*[/\\]\S*|\[[^\]]*\]|-?\d[\d.]*", "_", " ".join(text.split()))
    return text[:160].strip()


# ---- files -----------------------------------------------------------------------------------------------


def write_json(path: str, content: object) -> None:
    """Write a file in one step. Raises OSError."""
    other = "%s.%d.tmp" % (path, os.getpid())
    try:
        with open(other, "w", encoding="utf-8") as stream:
            json.dump(content, stream, indent=1, sort_keys=True)
            stream.write("\n")
        os.replace(other, path)
    except OSError:
        if os.path.exists(other):
            os.unlink(other)
        raise


def _read(path: str) -> "dict[str, Any]":
    """The content of a file with evidence; nothing where it is not one."""
    try:
        if os.path.islink(path) or os.path.getsize(path) > MOST_BYTES:
            return {}
        with open(path, encoding="utf-8") as stream:
            content = json.load(stream)
        if content["version"] != VERSION:
            return {}
        files: dict[str, Any] = content["files"]
        for entry in files.values():
            for slots in entry["places"].values():
                for kinds in slots.values():
                    set(kinds)
        return files
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def merge(root: str) -> int:
    """Put what processes wrote to what is known of a project; how many places are known now.

    What is about a file that has changed since is left out. Raises OSError.
    """
    directory = os.path.join(root, DIRECTORY)
    parts = os.path.join(directory, "record")
    target = os.path.join(directory, FILE)
    names = sorted(os.listdir(parts)) if os.path.isdir(parts) else []
    found = [os.path.join(parts, name) for name in names if re.match(r"\d+-\w+\.json\Z", name)]
    merged: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for path in [target, *found]:
        for name, entry in _read(path).items():
            known = merged.setdefault((name, entry["sha256"]), {"places": {}, "warnings": {}})
            for place, slots in entry["places"].items():
                into = known["places"].setdefault(place, {})
                for slot, kinds in slots.items():
                    into[slot] = _joined(into.get(slot, ()), kinds)
            for line, texts in entry.get("warnings", {}).items():
                both = sorted(set(known["warnings"].get(line, ())) | set(texts))
                known["warnings"][line] = both[:MOST_WARNINGS]
    files: dict[str, Any] = {}
    for (name, text), known in merged.items():
        if text == _hash_of(os.path.join(root, *name.split("/"))):
            entry = files[name] = {"sha256": text, "places": known["places"]}
            if known["warnings"]:
                entry["warnings"] = known["warnings"]
    if files or os.path.exists(target):
        write_json(target, {"version": VERSION, "files": files})
    for path in found:
        os.unlink(path)
    return sum(len(entry["places"]) for entry in files.values())


def _hash_of(path: str) -> str:
    try:
        with open(path, "rb") as stream:
            return hashlib.sha256(stream.read(MOST_BYTES)).hexdigest()
    except OSError:
        return ""


# ---- the doors by which files of the project come in -----------------------------------------------------

_recorder: "Recorder | None" = None


def start_from_environment() -> None:
    """Start if the environment asks for it."""
    path = os.environ.get(SETTINGS)
    if path:
        start(path)


def start(path: str) -> None:
    """Record in this process, by the settings in a file: "root" and "names". Does nothing the second time."""
    global _recorder
    if _recorder is not None:
        return
    with open(path, encoding="utf-8") as stream:
        settings = json.load(stream)
    _recorder = Recorder(settings["root"], os.path.dirname(path), settings["names"])
    setattr(builtins, _SEEN, _recorder.make_seen())
    _open_imports(_recorder)
    _open_warnings(_recorder)
    _open_pytest(_recorder)
    import atexit

    atexit.register(_recorder.write)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forked)


def finish() -> None:
    """Write what this process has seen so far."""
    if _recorder is not None:
        _recorder.write()


def _forked() -> None:
    assert _recorder is not None
    _recorder.forked()
    util = sys.modules.get("multiprocessing.util")
    if util is not None:  # whose processes end without `atexit`, after these
        util.register_after_fork(
            _recorder, lambda recorder: util.Finalize(None, recorder.write, exitpriority=0)
        )


def _open_imports(recorder: "Recorder") -> None:
    from importlib.machinery import SourceFileLoader

    before = SourceFileLoader.get_code

    def get_code(self: "SourceFileLoader", fullname: str) -> "CodeType | None":
        code = None
        try:
            path = self.get_filename(fullname)
            if recorder.is_ours(path) is not None:
                data = self.get_data(path)
                tree = recorder.instrument(data, path)
                if tree is not None:
                    code = compile(tree, path, "exec", dont_inherit=True)
        except Exception:  # Python says what is wrong with it
            code = None
        if fullname == "torch._dynamo":
            _hide_from_compile(recorder)
        elif code is not None:
            recorder.put_in_globals()
        if not _pytest_is_open:
            _open_pytest(recorder)
        return before(self, fullname) if code is None else code

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def _hide_from_compile(recorder: "Recorder") -> None:
    """Let `torch.compile`, which is being loaded, not see what is recorded."""
    torch = sys.modules.get("torch")
    for place in ("compiler", "_utils"):  # before torch 2.3 only the second has it
        is_compiling = getattr(getattr(torch, place, None), "is_compiling", None)
        if is_compiling is not None:
            break
    if is_compiling is not None:
        setattr(builtins, _SEEN, recorder.make_seen(is_compiling))
        recorder.in_globals = getattr(torch, "__version__", "").startswith("2.0.")
        recorder.put_in_globals()


_pytest_is_open = False


def _open_pytest(recorder: "Recorder") -> None:
    """Tests: pytest compiles them itself, from a tree that it changes, and keeps what it compiled.

    Done as soon as its module is there; where that is of another form, only what tests import is recorded.
    """
    global _pytest_is_open
    rewrite: Any = sys.modules.get("_pytest.assertion.rewrite")
    if not all(hasattr(rewrite, name) for name in ("rewrite_asserts", "_read_pyc", "_write_pyc")):
        return
    _pytest_is_open = True
    asserts, read, write = rewrite.rewrite_asserts, rewrite._read_pyc, rewrite._write_pyc
    changed = threading.local()

    def rewrite_asserts(mod: "ast.Module", *args: Any, **kwargs: Any) -> Any:
        path = getattr(changed, "path", None)
        changed.path = None
        if path is not None:
            try:
                with open(path, "rb") as stream:
                    data = stream.read()
                source = args[0] if args and isinstance(args[0], bytes) else data
                if source == data:
                    recorder.instrument(data, path, tree=mod, skips_asserts=True)
                    ast.fix_missing_locations(mod)
            except Exception:  # whatever is odd about a file: its tests run, without being recorded
                pass
        return asserts(mod, *args, **kwargs)

    def read_pyc(source: Any, pyc: Any, *args: Any, **kwargs: Any) -> Any:
        changed.path = None if recorder.is_ours(str(source)) is None else str(source)
        return read(source, pyc, *args, **kwargs) if changed.path is None else None

    def write_pyc(state: Any, co: "CodeType", *args: Any, **kwargs: Any) -> Any:
        if recorder.is_ours(co.co_filename) is None:
            return write(state, co, *args, **kwargs)
        return False

    rewrite.rewrite_asserts, rewrite._read_pyc, rewrite._write_pyc = rewrite_asserts, read_pyc, write_pyc


def _open_warnings(recorder: "Recorder") -> None:
    import warnings

    before = getattr(warnings, "_showwarnmsg", None)
    if before is None:
        return

    def _showwarnmsg(msg: Any) -> Any:
        try:
            recorder.warned(msg)
        except Exception:  # a warning of the program is shown, whatever it is made of
            pass
        return before(msg)

    warnings._showwarnmsg = _showwarnmsg  # type: ignore[attr-defined]


def main(arguments: "list[str]") -> None:
    """Run a script as `python SCRIPT ...` does, and record it."""
    from importlib.machinery import SourceFileLoader

    script = arguments[0]
    sys.argv[:] = arguments
    sys.path[0:1] = [os.path.dirname(os.path.abspath(script))]
    start_from_environment()
    if sys.version_info >= (3, 9):
        script = os.path.abspath(script)
    with open(script, "rb") as stream:
        data = stream.read()
    tree = None
    try:
        tree = _recorder.instrument(data, script) if _recorder is not None else None
    except Exception:  # Python says what is wrong with it
        tree = None
    module = type(sys)("__main__")
    module.__dict__.update(
        __file__=script,
        __builtins__=builtins,
        __cached__=None,
        __loader__=SourceFileLoader("__main__", script),
    )
    if sys.version_info < (3, 14):
        module.__dict__.update(__annotations__={})
    sys.modules["__main__"] = module
    try:
        exec(compile(data if tree is None else tree, script, "exec", dont_inherit=True), module.__dict__)
    except Exception:  # what the script raised: shown as Python would, without this function
        kind, error, trace = sys.exc_info()
        assert kind is not None and error is not None and trace is not None
        error.__traceback__ = trace.tb_next  # without this function
        sys.excepthook(kind, error, error.__traceback__)
        sys.exit(1)
