/** Names the types of the API, generated from the OpenAPI document (`make test-page` writes schema.d.ts). */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Item = Schemas["InvestigationItem"];
export type ItemList = Schemas["InvestigationList"];
export type UnstartedItem = Schemas["UnstartedItem"];
export type UnstartedPage = Schemas["UnstartedPage"];
export type Investigation = Schemas["InvestigationView"];
export type Stage = Schemas["StageView"];
export type Acted = Schemas["ActedView"];
export type Agent = Schemas["AgentView"];
export type Spent = Schemas["Spent"];
export type Finding = Schemas["FindingView"];
export type Citation = Schemas["CitationView"];
export type RunHead = Schemas["RunHead"];
export type EventType = Schemas["EventType"];
export type ToldEvent = Schemas["ToldEvent"];
export type QuestionRef = Schemas["QuestionRef"];
export type StageChange = Schemas["StageChange"];
export type TimelineMessage = Schemas["TimelineMessage"];
export type RunMessage = Schemas["RunMessage"];
export type StageMessage = Schemas["StageMessage"];
export type DeltaMessage = Schemas["DeltaMessage"];
export type ItemMessage = Schemas["ItemMessage"];
export type OverflowMessage = Schemas["OverflowMessage"];
export type ErrorMessage = Schemas["ErrorMessage"];
export type ServerMessage =
  | TimelineMessage
  | RunMessage
  | StageMessage
  | DeltaMessage
  | ItemMessage
  | OverflowMessage
  | ErrorMessage
  | Schemas["SubscribedMessage"]
  | Schemas["CaughtUpMessage"]
  | Schemas["UnsubscribedMessage"]
  | Schemas["PongMessage"];
export type Events = Schemas["EventsView"];
export type Session = Schemas["SessionView"];
export type Namespaces = Schemas["NamespaceList"];
export type ChatMessages = Schemas["ChatMessageList"];
export type ChatMessage = Schemas["ChatMessageView"];
export type Asked = Schemas["Asked"];
export type Trace = Schemas["TraceView"];
export type AgentTrace = Schemas["AgentTrace"];
export type ModelCall = Schemas["ModelCallView"];
export type ToolCall = Schemas["ToolCallView"];
export type ModelCallDetails = Schemas["ModelCallDetails"];
export type ToolCallDetails = Schemas["ToolCallDetails"];
export type Message = Schemas["MessageView"];
export type AlertTypes = Schemas["AlertTypeList"];
export type Alert = Schemas["AlertView"];
export type SubmittedAlert = Schemas["SubmittedAlert"];
export type ScoresShown = Schemas["ScoresView"];
export type ScoreShown = Schemas["ScoreView"];
export type SuiteScoresShown = Schemas["SuiteScoresView"];
export type CalibrationShown = Schemas["CalibrationList"];
export type CalibratedChain = Schemas["ChainCalibration"];
export type CalibratedClass = Schemas["ConfidenceCalibration"];
export type ScoreRequested = Schemas["ScoreRequested"];
export type ReviewItem = Schemas["ReviewItem"];
export type ReviewPage = Schemas["ReviewPage"];
export type ReviewShown = Schemas["ReviewView"];
export type ReviewResults = Schemas["ReviewResults"];
export type Chains = Schemas["ChainList"];
export type Chain = Schemas["ChainView"];
export type McpServers = Schemas["McpServerList"];
export type McpServer = Schemas["McpServerView"];
export type Providers = Schemas["LlmProviderList"];
export type Provider = Schemas["LlmProviderView"];
export type Schedules = Schemas["ScheduleList"];
export type Quotas = Schemas["QuotaList"];
export type QuotaItem = Schemas["QuotaView"];
export type ScheduleItem = Schemas["ScheduleView"];
export type Skills = Schemas["SkillList"];
export type SkillItem = Schemas["SkillView"];
export type SkillText = Schemas["SkillTextView"];
export type Runbooks = Schemas["RunbookList"];
export type RunbookItem = Schemas["RunbookView"];
export type RunbookText = Schemas["RunbookTextView"];
export type Queue = Schemas["QueueView"];
export type QueueItem = Schemas["QueueItem"];
export type WorkersShown = Schemas["WorkerList"];
export type WorkerItem = Schemas["WorkerView"];
export type ConfigurationShown = Schemas["ConfigurationList"];
export type ConfigurationItem = Schemas["ConfigurationItem"];
export type ObjectName = Schemas["ObjectRefView"];
export type ObjectHealthShown = Schemas["ObjectHealthList"];
export type ObjectHealth = Schemas["ObjectHealthView"];
export type Transitions = Schemas["TransitionList"];
export type ActivityShown = Schemas["ActivityView"];
export type ObjectRuns = Schemas["ObjectRunList"];
export type PlanShown = Schemas["PlanView"];
export type PlanPart = Schemas["PlanNode"];
export type Step = Schemas["StepView"];
export type ComparedAgent = Schemas["ComparedAgent"];
export type ComparedRun = Schemas["ComparedRun"];
export type Comparison = Schemas["Comparison"];
/** What starts a run again answers: where the new one is. */
export type StartedAgain = Schemas["StartedRetry"] | Schemas["StartedReplay"];
export type EvalSuites = Schemas["EvalSuiteList"];
export type EvalSuite = Schemas["EvalSuiteView"];
export type EvalRun = Schemas["EvalRunView"];
export type MeasuredRun = Schemas["MeasuredRun"];
export type JudgeOfRun = Schemas["JudgeView"];
export type SuiteCase = Schemas["SuiteCase"];
export type SuiteCell = Schemas["SuiteCell"];
export type ApprovalPage = Schemas["ApprovalPage"];
export type ApprovalItem = Schemas["ApprovalItem"];
export type ApprovalView = Schemas["ApprovalView"];
export type ApprovalEvidence = Schemas["ApprovalEvidenceView"];
export type Precedents = Schemas["PrecedentList"];
export type Precedent = Schemas["PrecedentView"];
export type DailyUsage = Schemas["DailyUsageView"];
export type UsageItem = Schemas["UsageItem"];
export type Quality = Schemas["QualityView"];
export type State = Item["state"];
export type Flaw = Schemas["Flaw"];
export type Outcome = Schemas["IncidentOutcome"];
export type Confidence = Schemas["Confidence"];
export type PhaseWords = Schemas["PhaseWords"];
export type StepWords = Schemas["StepWords"];
export type Changes = Schemas["InvestigationChangesView"];
export type Change = Schemas["ChangeView"];
export type Signal = Schemas["SignalView"];
export type ChangedObject = Schemas["EvidenceObject"];
