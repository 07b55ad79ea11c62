-- oldest reader: 4
-- plans: unchanged
-- Cases of EvalSuites, copied so that retention cannot shrink a suite, and what EvalRuns measured with them. Code before
-- this migration reads and writes none of it.

CREATE TABLE eval_case (
    suite uuid NOT NULL,
    name text NOT NULL,
    digest text NOT NULL,
    namespace text NOT NULL,
    namespace_uid text NOT NULL,
    source jsonb NOT NULL,
    plan text,
    cassette bytea NOT NULL CHECK (octet_length(cassette) <= 16777216),
    stored_at timestamptz NOT NULL DEFAULT now(),
    retired_at timestamptz,
    PRIMARY KEY (suite, name, digest)
);
COMMENT ON TABLE eval_case IS 'masked recordings of suites; by uid of the EvalSuite';
COMMENT ON COLUMN eval_case.source IS 'the source in the spec when it was copied: another source is copied anew';
COMMENT ON COLUMN eval_case.plan IS
    'the plan of the recorded run, which limits the providers that may see its results; null: the source was a file';
COMMENT ON COLUMN eval_case.retired_at IS 'when the suite had it last; null: the suite has it';

CREATE UNIQUE INDEX eval_case_current ON eval_case (suite, name) WHERE retired_at IS NULL;
CREATE INDEX eval_case_retired ON eval_case (retired_at) WHERE retired_at IS NOT NULL;

CREATE TABLE eval_run (
    id uuid PRIMARY KEY,
    namespace text NOT NULL,
    namespace_uid text NOT NULL,
    name text NOT NULL,
    suite uuid NOT NULL,
    suite_name text NOT NULL,
    suite_digest text NOT NULL,
    terms jsonb NOT NULL,
    chain text NOT NULL,
    chain_namespace text NOT NULL,
    revision text NOT NULL,
    baseline uuid,
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    verdict text,
    summary text
);
COMMENT ON COLUMN eval_run.terms IS 'cases with expectations, samples, budget and gate, frozen at the start';

CREATE INDEX eval_run_finished ON eval_run (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX eval_run_suite ON eval_run (suite, finished_at);

CREATE TABLE eval_sample (
    run uuid NOT NULL REFERENCES eval_run ON DELETE CASCADE,
    case_name text NOT NULL,
    sample integer NOT NULL,
    investigation uuid NOT NULL,
    outcome text CHECK (outcome IN ('Passed', 'Failed', 'Inconclusive')),
    checks jsonb,
    confident_wrong boolean NOT NULL DEFAULT false,
    coverage real,
    tokens bigint NOT NULL DEFAULT 0,
    cost_usd numeric,
    cost_complete boolean NOT NULL DEFAULT true,
    finished_at timestamptz,
    PRIMARY KEY (run, case_name, sample)
);
COMMENT ON COLUMN eval_sample.investigation IS 'uid of the Investigation; its record may be gone before this row';
COMMENT ON COLUMN eval_sample.outcome IS 'null: it has not finished';
