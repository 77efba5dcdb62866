"""TM885: `validation_epoch_end(self, outputs)` becomes `on_validation_epoch_end`.

Lightning 1 collected what the steps of an epoch returned. Lightning 2 does not: the step appends it to
a list of the module, which a hook creates when the epoch starts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torchmigrate.catalogue.model import Rule
from torchmigrate.catalogue.variants import rule_for_symbol
from torchmigrate.codemods.base.findings import finding_at, fix_by
from torchmigrate.codemods.base.subclasses import Method, Subclass, self_of
from torchmigrate.codemods.base.unclear import Unclear
from torchmigrate.codemods.lightning.modules import attributes, names_in, subclasses
from torchmigrate.findings import Edit, Finding, Reason
from torchmigrate.match.rule_matches import RuleMatch
from torchmigrate.rewrite.code import Code, code
from torchmigrate.rewrite.context import FileContext
from torchmigrate.rewrite.nodes import name_span, word_replaced
from torchmigrate.rewrite.parameters import parameters_dropped
from torchmigrate.rewrite.statements import Crowded, NewFunction, Rewriting
from torchmigrate.source.trees import is_docstring, walk_own

_SEVERAL = ("dataloader_idx", "optimizer_idx", "dataloader_i")  # with one, outputs are lists of lists


def find(rule: Rule, hits: Sequence[RuleMatch], file: FileContext) -> Iterator[Finding]:
    """A finding for every such method of a LightningModule."""
    for item in subclasses(file, "LightningModule"):
        for symbol, variables in rule.symbols.items():
            method = item.method(symbol.rpartition(".")[2])
            if method is None or not symbol.startswith("pytorch_lightning."):
                continue
            own = rule_for_symbol(rule, symbol)
            new, fix = variables["new"].rpartition(".")[2], None
            blocked_by: tuple[Reason, ...] = ()
            try:
                edits = _Kept(item, method, {**variables, "new": new}, file).edits()
                fix = fix_by(own, file, f"Rename to `{new}`", *edits)
            except (Unclear, Crowded) as error:
                blocked_by = error.reasons
            finding = finding_at(own, file, name_span(file.source, method), symbol=symbol, fix=fix)
            yield replace(finding, blocked_by=blocked_by)


class _Kept:
    """One method, and the step whose outputs it gets."""

    def __init__(self, item: Subclass, method: Method, variables: dict[str, str], file: FileContext) -> None:
        self.item = item
        self.method = method
        self.variables = variables
        self.file = file

    def edits(self) -> list[Edit]:
        """The edits of the fix. Raises Unclear, Crowded."""
        name, new, step_name = self.method.name, self.variables["new"], self.variables["step"]
        if self.item.method(new) is not None:
            raise Unclear(f"the class has `{new}` as well")
        if any(attributes(self.file, name)):
            raise Unclear(f"the file calls `{name}` itself")
        if self.item.method(f"{step_name}_end") is not None:
            raise Unclear(f"the class has `{step_name}_end`")
        plain = self.method.args.args
        if (
            len(plain) != 2
            or self.method.args.vararg
            or self.method.args.kwonlyargs
            or self.method.decorator_list
        ):
            raise Unclear(f"`{name}` takes other parameters than Lightning gives it")
        rewriting = self.file.rewriting()
        rewriting.record([word_replaced(name_span(self.file.source, self.method)[0], name, new)])
        rewriting.record(parameters_dropped(self.file.source, self.method, [plain[1]]))
        if names_in(self.method, plain[1].arg):
            owner, kept = plain[0].arg, f"{step_name}_outputs"
            first = self.method.body[0]
            if is_docstring(first):
                if len(self.method.body) == 1:
                    raise Unclear("the method is empty")
                first = self.method.body[1]
            rewriting.add_before(
                first, code("$name = $owner.$kept", name=plain[1].arg, owner=owner, kept=kept)
            )
            self._keep(rewriting, kept)
            start = NewFunction(self.variables["start"], ("self",), (code("self.$kept = []", kept=kept),))
            rewriting.add_function(self.method, start)
        return rewriting.edits()

    def _keep(self, rewriting: Rewriting, kept: str) -> None:
        """Let the step append what it returns."""
        step_name, start = self.variables["step"], self.variables["start"]
        step = self.item.method(step_name)
        if step is None:
            raise Unclear(f"the class does not define `{step_name}`")
        if self.item.method(start) is not None or self.item.defines(kept):
            raise Unclear(f"the class has `{start}` or `{kept}` as well")
        if any(attributes(self.file, step_name)):
            raise Unclear(f"the file calls `{step_name}` itself")
        owner = self_of(step)
        if owner is None or step.decorator_list or any(arg.arg in _SEVERAL for arg in step.args.args):
            raise Unclear("the outputs are a list for each loader or optimizer")
        nodes = [*walk_own(step.body)]
        if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes):
            raise Unclear(f"`{step_name}` is a generator")
        returned = [node for node in nodes if isinstance(node, ast.Return) and node.value is not None]
        if not returned:
            raise Unclear(f"`{step_name}` returns nothing")
        output = "step_output" if names_in(step, "output") else "output"
        for statement in returned:
            value = statement.value
            assert value is not None, "the others return nothing"
            held = value.id if isinstance(value, ast.Name) else output
            item = self._appended(held, value)
            line = code("$owner.$kept.append($item)", owner=owner, kept=kept, item=item)
            if isinstance(value, ast.Name):
                rewriting.add_before(statement, line)
            else:
                given = code("$output = $value", output=output, value=value)
                rewriting.replace_statement(statement, [given, line, code("return $output", output=output)])

    def _appended(self, output: str, value: ast.expr) -> Code:
        """What Lightning kept of an output: of the training step a dictionary, without gradients."""
        if self.variables["step"] != "training_step":
            return code("$output", output=output)
        made = self.file.flow.only_origin(value) if isinstance(value, ast.Name) else value
        if isinstance(made, ast.Dict):
            return code(
                '{key: item.detach() if hasattr(item, "detach") else item for key, item in $output.items()}',
                output=output,
            )
        return code(
            '{key: item.detach() if hasattr(item, "detach") else item for key, item in '
            '($output if isinstance($output, dict) else {"loss": $output}).items()}',
            output=output,
        )
