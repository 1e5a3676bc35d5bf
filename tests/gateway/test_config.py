"""The configuration, from real files and plain mappings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from adapters.http.errorsas import Disconnect
from agent_core.settings import GuardCounts, LadderCounts
from agent_core.text.redaction import Redactor
from gateway.config.keys import KeyDoc, describe
from gateway.config.model import OPENAI_URL, REHEARSED, Model, PatienceKeys, endpoints_of
from gateway.config.paths import resolve
from gateway.config.reading import ConfigError, Loaded, load, redacted, secret_values, survey
from gateway.config.sections import Config, schema
from gateway.config.types import LogLevel, SessionPolicy, is_loopback
from gateway.operate.context import configured_url, passed_over

KEY = "sk-test-0123456789abcdef"
OTHER_KEY = "sk-other-0123456789abcdef"

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes ``outspoken.toml``, and beside it whatever else a test names; gives the path of the former."""

    def written(text: str, **others: str) -> Path:
        for name, content in others.items():
            path = tmp_path / re.sub(r"^__|__(?=(?:key|md|url)$)", ".", name)  # a__key is the file a.key
            path.write_text(content)
            path.chmod(0o600)
        file = tmp_path / "outspoken.toml"
        file.write_text(text)
        return file

    return written


def problems(file: Path | None, env: dict[str, str] | None = None) -> list[str]:
    """What is said about a configuration that cannot be used."""
    with pytest.raises(ConfigError) as told:
        load(file, env or {})
    assert str(told.value).count("\n") == len(told.value.problems)
    return [str(problem) for problem in told.value.problems]


# --- defaults ---


def test_without_anything_every_default_holds_and_the_rehearsal_model_answers() -> None:
    loaded = load(None, {})
    config = loaded.config
    assert config == schema()()
    assert loaded.file is None
    assert loaded.origins == {}
    assert loaded.warnings == ()
    assert config.model.rehearsal
    assert config.model.chain() == ()
    model = config.model
    assert (model.connect_seconds, model.first_content_seconds, model.stall_seconds) == (10, 120, 120)
    assert (model.turn_seconds, model.max_steps, model.attempts, model.retry_after_max_seconds) == (1800, 50, 4, 120)
    assert (config.server.host, config.server.port, config.server.disconnect) == ("127.0.0.1", 8787, Disconnect.GRACE)
    assert config.session.policy is SessionPolicy.QUEUE


def test_a_rehearsed_stall_does_not_last_as_long_as_a_real_one() -> None:
    assert Model().patience() == REHEARSED
    assert Model(base_url="http://127.0.0.1:1/v1").patience() == PatienceKeys(120, 120, 60)
    assert Model(stall_seconds=120).patience() == PatienceKeys(10, 120, 6)


def test_the_counts_are_the_cores_own() -> None:
    assert Config().ladder() == LadderCounts()
    assert Config().guardrails.counts() == GuardCounts()
    keys = {(doc.section, doc.key) for doc in describe()}
    assert {("guardrails", field.name) for field in fields(GuardCounts)} <= keys
    assert {("recovery", name) for name in set(asdict(LadderCounts())) - {"retry"}} <= keys
    ladder = load(None, {"OUTSPOKEN_MODEL__ATTEMPTS": "2", "OUTSPOKEN_RECOVERY__COMPACT": "0"}).config.ladder()
    assert (ladder.retry, ladder.compact) == (1, 0)


def test_a_configuration_cannot_be_changed() -> None:
    config = Config()
    with pytest.raises(ValidationError):
        config.model.name = "x"
    with pytest.raises(ValidationError):
        config.model = config.model


def test_the_process_environment_is_never_read_behind_the_callers_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTSPOKEN_MODEL__NAME", "x")
    monkeypatch.setenv("MODEL", '{"name": "x"}')
    assert load(None, {}).config == schema()()
    assert Config().model.name == ""


# --- places and their order ---


def test_a_file_sets_keys_and_tells_their_lines(write: Write) -> None:
    file = write('[model]\nname = "gpt-5"\nstall_seconds = 30\n\n[server]\nport = 0\n')
    loaded = load(file, {})
    assert (loaded.config.model.name, loaded.config.model.stall_seconds, loaded.config.server.port) == ("gpt-5", 30, 0)
    assert loaded.file == file
    assert loaded.origins == {
        ("model", "name"): f"{file}:2",
        ("model", "stall_seconds"): f"{file}:3",
        ("server", "port"): f"{file}:6",
    }


def test_the_environment_wins_over_dotenv_and_dotenv_over_the_file(write: Write) -> None:
    file = write(
        '[model]\nname = "file"\nmax_steps = 1\nattempts = 1\n',
        __env="OUTSPOKEN_MODEL__NAME=beside\nOUTSPOKEN_MODEL__MAX_STEPS=2\nHTTPS_PROXY=http://p\n",
    )
    loaded = load(file, {"OUTSPOKEN_MODEL__NAME": "set"})
    assert (loaded.config.model.name, loaded.config.model.max_steps, loaded.config.model.attempts) == ("set", 2, 1)
    assert loaded.origins["model", "name"] == "OUTSPOKEN_MODEL__NAME (environment)"
    assert loaded.origins["model", "max_steps"] == f"OUTSPOKEN_MODEL__MAX_STEPS ({file.parent}/.env:2)"
    assert loaded.environment["HTTPS_PROXY"] == "http://p"
    assert loaded.environment["OUTSPOKEN_MODEL__NAME"] == "set"


