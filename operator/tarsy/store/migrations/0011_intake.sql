-- oldest reader: 4
-- What comes in over HTTP: every notification is one row, with its fate, and belongs to an incident. An incident owes an
-- Alert (`manifest`) until there is one (`alert_uid`).

CREATE TABLE intake_route (
    uid text PRIMARY KEY,
    namespace text NOT NULL,
    name text NOT NULL,
    matched bigint NOT NULL,
    last_matched timestamptz NOT NULL,
    published bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 60);
COMMENT ON TABLE intake_route IS 'what each AlertRoute took, for its status';

CREATE TABLE incident (
    id uuid PRIMARY KEY,
    route text NOT NULL,
    group_hash text NOT NULL,
    namespace text NOT NULL,
    alert text NOT NULL,
    alert_uid text,
    manifest jsonb,
    parent uuid REFERENCES incident ON DELETE CASCADE,
    storm boolean NOT NULL DEFAULT false,
    opened_at timestamptz NOT NULL,
    first_start timestamptz NOT NULL,
    last_start timestamptz NOT NULL,
    last_received timestamptz NOT NULL,
    resolved_at timestamptz,
    repeats bigint NOT NULL DEFAULT 0,
    folded bigint NOT NULL DEFAULT 0,
    revision bigint NOT NULL DEFAULT 0,
    published bigint NOT NULL DEFAULT 0,
    CHECK (parent IS NULL OR (alert_uid IS NULL AND manifest IS NULL))
) WITH (fillfactor = 60);
COMMENT ON COLUMN incident.route IS 'namespace/name: a route that is deleted and made again goes on with its incidents';
COMMENT ON COLUMN incident.parent IS 'folded in a storm: the incident whose Alert stands for this one';

CREATE INDEX incident_group ON incident (group_hash, opened_at DESC);
CREATE INDEX incident_recent ON incident (route, opened_at);
CREATE INDEX incident_storm ON incident (route, last_received) WHERE storm;
CREATE INDEX incident_owed ON incident (opened_at) WHERE manifest IS NOT NULL;
CREATE INDEX incident_unpublished ON incident (opened_at) WHERE revision > published;
CREATE INDEX incident_parent ON incident (parent) WHERE parent IS NOT NULL;

CREATE TABLE notification (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    received_at timestamptz NOT NULL DEFAULT now(),
    source text NOT NULL,
    route text NOT NULL DEFAULT '',
    sender text NOT NULL,
    digest text NOT NULL,
    size bigint NOT NULL,
    fate text NOT NULL CHECK (fate IN ('investigated', 'folded', 'resolved', 'rejected')),
    reason text NOT NULL,
    incident uuid,
    resends integer NOT NULL DEFAULT 0
) WITH (fillfactor = 80);
COMMENT ON TABLE notification IS 'one row for each body that came from somebody known; the body itself is not kept';

CREATE INDEX notification_received ON notification (received_at);
CREATE INDEX notification_digest ON notification (digest, received_at);
CREATE INDEX notification_incident ON notification (incident) WHERE incident IS NOT NULL;

CREATE TABLE alert_body (
    namespace text NOT NULL,
    digest text NOT NULL,
    content text NOT NULL,
    kept_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (namespace, digest)
);
COMMENT ON TABLE alert_body IS 'masked texts that are too large for an Alert, which names them by digest';
