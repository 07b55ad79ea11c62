-- oldest reader: 4
-- plans: unchanged
-- Questions from Slack: the threads in which investigations were told, and each question until it is answered. Code before
-- this migration notes no threads, so nothing can be asked in those that it begins.

CREATE TABLE slack_thread (
    channel text NOT NULL,
    thread text NOT NULL,
    investigation uuid NOT NULL REFERENCES investigation ON DELETE CASCADE,
    told_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (channel, thread, investigation)
);
COMMENT ON TABLE slack_thread IS 'threads that notifications began, with each investigation that was told there';
CREATE INDEX slack_thread_investigation ON slack_thread (investigation);

CREATE TABLE slack_question (
    id uuid PRIMARY KEY,
    event text NOT NULL UNIQUE,
    channel text NOT NULL,
    thread text NOT NULL,
    ts text NOT NULL,
    person text NOT NULL,
    teams text[] NOT NULL,
    investigation uuid NOT NULL REFERENCES investigation ON DELETE CASCADE,
    question text,
    state text NOT NULL DEFAULT 'received' CHECK (state IN ('received', 'asked', 'reply', 'done', 'failed')),
    outcome text,
    message uuid,
    reply jsonb,
    tries integer NOT NULL DEFAULT 0,
    made_at timestamptz NOT NULL DEFAULT now(),
    due_at timestamptz NOT NULL DEFAULT now(),
    done_at timestamptz,
    problem text,
    UNIQUE (channel, ts)
) WITH (fillfactor = 80);
COMMENT ON COLUMN slack_question.event IS 'id of the event: Slack delivers an event again until it is acknowledged';
COMMENT ON COLUMN slack_question.teams IS 'workspaces that the event named: of the app, of the person';
COMMENT ON COLUMN slack_question.question IS 'masked; null once it is answered';
COMMENT ON COLUMN slack_question.message IS 'uid of the ChatMessage';
CREATE INDEX slack_question_due ON slack_question (due_at) WHERE state IN ('received', 'asked', 'reply');
CREATE INDEX slack_question_person ON slack_question (person, made_at);
CREATE INDEX slack_question_investigation ON slack_question (investigation);
