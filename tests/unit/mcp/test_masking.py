"""Every answer of a tool server passes the masker; one that cannot be masked is withheld."""

import pytest

from tarsy.masking import MaskingFailed, default_masker
from tarsy.mcp.toolbox import McpToolbox


class Server:
    """A server that redacts nothing."""

    class plan:
        name = "kubernetes"

    def redact(self, text: str) -> str:
        return text


@pytest.mark.parametrize("size", [0, 65_536, 65_537])
async def test_secrets_are_taken_out_of_answers_of_any_size(size: int) -> None:
    box = McpToolbox({}, {}, default_masker().mask)
    text = "x " * (size // 2) + "\npassword: hunter22-and-more\n"
    answer = await box._answer(Server(), text, is_error=False)  # type: ignore[arg-type]
    assert "hunter22" not in answer.content and "[MASKED_PASSWORD]" in answer.content
    assert not answer.is_error


async def test_answer_that_cannot_be_masked_is_withheld_and_says_so() -> None:
    def broken(text: str) -> str:
        raise MaskingFailed("too slow")

    answer = await McpToolbox({}, {}, broken)._answer(Server(), "password: hunter22", is_error=False)  # type: ignore[arg-type]
    assert answer.is_error and "withheld" in answer.content and "hunter22" not in answer.content
