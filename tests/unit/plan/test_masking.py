"""The plan freezes what is masked, and plans older than that mask as by default."""

from tarsy.plan.model import CustomMask, MaskingPlan, Plan
from unit.plan.builders import agent, chain, defaults, plan_of, provider, selected, server

OWN = {"name": "badge", "pattern": "badge [0-9]+", "replacement": "[BADGE]"}
SETTING = {"patternGroups": ["basic"], "patterns": [], "customPatterns": [OWN]}
FROZEN = MaskingPlan(groups=("basic",), patterns=(), custom=(CustomMask(**OWN),))


def _plan(masking: object, alert_masking: object) -> Plan:
    told = defaults(**({"alertMasking": alert_masking} if alert_masking else {}))
    tools = server(**({"masking": masking} if masking else {}))
    return plan_of([told, tools, chain(mcpServers=selected("kube")), agent(), provider()])


def test_the_plan_says_what_is_masked_of_servers_and_of_alerts() -> None:
    plan = _plan(SETTING, {"enabled": False})
    assert plan.stages[0].agents[0].servers[0].masking == FROZEN
    assert plan.alert_masking == MaskingPlan(enabled=False)
    assert Plan.model_validate_json(plan.dump()) == plan


def test_the_plan_says_what_is_masked_of_what_models_say() -> None:
    plan = plan_of([defaults(modelOutputMasking=SETTING), chain(), agent(), provider()])
    assert plan.model_output_masking == FROZEN
    assert _plan(None, None).model_output_masking is None


def test_a_server_that_says_nothing_is_masked_and_alerts_as_the_installation_says() -> None:
    plan = _plan(None, None)
    assert plan.stages[0].agents[0].servers[0].masking == MaskingPlan()
    assert plan.stages[0].agents[0].servers[0].masking.enabled
    assert plan.alert_masking is None


def test_a_plan_older_than_masking_masks_as_by_default() -> None:
    dumped = _plan(None, None).model_dump(mode="json")
    del dumped["alert_masking"], dumped["model_output_masking"]
    del dumped["stages"][0]["agents"][0]["servers"][0]["masking"]
    assert Plan.model_validate(dumped) == _plan(None, None)
