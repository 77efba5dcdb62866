"""The list of repositories in its three forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmigrate.fleet.model import FleetError, Repository
from torchmigrate.fleet.repositories import read_repositories, shown_address

TEXT = """\
# the fleet
https://github.com/acme/vision.git  v2.0  team-vision   # a tag
git@gitlab.acme.com:ml/speech
./local

"""
CSV = """\
address,owner,branch
https://github.com/acme/vision.git,team-vision,v2.0
git@gitlab.acme.com:ml/speech,,
"./local",,
"""
WITHOUT_REVISION = """\
https://github.com/acme/vision.git v2.0 team-vision
git@gitlab.acme.com:ml/speech -
./local
"""
YAML = """\
repositories:
  - address: https://github.com/acme/vision.git
    revision: v2.0
    owner: team-vision
  - git@gitlab.acme.com:ml/speech
  - path: local
"""


@pytest.mark.parametrize(
    ("name", "text"), [("a.txt", TEXT), ("b.txt", WITHOUT_REVISION), ("a.csv", CSV), ("a.yaml", YAML)]
)
def test_forms(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert read_repositories(path) == [
        Repository("acme/vision", "https://github.com/acme/vision.git", "v2.0", "team-vision"),
        Repository("ml/speech", "git@gitlab.acme.com:ml/speech"),
        Repository("local", str(tmp_path / "local"), is_directory=True),
    ]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.txt", "", "lists no repository"),
        ("a.txt", "a b c d\n", ":1: more than an address, a revision and an owner; use CSV for spaces"),
        ("a.txt", "a\n-x\n", ":2: an address or a revision must not begin with `-`"),
        ("a.txt", "a --upload-pack=x\n", ":1: an address or a revision must not begin with `-`"),
        ("a.csv", "address,name\nx,a--b\ny,a/b\n", ":3: a/b is listed twice"),
        ("a.csv", "address,name\nx,tool\ny,Tool\n", ":3: Tool is listed twice"),
        ("a.txt", "a\na\n", ":2: a is listed twice; give the entries a `name` if they differ"),
        ("a.txt", "a\x07\n", ":1: a control character in the address"),
        (
            "a.csv",
            "x,y\n",
            ":1: the first row must have the titles of the columns: address, revision, owner, name",
        ),
        ("a.csv", "address,url\n", ":1: two columns are called 'address'"),
        ("a.csv", 'address\n"a\n', ":2: not CSV: unexpected end of data"),
        ("a.csv", "address,name\na,../x\n", ":2: the name '../x' has other characters"),
        ("a.yaml", "a: [", ":2: not YAML"),
        ("a.yaml", "a: b\n", ": must be a list of repositories"),
        ("a.yaml", "- 1\n", ": entry 1: must be an address, or a mapping with `address`"),
        ("a.yaml", "- adress: x\n", ": entry 1: unknown key 'adress'; known: address, revision, owner, name"),
        ("a.yaml", "- owner: x\n", ": an entry without an address"),
        ("a.yaml", "- address: [x]\n", ": entry 1: `address` must be text"),
    ],
)
def test_what_cannot_be_used_is_said_with_its_place(
    name: str, text: str, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    with pytest.raises(FleetError) as error:
        read_repositories(path)
    assert str(error.value).startswith(str(path)) and reason in str(error.value)
    assert "\n" not in str(error.value)


def test_names_are_files_below_a_directory_and_differ(tmp_path: Path) -> None:
    addresses = {
        "https://h/a/b": "a/b",
        "https://other/a/b": "a/b-2",
        "https://h/a/b v2": "a/b-3",
        "https://h/x/../..": "x",
        "https://h/%2e%2e/éü": "2e-2e",
        "/srv/git/..hidden": "hidden",
        "ssh://git@h:22/team/sub/tool.git/": "sub/tool",
    }
    path = tmp_path / "list"
    path.write_text("\n".join(addresses), "utf-8")
    assert [each.name for each in read_repositories(path)] == list(addresses.values())


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://me:secret@host/a/b", "https://host/a/b"),
        ("https://token@host:8443/a/b?key=1#x", "https://host:8443/a/b"),
        ("https://[::1]:80/a", "https://[::1]:80/a"),
        ("https://me:pa@ss@host/a", "https://host/a"),
        ("https://host:port/a", "https://"),
        ("git@host:a/b", "git@host:a/b"),
        ("/srv/a", "/srv/a"),
    ],
)
def test_credentials_are_not_shown(address: str, shown: str) -> None:
    assert shown_address(address) == shown
