"""Of which kind an object was, as the recorder writes it: `tensor:float32:2:strided`."""

from __future__ import annotations

from msgspec import Struct

TENSOR, ARRAY, OBJECT, SHAPE = "tensor", "array", "object", "shape"
SAME, OTHER = "same", "other"  # as the shape of the argument before
_NUMBERS = frozenset(["int", "float", "complex"])
_INTEGERS = frozenset(["int", "bool"]).union(
    [f"numpy.{sign}{name}" for sign in ("", "u") for name in "int8 int16 int32 int64 intc longlong".split()]
)
_NONE = "NoneType"
_DIGITS = 3  # of a number of dimensions


class Seen(Struct, frozen=True):
    """One kind of object that was seen at a place.

    what: "tensor", "array" (of NumPy), "import" (a module), "class", "object", or "shape", which says how the
        shapes of two arguments are related.
    dtype: of a tensor, such as "float32"; "" where it is not known, as of subclasses.
    dimensions: how many a tensor or an array has; None: not known.
    layout: of a tensor, such as "strided".
    name: the class of an object, what is imported, the class itself; of a tensor that of a subclass; of a
        shape "same" or "other".
    base: the class of a library that the class of an object is, or is derived from.
    """

    what: str
    dtype: str = ""
    dimensions: int | None = None
    layout: str = ""
    name: str = ""
    base: str = ""

    @property
    def is_none(self) -> bool:
        return self.what == OBJECT and self.name == _NONE

    @property
    def is_number(self) -> bool:
        """Whether it is a number of Python; a truth value is none."""
        return self.what == OBJECT and self.name in _NUMBERS

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer of Python or of NumPy, or a truth value of Python."""
        return self.what == OBJECT and self.name in _INTEGERS

    @property
    def depth(self) -> int | None:
        """How many dimensions a tensor made of it has; None: that is not known."""
        return 0 if self.is_number else self.dimensions


def parse(text: str) -> Seen | None:
    """A kind as it is written; None for what is none of them."""
    what, _, rest = text.partition(":")
    parts = rest.split(":")
    if what == TENSOR and len(parts) in (3, 4):
        dtype, dimensions, layout = parts[:3]
        if not (dimensions.isdecimal() or dimensions == "") or len(dimensions) > _DIGITS:
            return None
        return Seen(
            what, dtype, int(dimensions) if dimensions else None, layout, parts[3] if len(parts) > 3 else ""
        )
    if what == ARRAY and len(parts) == 2:
        known = parts[1].isdecimal() and len(parts[1]) <= _DIGITS
        return Seen(what, parts[0], int(parts[1]) if known else None)
    if what == SHAPE and rest in (SAME, OTHER):
        return Seen(what, name=rest)
    if what in ("import", "class") and len(parts) == 1:
        return Seen(what, name=rest)
    if what == OBJECT and len(parts) in (1, 2):
        return Seen(what, name=parts[0], base=parts[1] if len(parts) > 1 else "")
    return None
