-- Writes each step of a run as one statement, hence one transaction and one round trip. Every step has :investigation,
-- :attempt and the timeline events (`:event_...`, arrays of one length) besides its own values.
--
-- Locks are always taken in this order, so that parallel agents of a run cannot deadlock: the
-- lease FOR SHARE, rows of the writer's own execution, the investigation, everything else. What is written after the
-- investigation is selected FROM run; nothing may read a data-modifying CTE in an expression of an UPDATE, only join
-- it.

-- name: _fence
fence AS MATERIALIZED (
    SELECT investigation FROM lease WHERE investigation = :investigation AND attempt = :attempt FOR SHARE
)

-- The next revision, the places of the events, and the head of the chain of seals (`seal.py`) after this step.
-- name: _step
revision = i.revision + 1, event_seq = i.event_seq + cardinality(:event_ids::uuid[]),
        seal = CASE WHEN :seal_digest::bytea IS NULL THEN i.seal ELSE {_next_head} END

-- name: _run
run AS (
    UPDATE investigation i SET {_step}
    FROM fence WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq, i.seal
)

-- What a step writes is sealed. A closed event is never opened again; an event keeps its place whatever replaces it.
-- name: _events
sealed AS (
    INSERT INTO sealed_step (investigation, revision, keys, digests, head)
    SELECT run.id, run.revision, :seal_keys::text[], :seal_digests::bytea[], run.seal
    FROM run WHERE :seal_digest::bytea IS NOT NULL
), events AS (
    INSERT INTO timeline_event AS t
        (id, investigation, seq, revision, type, status, content, metadata, stage, execution, model_call, tool_call)
    SELECT e.id, run.id, run.event_seq - cardinality(:event_ids::uuid[]) + e.place, run.revision,
        e.type, e.status, e.content, e.metadata, e.stage, e.execution, e.model_call, e.tool_call
    FROM run, unnest(
        :event_ids::uuid[], :event_types::text[], :event_statuses::text[], :event_contents::text[],
        :event_metadata::jsonb[], :event_stages::uuid[], :event_executions::uuid[], :event_model_calls::uuid[],
        :event_tool_calls::uuid[]
    ) WITH ORDINALITY
        AS e (id, type, status, content, metadata, stage, execution, model_call, tool_call, place)
    ON CONFLICT (id) DO UPDATE SET
        revision = excluded.revision, type = excluded.type, status = excluded.status, content = excluded.content,
        metadata = excluded.metadata, stage = excluded.stage, execution = excluded.execution,
        model_call = excluded.model_call, tool_call = excluded.tool_call, updated_at = now()
    WHERE t.status = 'streaming' OR excluded.status <> 'streaming'
)

-- Whether call `c` waits for its provider's rate limit and no try of it was sent before. Such a call has used nothing
-- and is not counted.
-- name: _unsent
(
    SELECT coalesce(
        bool_or(w.status = 'streaming' AND w.metadata->>'reason' = 'ProviderLimit')
            AND NOT bool_or(w.metadata->>'reason' = 'Retrying'), false
    )
    FROM timeline_event w WHERE w.investigation = :investigation AND w.model_call = c.id
)

-- Stores tool set :tool_set, unless :tools is null.
-- name: _tool_set
stored AS MATERIALIZED (
    SELECT hash FROM tool_set WHERE hash = :tool_set AND :tools::jsonb IS NOT NULL FOR KEY SHARE
), tools AS (
    INSERT INTO tool_set AS t (hash, definitions)
    SELECT :tool_set, :tools::jsonb FROM run WHERE :tools::jsonb IS NOT NULL AND NOT EXISTS (SELECT FROM stored)
    ON CONFLICT (hash) DO UPDATE SET definitions = t.definitions WHERE false
)

-- name: write_events
WITH {_fence}, {_run}, {_events}
SELECT true AS found FROM run

-- The tools that the run first saw stay; the update without effect makes the statement return their row. What the agent
-- :execution is offered is recorded with them.
-- name: pin_tools
WITH {_fence}, {_run}, {_events}, {_tool_set}, offered AS (
    UPDATE execution e SET offered = :tool_set, instructions = :instructions::jsonb FROM run WHERE e.id = :execution
), pinned AS (
    INSERT INTO tool_pin AS p (investigation, server, tools)
    SELECT run.id, s.name, s.tools FROM run, unnest(:servers::text[], :pins::jsonb[]) AS s (name, tools)
    ON CONFLICT (investigation, server) DO UPDATE SET server = p.server
    RETURNING p.server, p.tools
)
SELECT true AS found, (SELECT jsonb_object_agg(server, tools) FROM pinned) AS pins FROM run

