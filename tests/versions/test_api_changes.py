"""What changed between two releases, as text, on invented ones."""

from __future__ import annotations

from api.changes import changes, render

from torchmigrate.versions.surface import Surface
from torchmigrate.versions.surface_file import encode
from torchmigrate.versions.surface_model import ApiEntry, DeprecatedParameter, EntryKind

MODULE = ApiEntry(EntryKind.MODULE)
VALUE = ApiEntry(EntryKind.VALUE)


def function(*signatures, **more):
    return ApiEntry(EntryKind.FUNCTION, signatures=signatures, **more)


def cls(*bases, **more):
    return ApiEntry(EntryKind.CLASS, bases=bases, **more)


def alias(target):
    return ApiEntry(EntryKind.ALIAS, target=target)


def text(old, new):
    old, new = ({"m": MODULE, **{f"m.{name}": entry for name, entry in part.items()}} for part in (old, new))
    data = Surface(encode("m", [((0, 9), old), ((0, 10), new)]))
    header, *lines = render("m", (0, 9), (0, 10), changes(data, (0, 9), (0, 10))).splitlines()
    assert header == "m 0.9 -> 0.10"
    return [line for line in lines if line]


def test_no_changes():
    assert text({"f": function("(x)")}, {"f": function("(x)")}) == ["No changes."]


def test_added_and_removed():
    assert text({"f": function("(x)"), "c": VALUE}, {"g": function("(x)", "(y)"), "h": function()}) == [
        "Removed (2)",
        "  m",
        "    c  [value]",
        "    f(x)",
        "Added (2)",
        "  m",
        "    g(x) or (y)",
        "    h(?)",
    ]


def test_what_only_raises_is_removed():
    assert text({"f": function("(x)")}, {"f": function("(x)", gone=True)}) == [
        "Removed (1)",
        "  m",
        "    f(x)",
    ]


def test_deprecated_parameters():
    old = DeprecatedParameter("a is not None", "`a` is deprecated")
    new = DeprecatedParameter("b", "b is deprecated")
    assert text(
        {"f": function("(a=None, b=False)", parameters=(old,))},
        {"f": function("(a=None, b=False)", parameters=(old, new))},
    ) == ["Parameters (1)", "  m", "    f: b: b is deprecated"]


def test_settings():
    module = ApiEntry(EntryKind.MODULE, bases=("m.ConfigModule",))
    warned = ApiEntry(EntryKind.VALUE, deprecated="does not do anything", warns=True)
    assert text(
        {"_config": module, "_config.old": VALUE, "_config.gone": VALUE},
        {"_config": module, "_config.old": warned, "_config.new": VALUE},
    ) == [
        "Removed (1)",
        "  m._config",
        "    gone  [value]",
        "Newly deprecated (1)",
        "  m._config",
        "    old: does not do anything",
    ]


def test_of_a_module_or_class_only_itself():
    part = {"a": MODULE, "a.C": cls(signatures=("()",)), "a.C.f": function("()")}
    assert text({**part, "b": MODULE}, {"b": MODULE, "b.D": cls(), "b.D.g": function()}) == [
        "Removed (1)",
        "  m",
        "    a  [module]",
        "Added (1)",
        "  m.b",
        "    D(?)",
    ]


def test_one_thing_under_its_shortest_name():
    new = {
        "a": MODULE,
        "a._impl": MODULE,
        "a._impl.f": function("(x)"),
        "f": alias("m.a.f"),
        "a.f": alias("m.a._impl.f"),
    }
    assert text({"a": MODULE}, new) == ["Added (1)", "  m", "    f(x)"]


def test_members_of_a_class_with_a_private_definition():
    def release(*names):
        members = {f"_c.Base.{name}": function("()") for name in names}
        return {
            "_c": MODULE,
            "_c.Base": cls(),
            "Tensor": cls("m._c.Base"),
            "Other": cls("m.Tensor"),
            **members,
        }

    assert text(release("add"), release("mul")) == [
        "Removed (1)",
        "  m.Tensor",
        "    add()",
        "Added (1)",
        "  m.Tensor",
        "    mul()",
    ]


def test_imported_names_do_not_count():
    old = {"a": MODULE, "a.f": function(), "b": MODULE, "b.f": alias("m.a.f"), "b.np": alias("numpy")}
    assert text(old, {"a": MODULE, "a.f": function(), "b": MODULE}) == ["No changes."]


def test_moved():
    old = {"f": function("(x)"), "a": MODULE}
    assert text(old, {"a": MODULE, "a.f": function("(x)")}) == [
        "Moved (1)",
        "  m",
        "    f -> m.a.f",
        "Added (1)",
        "  m.a",
        "    f(x)",
    ]


def test_another_signature_is_not_moved():
    lines = text({"f": function("(x)"), "a": MODULE}, {"a": MODULE, "a.f": function("(x, y)")})
    assert "Removed (1)" in lines
    assert "Moved (1)" not in lines


def test_a_second_name_that_is_left():
    old = {"a": MODULE, "a.f": function("(x)"), "f": alias("m.a.f")}
    assert text(old, {"a": MODULE, "f": function("(x)")}) == ["Moved (1)", "  m.a", "    f -> m.f"]


def test_deprecated():
    new = {"f": function("(x)", deprecated="Use g"), "g": function("(x)", deprecated="as before")}
    old = {"f": function("(x)"), "g": function("(x)", deprecated="before")}
    assert text(old, new) == ["Newly deprecated (1)", "  m", "    f: Use g"]


def test_parameters():
    old = {"f": function("(a, b, c=1, *, d=None, e=2, **more)")}
    new = {"f": function("(b, a, *, c=1, d=3, g)")}
    assert text(old, new) == [
        "Parameters (1)",
        "  m",
        "    f: - e=2 (keyword-only)",
        "    f: - **more",
        "    f: c is keyword-only",
        "    f: a moved by +1 from place 1",
        "    f: b moved by -1 from place 2",
        "    f: d: default None -> 3",
        "    f: + g (keyword-only)",
    ]


def test_parameters_that_moved_together():
    assert text({"f": function("(a, b, c, d, e)")}, {"f": function("(a, new, b, c, e)")})[2:] == [
        "    f: - d",
        "    f: b to c moved by +1 from place 2",
        "    f: + new",
    ]


def test_parameters_of_overloads():
    assert text({"f": function("(a)", "(b)")}, {"f": function("(a)", "(b, c)")}) == [
        "Parameters (1)",
        "  m",
        "    f: no longer (b)",
        "    f: now also (b, c)",
    ]


def test_parameters_that_cannot_be_read():
    assert text({"f": function()}, {"f": function("(a)")}) == ["No changes."]
    assert text({"f": function("(a, ...)")}, {"f": function("(a)")})[2:] == [
        "    f: no longer (a, ...)",
        "    f: now also (a)",
    ]


def test_open_modules():
    old = {"a": MODULE, "a.f": function("(x)")}
    new = {"a": ApiEntry(EntryKind.MODULE, open=True)}
    assert text(old, new) == [
        "May have gone: their module or class has names that cannot be read (1)",
        "  m.a",
        "    f",
    ]
