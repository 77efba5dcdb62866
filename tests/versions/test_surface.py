"""The API data: the file format, and questions to it, on invented releases."""

from __future__ import annotations

import gzip

import pytest

from torchmigrate.versions.surface import Surface, surface_of
from torchmigrate.versions.surface_file import (
    SurfaceFile,
    SurfaceFormatError,
    decode,
    encode,
    with_release,
)
from torchmigrate.versions.surface_model import ApiEntry, DeprecatedParameter, EntryKind, Status

PRESENT, ABSENT, UNKNOWN = Status.PRESENT, Status.ABSENT, Status.UNKNOWN


def module(**more):
    return ApiEntry(EntryKind.MODULE, **more)


def cls(*bases, **more):
    return ApiEntry(EntryKind.CLASS, bases=bases, **more)


def function(*signatures, **more):
    return ApiEntry(EntryKind.FUNCTION, signatures=signatures, **more)


def alias(target, **more):
    return ApiEntry(EntryKind.ALIAS, target=target, **more)


VALUE = ApiEntry(EntryKind.VALUE)

FIRST = {
    "torch": module(),
    "torch.add": function("(input, other, *, alpha=1)"),
    "torch.symeig": function("(input, eigenvectors=False, upper=True)"),
    "torch.float": VALUE,
    "torch.nn": module(),
    "torch.nn.Linear": alias("torch.nn.modules.linear.Linear"),
    "torch.nn.Module": alias("torch.nn.modules.module.Module"),
    "torch.nn.modules": module(),
    "torch.nn.modules.linear": module(),
    "torch.nn.modules.linear.Linear": cls(
        "torch.nn.Module", signatures=("(in_features, out_features, bias=True)",)
    ),
    "torch.nn.modules.linear.Linear.forward": function("(input)"),
    "torch.nn.modules.module": module(),
    "torch.nn.modules.module.Module": cls("object", signatures=("()",)),
    "torch.nn.modules.module.Module.forward": function("(*input)"),
    "torch.nn.modules.module.Module.train": function("(mode=True)"),
    "torch.nn.functional": module(),
    "torch.nn.functional.Linear": alias("torch.nn.Linear"),
    "torch.nn.functional.np": alias("numpy"),
    "torch.utils": module(open=True),
    "torch.utils.listed": VALUE,
    "torch._six": module(),
    "torch._six.inf": VALUE,
}
SECOND = {
    **{name: entry for name, entry in FIRST.items() if not name.startswith("torch._six")},
    "torch.symeig": function(
        "(input, eigenvectors=False)", deprecated="torch.symeig is deprecated.\tSo:\n1\\2"
    ),
    "torch.linalg": module(),
    "torch.linalg.eigh": function("(A, UPLO='L')", "(A)"),
}
THIRD = {
    **SECOND,
    "torch.symeig": function("(input, eigenvectors=False)", gone=True),
    "torch._six": module(),
    "torch._six.inf": VALUE,
}
RELEASES = [((1, 0), FIRST), ((1, 9), SECOND), ((2, 0), THIRD)]


@pytest.fixture(scope="module")
def torch():
    return Surface(encode("torch", RELEASES))


def surface(**releases):
    """A library `m` with one release."""
    return Surface(
        encode(
            "m", [((1, 0), {"m": module(), **{f"m.{k.replace('__', '.')}": v for k, v in releases.items()}})]
        )
    )


