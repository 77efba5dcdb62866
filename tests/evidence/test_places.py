"""The recorder's own parts that a run on this Python does not show."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from torchmigrate.evidence.inject import torchmigrate_recorder as recorder
from torchmigrate.evidence.recording import INJECTED, recorded_command

CODE = dedent("""\
    # é
    é = "é"; a.add_(a.add_(1)).add_(b.norm()) ; (c
      .norm())
    x = {a.norm(): b.norm(), **c.norm()}; f(*a.norm(), k=b.norm())
    y = [i.norm() for i in z.norm() if i.norm()] if a.norm() else b \\
        .norm
    class C(a.norm, metaclass=b.norm):
        def f(self, x: a.norm = b.norm()) -> c.norm:
            "a.norm()"  # b.norm()
            return super().norm() + (yield self.norm).norm
    del a.norm
    a.norm = b.norm.norm
    """)


def places(text: str, *, by_tokens: bool) -> list[tuple[str, int, int, str, str]]:
    data = text.encode()
    tree = ast.parse(data)
    tokens = {}
    names = {"norm", "add_"}
    if by_tokens:
        tokens = recorder._positions_by_tokens(tree, data, names)
        for node in ast.walk(tree):
            if hasattr(node, "end_col_offset"):
                del node.end_col_offset
    found = []

    def new(line: int, column: int, name: str, slot: str) -> int:
        found.append(
            (text.splitlines()[line - 1].encode()[column:].decode()[: len(name)], line, column, name, slot)
        )
        return len(found)

    recorder._Places(names, tokens, new).tree(tree)
    return found


def test_columns_without_ends_of_expressions() -> None:
    """As before Python 3.8, where they come from the tokens."""
    found = places(CODE, by_tokens=False)
    assert all(text == name for text, _, _, name, _ in found)
    assert len({place[1:3] for place in found if place[4] == "receiver"}) == 24
    assert places(CODE, by_tokens=True) == found


OPERATIONS = (
    "a / b / c.d; a // (b - f(c)); 1 / x; x / 2.0; x / 2; x[a]; x[:, a, 0] = y[1 - a, b + 1]; a + b\n"
)


def test_operators_are_at_their_right_operands_and_indices_at_themselves() -> None:
    found = []
    names = {"__truediv__", "__floordiv__", "__sub__", "__getitem__"}
    tree = ast.parse(OPERATIONS)
    recorder._Places(names, {}, lambda *place: found.append(place) or 0).tree(tree)
    assert sorted((OPERATIONS[column], name, slot) for _, column, name, slot in found) == sorted([
        ("b", "/", "0"), ("b", "/", "1"), ("c", "/", "0"), ("c", "/", "1"), ("b", "//", "0"), ("b", "//", "1"),
        ("f", "-", "0"), ("f", "-", "1"), ("2", "/", "0"), ("a", "[", "0"), ("a", "[", "0"), ("1", "[", "0"),
        ("a", "-", "1"),
    ])  # fmt: skip
    assert len({place[:3] for place in found}) == len(found) - 4
    compile(tree, "example.py", "exec")


@pytest.mark.parametrize("name", ["sitecustomize.py", "run_script.py", "torchmigrate_recorder.py"])
def test_old_pythons_can_read_it(name: str) -> None:
    ast.parse((INJECTED / name).read_text(encoding="utf-8"), feature_version=(3, 6))


def test_annotations_and_patterns_stay_as_they_are() -> None:
    text = dedent("""\
        from __future__ import annotations
        def f(x: torch.norm = None) -> torch.norm:
            y: torch.norm = x
            match x:
                case torch.norm:
                    return y
        """)
    tree = ast.parse(text)
    assert recorder._Places({"norm"}, {}, lambda *place: 0).tree(tree) == 0
    compile(tree, "example.py", "exec")


@pytest.mark.parametrize(
    ("command", "number"),
    [
        (["python", "train.py", "x.py"], 1),
        (["/usr/bin/python3.11", "-u", "-W", "error", "train.py"], 4),
        (["python", "-m", "train", "x.py"], None),
        (["python", "-c", "pass", "x.py"], None),
        (["python", "-"], None),
        (["python"], None),
        (["pytest", "train.py"], None),
        (["ipython", "train.py"], None),
    ],
)
def test_which_script_a_command_runs(command: list[str], number: int | None) -> None:
    own = str(INJECTED / "run_script.py")
    assert recorded_command(command) == (
        command if number is None else [*command[:number], own, *command[number:]]
    )


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("torch.qr is deprecated", "torch.qr is deprecated"),
        ("cannot read '/home/me/x.pt' of 12 bytes", "cannot read _ of _ bytes"),
        ("size (torch.Size([3, 4])) of input", "size (torch.Size(_)) of input"),
        ("old (Triggered internally at /a/b.cpp:3.)", "old"),
        ("a\nb", "a b"),
    ],
)
def test_warnings_are_kept_without_what_is_the_user_s(text: str, kept: str) -> None:
    assert recorder._without_values(text) == kept
