-- The five layers of the record, the lease and the workers (DESIGN section 5).
--
-- The investigation is split: what never changes and is large lies in investigation_input, so that the row every step
-- updates stays small. None of the columns a step changes is indexed, and the pages keep room: those updates are HOT.

CREATE TABLE investigation (
    id uuid PRIMARY KEY,
    namespace text NOT NULL,
    namespace_uid text NOT NULL,
    name text NOT NULL,
    alert_type text NOT NULL,
    chain text NOT NULL,
    chain_namespace text NOT NULL,
    plan_hash text NOT NULL,
    stages_planned integer NOT NULL,
    limit_seconds double precision NOT NULL,
    namespace_limit integer,
    chain_limit integer,
    priority integer NOT NULL DEFAULT 0,
    accepted_at timestamptz NOT NULL DEFAULT now(),
    state text NOT NULL DEFAULT 'pending',
    desired_state text NOT NULL DEFAULT 'Running',
    attempt integer NOT NULL DEFAULT 0,
    started_at timestamptz,
    deadline timestamptz,
    finished_at timestamptz,
    object_deleted_at timestamptz,
    revision bigint NOT NULL DEFAULT 1,
    published_revision bigint NOT NULL DEFAULT 0,
    settled boolean NOT NULL DEFAULT false,
    event_seq bigint NOT NULL DEFAULT 0,
    input_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    thinking_tokens bigint NOT NULL DEFAULT 0,
    cached_tokens bigint NOT NULL DEFAULT 0,
    usage_complete boolean NOT NULL DEFAULT true,
    model_calls integer NOT NULL DEFAULT 0,
    interrupted_model_calls integer NOT NULL DEFAULT 0,
    tool_calls integer NOT NULL DEFAULT 0,
    evidence_missing jsonb NOT NULL DEFAULT '{}',
    final_analysis text,
    finding jsonb,
    executive_summary text,
    executive_summary_error text,
    failure_reason text,
    failure_message text
) WITH (fillfactor = 60);
COMMENT ON COLUMN investigation.settled IS 'finished and its last revision published (or its object gone): nothing to project';

CREATE INDEX investigation_open ON investigation (priority DESC, accepted_at) WHERE state IN ('pending', 'running');
CREATE INDEX investigation_unsettled ON investigation (accepted_at) WHERE NOT settled;
CREATE INDEX investigation_name ON investigation (namespace, name, accepted_at DESC);

CREATE TABLE investigation_input (
    investigation uuid PRIMARY KEY REFERENCES investigation ON DELETE CASCADE,
    author jsonb NOT NULL,
    alert_data text NOT NULL,
    runbook text,
    plan text NOT NULL
);
COMMENT ON COLUMN investigation_input.plan IS 'canonical JSON as text, byte for byte: plan_hash is its SHA-256';

CREATE TABLE worker (
    id uuid PRIMARY KEY,
    host text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
) WITH (fillfactor = 60);

CREATE TABLE lease (
    investigation uuid PRIMARY KEY REFERENCES investigation ON DELETE CASCADE,
    attempt integer NOT NULL,
    worker uuid NOT NULL
) WITH (fillfactor = 60);
COMMENT ON TABLE lease IS 'who may write a run; holds while its worker has not expired. Writers only ever lock it FOR SHARE';

CREATE TABLE stage (
    id uuid PRIMARY KEY,
    investigation uuid NOT NULL REFERENCES investigation ON DELETE CASCADE,
    index integer NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    expected_agents integer NOT NULL,
    parallel text,
    success_policy text,
    state text NOT NULL DEFAULT 'running',
    failure_reason text,
    failure_message text,
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    revision bigint NOT NULL,
    UNIQUE (investigation, index)
) WITH (fillfactor = 80);

CREATE TABLE execution (
    id uuid PRIMARY KEY,
    stage uuid NOT NULL REFERENCES stage ON DELETE CASCADE,
    index integer NOT NULL,
    agent text NOT NULL,
    display_name text NOT NULL,
    strategy text NOT NULL,
    provider text NOT NULL,
    model text NOT NULL,
    state text NOT NULL DEFAULT 'running',
    loop jsonb NOT NULL DEFAULT '{}',
    result text,
    failure_reason text,
    failure_message text,
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    UNIQUE (stage, index)
) WITH (fillfactor = 60);

CREATE TABLE message (
    execution uuid NOT NULL REFERENCES execution ON DELETE CASCADE,
    seq integer NOT NULL,
    role text NOT NULL,
    content text NOT NULL,
    tool_calls jsonb,
    tool_call_id text,
    tool_name text,
    provider_state jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (execution, seq)
);

CREATE TABLE tool_set (
    hash text PRIMARY KEY,
    definitions jsonb NOT NULL
);
COMMENT ON TABLE tool_set IS 'the tool definitions of model calls, stored once for each distinct set';

CREATE TABLE llm_interaction (
    id uuid PRIMARY KEY,
    execution uuid NOT NULL REFERENCES execution ON DELETE CASCADE,
    number integer NOT NULL,
    kind text NOT NULL,
    provider text NOT NULL,
    model text NOT NULL,
    strategy text NOT NULL,
    message_count integer NOT NULL,
    tool_set text REFERENCES tool_set,
    state text NOT NULL DEFAULT 'started',
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    duration_ms integer,
    message_seq integer,
    thinking text,
    input_tokens bigint,
    output_tokens bigint,
    thinking_tokens bigint,
    cached_tokens bigint,
    response_metadata jsonb,
    failure_reason text,
    failure_message text,
    UNIQUE (execution, number)
) WITH (fillfactor = 70);

CREATE TABLE mcp_interaction (
    id uuid PRIMARY KEY,
    execution uuid NOT NULL REFERENCES execution ON DELETE CASCADE,
    message_seq integer NOT NULL,
    index integer NOT NULL,
    attempt integer NOT NULL,
    call_id text NOT NULL,
    server text NOT NULL,
    tool text NOT NULL,
    arguments text NOT NULL,
    idempotency_key text NOT NULL,
    state text NOT NULL DEFAULT 'started',
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    duration_ms integer,
    result text,
    UNIQUE (execution, message_seq, index, attempt)
) WITH (fillfactor = 70);

-- No index on revision: a run has hundreds of events, its (investigation, seq) index finds them, and closing an event
-- stays a HOT update.
CREATE TABLE timeline_event (
    id uuid PRIMARY KEY,
    investigation uuid NOT NULL REFERENCES investigation ON DELETE CASCADE,
    seq bigint NOT NULL,
    revision bigint NOT NULL,
    type text NOT NULL,
    status text NOT NULL,
    content text NOT NULL,
    metadata jsonb NOT NULL,
    stage uuid,
    execution uuid,
    model_call uuid,
    tool_call uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (investigation, seq)
) WITH (fillfactor = 70);
