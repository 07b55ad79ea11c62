import { describe, expect, it } from "vitest";
import { SUB_AGENTS } from "../fixtures/hypotheses";
import { call, event, told } from "../fixtures/build";
import { dispatchesOf } from "../src/logic/hypotheses";
import { EMPTY, reduce } from "../src/logic/timeline";

describe("the tree of hypotheses", () => {
  it("has under each agent those that it dispatched, with verdict and citations", () => {
    const [lead, ...others] = dispatchesOf(reduce(EMPTY, SUB_AGENTS.map((one) => told(one))));
    expect(others).toEqual([]);
    expect(lead?.agent).toBe("lead");
    expect(lead?.subAgents.map((one) => [one.id, one.verdict, one.why])).toEqual([
      ["log-reader-1", "Supported", null],
      ["node-reader-2", "Unresolved", "the agent says Supported, but it cites nothing"],
      ["log-reader-3", null, null],
    ]);
    expect(lead?.subAgents[0]?.cited.map((one) => one.where)).toEqual(["log-reader-1 · kubernetes.get_logs"]);
    expect(lead?.subAgents[2]?.task).toBe("Read the log of ledger.");
  });

  it("leaves out calls that dispatched nobody, and survives what has another form", () => {
    const refused = call("call-x", "dispatch_agent", { name: "x" }, "All 10 dispatches are used.");
    const odd = event("notice", "x", { metadata: { reason: "Verdict", citations: [null, 3, { quote: 1 }] }, execution: "e" });
    expect(dispatchesOf(reduce(EMPTY, [refused, odd].map((one) => told(one))))).toEqual([]);
  });
});