class TestFile:
    def test_everything_comes_back(self):
        assert decode(encode("torch", RELEASES)) == RELEASES

    def test_same_bytes_whatever_the_order(self):
        turned = [(version, dict(reversed(release.items()))) for version, release in RELEASES]
        assert encode("torch", turned) == encode("torch", RELEASES)

    def test_a_release_is_added_without_the_sources_of_the_others(self):
        assert with_release(encode("torch", RELEASES[:2]), *RELEASES[2]) == encode("torch", RELEASES)

    def test_a_release_in_between(self):
        data = encode("torch", [RELEASES[0], RELEASES[2]])
        assert with_release(data, *RELEASES[1]) == encode("torch", RELEASES)

    def test_a_release_is_replaced(self):
        data = encode("torch", [RELEASES[0], ((1, 9), FIRST), RELEASES[2]])
        assert with_release(data, *RELEASES[1]) == encode("torch", RELEASES)

    @pytest.mark.parametrize(
        "text",
        ["", "a\tb", "a\nb\r\n", "\\n", "\\", "\x1d\x1e\\s", "\x1f\\u", "a # > = < : é 日本", "\x85\u2028"],
    )
    def test_any_text_survives(self, text):
        entry = ApiEntry(EntryKind.CLASS, "t", (text, "x"), (text,), True, True, text)
        assert decode(encode("m", [((0, 1), {"m.x": entry})])) == [((0, 1), {"m.x": entry})]

    def test_more_than_one_block(self):
        release = {"m": module()}
        for number in range(9000):
            release[f"m.module_{number}"] = module()
            release[f"m.module_{number}.thing"] = function(f"(argument_{number})")
        data = encode("m", [((1, 0), release)])
        assert gzip.decompress(data).count(b"\n") > 9000
        assert decode(data) == [((1, 0), release)]
        file = SurfaceFile(data)
        assert all(
            file.history(f"m.module_{number}", "thing")[0][1].signatures == (f"(argument_{number})",)
            for number in range(0, 9000, 100)
        )
        assert file.members("m.module_") == file.members("a") == file.members("z") == {}
        assert sum(1 for _ in file.owners_with("thing")) == 9000

    def test_an_unchanged_entry_is_written_once(self):
        data = encode("torch", RELEASES)
        assert SurfaceFile(data).history("torch", "add") == ((0, FIRST["torch.add"]),)
        assert [start for start, _ in SurfaceFile(data).history("torch._six", "inf")] == [0, 1, 2]

    @pytest.mark.parametrize(
        "data", [b"", b"text", gzip.compress(b"text", mtime=0), gzip.compress(b"\xff", mtime=0)]
    )
    def test_other_bytes(self, data):
        with pytest.raises(SurfaceFormatError):
            SurfaceFile(data)

    def test_releases_out_of_order(self):
        with pytest.raises(ValueError, match="in order"):
            encode("torch", [RELEASES[1], RELEASES[0]])

    def test_a_name_of_another_library(self):
        with pytest.raises(ValueError, match="torchvision"):
            encode("torch", [((1, 0), {"torchvision.ops": module()})])


