-- oldest reader: 4
-- Calls of tools that people decide about. Plans may have the policy Approve, which older code cannot read: older workers
-- leave such runs to newer ones.

CREATE TABLE tool_approval (
    id uuid PRIMARY KEY,
    investigation uuid NOT NULL REFERENCES investigation ON DELETE CASCADE,
    interaction uuid NOT NULL UNIQUE,
    digest text NOT NULL,
    request jsonb NOT NULL,
    targets jsonb NOT NULL,
    before jsonb,
    state text NOT NULL DEFAULT 'pending',
    requested_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    decided_at timestamptz,
    checked_at timestamptz,
    required integer NOT NULL CHECK (required IN (1, 2)),
    consumed_attempt integer,
    object_uid text,
    outcome text,
    revision bigint NOT NULL DEFAULT 1,
    published bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE tool_approval IS 'one call that waits for people; the object ToolApproval is made from it';
COMMENT ON COLUMN tool_approval.interaction IS 'id of the tool call, which has no row before it is approved or refused';
COMMENT ON COLUMN tool_approval.digest IS 'of canonical arguments, pinned definition, and uid and generation of the server';
COMMENT ON COLUMN tool_approval.request IS 'what people are shown, masked; never what is sent';
COMMENT ON COLUMN tool_approval.targets IS 'objects that the call changes, with uid and hash of the spec';
COMMENT ON COLUMN tool_approval.before IS 'masked objects before the call, for an undo';
COMMENT ON COLUMN tool_approval.state IS
    'pending, approved, rejected, expired, withdrawn, stale, or consumed: the call was sent at most once';
COMMENT ON COLUMN tool_approval.checked_at IS
    'when the rights of those who approved, the server and the policy were checked; counts for two minutes';
COMMENT ON COLUMN tool_approval.consumed_attempt IS 'attempt of the run that may send the call';
COMMENT ON COLUMN tool_approval.object_uid IS 'uid of the ToolApproval; an object with another one decides nothing';
COMMENT ON COLUMN tool_approval.published IS 'revision that the status of the object tells';

CREATE INDEX tool_approval_run ON tool_approval (investigation);
CREATE INDEX tool_approval_open ON tool_approval (expires_at) WHERE state IN ('pending', 'approved');
CREATE INDEX tool_approval_news ON tool_approval (id) WHERE revision > published;

CREATE TABLE tool_approval_decision (
    approval uuid NOT NULL REFERENCES tool_approval ON DELETE CASCADE,
    place integer NOT NULL,
    username text NOT NULL,
    decision text NOT NULL CHECK (decision IN ('Approve', 'Reject')),
    digest text NOT NULL,
    reason text NOT NULL DEFAULT '',
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (approval, place),
    UNIQUE (approval, username)
);
COMMENT ON TABLE tool_approval_decision IS 'decisions as the controller took them; kept as long as the record of the run';
