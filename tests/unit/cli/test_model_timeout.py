"""`TARSY_MODEL_TIMEOUT`: how long the configured model of `tarsy dev` and `tarsy demo` may take."""

import pytest

from tarsy_dev.develop import configured_model
from tarsy_dev.errors import DevelopmentError

URL = "http://127.0.0.1:8080/v1"


@pytest.mark.parametrize(("said", "seconds"), [(None, None), ("", None), ("1", 1), (" 1800 ", 1800), ("86400", 86_400)])
def test_a_slow_model_is_given_its_time(monkeypatch: pytest.MonkeyPatch, said: str | None, seconds: int | None) -> None:
    monkeypatch.delenv("TARSY_MODEL_TIMEOUT", raising=False)
    if said is not None:
        monkeypatch.setenv("TARSY_MODEL_TIMEOUT", said)
    model = configured_model("qwen", URL)
    assert model is not None and model.seconds == seconds


@pytest.mark.parametrize("said", ["0", "86401", "-1", "1.5", "ten", "１０"])
def test_what_is_no_number_of_seconds_is_refused(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv("TARSY_MODEL_TIMEOUT", said)
    with pytest.raises(DevelopmentError, match="set it to seconds from 1 to 86400"):
        configured_model("qwen", URL)