class TestStatus:
    @pytest.mark.parametrize(
        ("name", "statuses"),
        [
            ("torch", [PRESENT, PRESENT, PRESENT]),
            ("torch.add", [PRESENT, PRESENT, PRESENT]),
            ("torch.linalg", [ABSENT, PRESENT, PRESENT]),
            ("torch.linalg.eigh", [ABSENT, PRESENT, PRESENT]),
            ("torch.linalg.nothing.at.all", [ABSENT, ABSENT, ABSENT]),
            ("torch._six.inf", [PRESENT, ABSENT, PRESENT]),
            ("torch.symeig", [PRESENT, PRESENT, ABSENT]),
            ("torch.nn.Linear", [PRESENT, PRESENT, PRESENT]),
            ("torch.nn.Linear.forward", [PRESENT, PRESENT, PRESENT]),
            ("torch.nn.Linear.train", [PRESENT, PRESENT, PRESENT]),
            ("torch.nn.functional.Linear.train", [PRESENT, PRESENT, PRESENT]),
            ("torch.nn.Linear.fit", [ABSENT, ABSENT, ABSENT]),
            ("torch.nn.Linear.__call__", [UNKNOWN, UNKNOWN, UNKNOWN]),
            ("torch.nn.Linear.mro", [UNKNOWN, UNKNOWN, UNKNOWN]),
            ("torch.nn.__path__", [UNKNOWN, UNKNOWN, UNKNOWN]),
            ("torch.add.out", [UNKNOWN, UNKNOWN, UNKNOWN]),
            ("torch.float.itemsize", [UNKNOWN, UNKNOWN, UNKNOWN]),
            ("torch.nn.functional.np", [PRESENT, PRESENT, PRESENT]),
            ("torch.nn.functional.np.zeros", [UNKNOWN, UNKNOWN, UNKNOWN]),
            ("torch.utils.listed", [PRESENT, PRESENT, PRESENT]),
            ("torch.utils.unlisted", [UNKNOWN, UNKNOWN, UNKNOWN]),
            ("torch.utils.unlisted.thing", [UNKNOWN, UNKNOWN, UNKNOWN]),
            ("torch.ops.aten.add", [UNKNOWN, UNKNOWN, UNKNOWN]),
            ("torch.classes.my.Thing", [UNKNOWN, UNKNOWN, UNKNOWN]),
            ("torch._C", [UNKNOWN, UNKNOWN, UNKNOWN]),
            ("torch._C._nn.gelu", [UNKNOWN, UNKNOWN, UNKNOWN]),
            ("numpy.add", [UNKNOWN, UNKNOWN, UNKNOWN]),
            ("torchvision", [UNKNOWN, UNKNOWN, UNKNOWN]),
        ],
    )
    def test_status(self, torch, name, statuses):
        assert [torch.status(name, version) for version, _ in RELEASES] == statuses

    def test_other_versions(self, torch):
        assert torch.versions == ((1, 0), (1, 9), (2, 0))
        assert torch.status("torch.linalg", (1, 8)) is ABSENT
        assert torch.status("torch.symeig", (1, 13)) is PRESENT
        assert torch.status("torch.symeig", (2, 7)) is ABSENT
        assert torch.status("torch.add", (0, 4)) is UNKNOWN
        assert torch.entry("torch.add", (0, 4)) is None

    def test_a_base_from_elsewhere(self):
        data = surface(A=cls("numpy.ndarray"), B=cls("m.A"), C=cls("m.missing"), B__here=VALUE)
        assert data.status("m.A.shape", (1, 0)) is UNKNOWN
        assert data.status("m.B.shape", (1, 0)) is UNKNOWN
        assert data.status("m.C.shape", (1, 0)) is UNKNOWN
        assert data.status("m.B.here", (1, 0)) is PRESENT

    def test_an_open_base(self):
        data = surface(A=cls(open=True), B=cls("m.A"), A__x=VALUE)
        assert data.status("m.B.x", (1, 0)) is PRESENT
        assert data.status("m.B.y", (1, 0)) is UNKNOWN

    def test_names_that_come_from_compiled_code(self):
        data = Surface(
            encode(
                "torch",
                [
                    (
                        (1, 0),
                        {
                            "torch": module(),
                            "torch._C": module(),
                            "torch._C.TensorBase": cls(),
                            "torch._C.TensorBase.add": function("(other)"),
                            "torch.Tensor": cls("torch._C.TensorBase"),
                            "torch.Size": alias("torch._C.Size"),
                            "torch.nn": module(),
                            "torch.nn._C": alias("torch._C"),
                        },
                    )
                ],
            )
        )
        assert data.status("torch.Tensor.add", (1, 0)) is PRESENT
        assert data.status("torch.Tensor.symeig", (1, 0)) is ABSENT
        assert data.status("torch.Size", (1, 0)) is PRESENT
        assert data.status("torch.Size.numel", (1, 0)) is UNKNOWN
        assert data.status("torch.nn._C.anything", (1, 0)) is UNKNOWN

    def test_what_is_listed_in_a_module_that_is_not(self):
        data = surface(
            a=module(open=True), a__hidden__C=cls(), a__hidden__C__f=VALUE, C=alias("m.a.hidden.C")
        )
        assert data.status("m.a.hidden", (1, 0)) is UNKNOWN
        assert data.status("m.a.hidden.C.f", (1, 0)) is PRESENT
        assert data.status("m.C.f", (1, 0)) is PRESENT
        assert data.status("m.C.g", (1, 0)) is ABSENT

    def test_a_function_with_the_name_of_its_module(self):
        data = surface(p=module(), p__f=alias("m.p.f.f"), p__f__f=function("(x)"), p__f__helper=VALUE)
        assert data.entry("m.p.f", (1, 0)).signatures == ("(x)",)
        assert data.status("m.p.f.helper", (1, 0)) is PRESENT
        assert data.status("m.p.f.nothing", (1, 0)) is UNKNOWN

    def test_cycles_end(self):
        data = surface(
            a=alias("m.b"), b=alias("m.a"), c=alias("m.c.d"), D=cls("m.E"), E=cls("m.D", "m.E.F"), E__x=VALUE
        )
        assert [data.status(f"m.{name}", (1, 0)) for name in "abc"] == [PRESENT] * 3
        assert data.status("m.c.e", (1, 0)) is UNKNOWN
        assert data.status("m.D.x", (1, 0)) is PRESENT
        assert data.status("m.D.y", (1, 0)) is UNKNOWN
        assert data.members("m.D", (1, 0)) == {"x"}