def test_a_variable_that_is_set_and_empty_hides_the_one_in_dotenv_and_counts_as_not_set(write: Write) -> None:
    file = write("", __env=f"OPENAI_API_KEY={KEY}\n")
    assert load(file, {}).config.model.api_key is not None
    assert load(file, {"OPENAI_API_KEY": ""}).config.model.api_key is None


def test_our_own_variable_wins_over_the_usual_one() -> None:
    env = {"OPENAI_BASE_URL": "http://usual/v1", "OUTSPOKEN_MODEL__BASE_URL": "http://own/v1/", "LOG_LEVEL": "WARN"}
    config = load(None, env).config
    assert config.model.base_url == "http://own/v1"
    assert config.log.level is LogLevel.WARNING


def test_lists_and_tables_come_from_the_environment_as_commas_or_json() -> None:
    config = load(
        None,
        {
            "OUTSPOKEN_TOOLS__DISABLED": "fetch_url, forget,",
            "OUTSPOKEN_TOOLS__APPROVAL": '["write_file"]',
            "OUTSPOKEN_MODEL__EXTRA_BODY": '{"top_p": 0.5}',
            "OUTSPOKEN_MODEL__FALLBACKS": "small, tiny",
            "OUTSPOKEN_LOG__SHOW_TEXT": "yes",
        },
    ).config
    assert config.tools.disabled == ("fetch_url", "forget")
    assert config.tools.approval == ("write_file",)
    assert config.model.extra_body == {"top_p": 0.5}
    assert [fallback.name for fallback in config.model.fallbacks] == ["small", "tiny"]
    assert config.log.show_text


def test_a_missing_file_is_a_problem_only_where_it_was_named(tmp_path: Path) -> None:
    file = tmp_path / "outspoken.toml"
    assert load(file, {}).file is None
    with pytest.raises(ConfigError, match="does not exist"):
        load(file, {}, required=True)


def test_relative_paths_in_the_file_begin_beside_it_and_a_tilde_at_home(write: Write) -> None:
    file = write('[tools]\nworkspace = "work"\n[model]\nsystem_prompt_file = "~/prompt.md"\n', prompt__md="Be kind.\n")
    config = load(file, {"HOME": str(file.parent)}).config
    assert config.tools.workspace == file.parent / "work"
    assert config.model.system_prompt == "Be kind."


# --- secrets ---


def test_a_key_comes_from_the_usual_variable_and_is_shown_nowhere() -> None:
    loaded = load(None, {"OPENAI_API_KEY": KEY, "OUTSPOKEN_MODEL__API_KEYS": f"{OTHER_KEY},{KEY}"})
    model = loaded.config.model
    assert [key.get_secret_value() for key in model.credentials] == [KEY, OTHER_KEY]
    for shown in (repr(loaded), str(loaded.config), repr(redacted(loaded.config))):
        assert KEY not in shown
        assert OTHER_KEY not in shown
    assert not model.rehearsal


@pytest.mark.parametrize("name", ["OPENAI_API_KEY_FILE", "OUTSPOKEN_MODEL__API_KEY_FILE"])
def test_a_key_comes_from_the_file_that_a_variable_names(write: Write, name: str) -> None:
    file = write("", openai__key=f"{KEY}\n")
    key = load(None, {name: str(file.parent / "openai.key")}).config.model.api_key
    assert key is not None
    assert key.get_secret_value() == KEY


def test_a_key_comes_from_the_files_that_the_configuration_names(write: Write) -> None:
    file = write(
        '[model]\napi_key_file = "a.key"\napi_key_files = ["b.key"]\n[server]\napi_key_file = "c.key"\n',
        a__key=KEY,
        b__key=OTHER_KEY,
        c__key="for-clients",
    )
    config = load(file, {}).config
    assert [key.get_secret_value() for key in config.model.credentials] == [KEY, OTHER_KEY]
    assert config.server.api_key == SecretStr("for-clients")
    assert secret_values(config) == [KEY, OTHER_KEY, "for-clients"]


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "openai_api_key", "outspoken_model__api_key"])
def test_a_key_comes_from_the_credentials_of_systemd(write: Write, name: str) -> None:
    file = write("", **{name: KEY})
    loaded = load(file, {"CREDENTIALS_DIRECTORY": str(file.parent)})
    assert loaded.config.model.api_key == SecretStr(KEY)
    assert loaded.origins["model", "api_key"] == str(file.parent / name)


