/**
 * Contains the words of the web UI: phases, headings, buttons, empty states.
 *
 * Decision: phases are those of kubectl. The API sends states, and its document names the word of each, so a state
 * without its word, or with another one, does not compile. Views take words from here (tests/words.test.ts), so wording
 * is reviewed in one file.
 */
import type { Confidence, EventType, Flaw, Outcome, PhaseWords, StepWords } from "./api/types";

/** Phases of investigations and of answers. */
export const PHASES: PhaseWords = {
  pending: "Queued",
  running: "Running",
  parked: "Parked",
  concluding: "Concluding",
  completed: "Succeeded",
  failed: "Failed",
  cancelled: "Cancelled",
  timed_out: "TimedOut",
};

/** Phases of stages, agents, calls and events. */
export const STEPS: StepWords = {
  pending: "Pending",
  started: "Running",
  streaming: "Running",
  running: "Running",
  parked: "Parked",
  completed: "Succeeded",
  failed: "Failed",
  cancelled: "Cancelled",
  timed_out: "TimedOut",
  interrupted: "Interrupted",
};

export const CONFIDENCE: Record<Confidence, string> = {
  High: "High confidence",
  Medium: "Medium confidence",
  Low: "Low confidence",
  Inconclusive: "Inconclusive",
};

export const INTEGRITY = {
  K: "K: only the control plane writes this",
  A: "A: workloads can write this",
  X: "X: anyone outside the cluster can write this",
};

export const QUOTES = { replaced: "no longer in the latest result of this call" };

export const SUPPORT = {
  supported: "Supported",
  contradicted: "Supported, contradicted by later results of the same calls",
  ungrounded: "Supported, not grounded: not in its quotes, the alert or the arguments of its calls",
  unsupported: "Not supported",
};

/** Flaws of a run: a name, and what it means. */
export const DOUBTS = {
  why: "Why the confidence is not higher:",
  calibration: "Too few findings of this chain with this confidence were right.",
  but: "Keep in mind:",
  missing: "Evidence is missing:",
  own: "The agents rated it so themselves; no check lowered it.",
} as const;

export const ACTED = { yes: "Acted", no: "Did not act", contradicted: "Model says otherwise" } as const;

export const NEXT = {
  failed: "The run has failed: read its error above, then run it again, or investigate by hand with the evidence that is there.",
  cancelled: "The run was cancelled. Submit the alert again if it still fires.",
  none: "The run names no next step. Read the evidence, or ask a question.",
} as const;

export const FLAWS: Record<Flaw, { name: string; what: string }> = {
  EvidenceDegraded: { name: "Evidence missing", what: "A tool server was missing, or no tool was called." },
  UnsupportedClaims: { name: "Unsupported claim", what: "A claim of the finding has no quote that the record contains." },
  UngroundedClaims: { name: "Ungrounded claim", what: "A claim names something that its quotes, the alert and the arguments of its calls do not." },
  ContradictedClaims: { name: "Contradicted", what: "Later results of the same calls no longer contain what a claim quotes." },
  Unstructured: { name: "No claims", what: "The model wrote no finding in the requested form, so nothing of it is checked." },
  BudgetReached: { name: "Budget reached", what: "A limit of the budget ended the run before its own end." },
  ConcludedEarly: { name: "Concluded early", what: "Somebody asked the run to conclude before it was finished." },
  ArgumentRefused: { name: "Argument refused", what: "A tool call was refused because untrusted text had chosen where it goes." },
  ToolNotVerified: { name: "Tool not verified", what: "A tool call was refused because the definition of the tool has changed and nobody accepted it." },
};

/** What became of the alert of a finding. */
export const OUTCOMES: Record<Outcome, { name: string; what: string }> = {
  Settled: { name: "Settled", what: "The alert was resolved after the finding and did not fire again. Nothing is known to have been changed." },
  ChangedAndSettled: { name: "Changed, settled", what: "What the finding blames was changed after it, then the alert was resolved and did not fire again." },
  Recurred: { name: "Recurred", what: "The alert fired again after it had been resolved." },
};

