-- oldest reader: 4
-- plans: unchanged
-- Parked runs wait for people, or for a provider's rate limit, without a worker. Their state stays 'running', so that code
-- before this migration counts them as open, deletes none and can show them; to such a worker they look handed back, and
-- it goes on with those whose plan it can read. It cannot read plans with the policy Approve (0026), so it leaves those
-- to newer workers, and ends them as unreadable when there are none for 10 minutes.

ALTER TABLE investigation
    ADD COLUMN parked_at timestamptz,
    ADD COLUMN parked_for text,
    ADD COLUMN parked_note text,
    ADD COLUMN wake_at timestamptz,
    ADD COLUMN seconds_left double precision,
    ADD COLUMN waited_seconds double precision NOT NULL DEFAULT 0;
COMMENT ON COLUMN investigation.parked_at IS 'when the run was parked, until a worker claims it again; it has no deadline then';
COMMENT ON COLUMN investigation.parked_for IS 'Approval or ProviderLimit';
COMMENT ON COLUMN investigation.parked_note IS 'what it waits for, as a sentence';
COMMENT ON COLUMN investigation.wake_at IS
    'when a parked run may be claimed; set while the run is not parked: something was decided since its claim';
COMMENT ON COLUMN investigation.seconds_left IS 'of its deadline, when it was parked';
COMMENT ON COLUMN investigation.waited_seconds IS 'time for which the run was parked so far, in all';

CREATE INDEX investigation_parked ON investigation (namespace, wake_at) WHERE parked_at IS NOT NULL;

-- Each parking of a run that waits for people is told of once.
ALTER TABLE notice ADD COLUMN number integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN notice.number IS 'attempt of the run that was parked; 0 for its start and its end';
ALTER TABLE notice DROP CONSTRAINT notice_occasion_check;
ALTER TABLE notice ADD CONSTRAINT notice_occasion_check CHECK (occasion IN ('started', 'ended', 'waits'));
ALTER TABLE notice DROP CONSTRAINT notice_investigation_target_occasion_key;
ALTER TABLE notice ADD CONSTRAINT notice_investigation_target_occasion_key
    UNIQUE (investigation, target, occasion, number);
