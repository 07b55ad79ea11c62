"""Settings: one definition for flags, environment, file and docs, and a file whose errors are all reported."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ValidationError
from typer.main import get_command
from typer.testing import CliRunner

from tarsy.app.settings.file import ConfigurationFileError, read_configuration
from tarsy.app.settings.processes import (
    TOPICS,
    GatewayProcessSettings,
    OperatorSettings,
    WorkerProcessSettings,
    topics_of,
)
from tarsy.app.settings.serving_topics import GatewaySettings, IntakeSettings
from tarsy.app.settings.topic import flag_of
from tarsy.app.settings.work_topics import ExecutionSettings, HistorySettings
from tarsy.cli.commands import services
from tarsy.cli.main import app
from tarsy.mcp.gateway import GatewayLimits
from tarsy.runtime.settings import WorkerSettings
from tarsy.store.intake import NAMESPACE_QUEUE_LIMIT, QUEUE_LIMIT

PROCESSES = {"run": OperatorSettings, "worker": WorkerProcessSettings, "mcp-gateway": GatewayProcessSettings}
HEADER = {"apiVersion": "tarsy.dev/v1alpha1", "kind": "OperatorConfiguration"}
URL = "postgresql://tarsy@db/tarsy?sslmode=require"
RUNNER = CliRunner()


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for topic in TOPICS.values():
        for field in topic.model_fields.values():
            flag = flag_of(field)
            if flag is not None and flag.environment is not None:
                monkeypatch.delenv(flag.environment, raising=False)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The settings that commands would have started with."""
    found: list[Any] = []

    def go(work: Any, *, service: bool = False) -> None:
        found.append(work.cr_frame.f_locals["settings"])
        work.close()

    monkeypatch.setattr(services, "go", go)
    monkeypatch.setattr(services, "_log", lambda logging: None)
    return found


def write(path: Path, spec: Any, **header: Any) -> Path:
    path.write_text(yaml.safe_dump({**HEADER, **header, "spec": spec}))
    return path


def problems(path: Path, process: type[BaseModel] = OperatorSettings) -> list[str]:
    with pytest.raises(ConfigurationFileError) as caught:
        read_configuration(path, process)
    return [line.strip() for line in str(caught.value).splitlines()]


@pytest.mark.parametrize("name", PROCESSES)
def test_every_setting_has_a_flag_a_field_a_description_and_the_same_default(name: str) -> None:
    command: Any = get_command(app)
    options = {opt: one for one in command.commands[name].params for opt in one.opts}
    for topic in topics_of(PROCESSES[name]).values():
        for field in topic.model_fields.values():
            flag = flag_of(field)
            assert flag is not None and field.alias and field.description, (topic, field)
            option = options[flag.name]
            default = None if field.is_required() or field.default == () else field.default
            assert option.default == default and option.envvar == flag.environment
            assert field.description in option.help


def test_a_flag_and_a_variable_mean_one_setting() -> None:
    for process in PROCESSES.values():
        fields = [flag_of(f) for topic in topics_of(process).values() for f in topic.model_fields.values()]
        names = [flag.name for flag in fields if flag is not None]
        variables = [flag.environment for flag in fields if flag is not None and flag.environment]
        assert len(names) == len(set(names)) and len(variables) == len(set(variables))


def test_the_defaults_of_the_rooms_are_those_of_the_settings() -> None:
    gateway = GatewaySettings(token_file=Path("token"))
    worker = ExecutionSettings().worker()
    assert worker == WorkerSettings()
    assert (IntakeSettings().queue_limit, IntakeSettings().namespace_queue_limit) == (
        QUEUE_LIMIT,
        NAMESPACE_QUEUE_LIMIT,
    )
    limits = GatewayLimits(gateway.max_sessions, gateway.max_message_mib << 20, gateway.idle_seconds)
    assert limits == GatewayLimits()


