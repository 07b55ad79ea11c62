-- Reads the record of a run with its seals, to check one against the other (`sealed_record.py`).

-- Of a name the latest run and the answers to questions about it, in their order.
-- name: runs
SELECT i.*, n.author, n.alert_data, n.runbook, n.plan, n.question, n.precedents
FROM investigation i JOIN investigation_input n ON n.investigation = i.id
WHERE i.id = :run OR i.parent = :run ORDER BY i.parent IS NOT NULL, i.place

-- name: steps
SELECT revision, at, keys, digests, head FROM sealed_step WHERE investigation = :run ORDER BY revision

-- name: events
SELECT * FROM timeline_event WHERE investigation = :run ORDER BY seq

-- name: stages
SELECT * FROM stage WHERE investigation = :run ORDER BY index

-- name: executions
SELECT e.* FROM stage s JOIN execution e ON e.stage = s.id WHERE s.investigation = :run ORDER BY s.index, e.index

-- name: messages
SELECT m.* FROM stage s JOIN execution e ON e.stage = s.id JOIN message m ON m.execution = e.id
WHERE s.investigation = :run ORDER BY s.index, e.index, m.seq

-- name: superseded
SELECT m.* FROM stage s JOIN execution e ON e.stage = s.id JOIN superseded m ON m.execution = e.id
WHERE s.investigation = :run ORDER BY s.index, e.index, m.seq, m.call

-- name: model_calls
SELECT c.*, d.definitions
FROM stage s JOIN execution e ON e.stage = s.id JOIN llm_interaction c ON c.execution = e.id
LEFT JOIN tool_set d ON d.hash = c.tool_set
WHERE s.investigation = :run ORDER BY s.index, e.index, c.number

-- name: tool_calls
SELECT c.* FROM stage s JOIN execution e ON e.stage = s.id JOIN mcp_interaction c ON c.execution = e.id
WHERE s.investigation = :run ORDER BY s.index, e.index, c.message_seq, c.index, c.attempt

-- name: pins
SELECT server, tools FROM tool_pin WHERE investigation = :run ORDER BY server

-- name: erased
SELECT investigation AS run, namespace, name, finished_at, erased_at, encode(seal, 'hex') AS head FROM erased_run
WHERE namespace = :namespace AND name = :name AND namespace_uid = :namespace_uid ORDER BY erased_at DESC LIMIT 1
