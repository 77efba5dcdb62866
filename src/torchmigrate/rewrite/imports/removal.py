"""Deleting the imports that fixes left without a use."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator

from torchmigrate.findings import DroppedUse, Edit
from torchmigrate.patterns import pattern
from torchmigrate.rewrite.imports import edits as editing
from torchmigrate.rewrite.imports.edits import ImportStatement
from torchmigrate.rewrite.imports.scopes import ImportScopes
from torchmigrate.rewrite.lines import SourceText, is_marker, logical_line, remove_statements, start_of
from torchmigrate.rewrite.suites import Suites
from torchmigrate.semantics.libraries import LIBRARY_ROOTS
from torchmigrate.semantics.model import Binding, Role, SemanticModel, Use
from torchmigrate.semantics.submodules import needed_module
from torchmigrate.source.trees import walk

_KEPT_BY_LINTER = pattern(r"noqa\s*:[^#]*\bF401\b|pylint\s*:\s*disable", re.IGNORECASE)
_TYPE_COMMENT = pattern(r"#[ \t]*type:(.*)")
_TYPE_NODES = (ast.Expression, ast.expr, ast.expr_context, ast.operator)
_OPERATORS = ("torch.ops.", "torch.classes.", "torch.jit.load", "torch.export.load")
_TAKES_TYPE = frozenset(["cast", "ForwardRef", "NewType", "TypeVar"])


def removals(
    names: SemanticModel,
    source: SourceText,
    scopes: ImportScopes,
    releases: Iterable[DroppedUse],
) -> tuple[Edit, ...]:
    """See `ImportPlanner.removals`."""
    places: dict[int, set[int]] = {}
    for release in releases:
        places.setdefault(release.binding, set()).update(release.places)
    gone: dict[int, list[Binding]] = {}
    for number in sorted(places):
        binding = names.bindings[number]
        if unneeded(names, source, scopes, number, places[number]):
            gone.setdefault(id(binding.statement), []).append(binding)
    edits: list[Edit] = []
    whole: dict[int, tuple[list[ast.stmt], list[ast.stmt]]] = {}
    for bindings in gone.values():
        statement, block = bindings[0].statement, bindings[0].block
        assert isinstance(statement, (ast.Import, ast.ImportFrom)), "only imports are removable"
        aliases = {id(binding.node) for binding in bindings}
        indices = [number for number, alias in enumerate(statement.names) if id(alias) in aliases]
        line = logical_line(source, block, statement)
        layout = ImportStatement(source, statement)
        if any(_KEPT_BY_LINTER.search(comment) for comment in (line.comment, *layout.comments)):
            continue
        if len(indices) < len(statement.names):
            cut = layout.cut(indices)
            if not cut.text_lost():
                edits.extend(cut.edits)
        elif all(map(is_marker, editing.comments_of(source, block, statement))):
            whole.setdefault(id(block), (block, []))[1].append(statement)
    suites = Suites(names.tree, source)
    waiting = list(whole.values())
    while waiting:
        block, statements = waiting.pop()
        outer = suites.idle_test(block) if len(statements) == len(block) else None
        if outer is None or whole.pop(id(block), None) is None:
            continue
        around = whole.setdefault(id(outer[1]), (outer[1], []))
        around[1].append(outer[0])
        waiting.append(around)
    for block, statements in whole.values():
        edits.extend(remove_statements(source, block, statements, module=block is names.tree.body))
    return tuple(sorted(edits))


def unneeded(
    names: SemanticModel, source: SourceText, scopes: ImportScopes, number: int, places: Collection[int]
) -> bool:
    """Whether nothing but uses at these places speaks for the binding of this number."""
    binding = names.bindings[number]
    unused = set(binding.uses) <= set(places) and number not in scopes.relied_on
    return unused and _removable(binding, names, source, scopes, places)


def without_use(
    names: SemanticModel, source: SourceText, scopes: ImportScopes, binding: Binding
) -> tuple[Edit, ...]:
    """See `ImportPlanner.without_use`."""
    places: tuple[int, ...] = ()
    node, root = binding.node, binding.target or ""
    if isinstance(binding.statement, ast.Import) and root != binding.module:  # `import torch.old`
        below = f"{binding.module}."
        if any(f"{name}.".startswith(below) for use in _loads(names) for name in use.candidates):
            return ()
        if any(other is not binding and _binds_before(other, binding) for other in names.imports):
            places = tuple(binding.uses)  # they have another `import torch`
        elif binding.uses and isinstance(node, ast.alias):
            end = source.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
            return (Edit(start_of(source, node), end, root),)
    return removals(names, source, scopes, [DroppedUse(binding.id, places)])


def _loads(names: SemanticModel) -> Iterator[Use]:
    return (use for use in names.uses if use.role is not Role.IMPORT)


def _binds_before(other: Binding, binding: Binding) -> bool:
    """Whether an import of the same statement list binds the same name to the same, and runs first."""
    return (
        other.name == binding.name
        and other.target == binding.target
        and other.block is binding.block
        and other.statement.lineno < binding.statement.lineno
    )


def _removable(
    binding: Binding, names: SemanticModel, source: SourceText, scopes: ImportScopes, places: Collection[int]
) -> bool:
    """Whether nothing but its uses speaks for the import."""
    return (
        binding.is_import
        and binding.name not in scopes.declared
        and binding.scope.kind != "class"  # an attribute of the class
        and not (scopes.in_try(binding) and _alone(binding))
        and not binding.type_checking
        and (scopes.exports.fails(binding) or not _loads_submodule(binding, names, places))
        and not _registers_operators(binding, names)
        and not _in_type_string(names, binding.name)
        and not _in_type_comment(source.text, binding.name)
        and not scopes.exports.keeps(binding)
    )


def _alone(binding: Binding) -> bool:
    """Whether an import is the only one of its block: what a try is about."""
    statement = binding.statement
    return len(getattr(statement, "names", ())) == 1 and not any(
        isinstance(other, (ast.Import, ast.ImportFrom)) and other is not statement for other in binding.block
    )


def _loads_submodule(binding: Binding, names: SemanticModel, places: Collection[int]) -> bool:
    """Whether an import loads a module that is reached through another import of its package."""
    loaded = {binding.module or "", binding.target or ""}
    plain = isinstance(binding.statement, ast.Import) and binding.target != binding.module
    below = f"{binding.module}." if plain and "." in (binding.module or "") else None

    def relies(use: Use, candidate: str) -> bool:
        if below is not None and candidate.startswith(below):
            return True
        needed = needed_module(candidate)
        own = use.binding is not None and needed in (use.binding.module, use.binding.target)
        return needed in loaded and not own

    return any(
        relies(use, candidate)
        for use in names.uses
        # The method of an object needs no import of its class.
        if use.role is not Role.IMPORT
        and not use.method
        and use.binding is not binding
        and use.start not in places
        for candidate in use.candidates
    )


def _registers_operators(binding: Binding, names: SemanticModel) -> bool:
    """Whether a library is imported whose operators may be used by name."""
    root = (binding.target or "").partition(".")[0]
    if root == "torch" or root not in LIBRARY_ROOTS:
        return False
    return any(candidate.startswith(_OPERATORS) for use in names.uses for candidate in use.candidates)


def _in_type_comment(text: str, name: str) -> bool:
    """Whether a comment that says a type names it: `# type: List[Tensor]`."""
    return any(re.search(rf"\b{name}\b", said) for said in _TYPE_COMMENT.findall(text))


def _in_type_string(names: SemanticModel, name: str) -> bool:
    """Whether a string that stands for a type names it: `cast("Tensor", x)`, `List["Tensor"]`."""
    if not any(isinstance(node.value, str) and name in node.value for node in names.nodes(ast.Constant)):
        return False
    types: list[ast.expr | None] = [node.annotation for node in names.nodes(ast.arg)]
    types += [node.returns for node in names.nodes(ast.FunctionDef)]
    types += [node.returns for node in names.nodes(ast.AsyncFunctionDef)]
    types += [node.annotation for node in names.nodes(ast.AnnAssign)]
    for node in names.nodes(ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in _TAKES_TYPE:
            types += [*node.args, *(keyword.value for keyword in node.keywords)]
    if name[:1].isupper():
        types += [node.slice for node in names.nodes(ast.Subscript)]
    return any(item is not None and _names_type(item, name) for item in types)


def _names_type(node: ast.expr, name: str) -> bool:
    return any(
        isinstance(item, ast.Constant) and isinstance(item.value, str) and _mentions(item.value, name)
        for item in walk(node)
    )


def _mentions(text: str, name: str) -> bool:
    if name not in text:
        return False
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    nodes = list(walk(tree))
    return all(isinstance(node, _TYPE_NODES) for node in nodes) and any(
        isinstance(node, ast.Name) and node.id == name for node in nodes
    )
