-- Keeps the threads in Slack in which investigations were told, and the questions that people ask there.

-- A thread that a notification began.
-- name: begin_thread
INSERT INTO slack_thread (channel, thread, investigation) VALUES (:channel, :thread, :investigation) ON CONFLICT DO NOTHING

-- A further investigation in a thread, if the thread is one of its namespace.
-- name: join_thread
INSERT INTO slack_thread (channel, thread, investigation)
SELECT :channel, :thread, i.id FROM investigation i
WHERE i.id = :investigation AND EXISTS (
    SELECT 1 FROM slack_thread t JOIN investigation other ON other.id = t.investigation
    WHERE t.channel = :channel AND t.thread = :thread AND other.namespace_uid = i.namespace_uid
)
ON CONFLICT DO NOTHING

-- The investigation that a question in a thread is about: the last one that has ended, else the last one.
-- name: investigation
SELECT i.id FROM slack_thread t JOIN investigation i ON i.id = t.investigation
WHERE t.channel = :channel AND t.thread = :thread
ORDER BY (i.finished_at IS NOT NULL) DESC, i.accepted_at DESC, i.id DESC LIMIT 1

-- name: receive
INSERT INTO slack_question (id, event, channel, thread, ts, person, teams, investigation, question)
VALUES (:id, :event, :channel, :thread, :ts, :person, :teams, :investigation, :question)
ON CONFLICT DO NOTHING RETURNING id

-- Takes due questions. They are due again after :seconds, should this process die before it records the result.
-- name: take
UPDATE slack_question q SET tries = q.tries + 1, due_at = now() + make_interval(secs => :seconds)
FROM (
    SELECT id FROM slack_question WHERE state IN ('received', 'asked', 'reply') AND due_at <= now()
    ORDER BY due_at LIMIT :limit FOR UPDATE SKIP LOCKED
) due
WHERE q.id = due.id
RETURNING q.id, q.channel, q.thread, q.ts, q.person, q.teams, q.investigation, q.question, q.state, q.outcome, q.message,
    q.reply, q.tries, extract(epoch FROM now() - q.made_at)::float8 AS age, q.due_at AS taken_until

-- Gives back what was taken and not brought forward: whatever else happened to a question since has changed its due time.
-- name: release
UPDATE slack_question q SET tries = greatest(q.tries - 1, 0), due_at = now()
FROM unnest(:ids::uuid[], :until::timestamptz[]) AS taken (id, until)
WHERE q.id = taken.id AND q.due_at = taken.until

-- name: asked
UPDATE slack_question SET state = 'asked', message = :message, tries = 0, due_at = now()
WHERE id = :id AND state = 'received'

-- name: reply
UPDATE slack_question SET state = 'reply', reply = :reply, outcome = :outcome, question = NULL, tries = 0, due_at = now()
WHERE id = :id AND state IN ('received', 'asked')

-- name: later
UPDATE slack_question SET problem = :problem, due_at = now() + make_interval(secs => :seconds)
WHERE id = :id AND state IN ('received', 'asked', 'reply')

-- name: done
UPDATE slack_question SET state = :state, outcome = coalesce(:outcome, outcome), problem = :problem, question = NULL,
    reply = NULL, done_at = now()
WHERE id = :id AND state IN ('received', 'asked', 'reply')

-- Whether a person got a reply with an outcome lately.
-- name: told_lately
SELECT EXISTS (
    SELECT 1 FROM slack_question WHERE person = :person AND outcome = :outcome AND state IN ('reply', 'done')
        AND made_at > now() - make_interval(secs => :seconds)
)

-- Questions of a person, without :except, that are not answered yet.
-- name: open
SELECT count(*) FROM slack_question WHERE person = :person AND state IN ('received', 'asked') AND id <> :except

-- name: forget
DELETE FROM slack_question WHERE done_at < now() - make_interval(secs => :seconds)
