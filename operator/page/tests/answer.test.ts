import { describe, expect, it } from "vitest";
import type { Finding, Investigation } from "../src/api/types";
import { alertParts } from "../src/logic/alert";
import { doubtsOf } from "../src/logic/doubts";
import { placeOf } from "../src/logic/lines";
import { commandsOf, nextSteps } from "../src/logic/nextSteps";

const none = { summary: "", executive: null, analysis: null };

describe("what to do next", () => {
  it("is the section of the analysis, up to the next heading of its level", () => {
    const analysis = "## What happened\n\nIt broke.\n\n## Remedy\n\n1. Restore it.\n\n### How\n\n```sh\nkubectl -n shop rollout restart \\\n  deployment/checkout\n```\n\n## Later\n\nNothing.";
    const found = nextSteps({ ...none, analysis });
    expect(found?.text).toContain("1. Restore it.");
    expect(found?.text).not.toContain("Nothing.");
    expect(found?.text).not.toContain("kubectl"); // it is shown with a button to copy it
    expect(found?.commands).toEqual(["kubectl -n shop rollout restart deployment/checkout"]);
  });

  it("is the paragraph of the summary for managers, or a sentence of the finding, where there is no section", () => {
    expect(nextSteps({ ...none, executive: "It broke.\n\nNext step: restore the key." })?.text).toBe("Next step: restore the key.");
    expect(nextSteps({ ...none, summary: "It broke. Remedy: restore the key." })?.text).toBe("restore the key.");
  });

  it("is nothing where nothing is said", () => {
    expect(nextSteps({ ...none, summary: "It broke.", analysis: "No remedy is known." })).toBeNull();
  });

  it("leaves out the block for programs", () => {
    expect(nextSteps({ ...none, analysis: "## Remedy\nRestore it.\n```finding\n{}\n```" })?.text).toBe("Restore it.");
  });

  it("has commands only, each once", () => {
    expect(commandsOf("Run `kubectl get pods`, see `values.yaml` and `kubectl`.\n```\n$ kubectl get pods\nNAME READY\nhelm rollback x\n```")).toEqual(["kubectl get pods", "helm rollback x"]);
  });
});

describe("an alert", () => {
  it("is laid out, links apart", () => {
    const text = JSON.stringify({ startsAt: "2026-11-22T03:04:30Z", labels: { pod: "a", n: 1 }, annotations: { summary: "It broke.", runbook_url: "https://example.org/r" }, generatorURL: "http://prometheus/graph" });
    expect(alertParts(text)).toEqual({
      startsAt: "2026-11-22T03:04:30Z", labels: [["pod", "a"]], annotations: [["summary", "It broke."]],
      links: [["runbook_url", "https://example.org/r"], ["generatorURL", "http://prometheus/graph"]],
    });
  });

  it.each(["It broke.", "[1]", '{"message": "It broke."}', '{"labels": "a"}', "{"])("stays the text %j where it is another", (text) => {
    expect(alertParts(text)).toBeNull();
  });

  it("never makes a link of another scheme", () => {
    expect(alertParts('{"labels": {}, "annotations": {"x": "javascript:alert(1)"}}')?.links).toEqual([]);
  });
});

describe("a quote", () => {
  it("is found whatever white space is between its words, and only as a whole", () => {
    expect(placeOf("a: the  key\nis (set)", "The key is (set)")).toEqual([3, 20]);
    expect(placeOf("the key", "the keys")).toBeNull();
    expect(placeOf("the key", " ")).toBeNull();
  });
});

describe("doubts", () => {
  const item = { evidenceMissing: [], conditions: [], budgetExceeded: null, flaws: [] } as unknown as Investigation;
  const finding = (changes: Partial<Finding>) => ({ summary: "", confidence: "Medium", claims: [], notes: [], structured: true, changesForGit: [], ...changes }) as Finding;

  it("tell why the confidence is not higher", () => {
    const claim = { text: "", supported: false, ungrounded: [], contradicted: false, citations: [] };
    expect(doubtsOf(finding({ claims: [claim], notes: ["It is at most Medium."] }), { ...item, flaws: ["UnsupportedClaims", "ConcludedEarly"] })).toEqual([
      "1 claim is not supported by the record.", "It is at most Medium.", "Somebody asked the run to conclude before it was finished.",
    ]);
  });

  it("never leave a low confidence unexplained, and add none to a high one", () => {
    expect(doubtsOf(finding({}), item)).toHaveLength(1);
    expect(doubtsOf(finding({ confidence: "High" }), item)).toEqual([]);
  });
});