def test_a_key_in_the_environment_wins_over_a_file_that_is_not_even_there(write: Write) -> None:
    file = write('[model]\napi_key_file = "gone.key"\n')
    assert load(file, {"OPENAI_API_KEY": KEY}).config.model.api_key == SecretStr(KEY)
    assert problems(file) == [
        f"{file}:2: [model] api_key_file: {file.parent}/gone.key does not exist. Create it, or correct the name."
    ]


def test_an_empty_text_is_said_to_be_empty(write: Write) -> None:
    (told,) = problems(write('[server]\nhost = ""\n'))
    assert ": [server] host must not be empty. " in told


def test_a_problem_in_a_variable_is_shown_whole_where_secrets_are_masked() -> None:
    (told,) = [str(one) for one in survey(None, {"OPENAI_API_KEY": "two words"}).problems]
    assert "[model] api_key must be one word" in told
    assert Redactor().redact(told) == told


def test_a_key_that_is_set_twice_in_one_place_is_warned_of(write: Write) -> None:
    file = write("", a__key=OTHER_KEY)
    loaded = load(None, {"OPENAI_API_KEY": KEY, "OPENAI_API_KEY_FILE": str(file.parent / "a.key")})
    assert loaded.config.model.api_key == SecretStr(KEY)
    (warning,) = loaded.warnings
    assert "set twice" in warning


def test_a_secret_file_that_everybody_can_read_is_warned_of(write: Write) -> None:
    file = write('[model]\napi_key_file = "a.key"\n', a__key=KEY, __env=f"OUTSPOKEN_SERVER__API_KEY={OTHER_KEY}\n")
    assert load(file, {}).warnings == ()
    (file.parent / "a.key").chmod(0o644)
    (file.parent / ".env").chmod(0o644)
    assert [warning.split(" holds a secret")[0] for warning in load(file, {}).warnings] == [
        str(file.parent / ".env"),
        str(file.parent / "a.key"),
    ]


def test_a_key_file_that_is_not_needed_is_still_to_be_closed_but_no_folder_is(write: Write) -> None:
    file = write('[model]\napi_key_file = "a.key"\n', a__key=KEY)
    (file.parent / "a.key").chmod(0o644)
    (warning,) = load(file, {"OPENAI_API_KEY": OTHER_KEY}).warnings
    assert "chmod 600" in warning
    file.parent.chmod(0o755)
    file.write_text('[model]\napi_key_file = "."\n')
    assert load(file, {"OPENAI_API_KEY": OTHER_KEY}).warnings == ()


@pytest.mark.parametrize(
    "text",
    [
        f'[model]\napi_key = "{KEY}"\n',
        f'[model]\napi_keys = ["{KEY}"]\n',
        f'[server]\napi_key = "{KEY}"\n',
        f'[storage]\nurl = "postgresql://u:{KEY}@h/d"\n',
        f'[model]\nbase_url = "http://u:{KEY}@h/v1"\n',
        f'[[model.fallbacks]]\nname = "x"\napi_key = "{KEY}"\n',
        f'[model]\napi_key = ["{KEY}"]\n',
        f'[model]\nstall_seconds = "{KEY}"\n',
        f'[log]\nlevel = "{KEY}"\n',
        f'[model]\nname = "{KEY}\n',
        f'[tools]\nenabled = ["{KEY}"]\ndisabled = ["{KEY}"]\n',
        f'[tools]\napproval = ["{KEY}"]\n',
        f"[model]\n{KEY} = 1\n",
        f"[{KEY}]\nname = 1\n",
        f'[model]\napi_key_file = "{KEY}"\n',
    ],
)
def test_a_secret_in_the_file_is_refused_and_never_repeated(write: Write, text: str) -> None:
    (problem,) = problems(write(text))
    assert KEY not in problem
    assert re.search(r"outspoken\.toml:\d", problem)


@pytest.mark.parametrize("address", [f"postgresql://u:{KEY}@h/d", f"postgresql://u@h/d?password={KEY}"])
def test_a_password_of_a_database_belongs_into_no_file_and_is_shown_nowhere(write: Write, address: str) -> None:
    (problem,) = problems(write(f'[storage]\nurl = "{address}"\n'))
    assert "An address with a password is a secret" in problem
    assert KEY not in problem
    assert KEY in secret_values(load(None, {"OUTSPOKEN_STORAGE__URL": address}).config)
    bare = load(write('[storage]\nurl = "postgresql://u@h/d?sslmode=require"\n'), {})
    assert KEY not in secret_values(bare.config)


def test_secret_headers_are_known_wherever_they_are_set(write: Write) -> None:
    first, other = {"Authorization": f"Bearer {KEY}", "X-Team": "blue"}, {"X-Api-Key": "sk-of-the-other-1"}
    env = {
        "OUTSPOKEN_MODEL__NAME": "m",
        "OUTSPOKEN_MODEL__EXTRA_HEADERS": json.dumps(first),
        "OUTSPOKEN_MODEL__FALLBACKS": json.dumps([{"name": "n", "extra_headers": other}]),
        "OPENAI_API_KEY": "sk-x",
    }
    known = secret_values(load(None, env).config)
    assert {KEY, f"Bearer {KEY}", "sk-of-the-other-1"} <= {*known}
    assert "blue" not in known


