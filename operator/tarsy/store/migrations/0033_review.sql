-- oldest reader: 4
-- plans: unchanged
-- What people said about findings. The log is only appended to; the summary is computed from it, for lists. Code before
-- this migration reads and writes neither.

CREATE TABLE review_activity (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    investigation uuid NOT NULL REFERENCES investigation ON DELETE CASCADE,
    review text NOT NULL,
    object_uid uuid NOT NULL,
    author text NOT NULL,
    action text NOT NULL CHECK (action IN ('claimed', 'completed', 'reopened', 'released')),
    verdict text CHECK (verdict IN ('Right', 'Partly', 'Wrong')),
    root_cause jsonb,
    note text,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK ((action = 'completed') = (verdict IS NOT NULL))
);
COMMENT ON TABLE review_activity IS 'who claimed, completed and reopened reviews; kept as long as the record of the run';
COMMENT ON COLUMN review_activity.review IS 'name of the Review; one that is created again says nothing twice';
COMMENT ON COLUMN review_activity.object_uid IS 'uid of the Review; a claim whose object is deleted is released';

CREATE INDEX review_activity_run ON review_activity (investigation, id);
CREATE INDEX review_activity_object ON review_activity (object_uid, id);

CREATE TABLE review_summary (
    investigation uuid PRIMARY KEY REFERENCES investigation ON DELETE CASCADE,
    state text NOT NULL,
    verdict text,
    claimed_by text[] NOT NULL,
    reviewed_by text[] NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 80);
COMMENT ON TABLE review_summary IS 'state of the reviews of an investigation; without a row it needs review';
COMMENT ON COLUMN review_summary.verdict IS 'the least favourable of the verdicts that count';

CREATE INDEX review_summary_state ON review_summary (state, changed_at DESC);

-- The queue. The operator writes no column of it before the run ends.
CREATE INDEX investigation_reviewable ON investigation (finished_at DESC, id DESC)
    WHERE finished_at IS NOT NULL AND finding IS NOT NULL AND parent IS NULL AND NOT replay;
