"""A function whose pairs of real and imaginary part become complex tensors throughout.

Every expression that is a pair is written as a complex tensor, and everything that reads one is rewritten.
Where a pair goes somewhere else (is returned, handed to another function), nothing is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import reduce

from msgspec import Struct, field

from torchmigrate.codemods.base.operations import number
from torchmigrate.codemods.fft.calls import Transform, new_call
from torchmigrate.codemods.fft.inputs import as_complex, measure, real_only
from torchmigrate.codemods.fft.layouts import Local, only_argument
from torchmigrate.codemods.fft.model import Escapes, Helper, Layout, Length
from torchmigrate.codemods.fft.products import Product, product, times
from torchmigrate.codemods.fft.shapes import adds_dimension, inside_column, is_ellipsis, sliced
from torchmigrate.codemods.fft.symmetry import Spectra
from torchmigrate.rewrite.calls import CallEditor
from torchmigrate.rewrite.code import Code, Part, Stretch, code
from torchmigrate.rewrite.expressions import ExpressionEdits
from torchmigrate.rewrite.nodes import has_comment
from torchmigrate.semantics.flow.reaching import Definition
from torchmigrate.source.trees import children, walk

_INNER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_TIGHT = (ast.Name, ast.Attribute, ast.Subscript)
_PRIMARY = (*_TIGHT, ast.Call, ast.List, ast.Tuple)
PARTS = ("real", "imag")


class ComplexForm(Struct):
    """Writes one function.

    spell: writes a qualified name at the place of a transform.
    parts: how often a part of a complex tensor is read: evidence that it was a pair.
    kept: the result of a transform keeps the real layout.
    demanded: the definitions that have to be complex.
    needless: reads of `re` and `im` that were removed.
    """

    layouts: Local
    spectra: Spectra
    rewriting: ExpressionEdits
    spell: Callable[[Transform | None, str], str]
    statement: ast.stmt | None = None
    parts: int = 0
    kept: bool = False
    demanded: set[Definition] = field(default_factory=set)
    needless: list[ast.Name] = field(default_factory=list)

    # ---- statements --------------------------------------------------------------------------------------

    def block(self, body: Sequence[ast.stmt]) -> None:
        """Rewrite statements. Raises Unclear."""
        for statement in body:
            self.statement = statement
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, _DEFINITIONS):
            self._hidden(statement)
            return
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            value, target = statement.value, targets[0]
            mine = [item for item in self.layouts.variables.made_by(statement) if item.value is value]
            layouts = {self.layouts.of_definition(item) for item in mine}
            if mine and len(targets) == 1 and isinstance(target, ast.Name) and layouts != {None}:
                if isinstance(statement, ast.AnnAssign) or not self._wanted(mine):
                    self.visit(value)
                elif layouts == {Layout.PAIR}:
                    self.complex(value)
                else:
                    self.squeeze(value)
                return
        for child in children(statement):
            if isinstance(child, ast.expr):
                self.visit(child)
            elif isinstance(child, ast.withitem):
                self.visit(child.context_expr)
            elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
                self.block(child.body)
        for name in ("body", "orelse", "finalbody"):
            self.block(getattr(statement, name, []))

    def _wanted(self, definitions: list[Definition]) -> bool:
        return not any(item in self.layouts.refused for item in definitions)

    def _hidden(self, node: ast.AST) -> None:
        """What is not looked into must not read a pair."""
        for inner in walk(node):
            if isinstance(inner, ast.expr) and inner in self.layouts.transforms:
                raise Escapes(inner, frozenset())
            if isinstance(inner, ast.Name):
                self._plain(inner)

    def _plain(self, name: ast.Name) -> None:
        """A variable is read (also by `x += 1`) as what it is."""
        seen = self.layouts.variables.of(name)
        if any(self.layouts.of_definition(item) is not None for item in seen):
            raise Escapes(name, seen)

    # ---- expressions that stay real ------------------------------------------------------------------------

    def visit(self, node: ast.expr) -> None:
        """Rewrite whatever reads pairs inside an expression that is none itself. Raises Unclear."""
        if self._reads(node):
            return
        if isinstance(node, ast.Name):
            self._plain(node)
            return
        transform = self.layouts.transforms.get(node)
        if transform is not None:
            call = self._transformed(transform)
            if transform.gives_pairs:
                self.kept = True
                call = code("$f($call)", f=self.spell(transform, "torch.view_as_real"), call=call)
            self.rewriting.put(node, call)
            return
        if isinstance(node, _INNER):
            self._hidden(node)
            return
        self._children(node)

    def _children(self, node: ast.AST) -> None:
        for child in children(node):
            if isinstance(child, ast.expr):
                self.visit(child)
            elif isinstance(child, ast.keyword):
                self.visit(child.value)

    def _reads(self, node: ast.expr) -> bool:
        """Rewrite an expression that gives something real of a pair; False: it does not."""
        part = self.layouts.part_of(node)
        load = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        if part is not None and load and self._concerned(part.pair):
            self.parts += 1
            self._part(node, part.pair, part.index)
            return True
        unbound = self.layouts.unbound(node)
        if unbound is not None and self._concerned(unbound):
            self._unbound(node, unbound)
            return True
        length = self.layouts.length(node)
        if length is not None and self._concerned(length.pair):
            self.parts += 1
            self._read(length.pair)
            new = code("$length.unsqueeze(-1)" if length.keepdim else "$length", length=_absolute(length))
            self.rewriting.put(node, new)
            return True
        return self._view(node) or self._size(node)

    def _concerned(self, pair: ast.expr) -> bool:
        """Whether a transform or a variable is part of a pair: others are left as they are."""
        return any(
            inner in self.layouts.transforms
            or (isinstance(inner, ast.Name) and self.layouts.layout(inner) is not None)
            for inner in walk(pair)
        )

    def _part(self, node: ast.expr, pair: ast.expr, index: int) -> None:
        name = PARTS[index]
        self._read(pair)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            kept = node.slice.elts[:-1]
            if len(kept) > 1 and is_ellipsis(kept[0]):
                for item in kept:
                    self.visit(item)
                items = Stretch(kept[0], kept[-1])
                self.rewriting.put(node, code("$pair[$items].$name", pair=pair, items=items, name=name))
                return
        self.rewriting.put(node, code("$pair.$name", pair=pair, name=name))

    def _unbound(self, node: ast.expr, pair: ast.expr) -> None:
        if not isinstance(pair, ast.Name):
            raise Escapes(pair, frozenset())
        self.parts += 1
        self._read(pair)
        around = self.layouts.parents.get(node)
        bare = isinstance(around, ast.Assign) and around.value is node
        both = "$pair.real, $pair.imag" if bare else "($pair.real, $pair.imag)"
        self.rewriting.put(node, code(both, pair=pair.id))

    def _view(self, node: ast.expr) -> bool:
        """`torch.view_as_complex(x)`, which is `x` now."""
        if not isinstance(node, ast.Call) or self.layouts.qualified(node.func) != "torch.view_as_complex":
            return False
        if len(node.args) != 1 or self.layouts.layout(node.args[0]) is not Layout.PAIR:
            return False
        self.complex(node.args[0])
        self.rewriting.put(node, self._alone(node.args[0]))
        return True

    def _read(self, pair: ast.expr) -> None:
        """Write a pair that is only taken apart: no reason to make a variable complex."""
        if not isinstance(pair, ast.Name):
            self.complex(pair)

    def _size(self, node: ast.expr) -> bool:
        """Sizes and devices of a pair: those of the last dimensions are counted anew."""
        if isinstance(node, ast.Attribute) and node.attr in ("device", "is_cuda"):
            value: ast.expr = node.value
            index: ast.expr | None = None
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
            if node.value.attr != "shape":
                return False
            value, index = node.value.value, node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
            if node.func.attr != "size" or node.keywords:
                return False
            value, index = node.func.value, node.args[0]
        else:
            return False
        if self.layouts.layout(value) is not Layout.PAIR:
            return False
        place = number(index)
        first = isinstance(place, int) and place >= 0 and self.layouts.ranks.is_before_last(value, place)
        if index is not None and not first and (not isinstance(place, int) or place > -2):
            return False
        self._read(value)
        if index is not None and isinstance(place, int) and place < 0:
            self.rewriting.put(index, code("$place", place=str(place + 1)))
        return True

    # ---- pairs, written as complex tensors ---------------------------------------------------------------

    def complex(self, node: ast.expr) -> None:
        """Write an expression that is a pair as a complex tensor. Raises Unclear."""
        if isinstance(node, ast.Name):
            self.demanded |= self.layouts.variables.of(node)
        elif isinstance(node, ast.UnaryOp):
            self.complex(node.operand)
        elif isinstance(node, ast.BinOp):
            for side in (node.left, node.right):
                layout = self.layouts.layout(side)
                if layout is Layout.PAIR:
                    self.complex(side)
                elif layout is Layout.COLUMN:
                    self.squeeze(side)
                else:
                    self.visit(side)
        elif isinstance(node, ast.Subscript):
            self.complex(node.value)
            kept = sliced(node)
            if kept is None:
                self.visit(node.slice)
                return
            for item in kept:
                self.visit(item)
            if len(kept) == 1:
                self.rewriting.put(node, self._alone(node.value))
            else:
                items = Stretch(kept[0], kept[-1])
                self.rewriting.put(node, code("$pair[$items]", pair=node.value, items=items))
        elif isinstance(node, ast.Call):
            self._complex_call(node)
        else:
            raise Escapes(node, frozenset())

    def _complex_call(self, node: ast.Call) -> None:
        transform = self.layouts.transforms.get(node)
        stacked = self.layouts.stacked(node)
        if transform is not None:
            self.rewriting.put(node, self._transformed(transform))
        elif stacked is not None:
            self._stacked(node, *stacked)
        elif (helper := self.layouts.helped(node)) is not None:
            self._multiplied(node, helper)
        elif self.layouts.qualified(node.func) == "torch.view_as_real":
            real = only_argument(node)
            if real is None:
                raise Escapes(node, frozenset())
            self.visit(real)
            self.rewriting.put(node, as_primary(real))
        elif isinstance(node.func, ast.Attribute) and self.layouts.layout(node.func.value) is Layout.PAIR:
            self._method(node, node.func)
        else:
            self._children(node)
            self.rewriting.put(node, code("$f($x)", f=self.spell(None, "torch.view_as_complex"), x=node))

    def _method(self, node: ast.Call, function: ast.Attribute) -> None:
        """A method that does the same to a complex tensor, which has one dimension less."""
        self.complex(function.value)
        for argument in node.args:
            self.visit(argument)
        if function.attr in ("view", "reshape", "permute"):
            call = CallEditor(self.rewriting.source, node)
            if call.has_comment(node.args[-1]):
                raise Escapes(node, frozenset())
            call.drop(node.args[-1])
            self.rewriting.put(node, code("$call", call=call))
        elif function.attr == "transpose":
            for argument in node.args:
                self.rewriting.put(argument, code("$dim", dim=str(int(number(argument) or 0) + 1)))

    def _stacked(self, node: ast.Call, real: ast.expr, imaginary: ast.expr) -> None:
        """`torch.stack((re, im), -1)`: the product that it is, or `torch.complex(re, im)`."""
        assert self.statement is not None, "it is part of one"
        found = product(real, imaginary, self.statement, self.layouts)
        if found is not None and not has_comment(self.rewriting.source, node):
            self._product(node, found)
            return
        self.visit(real)
        self.visit(imaginary)
        function = self.spell(None, "torch.complex")
        self.rewriting.put(node, code("$f($real, $imag)", f=function, real=real, imag=imaginary))

    def _product(self, node: ast.Call, found: Product) -> None:
        for pair in found.pairs:
            self.demanded |= self.layouts.variables.of(pair)
        self.parts += 1
        self.needless += found.read
        alone = len(found.factors) == 1 or self._is_free(node)
        self.rewriting.put(node, code("$product" if alone else "($product)", product=found.expression()))

    def _is_free(self, node: ast.expr) -> bool:
        """Whether an operator may stand in the place of an expression without parentheses."""
        around = self.layouts.parents.get(node)
        return isinstance(around, (ast.Assign, ast.Return, ast.Call, ast.keyword, ast.List))

    def _multiplied(self, node: ast.Call, helper: Helper) -> None:
        """A call of a function that multiplies: the product itself."""
        self.parts += 1
        factors: list[Code] = []
        for place, conjugated in zip(helper.factors, helper.conjugated, strict=True):
            factor = node.args[place]
            new = code("$factor", factor=factor)
            if self.layouts.layout(factor) is Layout.PAIR:
                self.complex(factor)
                if isinstance(factor, (ast.BinOp, ast.UnaryOp)):
                    new = code("($factor)", factor=factor)
            else:
                self.visit(factor)
                new = as_complex(factor, self.layouts, self.spell(None, "torch.view_as_complex"))
            factors.append(code("$factor.conj()", factor=new) if conjugated else new)
        alone = len(helper.factors) == 1 or self._is_free(node)
        whole = reduce(times, factors)
        self.rewriting.put(node, code("$product" if alone else "($product)", product=whole))

    def squeeze(self, node: ast.expr) -> None:
        """Write a column without its last dimension. Raises Unclear."""
        inner = inside_column(node)
        if isinstance(node, ast.Name):
            self.demanded |= self.layouts.variables.of(node)
        elif inner is not None and (isinstance(node, ast.Call) or adds_dimension(node)):
            self.visit(inner)
            self.rewriting.put(node, as_primary(inner))
        elif isinstance(node, ast.UnaryOp):
            self.squeeze(node.operand)
        elif isinstance(node, ast.BinOp):
            for side in (node.left, node.right):
                if self.layouts.layout(side) is Layout.COLUMN:
                    self.squeeze(side)
                else:
                    self.visit(side)
        else:
            length = self.layouts.length(node)
            if length is None:
                raise Escapes(node, frozenset())
            self.parts += 1
            self.complex(length.pair)
            self.rewriting.put(node, _absolute(length))

    def _transformed(self, transform: Transform) -> Code:
        """The new call of a transform; what it takes is complex too."""
        for argument in transform.arguments:
            if argument.value is not None and argument.value is not transform.input:
                self.visit(argument.value)
        value = transform.input
        new: Part = value
        sized = measure(value, self.layouts, 1)
        if transform.takes_pairs and self.layouts.layout(value) is Layout.PAIR:
            sized = measure(value, self.layouts, 0)
            zero = real_only(value, self.layouts) if transform.kind in ("fft", "ifft") else None
            if zero is not None:
                self.visit(zero)
                new = zero
            else:
                self.complex(value)
        else:
            self.visit(value)
            if transform.takes_pairs:
                new = as_complex(value, self.layouts, self.spell(transform, "torch.view_as_complex"))
        return new_call(
            transform,
            new,
            sized,
            self.spectra.is_exact(transform),
            lambda name: self.spell(transform, name),
            self.rewriting.source,
        )

    def _alone(self, pair: ast.expr) -> Code:
        """A pair, written as complex tensor, in the place of what was read of it."""
        return code("$pair" if self._is_tight(pair) else "($pair)", pair=pair)

    def _is_tight(self, node: ast.expr) -> bool:
        """Whether a pair is still a name or a call when it is written as complex tensor."""
        if not isinstance(node, ast.Call):
            return isinstance(node, _TIGHT)
        made = self.layouts.stacked(node) is not None or self.layouts.helped(node) is not None
        return not made or not self._is_free(node)  # else it has its own parentheses


def _absolute(length: Length) -> Code:
    """The absolute value of a pair, or its square."""
    return code("$pair.abs().square()" if length.squared else "$pair.abs()", pair=length.pair)


def as_primary(node: ast.expr) -> Code:
    """An expression in the place of a call: in parentheses unless it is one that needs none anywhere."""
    return code("$x" if isinstance(node, _PRIMARY) else "($x)", x=node)
