-- oldest reader: 4
-- Who is told how a run ends: one row for each target of a run and occasion, from which it is sent until that is done.

CREATE TABLE notice (
    id uuid PRIMARY KEY,
    investigation uuid NOT NULL REFERENCES investigation ON DELETE CASCADE,
    target text NOT NULL,
    occasion text NOT NULL CHECK (occasion IN ('started', 'ended')),
    settings jsonb NOT NULL,
    thread text NOT NULL,
    state text NOT NULL DEFAULT 'owed' CHECK (state IN ('owed', 'sent', 'failed')),
    tries integer NOT NULL DEFAULT 0,
    made_at timestamptz NOT NULL DEFAULT now(),
    due_at timestamptz NOT NULL DEFAULT now(),
    done_at timestamptz,
    problem text,
    UNIQUE (investigation, target, occasion)
) WITH (fillfactor = 80);
COMMENT ON COLUMN notice.settings IS 'the target as its object had it when the run came to that; names of Secrets, no value';

CREATE INDEX notice_owed ON notice (due_at) WHERE state = 'owed';

CREATE TABLE notice_thread (
    target text NOT NULL,
    thread text NOT NULL,
    ts text NOT NULL,
    used_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (target, thread)
);
COMMENT ON TABLE notice_thread IS 'the message of a channel under which those of an incident, or of a run, are put';

CREATE INDEX incident_alert ON incident (alert_uid) WHERE alert_uid IS NOT NULL;
