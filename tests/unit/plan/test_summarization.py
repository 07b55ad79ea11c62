"""From where on results of a server are summarized, and that who shall do it must be there."""

import pytest

from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.check import check_references
from tarsy.plan.model import Backend, Plan, SummarizationPlan
from unit.plan.builders import agent, chain, defaults, plan_of, provider, selected, server


def plan_with(**spec: object) -> Plan:
    return plan_of([agent(mcpServers=selected("kube")), server(**spec), provider(), provider("cheap"), chain()])


def test_the_plan_says_from_where_on_results_of_a_server_are_summarized() -> None:
    setting = {"enabled": False, "thresholdTokens": 700, "summaryTokens": 70}
    (found,) = plan_with(summarization=setting).stages[0].agents[0].servers
    assert found.summarization == SummarizationPlan(enabled=False, threshold_tokens=700, summary_tokens=70)


def test_a_server_that_says_nothing_is_summarized_with_the_figures_of_the_reference() -> None:
    (found,) = plan_with().stages[0].agents[0].servers
    assert found.summarization == SummarizationPlan(enabled=True, threshold_tokens=5_000, summary_tokens=1_000)


def test_a_plan_older_than_summaries_summarizes_as_by_default() -> None:
    dumped = plan_with().model_dump(mode="json")
    of_agent = dumped["stages"][0]["agents"][0]
    del of_agent["summarizer"], of_agent["servers"][0]["summarization"]
    assert Plan.model_validate(dumped) == plan_with()


def test_whoever_summarizes_does_so_by_the_client_of_its_own_type() -> None:
    objects = [
        agent(mcpServers=selected("kube"), strategy="native-thinking"),
        server(),
        provider(type="google", model="gemini-3-pro"),
        provider("cheap"),
        chain(summarization={"llmProvider": "cheap"}),
    ]
    summarizer = plan_of(objects).stages[0].agents[0].summarizer
    assert summarizer is not None and summarizer.backend is Backend.OPENAI_NATIVE


@pytest.mark.parametrize("make", [chain, defaults])
def test_a_provider_for_summaries_that_is_not_there_makes_its_object_not_ready(make: object) -> None:
    obj = make(summarization={"llmProvider": "none"})  # type: ignore[operator]
    errors = check_references(obj, ResourceCatalog([obj, agent(), provider()]))
    assert [error.field for error in errors] == ["spec.summarization.llmProvider"]
