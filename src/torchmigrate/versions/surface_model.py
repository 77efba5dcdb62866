"""What a library offers in one release: the nouns of the API data.

The data is made by `tools/api_data.py` from the sources in the published wheels, which are read and never
imported. A release is a flat mapping of qualified names, as a program would spell them, to entries: modules
(`torch.nn`), what they define (`torch.nn.modules.linear.Linear`), what they re-export (`torch.nn.Linear`, an
alias) and the members that a class defines itself (`torch.nn.modules.linear.Linear.forward`; inherited ones
are found through its bases).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct


class EntryKind(enum.Enum):
    """What a name is."""

    MODULE = "module"
    CLASS = "class"
    FUNCTION = "function"  # method, builtin or operator of the stubs as well
    VALUE = "value"  # property, constant, dtype, instance attribute, or anything else
    ALIAS = "alias"  # another name of `target`


class Status(enum.Enum):
    """Whether a name exists in a release."""

    PRESENT = "present"
    ABSENT = "absent"  # surely: its parent is known whole and lacks it; or it is there and only raises
    UNKNOWN = "unknown"  # outside the data, or its parent has names that cannot be read


class DeprecatedParameter(NamedTuple):
    """A parameter that a function warns about if it is given.

    test: when it warns, as Python: a comparison of the parameter with a literal, `reduce is not None`, or the
        parameter itself or its negation, which are true or false. said: what the library says, as above.
    """

    test: str
    said: str


class ApiEntry(Struct, frozen=True):
    """What a name is in one release.

    target: of an alias, the qualified name that it stands for; it may be of another library. Of a setting
        in a configuration module (a value), the setting that it is another name of.
    signatures: of a function, or of a class for its constructor: Python text without annotations and without
        `self`/`cls`, such as "(input, *, dim=None)"; several for overloads; none if it cannot be read.
    bases: of a class, qualified names, in order; a name of another library (or "?") if it is from elsewhere.
        Of a configuration module, the class that it makes itself an instance of.
    open: a module or class may have more names than are listed (`__getattr__`, a star import of what cannot
        be read, names set in a loop, a base from elsewhere).
    gone: the name exists, but a call only raises, as `torch.symeig` since 2.0: it counts as removed.
    deprecated: what the library itself says about it, its first sentence, and the next where that says what
        to use instead; None: not deprecated.
    warns: a call (of a module, an import; of a value, looking at it) warns that it is deprecated. Else only
    the documentation does.
    parameters: the deprecated ones of those in the signatures.
    unread: nothing in the library reads this setting of a configuration module.
    """

    kind: EntryKind
    target: str = ""
    signatures: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    open: bool = False
    gone: bool = False
    deprecated: str | None = None
    warns: bool = False
    parameters: tuple[DeprecatedParameter, ...] = ()
    unread: bool = False


Release = Mapping[str, ApiEntry]  # everything in one release of one library, by qualified name