/** Other runs of the same alert. */
export const RETRIES = { of: "retry of", by: "retried by" } as const;

/** What is known before there is a finding. */
export const SO_FAR = {
  cause: "Likely cause",
  none: "Not known yet: no agent has concluded.",
  candidate: "The first candidate among the changes.",
  hypothesis: "Supported by sub-agent",
  unsure: "There is no confidence before the finding.",
  goesOn: "Nothing: it goes on by itself.",
  stops: "Conclude stops it with a finding from the evidence so far, Cancel without one.",
  concludes: "Nothing: it writes its finding from the evidence so far.",
  ends: "Nothing: it is being cancelled.",
  waits: "Nothing: it starts as soon as a worker is free. If it stays queued, see",
  parked: "Decide the call that it waits for, if it is yours to decide:",
} as const;

export const SEVERITIES = { Critical: "Critical", Warning: "Warning", Info: "Info" } as const;

export const EVENTS: Record<EventType, string> = {
  llm_thinking: "Thinking",
  llm_response: "Response",
  llm_tool_call: "Tool call",
  mcp_tool_summary: "Tool result summary",
  code_execution: "Code execution",
  google_search_result: "Google Search",
  url_context_result: "URL context",
  error: "Error",
  notice: "Notice",
  provider_fallback: "Provider fallback",
  final_analysis: "Final analysis",
  executive_summary: "Executive summary",
  user_question: "Question",
};

/** A stage that ran once more with another provider. */
export const ESCALATION = {
  word: "Second attempt",
  title: "The finding of the stage before asked for a run with another provider",
  recorded: "from the first attempt",
  recordedTitle: "The same call was made in the first attempt, so its result was taken from the record",
} as const;

/** Orders of changes relative to the onset. */
export const ORDERS = { Candidate: "Candidate", Unordered: "Order unknown", Consequence: "After the onset" } as const;
export const CERTAINTY = { Certain: "Certain", Likely: "Likely" } as const;

export const CHANGES = {
  onset: "Onset",
  first: "First candidate",
  signals: "Signals of rules",
  others: "Further changes",
  by: "by",
  leftOut: "Changes that are not listed",
  notRead: "Not read",
} as const;

export const READY = { no: "Not ready", suspended: "Suspended" } as const;

/** Origins of the answers to the tool calls of a replay, the best first. */
export const RUNGS = { exact: "exact", normalised: "normalised", derived: "derived", miss: "miss", live: "live" } as const;

/** Marks of a cell. */
export const MARKS = {
  regressed: "Regressed",
  improved: "Improved",
  failed: STEPS.failed,
  inconclusive: CONFIDENCE.Inconclusive,
  flaky: "Flaky",
  confidentlyWrong: "Confidently wrong",
} as const;

export const VERDICTS = { running: STEPS.running } as const;

export const PROMOTION = {
  serves: "Serving",
  held: "Newest revision does not serve",
  policy: "Policy",
  serving: "serving revision",
  candidate: "candidate",
  removed: "not in the suite any more",
  noneWrong: "no sample may be confidently wrong",
  olderSuite: "measured an older suite",
} as const;

export const JUDGES = {
  Gates: "judge decides",
  Informs: "judge informs only",
  Unavailable: "judge could not be measured",
  measuring: "judge is being measured",
} as const;

export const COMPARED = {
  onlyIn: "Only in",
  noCall: "No tool call in either run.",
  apartFromStart: "The first call differs.",
  noFurtherCall: "No further call.",
  divergence: "First divergence",
} as const;

export const VIEWS = {
  investigations: "Investigations",
  submit: "Submit an alert",
  system: "System",
  usage: "Usage",
  suites: "Suites",
  approvals: "Needs you",
  reviews: "Reviews",
  compare: "Compare",
  trace: "Trace",
  signIn: "Sign in",
} as const;

