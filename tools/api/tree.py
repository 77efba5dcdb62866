"""The modules in the unpacked sources of a wheel, and which of them are listed."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path

# Modules where programs have no business, and compiled ones: they are one open module with nothing in it.
# What other modules re-export from them is read all the same.
_HIDDEN = {
    "torch": r"""
        torch\._C(_\w+)?
        torch\._(inductor|refs|decomp|prims|prims_common|numpy|vendor|meta_registrations|higher_order_ops)
        torch\._(export|native|lazy|strobelight|vendor|VF)
        torch\._dynamo\.\w+
        torch\._functorch\._\w+
        torch\._subclasses\.complex_tensor
        torch\.testing\._internal
        torch\.(test|include|lib|share|bin)
        torch\.onnx\._internal
        torch\.onnx\._?symbolic_opset\d+
        torch\.ao\.quantization\.fx\._\w+
        torch\.ao\.quantization\.pt2e\._\w+
        torch\.(ao\.ns|_fx|fx)\._\w+_private
        torch\.fx\.experimental\.(unification|migrate_gradual_types|shape_inference)
        torch\.distributed\.(elastic\.timer|benchmarks)\._\w+
        torch\.utils\.(hipify|benchmark\.examples|benchmark\.op_fuzzers|model_dump)
        torch\.utils\._sympy
        torch\.lib\.\w+
    """,
    "torchvision": r"torchvision\.(_C|image|video_reader|_image|prototype)",
    "torchaudio": r"torchaudio\.(_torchaudio|lib|prototype)|_torch_sox",
    "torchtext": r"torchtext\.(_torchtext|lib|prototype)",
    "torchdata": r"torchdata\.(_torchdata|_extension)",
    # What touches torch is listed: not the models, but what the package itself takes from them. Since 5.0 it
    # makes the old names of tokenizers and image processors when they are needed.
    "transformers": r"""
        transformers\.(models|integrations|pipelines|data|commands|cli|quantizers|onnx|benchmark|kernels|sagemaker)
        transformers\.(distributed|exporters|tools|agents|loss|utils\.dummy_\w+|testing_utils|training_args_tf)
        transformers\.(convert|hf|tf|keras|modeling_tf|modeling_flax|generation_tf|generation_flax|trainer_tf)_\w+
        transformers\.(tokenization|image|video|audio|feature_extraction|processing)_\w+
        transformers\.generation\.(tf|flax)_\w+
        transformers\.\w+(Tokenizer|ImageProcessor|FeatureExtractor)(Fast)?
    """,
    "torchao": r"torchao\.(_C\w*|prototype|kernel|csrc|experimental|ops)",
    "lightning": r"lightning\.(app|store|data|_graveyard)",
    "functorch": r"functorch\._C|functorch\.(_src\.(decompositions|partitioners|top_operators\w*))",
}
# The configuration modules among them are listed: programs set what is in them.
_SHOWN = {"torch": r"torch\._(dynamo|inductor|export)\.config|torch\._dynamo\.config_utils"}
# Compiled modules, which leave no source in a wheel.
_COMPILED = {
    "torch": ("torch._C",),
    "torchvision": ("torchvision._C", "torchvision.image", "torchvision.video_reader"),
    "torchaudio": ("torchaudio._torchaudio", "torchaudio.lib"),
    "torchtext": ("torchtext._torchtext", "torchtext.lib"),
    "torchdata": ("torchdata._torchdata",),
    "functorch": ("functorch._C",),
}
_TESTS = re.compile(r"(^|\.)(tests?|conftest|test_\w+)(\.|$)")


@dataclass(slots=True)
class Tree:
    """Where the modules of one library are.

    modules: `.py` files by module name; stubs: `.pyi` files; packages: the modules that are packages.
    """

    library: str
    root: Path
    modules: dict[str, Path] = field(default_factory=dict)
    stubs: dict[str, Path] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)

    def __contains__(self, name: str) -> bool:
        return name in self.modules or name in self.stubs

    def hidden(self, name: str) -> str | None:
        """The outermost hidden module that `name` is in or is, or None."""
        return hidden(self.library, name)

    def hidden_tops(self) -> set[str]:
        """The hidden modules that are in none themselves."""
        names = [*self.modules, *self.stubs, *_COMPILED.get(self.library, ())]
        tops = {self.hidden(name) or "" for name in names} - {""}
        return {top for top in tops if self.hidden(top.rpartition(".")[0]) is None}

    def listed(self) -> list[str]:
        """The modules that are read, parents first."""
        return sorted(name for name in self.modules if self.hidden(name) is None)

    def package_of(self, name: str) -> str:
        """What a relative import in the module `name` starts from."""
        return name if name in self.packages else name.rpartition(".")[0]


def hidden(library: str, name: str) -> str | None:
    """The outermost hidden module of a library that `name` is in or is, or None."""
    shown = _SHOWN.get(library)
    if shown is not None and re.match(rf"(?:{shown})(?=\.|$)", name):
        return None
    pattern = _HIDDEN.get(library)
    found = re.match("(" + "|".join(pattern.split()) + r")(?=\.|$)", name) if pattern else None
    if found is None:
        found = _TESTS.search(name)
        return name[: found.end(2)] if found else None
    return found[1]


def find(library: str, root: Path) -> Tree:
    """All modules of `library` under `root`, where the wheel was unpacked.

    Raises FileNotFoundError if `root` has no such package.
    """
    top = root / library
    if not (top / "__init__.py").is_file():
        raise FileNotFoundError(f"{root} has no package {library}")
    tree = Tree(library, root)
    for path in sorted(top.rglob("*.py*")):
        if path.suffix not in (".py", ".pyi") or not all(
            part.isidentifier() for part in path.relative_to(root).with_suffix("").parts
        ):
            continue
        parts = path.relative_to(root).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
            tree.packages.add(".".join(parts))
        if parts[-1] == "__main__":
            continue
        place = tree.modules if path.suffix == ".py" else tree.stubs
        place[".".join(parts)] = path
    return tree


def parse(path: Path) -> ast.Module | None:
    """The syntax tree of a file, or None if this Python cannot read it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(path.read_bytes(), str(path))
        except (SyntaxError, ValueError):
            return None
