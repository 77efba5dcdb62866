"""The files that the client should watch: configurations, and files that others import from."""

from __future__ import annotations

from pathlib import PurePosixPath

from lsprotocol import types
from pygls.uris import urlparse

from torchmigrate.baseline.file import NAME as BASELINE
from torchmigrate.config.settings import CONFIG_NAMES
from torchmigrate.evidence.location import FILE
from torchmigrate.server.options import SECTION

_NAMES = (*sorted(CONFIG_NAMES), "setup.cfg", "pixi.toml", "Pipfile", ".gitignore", BASELINE, FILE)
_SUFFIXES = (".py", ".pyi", ".ipynb", ".yaml", ".yml")
_LISTS = (".txt", ".in")  # of requirements, and what they name


def is_relevant(uri: str) -> bool:
    """Whether something in other files may be found, or not be found, after a file has changed."""
    try:
        path = PurePosixPath(urlparse(uri)[2])
    except ValueError:
        return False
    return path.name in _NAMES or path.suffix in (*_SUFFIXES, *_LISTS)


def can_watch(client: types.ClientCapabilities) -> bool:
    """Whether the client watches files for a server."""
    files = client.workspace.did_change_watched_files if client.workspace else None
    return files is not None and bool(files.dynamic_registration)


def watchers(client: types.ClientCapabilities) -> list[types.Registration]:
    """What to register, with a client that takes it: files to watch, and the settings of its user."""
    workspace = client.workspace
    made: list[types.Registration] = []
    if can_watch(client):
        patterns = [f"**/{name}" for name in _NAMES]
        patterns += [f"**/*{suffix}" for suffix in (*_SUFFIXES, *_LISTS)]
        options = types.DidChangeWatchedFilesRegistrationOptions(
            [types.FileSystemWatcher(pattern) for pattern in patterns]
        )
        made.append(types.Registration("watched-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
    settings = workspace.did_change_configuration if workspace else None
    if settings is not None and settings.dynamic_registration:
        section = types.DidChangeConfigurationRegistrationOptions(SECTION)
        made.append(types.Registration("settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, section))
    return made