export const SECTIONS = {
  timeline: "Timeline",
  now: "At work",
  finding: "Finding",
  next: "What to do next",
  soFar: "So far",
  evidence: "Evidence",
  alertText: "Text of the alert",
  review: "Was it right?",
  score: "Scores by judges",
  executiveSummary: "Executive summary",
  questions: "Questions",
  usage: "Usage",
  alert: "Alert",
  changes: "Changes around the onset",
  changesByTime: "Changes before the alert",
  queue: "Queue",
  workers: "Workers",
  configuration: "Configuration",
  plan: "Plan of a chain",
  runbooks: "Runbooks",
  quotas: "Quotas",
  usageByDay: "By day",
  usageByGroup: "Sums",
  verdicts: "Reviews of findings",
  outcomes: "Recurrences",
  evaluations: "Evaluations",
  sent: "Messages sent",
  response: "Response",
  arguments: "Arguments",
  result: "Result",
  runbook: "Runbook",
  thinking: EVENTS.llm_thinking,
  metadata: "Metadata",
  caseByRevision: "Case by revision",
  samples: "Samples",
  promotion: "Promotion",
  toolCalls: "Tool calls",
  replay: "Replay",
  change: "Change",
  changeForGit: "Change to make in Git",
  undo: "Undo",
  reason: "Reason and evidence",
  unstarted: "Not started",
  active: "Active",
  finished: "Finished",
  found: "Found",
  decision: "Your decision",
  decisions: "Decisions",
} as const;

export const HYPOTHESES = { title: "Sub-agents and their hypotheses", none: "no verdict yet", task: "Task" } as const;

export const COLUMNS = {
  lastTime: "Last",
  nextTime: "Next",
  unfinished: "not finished",
  appliesTo: "Applies to",
  allowedTools: "Allowed tools",
  skillText: "Text",
  phase: "Phase",
  investigation: "Investigation",
  finding: "Finding",
  progress: "Stages",
  step: "Step",
  stage: "Stage",
  tokens: "Tokens",
  cost: "Cost",
  duration: "Duration",
  age: "Age",
  startsAt: "Firing since",
  investigations: "Investigations",
  modelCalls: "Model calls",
  toolCalls: "Tool calls",
  input: "Input",
  cached: "Cached",
  output: "Output",
  queued: PHASES.pending,
  running: PHASES.running,
  parked: PHASES.parked,
  orphaned: "To be resumed",
  case: "Case",
  baseline: "Baseline",
  coverage: "Coverage",
  lastRun: "last run",
  chain: "Chain",
  confidence: "Confidence",
  interrupted: STEPS.interrupted,
  alert: "Alert",
  reason: "Reason",
} as const;

/** Nouns of counts: one, several. */
export const NOUNS = {
  events: ["event", "events"],
  steps: ["step", "steps"],
  tools: ["tool", "tools"],
  toolCalls: ["tool call", "tool calls"],
  toolsOffered: ["tool offered", "tools offered"],
  runs: ["run", "runs"],
  calls: ["call", "calls"],
  objects: ["object", "objects"],
  changes: ["change", "changes"],
  moreObjects: ["more object", "more objects"],
  moreWaiting: ["more", "more"],
  cases: ["case", "cases"],
  samples: ["sample a case", "samples a case"],
  sameCalls: ["tool call, the same in both runs", "tool calls, the same in both runs"],
  sameThenApart: ["call is the same, then:", "calls are the same, then:"],
  moreCalls: ["more call", "more calls"],
  unsupported: ["claim is not supported by the record", "claims are not supported by the record"],
  ungrounded: ["claim names something that its evidence does not", "claims name something that their evidence does not"],
  contradicted: ["claim is contradicted by later results", "claims are contradicted by later results"],
  unused: ["recorded call not used", "recorded calls not used"],
  mayBeWrong: ["sample may be confidently wrong", "samples may be confidently wrong"],
  fresh: ["new event", "new events"],
  changed: ["new or changed investigation: refresh", "new or changed investigations: refresh"],
} as const;

export const REVIEW_STATE_WORDS = { NeedsReview: "Needs review", InProgress: "In progress", Reviewed: "Reviewed" } as const;

