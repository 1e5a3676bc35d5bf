"""Where things lie, for every kind of start."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.paths import Paths, PathsError, UsualPaths, find_paths, prepare, resolve
from gateway.operate.context import load_all

HOME = Path("/h/ada")


def test_without_any_variable_the_xdg_defaults_hold() -> None:
    assert resolve({}, HOME) == Paths(
        config_file=HOME / ".config/outspoken/outspoken.toml",
        config_named=False,
        state_dir=HOME / ".local/state/outspoken",
        database=HOME / ".local/state/outspoken/outspoken.db",
        workspaces=HOME / ".local/state/outspoken/workspaces",
        cache_dir=HOME / ".cache/outspoken",
        runtime_dir=HOME / ".local/state/outspoken/run",
        log_dir=HOME / ".local/state/outspoken/logs",
    )


def test_xdg_variables_are_honoured_and_relative_ones_ignored() -> None:
    paths = resolve({"XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/run/user/7", "XDG_CONFIG_HOME": "not/absolute"}, HOME)
    assert paths.state_dir == Path("/s/outspoken")
    assert paths.log_dir == Path("/s/outspoken/logs")
    assert paths.runtime_dir == Path("/run/user/7/outspoken")
    assert paths.config_file == HOME / ".config/outspoken/outspoken.toml"


def test_the_directories_of_systemd_win_over_xdg_and_the_first_of_several_is_meant() -> None:
    paths = resolve(
        {
            "XDG_STATE_HOME": "/s",
            "STATE_DIRECTORY": "/var/lib/outspoken:/var/lib/other",
            "CONFIGURATION_DIRECTORY": "/etc/outspoken",
            "RUNTIME_DIRECTORY": "/run/outspoken",
            "CACHE_DIRECTORY": "/var/cache/outspoken",
            "LOGS_DIRECTORY": "/var/log/outspoken",
        },
        HOME,
    )
    assert paths.state_dir == Path("/var/lib/outspoken")
    assert paths.database == Path("/var/lib/outspoken/outspoken.db")
    assert paths.config_file == Path("/etc/outspoken/outspoken.toml")
    assert paths.runtime_dir == Path("/run/outspoken")
    assert paths.cache_dir == Path("/var/cache/outspoken")
    assert paths.log_dir == Path("/var/log/outspoken")


@given(
    st.dictionaries(
        st.sampled_from(["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "STATE_DIRECTORY"]),
        st.sampled_from(["/a", "/b:/c", "", "relative"]),
    )
)
def test_outspoken_home_wins_over_everything_and_holds_everything(env: dict[str, str]) -> None:
    paths = resolve({**env, "OUTSPOKEN_HOME": "/o"}, HOME)
    places = (
        paths.config_file,
        paths.state_dir,
        paths.database,
        paths.workspaces,
        paths.cache_dir,
        paths.runtime_dir,
        paths.log_dir,
    )
    assert all(place.is_relative_to("/o") for place in places)
    assert resolve(env, HOME) == resolve({**env, "OUTSPOKEN_HOME": " "}, HOME)
    assert all(place.is_absolute() for place in (resolve(env, HOME).state_dir, resolve(env, HOME).runtime_dir))


def test_a_named_configuration_file_is_used_and_must_exist() -> None:
    paths = resolve({"OUTSPOKEN_HOME": "/o", "OUTSPOKEN_CONFIG": "~/mine.toml"}, HOME)
    assert paths.config_file == HOME / "mine.toml"
    assert paths.config_named


def test_a_relative_home_is_relative_to_the_working_directory_or_refused_in_words() -> None:
    assert resolve({"OUTSPOKEN_HOME": "here"}, HOME, cwd=Path("/w")).state_dir == Path("/w/here")
    with pytest.raises(PathsError, match="OUTSPOKEN_HOME is here, a relative path"):
        resolve({"OUTSPOKEN_HOME": "here"}, HOME)


def test_other_systems_bring_their_own_directories() -> None:
    usual = UsualPaths(Path("/L/config"), Path("/L/state"), Path("/L/cache"), Path("/L/logs"))
    paths = resolve({}, HOME, usual=usual)
    assert (paths.config_file, paths.state_dir, paths.log_dir) == (
        Path("/L/config/outspoken.toml"),
        Path("/L/state"),
        Path("/L/logs"),
    )


def test_the_places_of_this_process_take_the_home_that_the_environment_names(tmp_path: Path) -> None:
    assert find_paths({"HOME": str(tmp_path), "OUTSPOKEN_HOME": "~/o"}).state_dir == tmp_path / "o"


def test_prepare_makes_private_directories_and_may_be_called_again(tmp_path: Path) -> None:
    paths = resolve({"OUTSPOKEN_HOME": str(tmp_path / "new" / "place")}, HOME)
    prepare(paths)
    prepare(paths)
    for directory in (paths.state_dir, paths.workspaces, paths.runtime_dir):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert not [entry for entry in directory.iterdir() if entry.is_file()]


def test_a_state_directory_that_cannot_be_made_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    paths = resolve({"OUTSPOKEN_HOME": str(tmp_path / "file" / "below")}, HOME)
    with pytest.raises(PathsError) as told:
        prepare(paths)
    words = str(told.value)
    assert words.startswith(f"{paths.state_dir}, the state directory, cannot be written: not a directory.")
    assert "OUTSPOKEN_HOME=" in words


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="there is no /proc here")
def test_a_state_directory_that_exists_and_cannot_be_written_is_told_in_words() -> None:
    with pytest.raises(PathsError, match=r"^/proc, the state directory, cannot be written"):  # not even by root
        prepare(Paths(Path("/c"), False, *(Path("/proc"),) * 6))


def test_where_the_working_directory_is_gone_it_matters_no_more_than_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade may have put away the folder in which somebody stands."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(os, "environ", {"HOME": str(tmp_path)})
    loaded, paths = load_all(None)
    assert paths.state_dir.is_relative_to(tmp_path)
    assert loaded.warnings == ()
    with pytest.raises(PathsError, match="Write the whole path"):
        find_paths({"OUTSPOKEN_HOME": "here"}, tmp_path)