def test_the_refusal_of_a_key_says_where_it_belongs(write: Write) -> None:
    file = write(f'[model]\nname = "x"\napi_key = "{KEY}"\n')
    (problem,) = problems(file)
    assert problem == (
        f"{file}:3: [model] api_key is a secret, and does not belong into this file. Put it into the environment as "
        'OUTSPOKEN_MODEL__API_KEY or OPENAI_API_KEY, or into a file and write api_key_file = "its.name".'
    )


@pytest.mark.parametrize("value", [f'"{KEY}"', f"{KEY} {KEY}", f"{KEY}…"])
def test_a_key_that_no_server_can_accept_is_refused_without_repeating_it(value: str) -> None:
    (problem,) = problems(None, {"OPENAI_API_KEY": value})
    assert KEY not in problem
    assert problem.startswith("OPENAI_API_KEY (environment): [model] api_key must be")


@given(value=st.text(st.characters(codec="utf-8"), min_size=8), doc=st.sampled_from(describe()))
@example(value="00000000", doc=next(doc for doc in describe() if (doc.section, doc.key) == ("tools", "enabled")))
def test_no_message_repeats_what_was_given(value: str, doc: KeyDoc) -> None:
    odd = f"Zq{value}qZ"
    try:
        load(None, {doc.env[0]: odd})
    except ConfigError as error:
        told = str(error)
    else:
        told = ""
    # What has the shape of a name, where names are asked for
    named = f"names a tool that does not exist: {odd}." in told
    assert odd not in told or doc.is_path or named  # which file it was must be said


def test_showing_masks_secrets_and_keeps_the_rest(write: Write) -> None:
    file = write(
        '[model]\nname = "m"\nextra_headers = { Authorization = "Bearer abcdef", X-Title = "t" }\n'
        '[[model.fallbacks]]\nname = "f"\napi_key_env = "F_KEY"\nextra_headers = { x-api-key = "ghijkl" }\n'
    )
    config = load(
        file, {"OPENAI_API_KEY": KEY, "F_KEY": OTHER_KEY, "OUTSPOKEN_STORAGE__URL": "postgresql://u:passw0rd@h/d"}
    ).config
    shown = redacted(config)
    assert shown["model"]["api_key"] == "***"
    assert shown["server"]["api_key"] is None
    assert shown["model"]["extra_headers"] == {"Authorization": "***", "X-Title": "t"}
    assert shown["storage"]["url"] == "postgresql+asyncpg://u:***@h/d"
    assert shown["model"]["name"] == "m"
    for secret in (KEY, OTHER_KEY, "abcdef", "ghijkl", "passw0rd"):
        assert secret not in repr(shown)
        assert secret not in repr(config)
        assert any(secret == value for value in secret_values(config))


# --- what is refused ---


def test_an_unknown_key_is_refused_with_the_nearest_one_and_its_line(write: Write) -> None:
    file = write(
        '[model]\nname = "x"\nstall_second = 3\nport = 1\n\n[modle]\nx = 1\n\n[log]\nzzz = 1\n\n[skills]\npath = "x"\n'
    )
    assert problems(file) == [
        f"{file}:3: there is no key stall_second in [model]. Did you mean stall_seconds?",
        f"{file}:4: there is no key port in [model]. It belongs to [server].",
        f"{file}:6: there is no section [modle]. Did you mean [model]?",
        f"{file}:10: there is no key zzz in [log]. Its keys are level, format, show_text.",
        f"{file}:12: there is no section [skills]. It is a key of [tools].",
    ]


def test_keys_outside_of_sections_and_sections_that_are_no_tables_are_told(write: Write) -> None:
    file = write('port = 1\nmodel = "gpt-5"\n')
    assert problems(file) == [
        f"{file}:1: port stands outside of a section. It belongs to [server].",
        f"{file}:2: model must be a table. Write [model] on a line of its own, and its keys below it.",
    ]


def test_an_unknown_variable_is_refused_with_the_nearest_one(write: Write) -> None:
    file = write("", __env="OUTSPOKEN_SERVER__PROT=1\n")
    env = {
        "OUTSPOKEN_MODLE__NAME": "x",
        "outspoken_log__level": "info",
        "OUTSPOKEN_HOME": "/x",
        "OUTSPOKEN_CONFIG": "/y",
    }
    assert problems(file, env) == [
        "OUTSPOKEN_MODLE__NAME (environment): there is no such setting. Did you mean OUTSPOKEN_MODEL__NAME?",
        "outspoken_log__level (environment): there is no such setting. Did you mean OUTSPOKEN_LOG__LEVEL?",
        f"OUTSPOKEN_SERVER__PROT ({file.parent}/.env:1): there is no such setting. Did you mean OUTSPOKEN_SERVER__PORT?",
    ]


