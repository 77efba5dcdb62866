"""The API rules over one file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from torchmigrate.catalogue.codes import DEPRECATED_API, DOCUMENTED_DEPRECATION, NEEDS_NEWER, OF_API
from torchmigrate.catalogue.model import Rule
from torchmigrate.engine.api_rules.absent import AbsentNames
from torchmigrate.engine.api_rules.api import Api
from torchmigrate.engine.api_rules.arguments import Arguments, Functions
from torchmigrate.engine.api_rules.beside import is_beside_the_code
from torchmigrate.engine.api_rules.deprecated import DeprecatedNames
from torchmigrate.engine.api_rules.own import held_libraries
from torchmigrate.engine.api_rules.places import Surrounding, calls_constructor, is_load, name_of
from torchmigrate.engine.api_rules.settings import TAKE_SETTINGS, Settings
from torchmigrate.findings import Finding
from torchmigrate.match.rule_matches import RuleMatcher, about_arguments
from torchmigrate.semantics.model import Role, SemanticModel
from torchmigrate.source.text import Source


class ApiFinder:
    """Looks every use of a file up in the API data.

    Args:
        api: the data at the target and the minimum.
        codes: of the rules that are selected.
        catalogue: finds the rules for a name in the whole catalogue, also those that are not selected: what
            has a rule of its own is left to it.
    """

    def __init__(self, api: Api, codes: Collection[str], catalogue: RuleMatcher) -> None:
        self.api = api
        self.codes = OF_API.intersection(codes)
        self.catalogue = catalogue
        self.functions = Functions(api)

    def findings(
        self,
        names: SemanticModel,
        source: Source,
        path: Path,
        reported: Mapping[int, Collection[Rule]] = {},
        root: Path | None = None,
    ) -> list[Finding]:
        """The findings of one file.

        Args:
            reported: the rules of the catalogue that say something about a use, by its id.
            root: of the project; the parts of a path below it tell what the file is for. None: that does
                not matter.
        """
        if not names.uses:
            return []
        codes = self.codes
        directory = path.absolute().parent
        if NEEDS_NEWER in codes and root is not None and is_beside_the_code(path, directory, root):
            codes -= {NEEDS_NEWER}
        own = held_libraries(directory)
        surrounding = Surrounding(names, source)
        absent = AbsentNames(self.api, codes, self._owns, surrounding)
        arguments = Arguments(self.functions, codes, self._owns_parameter, self._owns_demand, surrounding)
        deprecated = (
            DeprecatedNames(self.functions, codes, self._owns, self._owns_parameter, surrounding)
            if codes & {DEPRECATED_API, DOCUMENTED_DEPRECATION}
            else None
        )
        settings = Settings(self.api, codes, self._owns, deprecated, surrounding)
        found: list[Finding] = []
        for use in names.uses:
            name = name_of(use)
            if name is None or name.partition(".")[0] in own:
                continue
            made = use.call or surrounding.around.prepared(use)
            calls = made is not None and use.role is not Role.STRING and use.sure
            said = reported.get(id(use))
            if said:
                if calls and not any(map(_judges_calls, said)):
                    found.extend(arguments.look(use, name, reported=True))
                continue
            if not use.method and ("config" in name or name in TAKE_SETTINGS):
                found.extend(settings.look(use, name))
            if not is_load(use):
                continue
            missing = None if calls_constructor(use) else absent.look(use, name)
            if missing is not None:
                found.append(missing)
                continue
            if calls:
                found.extend(arguments.look(use, name))
            if deprecated is not None:
                found.extend(deprecated.look(use, name))
        return found

    def _owns(self, name: str) -> bool:
        """Whether the catalogue has a rule for a name as such; rules that are off by default do not count."""
        return any(not about_arguments(rule) for rule, _ in self.catalogue.rules_for(name) if not rule.opt_in)

    def _owns_parameter(self, name: str, parameter: str) -> bool:
        """Whether the catalogue has a rule for a name as such, or for this parameter of it."""
        return any(
            not about_arguments(rule) or parameter in owned_parameters(rule)
            for rule, _ in self.catalogue.rules_for(name)
            if not rule.opt_in
        )

    def _owns_demand(self, name: str, parameter: str) -> bool:
        """Whether the catalogue has a rule for calls without this parameter."""
        return any(
            parameter in rule.missing or parameter in rule.match
            for rule, _ in self.catalogue.rules_for(name)
            if not rule.opt_in
        )


def _judges_calls(rule: Rule) -> bool:
    """Whether what a rule says of a use holds for its arguments as well, or replaces the call."""
    return bool(about_arguments(rule) or rule.removed or rule.codemod) or any(
        case.template for case in rule.cases
    )


def owned_parameters(rule: Rule) -> set[str]:
    """Every parameter that a rule says something about."""
    found = {*rule.parameters, *rule.missing, *rule.match}
    for case in rule.cases:
        found.update(case.when, case.drop, case.keywords, case.map, case.set, case.to_keyword)
    return found