export const REVIEW_VERDICTS = { Right: "Right", Partly: "Partly", Wrong: "Wrong" } as const;

export const REVIEW = {
  states: "State of the reviews",
  choose: "Choose",
  together: "Review the chosen findings",
  chosen: "chosen",
  claim: "I review it",
  reopen: "Reopen",
  claimedBy: "claimed by",
  reviewedBy: "reviewed by",
  past: "does not count any more",
  cause: "Root cause",
  causeForm: "Write the root cause as Kind/name, such as Deployment/checkout.",
  note: "Note",
  stored: "Your Review was created.",
  more: "There are more; review the first ones, or use kubectl tarsy reviews.",
} as const;

export const SUBMITTED = {
  selects: "Selects the chain.",
  usual: "of this namespace if empty.",
  later: "No chain handles it; this one takes it after five minutes:",
  waits: "No chain handles it yet; the alert waits for one.",
} as const;

export const CALIBRATION = {
  title: "How often findings were right",
  doubted: "In doubt:",
  none: "No confidence is doubted.",
  right: "Right",
  of: "of",
  interval: "95 % interval",
  newest: "Newest 20",
  before: "Before",
  worse: "worse",
  counts: "By the verdicts of people, in all namespaces that use the chain. The line marks the floor of High.",
  more: "There are more chains; see kubectl tarsy calibration.",
} as const;

export const SCORE_STATE_WORDS = { Waiting: "Waits", Started: "Is scored", Completed: "Scored", Failed: "Not scored", Refused: "Not allowed", Expired: "Waited too long" } as const;

export const SCORE = {
  of100: "of 100",
  advice: "Advice of a model: it changes no finding and no confidence.",
  bySuite: "by suite",
  earlier: "by an earlier judge",
  asked: "asked for",
  missing: "Missing tool",
  again: "Ask for another score",
  askedFor: "Another score is asked for.",
  mean: "mean",
  lowest: "lowest",
  scored: "scored in 30 days",
  days: "Score the last 7 days again",
  waiting: "waiting",
  failed: "failed",
  today: "tokens today",
  none: "No score in 30 days by the present judge.",
} as const;

export const ACTIONS = {
  signIn: "Sign in",
  signOut: "Sign out",
  tryAgain: "Try again",
  skip: "Skip to content",
  clear: "Clear filters",
  filters: "Filters",
  nextPage: "Next page",
  previousPage: "Previous page",
  conclude: "Conclude",
  cancel: "Cancel",
  yesConclude: "Yes, conclude",
  yesCancel: "Yes, cancel",
  no: "No",
  copy: "Copy",
  copied: "Copied",
  by: "by",
  via: "via",
  copyMarkdown: "Copy as Markdown",
  share: "Share",
  print: "Print",
  copyLink: "Copy link",
  json: "JSON",
  ask: "Ask",
  answering: "Answering …",
  submit: "Submit",
  submitAnother: "Submit another alert",
  more: "Show more",
  less: "Show less",
  openAll: "Open all",
  fold: "Fold",
  follow: "Follow",
  pause: "Pause",
  foldAll: "Fold all",
  allAgents: "All agents",
  showInvestigations: "Show investigations",
  selectTools: "Select tools",
  retry: "Run again",
  startRetry: "Start the run",
  replay: "Replay",
  startReplay: "Start the replay",
  compare: "Compare",
  compareWithSource: "Compare with the recorded run",
  swap: "Swap sides",
  close: "Close",
  reload: "Reload",
  later: "Later",
  switchTheme: "Switch between light and dark",
  switchZone: "Switch between local time and UTC",
  showKeys: "Show the keys",
  showTrace: "Show the trace of this investigation",
  approve: "Approve",
  reject: "Reject",
} as const;