-- name: degrade_evidence
WITH {_fence}, run AS (
    UPDATE investigation i SET
        {_step},
        evidence_missing = i.evidence_missing || :missing::jsonb
    FROM fence WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq, i.seal
), {_events}
SELECT true AS found FROM run

-- The first limit that is reached stays.
-- name: budget_exceeded
WITH {_fence}, run AS (
    UPDATE investigation i SET
        {_step},
        budget_message = CASE WHEN i.budget_limit IS NULL THEN :budget_message ELSE i.budget_message END,
        budget_limit = coalesce(i.budget_limit, :budget_limit)
    FROM fence WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq, i.seal
), {_events}
SELECT true AS found FROM run

-- name: begin_stage
WITH {_fence}, {_run}, {_events}, begun AS (
    INSERT INTO stage AS s (id, investigation, index, name, kind, expected_agents, parallel, success_policy, revision)
    SELECT :id, run.id, :index, :name, :kind, :expected_agents, :parallel, :success_policy, run.revision FROM run
    ON CONFLICT (id) DO UPDATE SET revision = excluded.revision
    RETURNING s.state, s.failure_reason, s.failure_message
)
SELECT true AS found, begun.* FROM begun

-- A stage that is closed stays as it was closed.
-- name: finish_stage
WITH {_fence}, {_run}, {_events}, closed AS (
    UPDATE stage s SET
        state = :state, failure_reason = :failure_reason, failure_message = :failure_message, finished_at = now(),
        revision = run.revision, word = :word
    FROM run WHERE s.id = :id AND s.state = 'running'
)
SELECT EXISTS (SELECT FROM stage WHERE id = :id) AS found FROM run

-- Model calls that an earlier attempt left open are interrupted, and so are the events it left streaming. Tool calls
-- stay `started`: the engine decides whether to make them again.
-- name: begin_execution
WITH {_fence}, interrupted AS (
    UPDATE llm_interaction c SET
        state = 'interrupted', finished_at = now(),
        (input_tokens, output_tokens, thinking_tokens, cached_tokens, cost_usd) = (SELECT 0, 0, 0, 0, 0 WHERE {_unsent})
    FROM fence WHERE c.execution = :id AND c.state = 'started'
    RETURNING c.input_tokens
), tally AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE input_tokens IS NULL) AS calls FROM interrupted
), run AS (
    UPDATE investigation i SET
        {_step},
        interrupted_model_calls = i.interrupted_model_calls + tally.calls,
        cost_complete = i.cost_complete AND tally.calls = 0,
        usage_complete = i.usage_complete AND tally.calls = 0
    FROM fence, tally WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq, i.seal
), {_events}, left_open AS (
    UPDATE timeline_event t SET status = 'interrupted', revision = run.revision, updated_at = now()
    FROM run WHERE t.investigation = run.id AND t.execution = :id AND t.status = 'streaming'
), parent AS (
    UPDATE stage s SET revision = run.revision FROM run WHERE s.id = :stage
), begun AS (
    INSERT INTO execution AS e
        (id, stage, index, agent, display_name, strategy, provider, model, parent, dispatched_by, task, hypothesis)
    SELECT :id, :stage, :index, :agent, :display_name, :strategy, :provider, :model, :parent, :dispatched_by, :task,
        :hypothesis
    FROM run
    ON CONFLICT (id) DO UPDATE SET index = e.index
    RETURNING e.state, e.started_at, e.loop, e.result, e.failure_reason, e.failure_message, e.verdict
)
SELECT true AS found, begun.*, EXISTS (SELECT FROM execution WHERE id = :id) AS existed,
    (SELECT coalesce(max(number) + 1, 0) FROM llm_interaction WHERE execution = :id) AS model_calls,
    EXISTS (SELECT FROM mcp_interaction WHERE execution = :id AND state = 'started') AS left_open,
    EXISTS (SELECT FROM superseded WHERE execution = :id) AS compacted
FROM begun

