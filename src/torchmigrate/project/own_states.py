"""What the classes of a file keep in state dicts that they make themselves.

`torch.load(..., weights_only=True)` refuses a state dict in which a key or a value is an object or a class.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from torchmigrate.project.checkpoints import Saved
from torchmigrate.source.trees import last_name, walk

STATE = "state_dict"
# Methods of modules that give the module itself.
_GIVE_ITSELF = frozenset("to cuda cpu float double half eval train requires_grad_ apply".split())
_ENUMS = ("Enum", "Flag")

_Method = ast.FunctionDef | ast.AsyncFunctionDef


class OwnStates:
    """The classes of one file, and the constants that others use as keys.

    Args:
        saved: what the values of the file are.
    """

    def __init__(self, saved: Saved) -> None:
        self._saved = saved
        self._flow = saved.flow
        body = saved.flow.names.tree.body
        self.classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}

    def __contains__(self, name: object) -> bool:
        """Whether the module defines a class, or gives a variable a value."""
        return name in self.classes or bool(self._values(name))

    def _values(self, name: object) -> list[ast.AST]:
        """Where a variable of the module gets a value."""
        bound = self._flow.names.module.bindings.get(str(name), ())
        return [each.node for each in bound if isinstance(each.node, ast.Name)]

    def is_plain(self, name: str) -> bool:
        """Whether a variable of the module is sure to be text or a number, and no object."""
        return bool(self._values(name)) and all(map(self._saved.is_plain, self._values(name)))

    def keeps_objects(
        self, name: str, called: Sequence[str], is_plain_elsewhere: Callable[[ast.expr], bool]
    ) -> bool:
        """Whether a class puts objects into the state dict that it makes.

        Args:
            called: the methods that were called, one on the result of the other, before there was an object
                of the class: `Trial(model).for_steps(3)`. If one returns anything else, the result is
            unknown. is_plain_elsewhere: whether a name that an import binds is known to be text or a number.
        """
        made = self.classes.get(name)
        methods = {node.name: node for node in made.body if isinstance(node, _Method)} if made else {}
        if STATE not in methods or not all(_gives_itself(methods.get(each), each) for each in called):
            return False
        method = methods[STATE]
        return any(
            self._is_object(value) or (key is not None and self._is_object_as_key(key, is_plain_elsewhere))
            for key, value in _entries(method)
        )

    def _is_object(self, value: ast.AST) -> bool:
        return last_name(value) in self.classes or self._saved.is_object(value)

    def _is_object_as_key(self, key: ast.expr, is_plain_elsewhere: Callable[[ast.expr], bool]) -> bool:
        """Whether a key is an object: one that is made here, or whatever another module has under a name."""
        root = key
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(self._flow.only_origin(root), ast.alias):
            return not is_plain_elsewhere(key)
        owner = self.classes.get(last_name(root))
        if not isinstance(key, ast.Attribute) or owner is None:
            return self._is_object(key)
        return any(last_name(base).endswith(_ENUMS) for base in owner.bases) or any(
            self._is_object(node.value)
            for node in owner.body
            if isinstance(node, ast.Assign) and key.attr in map(last_name, node.targets)
        )


def _gives_itself(method: _Method | None, name: str) -> bool:
    """Whether a method gives its object, by what it returns or, if it returns nothing, by a decorator."""
    if method is None:
        return name in _GIVE_ITSELF
    values = [node.value for node in walk(method) if isinstance(node, ast.Return) and node.value is not None]
    if not values:
        return bool(method.decorator_list)
    first = next((each.arg for each in [*method.args.posonlyargs, *method.args.args]), None)
    return all(isinstance(value, ast.Name) and value.id == first for value in values)


def _entries(method: _Method) -> Iterator[tuple[ast.expr | None, ast.expr]]:
    """The keys and values of the dicts that a method makes, and what it appends to one of the values."""
    for node in walk(method):
        if isinstance(node, ast.Dict):
            yield from zip(node.keys, node.values, strict=True)
        elif isinstance(node, ast.Assign):
            yield from ((each.slice, node.value) for each in node.targets if isinstance(each, ast.Subscript))
        elif isinstance(node, ast.Call) and last_name(node.func) in ("dict", "OrderedDict", "update"):
            yield from ((None, keyword.value) for keyword in node.keywords)
        elif isinstance(node, ast.Call) and last_name(node.func) == "append" and len(node.args) == 1:
            yield None, node.args[0]