def test_variables_that_kubernetes_sets_for_a_service_of_our_name_do_not_stop_the_start() -> None:
    links = {
        "OUTSPOKEN_SERVICE_HOST": "10.0.0.1",
        "OUTSPOKEN_SERVICE_PORT": "8787",
        "OUTSPOKEN_SERVICE_PORT_HTTP": "8787",
        "OUTSPOKEN_PORT": "tcp://10.0.0.1:8787",
        "OUTSPOKEN_PORT_8787_TCP": "tcp://10.0.0.1:8787",
        "OUTSPOKEN_PORT_8787_TCP_ADDR": "10.0.0.1",
        "OUTSPOKEN_WEB_SERVICE_HOST": "10.0.0.2",
    }
    assert load(None, links).config == schema()()
    assert problems(None, {"OUTSPOKEN_SERVRE__PORT": "1"})


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("[model]\nname = gpt-5\n", ":2:8", "is not valid TOML: Invalid value."),
        ('[model]\nname = "x\n', ":2:", "is not valid TOML"),
        ("[model\n", ":1:", "is not valid TOML"),
        (
            '[model]\nname = "x"\nname = "y"\n',
            ":3:",
            "is not valid TOML: Cannot overwrite a value. Say each section, and in it each key, once.",
        ),
        ("[model]\nx = [", ":2:", "is not valid TOML"),
    ],
)
def test_a_mistake_in_the_syntax_is_told_with_line_and_column(write: Write, text: str, place: str, words: str) -> None:
    file = write(text)
    (problem,) = problems(file)
    assert problem.startswith(f"{file}{place}")
    assert words in problem


def test_a_file_that_is_no_utf8_or_no_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "outspoken.toml"
    file.write_bytes(b"[model]\nname = '\xff'\n")
    assert problems(file) == [f"{file}:2: is not UTF-8 text. Save the file as UTF-8."]
    file.write_bytes(b"\n\nname = '\xff'\n")
    assert problems(file) == [f"{file}:3: is not UTF-8 text. Save the file as UTF-8."]
    assert problems(tmp_path) == [f"{tmp_path}: cannot be read: is a directory."]