export const OPTIONS = {
  allNamespaces: "All namespaces",
  searchSummaries: "In summaries",
  searchTimelines: "In timelines",
  anyPhase: "Any phase",
  anyTime: "Any time",
  flawsOrNot: "With flaws or not",
  anyFlaw: "Any flaw",
  onlyFlaw: "Show those with this flaw.",
  flawCounts: "Flaws of these investigations",
  onlySeverity: "Show those of this severity.",
  anySeverity: "Any severity",
  anyOutcome: "Any outcome",
  moreAlike: "more of the same alert",
  utc: "UTC",
  local: "Local time",
  customRange: "Custom range …",
  noSeverity: "No severity",
  asConfigured: "As configured",
  on: "On",
  off: "Off",
  sameChain: "The same chain, as it is now",
  sameModels: "The same models",
  recordedChain: "The recorded chain, as it is now",
  ownModels: "The models of the chain",
} as const;

export const HINTS = {
  retry: "Investigates the same alert anew: the tools read the cluster as it is now.",
  replay: "Runs it again with its recorded tool results. Nothing in the cluster is read or changed.",
} as const;

/** Words of the palette of commands. */
export const PALETTE = {
  title: "Commands",
  placeholder: "Go to a view, an investigation, or an action",
  nothing: "Nothing matches.",
  runs: "Investigation",
  views: "View",
  actions: "Action",
} as const;

export const KEYS = {
  title: "Keys",
  all: [
    [["Ctrl", "K"], "Commands: views, investigations, actions (⌘ K on a Mac)"],
    [["?"], "This list"],
    [["/"], "Search investigations"],
    [["j"], "Next investigation of the list"],
    [["k"], "Previous investigation of the list"],
    [["Enter"], "Open the investigation"],
    [["f"], "Follow a running timeline, or pause"],
    [["o"], "Open all events of a timeline, or fold them"],
    [["Esc"], "Close a dialog, or leave the search"],
  ],
} as const;

export const FOLLOWS = {
  on: "Notifying me",
  off: "Notify me",
  what: "Notifies you in this browser when it ends or waits for people",
  blocked: "Notifications are blocked in this browser.",
  parked: "It waits for people.",
} as const;

export const SORT = { newest: "Newest first", oldest: "Oldest first", finished: "Last finished first", duration: "Longest first", severity: "Highest severity first", confidence: "Highest confidence first", cost: "Highest cost first", tokens: "Most tokens first" } as const;
export const GROUPS = { chain: "Chain", model: "Model", namespace: "Namespace", author: "Author", alertType: "Alert type", provider: "Provider" } as const;
export const MEASURE_WORDS = { cost: "Cost", tokens: "Tokens" } as const;
export const PERIODS = { 3600: "Last hour", 86_400: "Last 24 hours", 604_800: "Last 7 days", 2_592_000: "Last 30 days" } as const;

export const EMPTY = {
  noReviews: "No finding is in this state.",
  loading: "Loading …",
  noInvestigations: "No investigations yet. Submit an alert, or apply one with kubectl.",
  noMatch: "No investigations match the filters. Clear them, or choose another time.",
  noPermission: "You have no permission to list investigations in any namespace. Ask for the role tarsy-viewer.",
  noEvents: "No events: no agent has started.",
  queued: "Queued: waits for a worker.",
  starting: "Starting …",
  noCalls: "No calls yet.",
  selectCall: "Select a call to see its details.",
  noUsage: "No usage in this period.",
  noQuotas: "No quotas: spending is not limited.",
  noChains: "No chains.",
  noWorkers: "No worker is registered: accepted runs do not start.",
  noRunbooks: "No chain and no defaults declare a runbook.",
  noTools: "none",
  noResponse: "No response.",
  noResult: "No result.",
  noArguments: "No arguments.",
  noChanges: "No change is visible in this period.",
  noView: "This view does not exist.",
  signedIn: "You are signed in.",
  noSuites: "No suites yet. An EvalSuite holds recorded incidents and what a good finding must contain.",
  noVerdict: "not measured yet",
  noRuns: "No runs yet. Create an EvalRun to measure a chain.",
  noSamples: "No samples yet.",
  noRecord: "record deleted",
  noFinding: "No finding.",
  cancelledFirst: "No finding: it was cancelled before it had one.",
  endedWithout: "No finding: it ended without one. The timeline shows what its agents saw.",
  noToolCalls: "No tool calls.",
  noApprovals: "No call waits for people. Calls that need an approval appear here.",
  notLookedAt: "TARSy has not looked at it yet. If this stays, check that the operator runs.",
  moreUnstarted: "The latest are shown. kubectl get talert,inv lists all.",
  noPreview: "There is no preview: decide by tool and arguments.",
} as const;

