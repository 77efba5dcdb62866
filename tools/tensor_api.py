"""Write src/torchmigrate/names/tensor_api.py from the type stubs of an installed torch.

Usage: python tools/tensor_api.py   (in an environment that has torch)
"""

from __future__ import annotations

import ast
import importlib.util
import textwrap
from pathlib import Path

OUT = Path(__file__).parent.parent / "src" / "torchmigrate" / "names" / "tensor_api.py"

# Gone from the stubs, and still in old code; from the documentation of torch 0.4 to 1.12.
OLD_FUNCTIONS = {"ger", "potrf", "potri", "potrs", "matrix_rank", "chain_matmul", "lstsq_", "rfft", "irfft"}
OLD_METHODS = {"ger", "potrf", "potri", "potrs", "matrix_rank", "btrisolve", "rfft", "irfft", "fft", "ifft"}


def returns(tree: ast.AST) -> tuple[set[str], set[str]]:
    """Names whose every overload returns a Tensor (or Self), and names whose overloads return tuples."""
    kinds: dict[str, set[str]] = {}
    for node in getattr(tree, "body", []):
        if isinstance(node, ast.FunctionDef) and node.returns is not None and not node.name.startswith("__"):
            text = ast.unparse(node.returns)
            is_property = any(ast.unparse(mark) == "property" for mark in node.decorator_list)
            if text in ("Tensor", "Self"):
                kind = "tensor"
            elif text.startswith(("torch.return_types", "tuple[Tensor", "Tuple[Tensor")):
                kind = "tuple"
            else:
                kind = "other"
            kinds.setdefault(node.name, set()).add(("property " if is_property else "") + kind)
    tensors = {name for name, found in kinds.items() if found == {"tensor"}}
    return tensors, {name for name, found in kinds.items() if found == {"tuple"}}


def block(name: str, doc: str, words: set[str]) -> str:
    body = textwrap.fill(" ".join(sorted(words)), 104, initial_indent="    ", subsequent_indent="    ")
    return f'# {doc}\n{name} = frozenset(\n    """\n{body}\n    """.split()\n)\n'


def main() -> None:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise SystemExit("torch is not installed here")
    root = Path(spec.origin).parent
    functions = ast.parse((root / "_C" / "_VariableFunctions.pyi").read_text(encoding="utf-8"))
    stub = ast.parse((root / "_C" / "__init__.pyi").read_text(encoding="utf-8"))
    base = next(n for n in stub.body if isinstance(n, ast.ClassDef) and n.name == "TensorBase")
    functional = ast.parse((root / "nn" / "functional.py").read_text(encoding="utf-8"))
    plain, tuples = returns(functions)
    methods, method_tuples = returns(base)
    layers, _ = returns(functional)
    public = {name for name in plain if not name.startswith("_")} | OLD_FUNCTIONS

    def shown(names: set[str]) -> set[str]:
        return {name for name in names if not name.startswith("_")}

    parts = [
        '"""Which torch functions and tensor methods return tensors.\n\n'
        'Made by tools/tensor_api.py from the stubs of torch; do not edit.\n"""\n',
        block("FUNCTIONS", "torch.NAME returns one tensor", public),
        block("TUPLE_FUNCTIONS", "torch.NAME returns a tuple of tensors", shown(tuples)),
        block("METHODS", "Tensor.NAME() returns one tensor", shown(methods) | OLD_METHODS),
        block("TUPLE_METHODS", "Tensor.NAME() returns a tuple of tensors", shown(method_tuples)),
        block("FUNCTIONAL", "torch.nn.functional.NAME returns one tensor", shown(layers)),
    ]
    OUT.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