@pytest.mark.parametrize(
    ("arguments", "variable", "retention"),
    [
        ((), None, "30d"),
        ((), "40d", "40d"),
        (("--retention", "50d"), "40d", "50d"),
        (("--retention", "90d"), None, "90d"),  # the default, but given
    ],
)
@pytest.mark.usefixtures("no_environment")
def test_a_flag_precedes_the_environment_which_precedes_the_file(
    tmp_path: Path, started: list[Any], arguments: tuple[str, ...], variable: str | None, retention: str
) -> None:
    file = write(tmp_path / "config.yaml", {"controller": {"retention": "30d"}, "database": {"url": URL}})
    environment = {"TARSY_RETENTION": variable} if variable else {}
    result = RUNNER.invoke(app, ["run", "--config", str(file), *arguments], env=environment)
    assert result.exit_code == 0, result.output
    assert (started[0].controller.retention, started[0].database.url) == (retention, URL)
    assert started[0].http.port == 8081


@pytest.mark.usefixtures("no_environment")
def test_options_of_every_type_reach_the_settings(started: list[Any]) -> None:
    words = "--database-url postgresql://h/d -n a -n b --no-record-api --http-tls /tls --places 0 --lease-seconds 30"
    result = RUNNER.invoke(
        app, ["run", *words.split(), "--log-level", "warning", "--page-origin", "https://t.example/"]
    )
    assert result.exit_code == 0, result.output
    (settings,) = started
    assert settings.controller.namespaces == ("a", "b")
    assert settings.record_api.enabled is False and settings.http.tls_directory == Path("/tls")
    assert settings.execution.worker() is None
    assert settings.logging.level == "WARNING" and settings.web_ui.origins == ("https://t.example",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run",), ("--database-url", "is required", "TARSY_DATABASE_URL", "spec.database.url")),
        (("run", "--database-url=x", "--retention=3y"), ("--retention", "such as 7d")),
        (("run", "--database-url=x", "--url-host=a b"), ("--url-host", "is not a host name")),
        (("run", "--database-url=x", "--page-url=ftp://a"), ("--page-url", "http:// or https://")),
        (("run", "--database-url=x", "--places=-1"), ("--places", "greater than or equal to 0")),
        (("worker", "--database-url=x", "--places=0"), ("--places", "greater than or equal to 1")),
    ],
)
@pytest.mark.usefixtures("no_environment", "started")
def test_a_wrong_option_is_named(arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    result = RUNNER.invoke(app, list(arguments), env={"COLUMNS": "200"})
    assert result.exit_code == 2
    output = re.sub(r"[\s│]+", " ", result.output)
    assert [word for word in words if word not in output] == []


@pytest.mark.usefixtures("no_environment", "started")
def test_a_wrong_file_ends_the_command_with_all_its_errors(tmp_path: Path) -> None:
    file = write(tmp_path / "config.yaml", {"execution": {"maxConcurrent": -1, "leaseSeconds": 1}})
    result = RUNNER.invoke(app, ["run", "--config", str(file), "--database-url", URL])
    assert result.exit_code == 1
    assert f"configuration file {file} has 2 errors:" in result.stderr
    assert "spec.execution.maxConcurrent" in result.stderr and "spec.execution.leaseSeconds" in result.stderr


def test_every_error_of_a_file_names_field_and_remedy(tmp_path: Path) -> None:
    spec = {
        "execution": {"maxConcurent": 3, "maxConcurrent": "20", "leaseSeconds": 1},
        "exekution": {},
        "http": [],
        "outbound": {"hosts": ["a", 3, "a b"]},
        "controller": {"retention": "3y", "namespaces": "foo"},
        "logging": {"level": "info", "jsonLines": 1},
    }
    found = problems(write(tmp_path / "c.yaml", spec, apiVersion="tarsy.dev/v1", kind="Operator", metadata={}))
    assert found[0] == f"configuration file {tmp_path}/c.yaml has 14 errors:"
    wanted = [
        "apiVersion: is 'tarsy.dev/v1'; this version of tarsy reads tarsy.dev/v1alpha1",
        "kind: is 'Operator'; this version of tarsy reads OperatorConfiguration",
        "metadata: unknown field; use one of apiVersion, kind, spec",
        "spec.execution.maxConcurrent: is '20'; it must be a whole number",
        "spec.execution.maxConcurent: unknown field; did you mean maxConcurrent?",
        "spec.execution.leaseSeconds: is 1; it must be at least 2",
        "spec.exekution: unknown topic; did you mean execution?",
        "spec.http: is []; it must be a mapping of fields",
        "spec.outbound.hosts[1]: is 3; it must be a string",
        "spec.controller.namespaces: is 'foo'; it must be a list",
        "spec.controller.retention: '3y' is not a duration; write a number and s, m, h, d or w, such as 7d",
        "spec.logging.jsonLines: is 1; it must be true or false",
    ]
    assert [line for line in wanted if line not in found] == []
    assert any(line.startswith("spec.outbound.hosts[2]: 'a b' is not a host name") for line in found)
    assert any(line.startswith("spec.logging.level: is 'info'; it must be one of") for line in found)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "line 1: is not YAML"),
        ("spec: {}\nspec: {}", "line 2: is not YAML: key spec occurs twice"),
        ("", "is empty; write one object with apiVersion: tarsy.dev/v1alpha1, kind: OperatorConfiguration and spec"),
        ("a: 1\n---\nb: 2", "holds several documents"),
        ("- a", "is not a mapping"),
        ("spec: 3", "spec: is not a mapping of topics"),
        ("a: \x01", "is not YAML"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "c.yaml").write_text(text)
    assert words in "\n".join(problems(tmp_path / "c.yaml"))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "cannot be read: No such file or directory; name a readable file" in problems(tmp_path / "none.yaml")[0]
    assert "cannot be read: Is a directory" in problems(tmp_path)[0]