/** Words about calls that wait for people. */
export const APPROVAL = {
  on: "on",
  of: "of",
  approvals: "approvals",
  startedBy: "started by",
  left: "left",
  over: "expired",
  destructive: "Destructive",
  notCounted: "Decisions do not count now.",
  notShown: "The results that it cites are not shown.",
  gone: "No longer on record:",
  cut: "… (cut)",
  noTarget: "targets not known",
  inNamespace: "in",
  digest: "Digest of what is shown:",
  why: "Reason (optional)",
  managedBy: "managed by",
  undoes: "undoes",
  noUndo: "It cannot be undone by a call.",
  undeclared: "The MCPServer declares no undo.",
  typeName: "To approve this destructive call, type",
} as const;

/** Words about the limits of a run. */
export const METERS = { title: "Used of its limits", of: "of", tokens: COLUMNS.tokens, cost: COLUMNS.cost, time: "Time", toolCalls: COLUMNS.toolCalls, iterations: "Iterations" } as const;

export const QUOTAS = {
  title: "Spent of its limits",
  limits: { dollars: "US dollars", tokens: COLUMNS.tokens, investigations: "Investigations" },
  reserved: "reserved",
  until: "until",
  exceeded: "No room:",
  happens: { Queue: "investigations wait.", Reject: "investigations are rejected.", TriageOnly: "investigations ask no model." },
} as const;

export const PRECEDENTS = {
  title: "Earlier investigations",
  hint: "Told to the agents as history. No evidence.",
  hidden: "in other namespaces that you may not read",
  gone: "record deleted",
  reviewedBy: "reviewed by",
} as const;

export const MATCHES = {
  Incident: "same incident",
  Workload: "same workload and alert type",
  ChangedObject: "same changed object",
  Words: "words in common",
} as const;

export const ENDINGS = {
  Confirmed: "confirmed",
  Partly: "partly confirmed",
  Unknown: "outcome unknown",
  Refuted: "refuted",
} as const;

/** Words about usage. */
export const USAGE = {
  period: "Period",
  groupBy: "Group by",
  show: "Show",
  others: "All others",
  byDayAnd: "by day and",
  costOfFinding: "Cost a finding",
  findings: "Findings",
  share: "Share",
  today: "Today",
  noPrice: "No cost is known: set spec.rates of the LLMProvider. Tokens are counted.",
  partlyUnknown: "The cost of some calls is not known and not included.",
  moreGroups: "more, included in the total",
  someNamespaces: "The first 20 of your namespaces are included. Select one to see others.",
  sum: "Total",
} as const;

/** Words about the quality of findings. */
export const QUALITY = {
  noVerdicts: "No finding of this period was reviewed.",
  noOutcomes: "No outcome of an alert is known in this period.",
  noEvaluations: "No evaluation has finished in this period.",
  mayNotReviews: "You may not list reviews (role tarsy-viewer).",
  mayNotEvaluations: "You may not list EvalRuns (role tarsy-viewer).",
  reviewed: "of the findings were reviewed",
  right: "Share of Right",
  ofReviewed: "of",
  passed: "Passed samples",
  hidden: "suites with fewer results are not drawn",
  older: "Only the newest results are shown.",
  recurred: "of the findings with a known outcome recurred",
} as const;

export const CHARTS = {
  table: "Show as a table",
  whole: "Whole period",
  to: "to",
  highest: "highest",
  unknownMark: "?",
  keys: "Left and right arrow keys select a bar",
  day: "Day",
  run: "Run",
  result: "Verdict",
  ended: "Ended",
  onset: "Onset",
  notDrawn: "Series that are not drawn",
} as const;

