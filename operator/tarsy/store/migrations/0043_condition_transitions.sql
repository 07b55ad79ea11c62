-- oldest reader: 4
-- plans: unchanged
-- Health of configuration objects over time: each change of the status of a condition. Code before this migration records
-- none; what its controllers changed last is recorded when a controller of this version begins.

CREATE TABLE condition_transition (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uid text NOT NULL,
    namespace_uid text NOT NULL,
    namespace text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    type text NOT NULL,
    at timestamptz NOT NULL,
    status text NOT NULL CHECK (status IN ('True', 'False', 'Unknown', 'Absent')),
    was text CHECK (was IN ('True', 'False', 'Unknown', 'Absent')),
    reason text NOT NULL,
    message text NOT NULL,
    address text,
    omitted integer NOT NULL DEFAULT 0,
    UNIQUE (uid, type, at, status)
);
COMMENT ON TABLE condition_transition IS 'changes of the status of conditions of configuration objects, each once';
COMMENT ON COLUMN condition_transition.uid IS 'of the object';
COMMENT ON COLUMN condition_transition.at IS 'lastTransitionTime of the condition; of Absent the time at which it was missed';
COMMENT ON COLUMN condition_transition.status IS 'Absent: the object has no condition of this type any more';
COMMENT ON COLUMN condition_transition.was IS 'status before; null: the first one that is known';
COMMENT ON COLUMN condition_transition.message IS 'masked';
COMMENT ON COLUMN condition_transition.address IS 'scheme, host and port that the object was reached by';
COMMENT ON COLUMN condition_transition.omitted IS 'changes just before this one that came too fast to be recorded';
CREATE INDEX condition_transition_object ON condition_transition (namespace_uid, kind, name, at DESC, id DESC);
CREATE INDEX condition_transition_at ON condition_transition (at, id);