@pytest.mark.parametrize("url", ["postgresql://a:secret@h/d", "postgresql://a@h/d?password=secret"])
def test_a_password_does_not_belong_into_the_file(tmp_path: Path, url: str) -> None:
    found = "\n".join(problems(write(tmp_path / "c.yaml", {"database": {"url": url, "listenUrl": url}})))
    assert "spec.database.url: contains a password; leave the field out and set TARSY_DATABASE_URL" in found
    assert "spec.database.listenUrl: contains a password; leave the field out and set TARSY_LISTEN_URL" in found
    assert "secret@" not in found and "=secret" not in found


def test_a_password_of_the_environment_is_taken(started: list[Any]) -> None:
    url = "postgresql://a:secret@h/d"
    result = RUNNER.invoke(app, ["worker"], env={"TARSY_DATABASE_URL": url})
    assert result.exit_code == 0, result.output
    assert started[0].database.url == url


def test_operator_and_workers_share_a_file_and_each_takes_its_own_topics(tmp_path: Path) -> None:
    file = write(tmp_path / "c.yaml", {"http": {"port": 1}, "execution": {"maxConcurrent": 5}, "controller": None})
    assert read_configuration(file, WorkerProcessSettings) == {"execution": {"maxConcurrent": 5}}
    wrong = write(tmp_path / "w.yaml", {"http": {"port": "x"}, "execution": {"maxConcurrent": 0}})
    assert set(problems(wrong, WorkerProcessSettings)[1:]) == {
        "spec.execution.maxConcurrent: is 0; it must be at least 1",
        "spec.http.port: is 'x'; it must be a whole number",
    }


@pytest.mark.parametrize(
    ("text", "error"), [("14d", ""), ("1s", ""), ("forever", "is not a duration"), ("14", "is not a")]
)
def test_the_retention_of_the_history_is_a_duration(text: str, error: str) -> None:
    if error:
        with pytest.raises(ValidationError, match=error):
            HistorySettings(retention=text)
    else:
        assert HistorySettings(retention=text).retention_seconds > 0


def test_the_key_of_the_history_is_read_from_its_file_where_there_is_one(tmp_path: Path) -> None:
    assert HistorySettings().key() is None
    assert HistorySettings(key_file=tmp_path / "key").key() is None
    (tmp_path / "key").write_text("k" * 40 + "\n")
    assert HistorySettings(key_file=tmp_path / "key").key() == b"k" * 40