class TestEntry:
    def test_behind_an_alias(self, torch):
        entry = torch.entry("torch.nn.Linear", (1, 0))
        assert entry.signatures == ("(in_features, out_features, bias=True)",)
        assert torch.definition("torch.nn.Linear", (1, 0)) == "torch.nn.modules.linear.Linear"

    def test_the_nearest_of_inherited_ones(self, torch):
        assert torch.entry("torch.nn.Linear.forward", (1, 0)).signatures == ("(input)",)
        assert torch.entry("torch.nn.Linear.train", (1, 0)).signatures == ("(mode=True)",)
        assert torch.definition("torch.nn.Linear.train", (2, 0)) == "torch.nn.modules.module.Module.train"

    def test_through_an_alias_in_the_middle(self):
        data = surface(old=alias("m.new"), new=module(), new__F=function("(x)"))
        assert data.entry("m.old.F", (1, 0)).signatures == ("(x)",)
        assert data.status("m.old.G", (1, 0)) is ABSENT

    def test_of_another_library(self, torch):
        assert torch.entry("torch.nn.functional.np", (1, 0)) == alias("numpy")

    def test_gone_and_deprecated(self, torch):
        assert torch.entry("torch.symeig", (1, 9)).deprecated == "torch.symeig is deprecated.\tSo:\n1\\2"
        assert torch.entry("torch.symeig", (2, 0)).gone

    def test_what_is_said_of_it(self):
        parameters = (DeprecatedParameter("a is not None", "`a` is\tdeprecated"),)
        entry = function("(a=None)", deprecated="Use b.", warns=True, parameters=parameters)
        data = surface(warned=entry, written=function("()", deprecated="Old."))
        assert data.entry("m.warned", (1, 0)) == entry
        assert not data.entry("m.written", (1, 0)).warns

    def test_marks_of_the_alias_itself(self):
        data = surface(
            new=function("(x)"), old=alias("m.new", deprecated="Use new."), dead=alias("m.new", gone=True)
        )
        assert data.entry("m.old", (1, 0)) == function("(x)", deprecated="Use new.")
        assert data.entry("m.new", (1, 0)).deprecated is None
        assert data.status("m.dead", (1, 0)) is ABSENT


class TestConfigurationModules:
    def test_what_their_class_has(self):
        data = surface(
            config=module(bases=("m.base.ConfigModule",)),
            config__verbose=ApiEntry(EntryKind.VALUE, unread=True),
            base=module(),
            base__ConfigModule=cls(open=True),
            base__ConfigModule__patch=function("(**changes)"),
        )
        assert data.entry("m.config.patch", (1, 0)).kind is EntryKind.FUNCTION
        assert data.entry("m.config.verbose", (1, 0)).unread
        assert data.status("m.config.nothing", (1, 0)) is ABSENT


class TestHistory:
    def test_spans(self, torch):
        assert torch.spans("torch.add") == (((1, 0), None),)
        assert torch.spans("torch.linalg.eigh") == (((1, 9), None),)
        assert torch.spans("torch.symeig") == (((1, 0), (2, 0)),)
        assert torch.spans("torch._six.inf") == (((1, 0), (1, 9)), ((2, 0), None))
        assert torch.spans("torch.nothing") == ()
        assert torch.spans("torch.utils.unlisted") == ()

    def test_a_release_in_which_nobody_knows(self):
        data = Surface(
            encode(
                "m",
                [
                    ((1, 0), {"m": module(), "m.x": VALUE}),
                    ((1, 1), {"m": module(open=True)}),
                    ((1, 2), {"m": module(), "m.x": VALUE}),
                ],
            )
        )
        assert data.spans("m.x") == (((1, 0), None),)

    def test_known(self, torch):
        assert torch.known("torch.symeig")
        assert torch.known("torch._six.inf")
        assert not torch.known("torch.nothing")
        assert not torch.known("torch.nn.Linear.nothing")


class TestNeighbours:
    def test_names_ending(self, torch):
        # torch.nn.functional only uses Linear.
        assert torch.names_ending("Linear", (2, 0)) == ["torch.nn.Linear", "torch.nn.modules.linear.Linear"]
        assert torch.names_ending("eigh", (2, 0)) == ["torch.linalg.eigh"]
        assert torch.names_ending("eigh", (1, 0)) == []
        assert torch.names_ending("symeig", (2, 0)) == []
        assert torch.names_ending("inf", (1, 0)) == []
        assert torch.names_ending("eig", (2, 0)) == []

    def test_members(self, torch):
        assert torch.members("torch.nn.Linear", (1, 0)) == {"forward", "train"}
        assert torch.members("torch.linalg", (1, 9)) == {"eigh"}
        assert torch.members("torch.linalg", (1, 0)) == set()
        assert torch.members("torch.add", (1, 0)) == set()


def test_no_data():
    assert surface_of("numpy.zeros") is None
    assert surface_of("") is None
    assert surface_of("../api/torch") is None