def test_what_cannot_be_looked_for_is_no_missing_file(tmp_path: Path) -> None:
    """With defaults in its place, a gateway would begin with the rehearsal model and an empty database, as if nobody had configured anything."""
    file = tmp_path / "outspoken.toml"
    file.symlink_to(tmp_path / "not-mounted" / "outspoken.toml")
    assert problems(file) == [f"{file}: does not exist. Create it, or correct the name."]
    file.unlink()
    file.symlink_to(file)
    assert problems(file) == [f"{file}: cannot be read: too many levels of symbolic links."]
    file.unlink()
    (tmp_path / ".env").symlink_to(tmp_path / "not-mounted")
    assert problems(file) == [f"{tmp_path / '.env'}: does not exist. Create it, or correct the name."]
    closed = tmp_path / ("x" * 300)  # the system says no more of what is in it than of what nobody may enter
    found = [f"{closed / name}: cannot be read: file name too long." for name in ("outspoken.toml", ".env")]
    assert problems(closed / "outspoken.toml") == found
    assert passed_over(resolve({}, tmp_path), closed) == []
    (folder := tmp_path / "here" / "outspoken.toml").mkdir(parents=True)
    assert passed_over(resolve({}, tmp_path), folder.parent) == [], "a directory of that name is no configuration"


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    file = tmp_path / "outspoken.toml"
    file.write_bytes(b"\xef\xbb\xbf[model]\nname = 'x'\n")
    assert load(file, {}).config.model.name == "x"


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"OUTSPOKEN_MODEL__ATTEMPTS": "0"}, "[model] attempts must be a whole number, 1 to 20."),
        ({"OUTSPOKEN_MODEL__ATTEMPTS": "many"}, "[model] attempts must be a whole number, 1 to 20."),
        ({"OUTSPOKEN_MODEL__STALL_SECONDS": "nan"}, "[model] stall_seconds must be a number, 0.1 to 3600."),
        ({"OUTSPOKEN_SERVER__PORT": "65536"}, "[server] port must be a whole number, 0 to 65535."),
        ({"OUTSPOKEN_SERVER__KEEP_ALIVE_SECONDS": "11"}, "[server] keep_alive_seconds must be a number, 1 to 10."),
        ({"OUTSPOKEN_SESSION__POLICY": "qeue"}, "[session] policy must be one of queue, steer, interrupt."),
        ({"OUTSPOKEN_LOG__SHOW_TEXT": "maybe"}, "[log] show_text must be true or false."),
        ({"OUTSPOKEN_MODEL__EXTRA_BODY": "top_p=1"}, "[model] extra_body must be JSON"),
        ({"OUTSPOKEN_MODEL__FALLBACKS": "[1"}, "[model] fallbacks must be JSON"),
        ({"OUTSPOKEN_MODEL__API_KEY_FILES": '["a", {}]'}, "[model] api_key_files, number 2: must be a path."),
        ({"OUTSPOKEN_MODEL__API_KEY_FILES": "[1"}, "[model] api_key_files must be a list of paths."),
        (
            {"OUTSPOKEN_MODEL__FALLBACKS": '[{"nam": "x"}]'},
            "fallbacks, number 1 nam: there is no such key. Did you mean name?",
        ),
        ({"OUTSPOKEN_MODEL__FALLBACKS": "[5]"}, "fallbacks, number 1: must be the name of a model, or a table"),
        ({"OPENAI_BASE_URL": "api.example.org"}, "[model] base_url must be an address that begins with http://"),
        *(
            (
                {f"OUTSPOKEN_{platform}__PROXY": proxy},
                f"[{platform.lower()}] proxy must be the address of a proxy that speaks HTTP",
            )
            for platform in ("TELEGRAM", "DISCORD", "SLACK")
            for proxy in ("http://", "socks5://127.0.0.1:1080", "proxy:port", "http://[::1", "http://proxy:0")
        ),
        ({"OPENAI_BASE_URL": "http://host:port/v1"}, "[model] base_url must be an address with a valid host and port"),
        ({"OUTSPOKEN_STORAGE__URL": "mysql://x"}, "[storage] url must begin with sqlite:///"),
        (
            {"OUTSPOKEN_STORAGE__URL": "postgresql://u@h/d?sslrootcert=/ca.pem"},
            "[storage] url must be one that can be used. The database URL has options that are not known here: sslrootcert.",
        ),
        ({"OUTSPOKEN_MODEL__EXTRA_HEADERS": '{"X": "a\\r\\nb"}'}, "[model] extra_headers must hold header names"),
        ({"OUTSPOKEN_MODEL__RETRY_MIN_SECONDS": "60"}, "[model] retry_max_seconds is less than retry_min_seconds."),
        ({"OUTSPOKEN_GUARDRAILS__CIRCLES_STOP": "2"}, "[guardrails] circles_stop is not above circles_warn"),
        (
            {"OUTSPOKEN_TOOLS__ENABLED": "a", "OUTSPOKEN_TOOLS__DISABLED": "a"},
            "[tools] a is both enabled and disabled.",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_told_in_words_with_its_variable(env: dict[str, str], words: str) -> None:
    told = problems(None, env)
    assert any(words in problem for problem in told), told
    assert any(problem.startswith(tuple(f"{name} (environment)" for name in env)) for problem in told), told


@pytest.mark.parametrize("word", ["true", "false"])
def test_true_and_false_are_no_numbers(write: Write, word: str) -> None:
    numbers = [doc for doc in describe() if doc.type.startswith(("number", "whole number"))]
    assert len(numbers) > 50
    by_section: dict[str, list[str]] = {}
    for doc in numbers:
        by_section.setdefault(doc.section, []).append(f"{doc.key} = {word}")
    text = "".join(f"[{section}]\n" + "\n".join(lines) + "\n" for section, lines in by_section.items())
    text += f'[[budgets.people]]\nname = "ada"\nturns = {word}\n'
    with pytest.raises(ConfigError) as caught:
        load(write(text), {})
    said = str(caught.value)
    assert not [doc.name for doc in numbers if f"{doc.name} must be a" not in said]
    assert "pictures" not in str(load(write(f"[model]\npictures = {word}\n"), {}).warnings)


@pytest.mark.parametrize("word", ["true", "false"])
def test_true_and_false_are_no_words(write: Write, word: str) -> None:
    with pytest.raises(ConfigError, match=r"\[operators\] chat must be"):
        load(write(f"[operators]\nchat = {word}\n"), {})


def test_all_problems_are_told_at_once(write: Write) -> None:
    file = write('[model]\nattempts = 0\nnam = 1\n[server]\nport = "x"\n')
    assert len(problems(file, {"OUTSPOKEN_LOG__LEVEL": "loud", "OUTSPOKEN_X__Y": "1"})) == 5


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_a_server_that_others_can_reach_serves_nobody_without_a_key(write: Write, host: str) -> None:
    file = write(f'[server]\nhost = "{host}"\n')
    for env in ({}, {"OUTSPOKEN_SERVER__API_KEY": "for-clients"}):
        server = load(file, env).config.server
        assert server.host == host
        assert not server.keyless
    here = write("")
    assert load(here, {}).config.server.keyless
    assert not load(here, {"OUTSPOKEN_SERVER__API_KEY": "for-clients"}).config.server.keyless


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("", False),
        ("0", False),
    ],
)
def test_loopback_addresses_are_told_from_others(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


# --- fallbacks ---


def fallback_chain(write: Write, env: dict[str, str], **files: str) -> Loaded:
    file = write(
        """
[model]
name = "big"
temperature = 0.5
extra_headers = { X-Title = "t" }
slow_arguments = ["gl*"]
fallbacks = ["small"]
""",
        **files,
    )
    return load(file, env)


def test_a_fallback_inherits_what_it_does_not_set(write: Write) -> None:
    first, second = fallback_chain(write, {"OPENAI_API_KEY": KEY}).config.model.chain()
    assert (first.name, first.base_url, first.context_tokens) == ("big", OPENAI_URL, 0)
    assert second.name == "small"
    assert second.api_keys == first.api_keys == (SecretStr(KEY),)
    assert (second.temperature, second.extra_headers) == (0.5, {"X-Title": "t"})
    assert not first.slow_arguments


@pytest.mark.parametrize("second", [None, 0, 8_000, 128_000])
@pytest.mark.parametrize("first", [0, 8_000, 128_000])
def test_a_context_window_is_known_where_it_was_configured_and_nowhere_else(first: int, second: int | None) -> None:
    fallback = {"name": "small", "context_tokens": second}
    chain = Model(name="big", base_url="http://a/v1", context_tokens=first, fallbacks=[fallback]).chain()  # pyright: ignore[reportArgumentType]
    windows = [one.context_tokens for one in endpoints_of(chain)]
    assert windows == [first, first if second is None else second]


def test_a_key_or_header_is_never_sent_to_a_host_that_it_was_not_given_for(write: Write) -> None:
    fallbacks = '[{"name": "glm", "base_url": "http://other/v1", "temperature": 0, "context_tokens": 8000}]'
    env = {"OPENAI_API_KEY": KEY, "OUTSPOKEN_MODEL__FALLBACKS": fallbacks}
    _, other = fallback_chain(write, env).config.model.chain()
    assert other.api_keys == ()
    assert other.extra_headers == {}
    assert (other.temperature, other.context_tokens, other.slow_arguments) == (0, 8000, True)


def test_a_fallback_has_its_key_from_a_variable_or_a_file_that_it_names(write: Write) -> None:
    file = write(
        '[[model.fallbacks]]\nname = "a"\nbase_url = "http://a/v1"\napi_key_env = "A_KEY"\n'
        '[[model.fallbacks]]\nname = "b"\nbase_url = "http://b/v1"\napi_key_file = "b.key"\n',
        b__key=OTHER_KEY,
    )
    chain = load(file, {"A_KEY": KEY, "OPENAI_BASE_URL": "http://local/v1"}).config.model.chain()
    assert [[key.get_secret_value() for key in choice.api_keys] for choice in chain] == [[], [KEY], [OTHER_KEY]]
    (problem,) = problems(file)
    assert (
        problem == f"{file}:1: [model] fallbacks, number 1: the variable A_KEY is not set. Set it, or correct its name."
    )


def test_a_fallback_has_the_key_of_its_file_also_where_the_first_model_has_a_key(write: Write) -> None:
    file = write(
        '[[model.fallbacks]]\nname = "b"\nbase_url = "http://b/v1"\napi_key_file = "b.key"\n', b__key=OTHER_KEY
    )
    (fallback,) = load(file, {"OPENAI_API_KEY": KEY}).config.model.fallbacks
    assert fallback.api_key == SecretStr(OTHER_KEY)


def test_a_problem_inside_a_fallback_names_its_line(write: Write) -> None:
    file = write('[[model.fallbacks]]\nname = "a"\n\n[[model.fallbacks]]\nname = "b"\ntemperature = 9\n')
    (problem,) = problems(file)
    assert problem.startswith(f"{file}:6: [model] fallbacks, number 2 temperature: must be")


NAMED = """
[webhooks.deploy]
url = "https://example.org/hook"
secret_files = ["deploy.secret"]

[agents.coder]
tools = 5

[hooks.builds]
prompt = "Say what failed."
session = "builds"
secret_files = ["deploy.secret"]
body_chars = 1

[webhooks.other]
url = "https://example.org/other"
"""

FIX = 'Name a file that holds it, secret_files = ["hook.secret"], or a variable by secret_env.'


def test_every_table_with_a_name_of_its_own_is_complained_of_by_its_name_and_line(write: Write) -> None:
    file = write(NAMED, deploy__secret="whsec_" + "QUJD" * 10)
    assert set(problems(file)) >= {
        f"{file}:7: [agents.coder] tools: must be a list.",
        f"{file}:13: [hooks.builds] body_chars: must be greater than or equal to 100.",
        f"{file}:15: [webhooks.other] a webhook has no secret to sign its messages with. {FIX}",
    }


def test_where_the_environment_says_the_tables_the_names_in_the_file_are_not_theirs(write: Write) -> None:
    file = write('[agents.coder]\nprompt = "You write code."\n')
    (problem,) = problems(file, {"OUTSPOKEN_AGENTS__EACH": '{"writer": {"tools": 5}}'})
    assert problem.startswith("OUTSPOKEN_AGENTS__EACH (environment): [agents] each, number 1 tools: must be")


@pytest.mark.parametrize(
    "text",
    [
        '[agents.coder]\nprompt = "p"\n[agents.writer]\n',
        '[[agents.each]]\nname = "coder"\nprompt = "p"\n[agents.writer]\n',
        '[agents.each.coder]\nprompt = "p"\n[agents.writer]\n',
    ],
)
def test_named_tables_and_the_list_of_them_say_the_same(write: Write, text: str) -> None:
    assert [(one.name, one.prompt) for one in load(write(text), {}).config.agents.each] == [
        ("coder", "p"),
        ("writer", ""),
    ]


def test_two_tables_of_one_name_are_refused(write: Write) -> None:
    file = write('[[agents.each]]\nname = "coder"\n[agents.coder]\n')
    (problem,) = problems(file)
    assert problem == (f"{file}:3: [agents] two of its tables have the same name. Give each one a name of its own.")


# --- storage ---


@pytest.mark.parametrize(
    ("given_url", "used"),
    [
        ("sqlite:///x.db", "sqlite+aiosqlite:///x.db"),
        ("postgres://u@h/d", "postgresql+asyncpg://u@h/d"),
        ("postgresql+asyncpg://u@h/d", "postgresql+asyncpg://u@h/d"),
    ],
)
def test_a_database_address_gets_its_driver(given_url: str, used: str) -> None:
    assert load(None, {"OUTSPOKEN_STORAGE__URL": given_url}).config.storage.url == used


def test_a_row_about_a_bad_endpoint_can_be_shown(write: Write) -> None:
    row = '[[model.known_bad]]\nname = "x"\nhost = "h"\nlook_again = 2027-03-01\nextra_body = { provider = { ignore = ["x"] } }\n'
    (shown,) = cast("list[dict[str, object]]", redacted(load(write(row), {}).config)["model"]["known_bad"])
    assert str(shown["look_again"]) == "2027-03-01"


def test_a_file_of_a_weaker_place_is_not_even_read_if_a_stronger_one_has_the_value(write: Write) -> None:
    file = write('[model]\napi_key_file = "gone.key"\n', __env="OPENAI_API_KEY_FILE=there.key\n", there__key=KEY)
    loaded = load(file, {})
    assert loaded.config.model.api_key == SecretStr(KEY)
    assert loaded.origins["model", "api_key"] == f"OPENAI_API_KEY_FILE ({file.parent}/.env:1)"


def test_a_quote_in_a_comment_or_a_text_hides_no_line(write: Write) -> None:
    file = write('[model] # """\nname = "\'\'\'" # it\'s\nattempts = 0\n')
    assert [problem.split(": ")[0] for problem in problems(file)] == [f"{file}:3"]


@pytest.mark.parametrize(
    ("text", "others", "open_one"),
    [
        ("", {"__env": "OUTSPOKEN_STORAGE__URL=postgresql://o:s3cret-word@db/o\n"}, ".env"),
        ('[storage]\nurl_file = "db.url"\n', {"db__url": "postgresql://o:s3cret-word@db/o"}, "db.url"),
        ("", {"__env": "OUTSPOKEN_TELEGRAM__PROXY=http://ada:s3cret-word@proxy:1\n"}, ".env"),
        ("", {"__env": 'OUTSPOKEN_MODEL__EXTRA_HEADERS={"Authorization": "Bearer s3cret-word"}\n'}, ".env"),
    ],
)
def test_a_password_in_an_address_is_a_secret_wherever_it_stands(
    write: Write, text: str, others: dict[str, str], open_one: str
) -> None:
    file = write(text, **others)
    assert load(file, {}).warnings == ()
    (file.parent / open_one).chmod(0o644)
    (warning,) = load(file, {}).warnings
    assert warning.startswith(f"{file.parent / open_one} holds a secret")


@pytest.mark.parametrize("host", ["models..example", f"{'x' * 64}.example", "bücher..example", f"{'ü' * 64}.example"])
def test_a_host_that_no_machine_can_be_called_is_refused_before_anybody_looks_it_up(host: str) -> None:
    """The look-up itself ends in an error that nobody has words for: at a start, in each command, and for each person."""
    for name, value in (
        ("OUTSPOKEN_SERVER__HOST", host),
        ("OPENAI_BASE_URL", f"http://{host}/v1"),
        ("OUTSPOKEN_TELEGRAM__PROXY", f"http://{host}:1"),
    ):
        assert len(problems(None, {name: value, "OUTSPOKEN_SERVER__API_KEY": "a-key"})) == 1, name


@pytest.mark.parametrize(
    "host", ["::1", "::", "0.0.0.0", "my_host", "example.org.", "bücher.example", f"{'x' * 63}.org"]
)
def test_a_host_that_a_machine_may_have_is_taken(host: str) -> None:
    env = {"OUTSPOKEN_SERVER__HOST": host, "OPENAI_BASE_URL": f"http://{f'[{host}]' if ':' in host else host}/v1"}
    assert load(None, {**env, "OUTSPOKEN_SERVER__API_KEY": "a-key"}).config.server.host == host


@pytest.mark.parametrize(
    ("written", "called"),
    [
        ("127.1", "127.0.0.1"),
        (" 127.0.0.1 ", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("0", "127.0.0.1"),
        ("*", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("1.example.org", "1.example.org"),
    ],
)
def test_a_host_in_any_spelling_that_can_be_listened_at_is_called_by_the_commands(written: str, called: str) -> None:
    config = load(None, {"OUTSPOKEN_SERVER__HOST": written, "OUTSPOKEN_SERVER__PORT": "8787"}).config
    assert configured_url(config) == f"http://{called}:8787"
