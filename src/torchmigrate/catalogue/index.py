"""The rules of a run, indexed by the names that they are about; read when the first file needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchmigrate.catalogue.model import Rule, RuleHead

_CHUNK = 32_768  # bytes that `screen` looks at before it asks whether it may stop
# Keeps what names are made of; everything else becomes a space.
_WORDS = bytes(b if b < 128 and (chr(b).isalnum() or chr(b) == "_") else 32 for b in range(256))

# The heads of rules, each with its number, and what builds the rule of a number.
Content = tuple["list[tuple[int, RuleHead]]", "Callable[[int], Rule]"]


class RulesByName(Mapping[str, "list[Rule]"]):
    """Qualified name -> its rules, which are built when they are read."""

    def __init__(self, numbers: Mapping[str, list[int]], rule: Callable[[int], Rule]) -> None:
        self._numbers = numbers
        self._rule = rule

    def __getitem__(self, name: str) -> list[Rule]:
        return [self._rule(number) for number in self._numbers[name]]

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class Catalogue:
    """All rules of a run, and where to find the ones for a name.

    Made by `Catalogue.of(rules)`, `compiled.load` or `store.default_catalogue`. Nothing is read before it is
    needed, since most files mention no library; and a rule is built when it is first needed, so that code
    with three outdated names does not pay for five hundred rules.
    """

    def __init__(self, read: Callable[[], Content]) -> None:
        """The rules that `read` gives; it is called once, and so is its builder for every rule."""
        self._read = read
        self._built: dict[int, Rule] = {}
        self._found: dict[str, list[tuple[Rule, str]]] = {}

    @classmethod
    def made(cls, heads: Iterable[tuple[int, RuleHead]], build: Callable[[int], Rule]) -> Catalogue:
        """The rules with these heads, numbered as `build` knows them."""
        content = list(heads), build
        return cls(lambda: content)

    @classmethod
    def of(cls, rules: Iterable[Rule]) -> Catalogue:
        """Index rules that are built already, keeping their order."""
        from torchmigrate.catalogue.model import RuleHead

        rules = list(rules)
        return cls.made(enumerate(map(RuleHead.of, rules)), rules.__getitem__)

    def __reduce__(self) -> tuple[object, Content]:
        return Catalogue.made, self.content

    def where(self, wanted: Callable[[RuleHead], bool]) -> Catalogue:
        """The rules whose head is wanted, in the same order; builds none."""
        return Catalogue(lambda: ([item for item in self._heads if wanted(item[1])], self._rule))

    def load(self) -> None:
        """Read and index the rules now."""
        _ = self._symbols, self._modules

    @cached_property
    def content(self) -> Content:
        """What `read` gave."""
        return self._read()

    @property
    def _heads(self) -> list[tuple[int, RuleHead]]:
        return self.content[0]

    @cached_property
    def _symbols(self) -> dict[str, list[int]]:
        """The numbers of the rules for every symbol."""
        return _numbers((number, head.symbols) for number, head in self._heads if not head.files)

    @cached_property
    def _modules(self) -> dict[str, list[int]]:
        """The numbers of the rules for every moved module."""
        return _numbers((number, head.modules) for number, head in self._heads)

    @cached_property
    def _named(self) -> dict[str, int]:
        """The number of the rule with each code, and with each name."""
        named: dict[str, int] = {}
        for number, head in self._heads:
            named.setdefault(head.code, number)
            named.setdefault(head.name, number)
        return named

    @property
    def heads(self) -> list[RuleHead]:
        """The head of every rule, in order; builds none."""
        return [head for _, head in self._heads]

    @property
    def rules(self) -> list[Rule]:
        """Every rule; builds those that were not needed yet."""
        return [self._rule(number) for number, _ in self._heads]

    @property
    def by_symbol(self) -> Mapping[str, list[Rule]]:
        return RulesByName(self._symbols, self._rule)

    @property
    def by_module(self) -> Mapping[str, list[Rule]]:
        return RulesByName(self._modules, self._rule)

    @cached_property
    def of_other_files(self) -> list[Rule]:
        """The rules about files that are not Python, in order."""
        return [self._rule(number) for number, head in self._heads if head.files]

    def find(self, code_or_name: str) -> Rule | None:
        """The rule with this code or name."""
        number = self._named.get(code_or_name)
        return None if number is None else self._rule(number)

    def __len__(self) -> int:
        return len(self._heads)

    def for_name(self, name: str) -> list[tuple[Rule, str]]:
        """The rules for a qualified name, each with the symbol or moved module by which it matched.

        Remembered per name, names without a rule as well; the list is not the caller's to change.
        """
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._find(name)
        return found

    def _find(self, name: str) -> list[tuple[Rule, str]]:
        found = [(self._rule(number), name) for number in self._symbols.get(name, ())]
        modules = self._modules
        head = name
        while modules and head:
            for number in modules.get(head, ()):
                rule = self._rule(number)
                member = name[len(head) + 1 :].partition(".")[0]
                if rule.members is None or not member or member in rule.members:
                    found.append((rule, head))
            head = head.rpartition(".")[0]
        return found

    def ending_in(self, end: str) -> list[str]:
        """The symbols and modules whose last dotted parts are these, in order."""
        return sorted(
            name for names in (self._symbols, self._modules) for name in names if name.endswith(f".{end}")
        )

    @cached_property
    def last_parts(self) -> frozenset[str]:
        """The last dotted part of every symbol and module: one of them is in any file with a finding."""
        return frozenset(
            name.rpartition(".")[2] for names in (self._symbols, self._modules) for name in names
        )

    @cached_property
    def _parts_by_root(self) -> dict[bytes, frozenset[bytes]]:
        """`last_parts` by the package that their names begin with."""
        found: dict[bytes, set[bytes]] = {}
        for names in (self._symbols, self._modules):
            for name in names:
                root = name.partition(".")[0].encode()
                found.setdefault(root, set()).add(name.rpartition(".")[2].encode())
        return {root: frozenset(parts) for root, parts in found.items()}

    def screen(self, source: str | bytes) -> bool:
        """Whether one of `last_parts` occurs in a source (text, or bytes that contain ASCII) as a word.

        Only those of packages that the source mentions: torchtext has `data` and `utils`, which are in
        every other file.

        Splitting reads 50 MB/s; a regular expression for 1,500 names reads 10 and takes 100 ms to compile.
        """
        data = source if isinstance(source, bytes) else source.encode("utf-8", "replace")
        mentioned = [parts for root, parts in self._parts_by_root.items() if root in data]
        if not mentioned:
            return False
        data = data.translate(_WORDS)
        parts = frozenset().union(*mentioned)
        start = 0
        while start < len(data):
            end = data.find(b" ", start + _CHUNK)
            end = len(data) if end < 0 else end
            if not parts.isdisjoint(data[start:end].split()):
                return True
            start = end
        return False

    def _rule(self, number: int) -> Rule:
        rule = self._built.get(number)
        if rule is None:
            rule = self._built[number] = self.content[1](number)
        return rule


def _numbers(named: Iterable[tuple[int, Iterable[str]]]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for number, names in named:
        for name in names:
            numbers.setdefault(name, []).append(number)
    return numbers
