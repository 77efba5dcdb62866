"""What imports bind."""

from __future__ import annotations

import ast

from torchmigrate.semantics.model import VIA_IMPORT, BindingKind, QualifiedName, Role, Via
from torchmigrate.semantics.values import distinctive
from torchmigrate.semantics.values.slots import UNKNOWN
from torchmigrate.semantics.walk.bindings import Bindings
from torchmigrate.semantics.walk.state import State
from torchmigrate.semantics.walk.uses import Uses


class Imports:
    """Walks imports."""

    __slots__ = ("bindings", "state", "uses")

    def __init__(self, state: State, uses: Uses, bindings: Bindings) -> None:
        self.state = state
        self.uses = uses
        self.bindings = bindings

    def visit_import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            target = alias.name if alias.asname else name
            self._bind_import(name, target, alias.name, BindingKind.IMPORT, alias)

    def visit_import_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self._star_import(node, module)
                continue
            target = f"{module}.{alias.name}" if node.module else f"{module}{alias.name}"
            self._bind_import(alias.asname or alias.name, target, module, BindingKind.FROM_IMPORT, alias)

    def _star_import(self, node: ast.ImportFrom, module: str) -> None:
        state = self.state
        binding = self.bindings.new_binding("*", BindingKind.STAR_IMPORT, node)
        binding.module = module
        if module.partition(".")[0] in state.roots:
            state.stars.append((module, state.offset(node)))
            state.imports_torch = state.imports_torch or module.startswith("torch")
            self.uses.record(node, (module,), False, Role.IMPORT, None, None, None, "", Via.STAR)
        else:
            state.other_star = True
            self._look_alike(module)
            state.unknown_star = bool(state.stars)  # it may have brought any of the names that follow

    def _bind_import(self, name: str, target: str, module: str, kind: BindingKind, alias: ast.alias) -> None:
        state = self.state
        root = target.partition(".")[0]
        sure = not target.startswith(".")
        value = state.given.get(name) or ((QualifiedName(target),) if sure else UNKNOWN)
        binding = self.bindings.bind(name, value, kind, alias)
        only = value[0] if len(value) == 1 and root not in state.roots else None
        if isinstance(only, QualifiedName) and only.name.partition(".")[0] in state.roots:
            target = only.name  # a relative import, or a re-export
        binding.target, binding.module = target, module
        state.imports.append(binding)
        if alias.asname is not None and alias.asname == alias.name:
            binding.exported = True
        if root not in state.roots:
            self._look_alike(target)
        else:
            if root == "torch":
                state.imports_torch = True
            full = alias.name if kind is BindingKind.IMPORT else target
            self.uses.record(alias, (full,), True, Role.IMPORT, None, None, binding, "", VIA_IMPORT)

    def _look_alike(self, module: str) -> None:
        """Note an import after which methods of tensors may be those of something else."""
        state = self.state
        root = module.partition(".")[0]
        if root in distinctive.LOOKALIKES:
            state.lookalikes = True
        if root in distinctive.MATRICES or "lazy" in module.lower():
            state.lazy = True