-- Calls and events that the execution left open (an iteration timed out during a call) are closed with it.
-- name: finish_execution
WITH {_fence}, interrupted AS (
    UPDATE llm_interaction c SET
        state = 'interrupted', finished_at = now(),
        (input_tokens, output_tokens, thinking_tokens, cached_tokens, cost_usd) = (SELECT 0, 0, 0, 0, 0 WHERE {_unsent})
    FROM fence WHERE c.execution = :id AND c.state = 'started'
    RETURNING c.input_tokens
), tally AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE input_tokens IS NULL) AS calls FROM interrupted
), given_up AS (
    UPDATE mcp_interaction c SET state = 'interrupted', finished_at = now()
    FROM fence WHERE c.execution = :id AND c.state = 'started'
), run AS (
    UPDATE investigation i SET
        {_step},
        interrupted_model_calls = i.interrupted_model_calls + tally.calls,
        cost_complete = i.cost_complete AND tally.calls = 0,
        usage_complete = i.usage_complete AND tally.calls = 0
    FROM fence, tally WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq, i.seal
), {_events}, left_open AS (
    UPDATE timeline_event t SET
        status = CASE WHEN :state = 'completed' THEN 'interrupted' ELSE :state END, revision = run.revision,
        updated_at = now()
    FROM run
    WHERE t.investigation = run.id AND t.execution = :id AND t.status = 'streaming' AND t.id <> ALL(:event_ids::uuid[])
), closed AS (
    UPDATE execution e SET
        state = :state, result = :result, failure_reason = :failure_reason, failure_message = :failure_message,
        verdict = :verdict::jsonb, finished_at = now()
    FROM run WHERE e.id = :id AND e.state = 'running'
    RETURNING e.stage
), parent AS (
    UPDATE stage s SET revision = run.revision FROM run, closed WHERE s.id = closed.stage
)
SELECT EXISTS (SELECT FROM execution WHERE id = :id) AS found FROM run

-- The four boundaries. The end of a call may be written with the beginning of the next one of the same execution, as one
-- statement: then parameters of the end begin with `ended_`, :execution is of both, and the timeline has the events of
-- both in order. Of the pairs that an agent writes again and again there is a statement that ends in `__plain`: without
-- the parts that have no effect on most steps (`Step.spare`), each of which Postgres would prepare for nothing.

-- name: _said
said AS (
    INSERT INTO message (execution, seq, role, content, tool_calls, tool_call_id, tool_name, provider_state)
    SELECT :execution, :first_seq + m.place - 1, m.role, m.content, m.tool_calls, m.tool_call_id, m.tool_name,
        m.provider_state
    FROM run, unnest(
        :roles::text[], :contents::text[], :tool_calls::jsonb[], :tool_call_ids::text[], :tool_names::text[],
        :provider_states::jsonb[]
    ) WITH ORDINALITY
        AS m (role, content, tool_calls, tool_call_id, tool_name, provider_state, place)
    ON CONFLICT DO NOTHING
)

-- name: _model_call_started
{_tool_set}, {_said}, compacted AS (
    INSERT INTO superseded (execution, seq, call, content)
    SELECT :execution, m.seq, :number, m.content
    FROM run, unnest(:superseded_seqs::integer[], :superseded_contents::text[]) AS m (seq, content)
    ON CONFLICT DO NOTHING
)

-- A trigger reserves the worst case in the quotas of the namespace, when all else of the statement is done.
-- name: _model_call_row
INSERT INTO llm_interaction AS c (id, execution, number, kind, provider, model, strategy, message_count, tool_set,
    estimated_tokens, estimated_cost_usd, request, worst_tokens, worst_cost_usd)
SELECT :id, :execution, :number, :kind, :provider, :model, :strategy, :message_count, :tool_set, :estimated_tokens,
    :estimated_cost_usd, :request, :worst_tokens, :worst_cost_usd
FROM run
ON CONFLICT (id) DO UPDATE SET number = c.number

