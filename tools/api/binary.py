"""What the compiled part of an installed torch has: run by the Python of its environment, 3.6 or newer.

python tools/api/binary.py torch torch.Tensor < CANDIDATES > ANSWERS

CANDIDATES is a JSON object of functions, `torch.add`, and the keywords that are to be tried on each. ANSWERS
is one with `release`, `names` (of every owner) and `keywords` (those that a compiled function takes). Nothing
is imported but torch and Python's own modules, since the releases that are asked are older than this project.

Stubs and docstrings leave names and parameters out, above all those of before torch 1.7. A compiled function
says in its TypeError what it takes, so that no call here ever comes to run.
"""

import json
import re
import sys
import types
import warnings
from typing import Any, Dict, List, Optional, Set, Tuple

import torch

_FORM = re.compile(r"^(?: \* |.*but expected )\((?P<parameters>.*?)\)$", re.M)
_MISSING = re.compile(r"missing \d+ required positional arguments?: (?P<names>.*)")
_WRONG_TYPE = re.compile(r"argument '(?P<name>\w+)'.* must be (?P<type>.*?),? (?:not|but got|found)\b")
_UNEXPECTED = re.compile(r"unexpected keyword argument|takes no keyword arguments")
_MOST_TRIALS = 12  # a call that still fails for want of a parameter after so many says nothing


class _Nothing:
    """Of no type that a compiled function takes."""


def _values() -> Dict[str, Any]:
    """One value of every type that a TypeError names."""
    tensor = torch.ones(2, 2)
    return {
        "Tensor": tensor,
        "int": 1,
        "float": 1.0,
        "Number": 1,
        "bool": True,
        "str": "a",
        "tuple of ints": (1,),
        "tuple of Tensors": (tensor, tensor),
        "torch.dtype": torch.float32,
        "torch.device": torch.device("cpu"),
    }


def _error(function: Any, args: Tuple[Any, ...], keywords: Dict[str, Any]) -> Optional[str]:
    """What a call raises, as text; None: it ran, or failed inside."""
    try:
        function(*args, **keywords)
    except TypeError as error:
        return str(error)
    except Exception:
        return None
    return None


def forms(error: str) -> Set[str]:
    """The parameters in every form of a function that an error lists."""
    found = set()  # type: Set[str]
    for form in _FORM.finditer(error):
        for parameter in form.group("parameters").split(", "):
            words = parameter.partition("=")[0].split()  # `bool copy = False`
            if words and words[-1].isidentifier():
                found.add(words[-1])
    return found


def takes(function: Any, first: Tuple[Any, ...], keyword: str, values: Dict[str, Any]) -> Optional[bool]:
    """Whether a function with a single form takes a keyword; None: it does not say."""
    given = {keyword: _Nothing()}  # type: Dict[str, Any]
    for _ in range(_MOST_TRIALS):
        error = _error(function, first, given)
        if error is None:
            return None
        missing, wrong = _MISSING.search(error), _WRONG_TYPE.search(error)
        if missing:
            names = re.findall(r"\w+", missing.group("names"))
            if not set(names) - set(given):
                return None
            given.update((name, _Nothing()) for name in names if name not in given)
        elif wrong:
            name = wrong.group("name")
            if name == keyword:
                return True
            if wrong.group("type") not in values or not isinstance(given.get(name), _Nothing):
                return None
            given[name] = values[wrong.group("type")]
        elif _UNEXPECTED.search(error):
            return False
        else:
            listed = forms(error)
            return keyword in listed if listed else None
    return None


def keywords_of(name: str, function: Any, candidates: List[str], values: Dict[str, Any]) -> List[str]:
    """The keywords that a compiled function takes, without the object of a method."""
    first = (values["Tensor"],) if name.startswith("torch.Tensor.") else ()
    error = _error(function, first + (_Nothing(),) * 60, {}) or ""
    found = forms(error)
    found.update(
        keyword for keyword in candidates if keyword not in found and takes(function, first, keyword, values)
    )
    return sorted(found - {"self"})


def main() -> None:
    warnings.simplefilter("ignore")
    candidates = json.load(sys.stdin)
    values = _values()
    names, keywords = {}, {}  # type: Dict[str, List[str]], Dict[str, List[str]]
    compiled = (types.BuiltinFunctionType, type(str.join))
    for owner_name in sys.argv[1:]:
        owner = torch  # type: Any
        for part in owner_name.split(".")[1:]:
            owner = getattr(owner, part)
        names[owner_name] = sorted(name for name in dir(owner) if not name.startswith("__"))
        for last in names[owner_name]:
            name = owner_name + "." + last
            function = getattr(owner, last, None)
            if isinstance(function, compiled) and name in candidates:
                keywords[name] = keywords_of(name, function, candidates[name], values)
    release = ".".join(torch.__version__.split(".")[:2])
    json.dump({"release": release, "names": names, "keywords": keywords}, sys.stdout)


if __name__ == "__main__":
    main()
