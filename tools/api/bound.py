"""What reading finds: names and what they are bound to, before aliases and bases are followed."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchmigrate.versions.surface_model import DeprecatedParameter, EntryKind


@dataclass(frozen=True, slots=True)
class Deprecation:
    """What the library says about a name, and whether it warns or only documents that.

    by: the function that warns for it, and may know what to say; given: the texts that it is given.
    """

    said: str
    warns: bool = True
    by: str = ""
    given: tuple[str, ...] = ()


@dataclass(slots=True)
class Field:
    """One parameter of a constructor that is made from the fields of a class."""

    name: str
    default: str | None
    keyword_only: bool = False
    given: bool = True  # False: init=False


@dataclass(slots=True)
class Bound:
    """What a name is bound to.

    target: of an alias, a dotted name, qualified by the imports of its module; of a setting, the one that it
        is another name of.
    parameters: of a function, those that are deprecated.
    fallback: of an alias, what another branch binds, if there is no such target.
    like: of a function, the qualified name of the one that it has its signature from.
    hands_on: of a function, the qualified name of the only one that its body calls.
    makes: of a function, the one that it defines inside and returns; made_by: of a value, the function whose
        result it is.
    bind: of a function in a class: "method", "class" or "static".
    instance: set on instances only, in a method.
    fields: of a dataclass or named tuple, its own ones; None for any other class.
    """

    kind: EntryKind
    target: str = ""
    signatures: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    metaclass: str = ""
    open: bool = False
    gone: bool = False
    deprecated: Deprecation | None = None
    parameters: tuple[DeprecatedParameter, ...] = ()
    like: str = ""
    hands_on: str = ""
    makes: Bound | None = None
    made_by: str = ""
    bind: str = "method"
    instance: bool = False
    fields: list[Field] | None = None
    fallback: Bound | None = None
    members: dict[str, Bound] = field(default_factory=dict)


@dataclass(slots=True)
class ModuleNames:
    """The names of one module, as its statements leave them.

    exported: `__all__`, or None if there is none.
    open: it may have more names.
    gone: an import only raises.
    made_into: the class of which a configuration module becomes an instance.
    """

    name: str
    names: dict[str, Bound] = field(default_factory=dict)
    exported: list[str] | None = None
    open: bool = False
    gone: bool = False
    deprecated: Deprecation | None = None
    made_into: str = ""

    def star(self) -> list[str]:
        """What `from module import *` takes."""
        if self.exported is None:
            return [name for name in self.names if not name.startswith("_")]
        return self.exported


def value() -> Bound:
    return Bound(EntryKind.VALUE)


def alias(target: str) -> Bound:
    return Bound(EntryKind.ALIAS, target=target)
