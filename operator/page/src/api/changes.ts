/** Declares the response of `GET .../investigations/{name}/changes`: changes around the onset, and signals of rules. */

export type ChangedObject = {
  kind: string;
  /** Empty for a cluster-scoped object. */
  namespace: string;
  name: string;
};

export type Change = {
  at: string;
  /** Rollout, Scale, Config, Network, Quota, Node, Storage, Restart, GitOps or Delete. */
  type: string;
  object: ChangedObject;
  summary: string;
  manager: string;
  /** Candidate: before the onset. Unordered: within the skew of the clocks. Consequence: after it. */
  order: string;
  score: number;
  source: string;
};

export type Signal = {
  rule: string;
  /** Certain or Likely. */
  certainty: string;
  text: string;
  quote: string;
  objects: ChangedObject[];
  count: number;
};

export type Changes = {
  target: ChangedObject | null;
  onset: string | null;
  onsetSource: string;
  since: string;
  /** Candidates by score, then unordered changes, then consequences. */
  changes: Change[];
  leftOut: number;
  signals: Signal[];
  /** Reason by kind that could not be read. */
  notRead: Record<string, string>;
  /** Tool calls on record; null: computed for this request. */
  changesCall: string | null;
  triageCall: string | null;
};
