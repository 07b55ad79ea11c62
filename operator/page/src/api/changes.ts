/** Declares the response of `GET .../investigations/{name}/changes`: changes around the onset, and signals of rules. */

export type ChangedObject = { kind: string; namespace: string; name: string };

export type Change = {
  at: string;
  /** Rollout, Scale, Config, Network, Quota, Node, Storage, Restart, GitOps or Delete. */
  type: string;
  object: ChangedObject;
  summary: string;
  manager: string;
  /** Candidate, Unordered or Consequence. */
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
  since: string;
  changes: Change[];
  signals: Signal[];
  /** Reason by kind that could not be read. */
  notRead: Record<string, string>;
};