export const PROBLEMS = {
  connectionLost: "Connection lost",
  connected: "Connected again",
  stale: "data of",
  newVersion: "A new version of TARSy is running.",
  liveUnavailable: "Live updates are unavailable.",
  traceForbidden: "The trace requires a separate permission (role tarsy-tracer).",
  compareForbidden: "A comparison requires the roles tarsy-viewer and tarsy-tracer.",
  sessionEnded: "Your session has ended.",
  signedOut: "You are signed out.",
  retrying: "This page shows it as soon as it exists. If that takes long, check its name and namespace.",
  forbidden: "Ask for the role tarsy-viewer in this namespace.",
  reload: "Reload the page to try again.",
  accepting: "Fix this: the investigation is then accepted and opens here.",
} as const;

/** Words of the view System. */
export const SYSTEM = {
  whyNothing: "Why does nothing start?",
  whatBroken: "What is broken?",
  noWorker: "No worker is alive.",
  waits: "Waiting",
  nothingWaits: "Nothing waits.",
  inLine: PHASES.pending,
  nothingBroken: "No object reports a problem.",
  notAccepted: "Not accepted",
  moreInQueue: "more wait.",
  since: "since",
  replay: "replay",
  runs: "runs",
  questions: "questions",
  heartbeat: "last heartbeat",
  ago: "ago",
  up: "up for",
  workersForbidden: "Workers belong to the installation: listing them requires the role tarsy-viewer in all namespaces.",
  search: "Search objects",
  anyKind: "Any kind",
  anyHealth: "Any health",
  strip: "Calls and runs on record in the last 24 hours: green succeeded, red failed, grey none",
  noneInPeriod: "No recorded call in this period",
  failed: "failed",
  lastFailed: "the last",
  thisHour: "in this hour",
  noObjects: "No configuration objects.",
  noMatch: "No object matches the filters.",
  moreNotShown: "There are more objects. Choose a namespace.",
  address: "Address",
  lastError: "Last error",
  created: "Created",
  tools: "Tools",
  conditions: "Conditions",
  uses: "Uses",
  usedBy: "Used by",
  missing: "does not exist",
  showPlan: "Show the plan of this chain",
  lastRuns: "Last runs",
  noRuns: "No run on record used it, of those that you may list.",
  chain: "Chain",
  chooseChain: "Choose a chain",
  alertType: "Alert type",
  alertIn: "Alert in namespace",
  anyType: "Any",
  builtIn: "built in",
  noPlan: "No investigation would start:",
  planWarnings: "It would start, and these objects report problems:",
} as const;

/** Health of configuration objects. */
export const HEALTH = { NotReady: READY.no, Degraded: "Degraded", Unknown: "Unknown", Ready: "Ready" } as const;

/** The same over time. */
export const SHOWN_HEALTH = { ...HEALTH, NotRecorded: "Not recorded" } as const;

/** Health of configuration objects over time. */
export const HEALTH_OVER_TIME = {
  period: "Period of health",
  day: "Last 24 hours",
  week: "Last 7 days",
  legendDay: "Health in the last 24 hours, the worst of each hour:",
  legendWeek: "Health in the last 7 days, the worst of each 6 hours:",
  of_: "Health of",
  of: "of",
  withProblems: "parts with a problem",
  since: "since",
  until: "to",
  changes: "Changes of conditions",
  noChanges: "No change of its conditions is recorded.",
  time: "Time",
  condition: "Condition",
  change: "Change",
  why: "Reason and message",
  first: "new",
  earlier: "(an earlier object of this name)",
  omitted: "states before it not recorded:",
  newest: "Newest changes",
  older: "Older changes",
} as const;

/** States of workers, with the state by whose colour each is drawn. */
export const WORKERS = {
  alive: { word: "Alive", state: "completed" },
  draining: { word: "Draining", state: "cancelled" },
  lost: { word: "Lost", state: "failed" },
} as const;
