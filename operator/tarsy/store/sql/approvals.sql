-- Reads and writes approvals of tool calls.

-- Everybody who had a part in starting the run: the author of the investigation, and of the question.
-- name: _requesters
ARRAY(
    SELECT DISTINCT n.author->>'username' FROM investigation_input n
    WHERE n.investigation IN (i.id, i.parent) AND n.author->>'username' <> '' ORDER BY 1
)

-- name: _approval
SELECT a.id, a.investigation, a.interaction, a.digest, a.request, a.targets, a.state, a.requested_at, a.expires_at,
    a.required, a.object_uid, a.outcome, a.decided_at, a.revision, a.published, i.name AS run_name, i.namespace,
    i.parent IS NOT NULL AS question, i.state IN ('pending', 'running', 'parked') AS run_open,
    {_requesters} AS requesters,
    ARRAY(
        SELECT d.username FROM tool_approval_decision d WHERE d.approval = a.id ORDER BY d.place
    ) AS decided_by
FROM tool_approval a JOIN investigation i ON i.id = a.investigation

-- Asks once for a call, under the lease of the attempt that asks. What was asked before stays as it is.
-- name: ask
WITH fence AS MATERIALIZED (
    SELECT investigation FROM lease WHERE investigation = :investigation AND attempt = :attempt FOR SHARE
), asked AS (
    INSERT INTO tool_approval AS a
        (id, investigation, interaction, digest, request, targets, before, expires_at, required)
    SELECT :id, :investigation, :interaction, :digest, :request, :targets, :before,
        now() + make_interval(secs => :seconds), :required
    FROM fence
    ON CONFLICT (interaction) DO NOTHING
)
SELECT true AS found FROM fence

-- Lets the checks be made again: those of an approval count for a while only.
-- name: check_again
UPDATE tool_approval SET state = 'pending', revision = revision + 1
WHERE interaction = :interaction AND state = 'approved'
    AND (checked_at IS NULL OR checked_at < now() - make_interval(secs => :seconds))

-- name: of_interaction
{_approval} WHERE a.interaction = :interaction

-- name: of_object
{_approval} WHERE a.object_uid = :object_uid

-- The last call that was sent and that a call undoes, as people were shown it.
-- name: undone
SELECT a.id, i.name AS run_name
FROM tool_approval a JOIN investigation i ON i.id = a.investigation
WHERE a.investigation = ANY(:investigations::uuid[]) AND a.state = 'consumed'
    AND a.request->'server'->>'uid' = :server_uid AND a.request->'shown'->'undo'->>'tool' = :tool
    AND a.request->'shown'->'undo'->>'arguments' = :arguments
ORDER BY a.requested_at DESC LIMIT 1

-- name: count
SELECT count(*) AS asked FROM tool_approval WHERE investigation = :investigation

-- Those that the controller has something to do for: to be asked, to be checked, or with news for their object.
-- name: unsettled
{_approval} WHERE a.state IN ('pending', 'approved') OR a.revision > a.published
ORDER BY a.requested_at LIMIT :limit

-- name: made
UPDATE tool_approval SET object_uid = :object_uid WHERE id = :id AND object_uid IS NULL

-- Only what is open changes, so that of two controllers one decides. An approval counts from now on.
-- name: settle
UPDATE tool_approval SET
    state = :state, outcome = :outcome, revision = revision + 1,
    decided_at = CASE WHEN :state = 'pending' THEN NULL ELSE coalesce(decided_at, now()) END,
    checked_at = CASE WHEN :state = 'approved' THEN now() END
WHERE id = :id AND state IN ('pending', 'approved') AND state <> :state
RETURNING id

-- name: forget_decisions
DELETE FROM tool_approval_decision WHERE approval = :id

-- name: decisions
INSERT INTO tool_approval_decision (approval, place, username, decision, digest, reason)
SELECT :id, place, username, decision, digest, reason
FROM unnest(:usernames::text[], :decided::text[], :digests::text[], :reasons::text[])
    WITH ORDINALITY AS d (username, decision, digest, reason, place)
ON CONFLICT DO NOTHING

-- name: withdraw_ended
UPDATE tool_approval a SET
    state = 'withdrawn', outcome = 'The run ended before the call was sent.', revision = a.revision + 1,
    decided_at = coalesce(a.decided_at, now())
FROM investigation i
WHERE i.id = a.investigation AND a.state IN ('pending', 'approved')
    AND (i.state NOT IN ('pending', 'running', 'parked') OR i.desired_state <> 'Running')

-- name: published
UPDATE tool_approval SET published = greatest(published, :revision) WHERE id = :id

-- Under the lease of the attempt whose run goes on without the call.
-- name: end
UPDATE tool_approval a SET
    state = :state, outcome = :outcome, revision = a.revision + 1, decided_at = coalesce(a.decided_at, now())
FROM lease l
WHERE l.investigation = a.investigation AND l.attempt = :attempt AND a.investigation = :investigation
    AND a.interaction = :interaction AND a.state IN ('pending', 'approved')