-- Only an open call is counted, so a step written twice counts once. The message is the answer or, when the answer was
-- lost, a note about that to the model.
-- name: _model_call_ended
closed AS (
    UPDATE llm_interaction c SET
        state = :ended_state, finished_at = now(), duration_ms = :ended_duration_ms, thinking = :ended_thinking,
        response_metadata = :ended_response_metadata,
        message_seq = CASE WHEN :ended_state = 'completed' THEN :ended_message_seq::integer END,
        input_tokens = :ended_input_tokens, output_tokens = :ended_output_tokens,
        thinking_tokens = :ended_thinking_tokens, cached_tokens = :ended_cached_tokens,
        failure_reason = :ended_failure_reason, failure_message = :ended_failure_message,
        cost_usd = :ended_cost_usd, estimated_tokens = :ended_estimated_tokens,
        estimated_cost_usd = :ended_estimated_cost_usd
    FROM fence WHERE c.id = :ended_id AND c.state = 'started'
    RETURNING c.id
), tally AS MATERIALIZED (
    SELECT count(*) AS calls FROM closed
), run AS (
    UPDATE investigation i SET
        {_step},
        model_calls = i.model_calls + CASE WHEN :ended_state = 'interrupted' THEN 0 ELSE tally.calls END,
        interrupted_model_calls = i.interrupted_model_calls
            + CASE WHEN :ended_state = 'interrupted'
                    AND (:ended_input_tokens IS NULL OR :ended_input_tokens + :ended_output_tokens > 0)
                THEN tally.calls ELSE 0 END,
        input_tokens = i.input_tokens + tally.calls * coalesce(:ended_input_tokens, 0),
        output_tokens = i.output_tokens + tally.calls * coalesce(:ended_output_tokens, 0),
        thinking_tokens = i.thinking_tokens + tally.calls * coalesce(:ended_thinking_tokens, 0),
        cached_tokens = i.cached_tokens + tally.calls * coalesce(:ended_cached_tokens, 0),
        usage_complete = i.usage_complete AND :ended_usage_complete,
        cost_usd = CASE WHEN :ended_cost_usd::numeric IS NULL THEN i.cost_usd
            ELSE coalesce(i.cost_usd, 0) + tally.calls * :ended_cost_usd::numeric END,
        cost_complete = i.cost_complete AND (tally.calls = 0 OR :ended_cost_usd::numeric IS NOT NULL)
    FROM fence, tally WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq, i.seal
), {_events}, answered AS (
    INSERT INTO message (execution, seq, role, content, tool_calls, provider_state)
    SELECT :execution, :ended_message_seq, :ended_role, :ended_content, :ended_tool_calls::jsonb,
        :ended_provider_state::jsonb
    FROM run WHERE :ended_message_seq::integer IS NOT NULL
    ON CONFLICT DO NOTHING
)

-- Earlier tries of the same call, left open by dead attempts, are interrupted. A call with an :approval consumes it: at
-- most one statement ever does, and may be written again when its answer was lost on the way.
-- name: _tool_call_started
consumed AS (
    UPDATE tool_approval a SET state = 'consumed', consumed_attempt = :attempt, revision = a.revision + 1
    FROM run
    WHERE a.id = :approval AND a.interaction = :id AND a.investigation = run.id AND a.state = 'approved'
        AND a.expires_at > clock_timestamp() AND a.checked_at > clock_timestamp() - interval '2 minutes'
    RETURNING a.id
), given_up AS (
    UPDATE mcp_interaction c SET state = 'interrupted', finished_at = now()
    FROM run
    WHERE c.execution = :execution AND c.message_seq = :message_seq AND c.index = :index
        AND c.attempt < :call_attempt AND c.state = 'started'
)

-- Whether the call may be sent: it needs no approval, or has consumed one.
-- name: _may_be_sent
:made AND (:approval::uuid IS NULL OR (SELECT count(*) > 0 FROM consumed) OR EXISTS (
    SELECT FROM tool_approval a
    WHERE a.id = :approval AND a.interaction = :id AND a.state = 'consumed' AND a.consumed_attempt = :attempt
)) AS made

-- name: _tool_call_row
INSERT INTO mcp_interaction AS c
    (id, execution, message_seq, index, attempt, call_id, server, tool, arguments, idempotency_key,
    made, repeatable, repeated_of, access, refused)
SELECT :id, :execution, :message_seq, :index, :call_attempt, :call_id, :server, :tool, :arguments, :idempotency_key,
    :made, :repeatable, :repeated_of, :access, :refused
FROM run
ON CONFLICT (id) DO UPDATE SET attempt = c.attempt

