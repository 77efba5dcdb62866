"""Write the tables of rules/torchvision/weights.yaml: which weights `pretrained=True` stood for.

torchvision itself says it, in the `@handle_legacy_interface` decorator of every model builder. The wheels
are read as text, nothing of them is imported:

    pip download --no-deps torchvision==0.28.0
    python tools/torchvision_weights.py rules/torchvision/weights.yaml torchvision-*.whl

Of several wheels the newest decides; where an older one names other weights, that is said on stderr.
"""

from __future__ import annotations

import ast
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

OLD_NAMES = {"weights": "pretrained", "weights_backbone": "pretrained_backbone"}
# Sub-packages whose modules `torchmigrate.semantics.public_names` does not know: both spellings are listed.
TWO_SPELLINGS = ("quantization", "optical_flow")


@dataclass(frozen=True)
class Builder:
    """A model builder: its public package, its module, its parameters and what its flags stood for."""

    package: str  # "torchvision.models.detection"
    module: str  # "torchvision.models.detection.faster_rcnn"
    name: str
    parameters: tuple[str, ...]  # in order, with the old names; "**kwargs" last
    # old flag -> the weights that it stood for; two of them: plain and quantized
    weights: Mapping[str, tuple[str, ...]]

    @property
    def spellings(self) -> list[str]:
        """The qualified names to list, the public one first."""
        names = [f"{self.package}.{self.name}"]
        if self.package.rpartition(".")[2] in TWO_SPELLINGS:
            names.append(f"{self.module}.{self.name}")
        return names


def version_of(wheel: Path) -> tuple[int, ...]:
    """The release in the name of a wheel."""
    return tuple(int(part) for part in wheel.name.split("-")[1].split("+")[0].split(".")[:3])


def builders_of(wheel: Path) -> dict[str, Builder]:
    """Every decorated builder of a wheel by its public name."""
    found: dict[str, Builder] = {}
    with zipfile.ZipFile(wheel) as archive:
        for entry in sorted(archive.namelist()):
            path = PurePosixPath(entry)
            if path.suffix != ".py" or path.parts[:2] != ("torchvision", "models"):
                continue
            module = ".".join(path.with_suffix("").parts)
            for builder in _in_module(ast.parse(archive.read(entry)), module):
                found[builder.spellings[0]] = builder
    return found


def _in_module(tree: ast.Module, module: str) -> Iterator[Builder]:
    package = module.rpartition(".")[0]
    owners = _owners_of_weights(tree, package)
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "handle_legacy_interface":
                flags = {}
                for keyword in decorator.keywords:
                    assert isinstance(keyword.value, ast.Tuple), f"{module}.{node.name}: not (flag, weights)"
                    flag, weights = keyword.value.elts
                    flags[ast.literal_eval(flag)] = tuple(
                        f"{owners.get(name.partition('.')[0], package)}.{name}" for name in _named(weights)
                    )
                arguments = [arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)]
                parameters = [OLD_NAMES.get(name, name) for name in arguments]
                if node.args.kwarg:
                    parameters.append(f"**{node.args.kwarg.arg}")
                yield Builder(package, module, node.name, tuple(parameters), flags)


def _named(weights: ast.expr) -> list[str]:
    """The members that the second element of the decorator's tuple can give, the plain one first."""
    if isinstance(weights, ast.Lambda):
        if not isinstance(weights.body, ast.IfExp):
            return ["by name"]  # resnet_fpn_backbone: the model's name decides
        if "quantize" not in ast.unparse(weights.body.test):
            return [ast.unparse(weights.body.orelse)]  # keypointrcnn: "legacy" is a case of its own
        return [ast.unparse(weights.body.orelse), ast.unparse(weights.body.body)]
    return [] if ast.unparse(weights) == "None" else [ast.unparse(weights)]


def _owners_of_weights(tree: ast.Module, package: str) -> dict[str, str]:
    """Imported enum -> the package that publishes it: that of the module where it is defined."""
    owners = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            above = [package.rsplit(".", node.level - 1)[0]] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                if alias.name.endswith("Weights"):
                    owners[alias.name] = module.rpartition(".")[0]
    return owners


def tables(builders: Mapping[str, Builder]) -> dict[str, list[str]]:
    """The lines of every table, by its name in the rule file."""
    lines: dict[str, list[str]] = {
        name: [] for name in ("plain", "none", "quantized", "dense", "keypoints", "backbones")
    }
    for _, builder in sorted(builders.items()):
        weights = builder.weights["pretrained"]
        for symbol in builder.spellings:
            if "backbone_name" in builder.parameters:
                continue  # the rule is written by hand
            if not weights:
                lines["none"].append(f"- {symbol}")
            elif builder.package.endswith(".quantization"):
                lines["quantized"] += [f"{symbol}:", f"  W: {weights[0]}", f"  Q: {weights[1]}"]
            elif "pretrained_backbone" in builder.weights:
                backbone = builder.weights["pretrained_backbone"][0]
                head = [f"{symbol}:", f'  signature: "({_signature(builder)})"']
                lines["keypoints" if "keypoint" in symbol else "dense"] += [*head, f"  W: {weights[0]}"]
                lines["backbones"] += [*head, f"  W: {backbone}"]
            else:
                lines["plain"].append(f"{symbol}: {{W: {weights[0]}}}")
    return lines


def _signature(builder: Builder) -> str:
    """Of a detection or segmentation model; which default a parameter has does not matter to the rules."""
    return ", ".join(name if name.startswith("**") else f"{name}=None" for name in builder.parameters)


def fill(text: str, lines: Mapping[str, list[str]]) -> str:
    """The rule file with the lines between `# table NAME` and `# end of table` replaced.

    Raises:
        ValueError: the file lacks a table.
    """
    for name, rows in lines.items():
        pattern = re.compile(rf"(?m)^( *)# table {name}\n(?:.*\n)*?\1# end of table\n")
        if not pattern.search(text):
            raise ValueError(f"no table {name} in the rule file")
        body = "".join(f"\\g<1>{row}\n" for row in rows)
        text = pattern.sub(rf"\g<1># table {name}\n{body}\g<1># end of table\n", text)
    return text


def main(arguments: list[str]) -> int:
    """Command line: the rule file, then wheels."""
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    rules = Path(arguments[0])
    wheels = sorted((Path(name) for name in arguments[1:]), key=version_of, reverse=True)
    newest, *older = [builders_of(wheel) for wheel in wheels]
    for wheel, builders in zip(wheels[1:], older, strict=True):
        for name, builder in builders.items():
            known = newest.setdefault(name, builder)
            if known.weights != builder.weights:
                print(f"{wheel.name}: {name} has {builder.weights}, not {known.weights}", file=sys.stderr)
    rules.write_text(fill(rules.read_text(encoding="utf-8"), tables(newest)), encoding="utf-8")
    print(f"{len(newest)} builders", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
