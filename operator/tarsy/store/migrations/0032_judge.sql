-- oldest reader: 4
-- plans: unchanged
-- What the judge of a suite was asked and answered in an EvalRun, and what its answers are worth. Code before this
-- migration asks no judge.

ALTER TABLE eval_run ADD COLUMN agreement jsonb;
COMMENT ON COLUMN eval_run.agreement IS
    'what the answers of the judge are worth, as measured with labels of people; null: not measured, or no judge';

CREATE TABLE judge_call (
    run uuid NOT NULL REFERENCES eval_run ON DELETE CASCADE,
    case_name text NOT NULL,
    about text NOT NULL CHECK (about IN ('label', 'sample')),
    number integer NOT NULL,
    attempt integer NOT NULL,
    owner uuid NOT NULL,
    state text NOT NULL CHECK (state IN ('started', 'completed', 'failed', 'interrupted')),
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    answers jsonb,
    problem text,
    tokens bigint NOT NULL DEFAULT 0,
    cost_usd numeric,
    cost_complete boolean NOT NULL DEFAULT false,
    PRIMARY KEY (run, case_name, about, number, attempt)
);
COMMENT ON TABLE judge_call IS 'calls of the judge about a labelled finding or the finding of a sample, by its number';
COMMENT ON COLUMN judge_call.owner IS 'the controller that made it: a call of another one that has not ended is lost';