-- A result that was written before stays, with its duration.
-- name: _tool_call_ended
closed AS (
    UPDATE mcp_interaction c SET
        state = :ended_state, finished_at = now(), duration_ms = coalesce(c.duration_ms, :ended_duration_ms),
        result = coalesce(c.result, :ended_result), integrity = coalesce(c.integrity, :ended_integrity),
        rung = coalesce(c.rung, :ended_rung), cassette_line = coalesce(c.cassette_line, :ended_cassette_line)
    FROM fence WHERE c.id = :ended_id AND c.state = 'started'
    RETURNING c.made
), tally AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE made) AS calls FROM closed
), run AS (
    UPDATE investigation i SET
        {_step},
        tool_calls = i.tool_calls + tally.calls
    FROM fence, tally WHERE i.id = fence.investigation
    RETURNING i.id, i.revision, i.event_seq, i.seal
), {_events}, answered AS (
    INSERT INTO message (execution, seq, role, content, tool_call_id, tool_name)
    SELECT :execution, :ended_message_seq, :ended_role, :ended_content, :ended_tool_call_id, :ended_tool_name FROM run
    ON CONFLICT DO NOTHING
)

-- name: _looped
looped AS (
    UPDATE execution e SET loop = :ended_loop::jsonb FROM run WHERE e.id = :execution
)

-- Of two boundaries in one statement the later has the state of the loop, where it has one.
-- name: _looped_on
looped AS (
    UPDATE execution e SET loop = coalesce(:loop::jsonb, :ended_loop::jsonb) FROM run WHERE e.id = :execution
)

-- Boundary (a). :tools are the definitions of tool set :tool_set, or null when this writer has stored them before. A
-- set that exists is locked and not changed: retention might be deleting it with the last record that used it. The lock
-- is one that the runs of a chain, which all begin with the same set, take side by side.
-- name: model_call_started
WITH {_fence}, {_run}, {_events}, {_model_call_started}, looped AS (
    UPDATE execution e SET loop = :loop::jsonb FROM run WHERE e.id = :execution AND :loop::jsonb IS NOT NULL
)
{_model_call_row}
RETURNING true AS found

-- Boundary (b).
-- name: model_call_finished
WITH {_fence}, {_model_call_ended}, {_looped}
SELECT EXISTS (SELECT FROM llm_interaction WHERE id = :ended_id) AS found FROM run

-- Boundary (c).
-- name: tool_call_started
WITH {_fence}, {_run}, {_events}, {_tool_call_started}
{_tool_call_row}
RETURNING true AS found, {_may_be_sent}

-- The result of a call that stays open, because its summary for the model is to be made first.
-- name: tool_call_answered
WITH {_fence}, {_run}, {_events}
UPDATE mcp_interaction c SET
    duration_ms = :duration_ms, result = :result, integrity = :integrity, rung = :rung, cassette_line = :cassette_line
FROM run WHERE c.id = :id
RETURNING true AS found

-- Boundary (d).
-- name: tool_call_finished
WITH {_fence}, {_tool_call_ended}, {_looped}
SELECT EXISTS (SELECT FROM mcp_interaction WHERE id = :ended_id) AS found FROM run

-- Boundaries (b) and (c).
-- name: model_call_finished__tool_call_started
WITH {_fence}, {_model_call_ended}, {_looped}, {_tool_call_started}
{_tool_call_row}
RETURNING EXISTS (SELECT FROM llm_interaction WHERE id = :ended_id) AS found, {_may_be_sent}

-- name: model_call_finished__tool_call_started__plain
WITH {_fence}, {_model_call_ended}, {_looped}
{_tool_call_row}
RETURNING EXISTS (SELECT FROM llm_interaction WHERE id = :ended_id) AS found, :made AS made

-- Boundaries (d) and (a).
-- name: tool_call_finished__model_call_started
WITH {_fence}, {_tool_call_ended}, {_looped_on}, {_model_call_started}
{_model_call_row}
RETURNING EXISTS (SELECT FROM mcp_interaction WHERE id = :ended_id) AS found

-- name: tool_call_finished__model_call_started__plain
WITH {_fence}, {_tool_call_ended}, {_looped_on}, {_said}
{_model_call_row}
RETURNING EXISTS (SELECT FROM mcp_interaction WHERE id = :ended_id) AS found

-- Boundaries (b) and (a): the model is asked again.
-- name: model_call_finished__model_call_started
WITH {_fence}, {_model_call_ended}, {_looped_on}, {_model_call_started}
{_model_call_row}
RETURNING EXISTS (SELECT FROM llm_interaction WHERE id = :ended_id) AS found

-- Boundaries (d) and (c): one tool call after another.
-- name: tool_call_finished__tool_call_started
WITH {_fence}, {_tool_call_ended}, {_looped}, {_tool_call_started}
{_tool_call_row}
RETURNING EXISTS (SELECT FROM mcp_interaction WHERE id = :ended_id) AS found, {_may_be_sent}
