/**
 * Speaks to the Kubernetes API: custom resources, and the aggregated API record.tarsy.dev.
 *
 * Decision: plain JavaScript without imports, whose one need is a function like Headlamp's `ApiProxy.request`. So all
 * requests go out with the rights of the user in Headlamp, and a test runs this file under node against a real API.
 * @module
 */

/**
 * @typedef {(path: string, options?: {method?: string, headers?: Record<string, string>, body?: string}) => Promise<any>} Request
 * Sends a request to the Kubernetes API and returns the JSON of its answer. Rejects with an error that has `status`.
 *
 * @typedef {object} Citation
 * @property {string} quote
 * @property {boolean} supported
 * @property {string | null} reason
 * @property {string | null} tool
 * @property {string | null} integrity
 *
 * @typedef {object} Claim
 * @property {string} text
 * @property {boolean} supported
 * @property {boolean} contradicted
 * @property {Citation[]} citations
 *
 * @typedef {object} Finding
 * @property {string} summary
 * @property {string} confidence
 * @property {string | null} [shownConfidence]
 * @property {Claim[]} claims
 * @property {string[]} notes
 *
 * @typedef {object} TimelineEvent
 * @property {string} id
 * @property {number} seq
 * @property {string} type
 * @property {string} status
 * @property {string} content
 * @property {string | null} stage
 * @property {string | null} agent
 * @property {string} createdAt
 *
 * @typedef {object} Run
 * @property {string} state
 * @property {string} alertType
 * @property {string} chain
 * @property {Finding | null} finding
 * @property {string | null} finalAnalysis
 * @property {{reason: string, message: string} | null} failure
 *
 * @typedef {object} Timeline
 * @property {Run} investigation
 * @property {TimelineEvent[]} items
 * @property {number} revision
 *
 * @typedef {object} Question
 * @property {string} name
 * @property {string} question
 * @property {string} phase
 * @property {string} answer
 * @property {string} error
 * @property {string} author
 * @property {string} via the program that asked in the name of the author
 * @property {string} createdAt
 */

export const GROUP = 'tarsy.dev';
export const VERSION = 'v1alpha1';
export const RECORD_GROUP = 'record.tarsy.dev';
export const MAX_QUESTION = 100_000;
/** Pages of one reading; a timeline with more goes on at the next reading. */
const MAX_PAGES = 50;
/** States of the record that are the last, by the phase that kubectl shows. @type {Record<string, string>} */
const ENDS = { completed: 'Succeeded', failed: 'Failed', cancelled: 'Cancelled', timed_out: 'TimedOut' };

/**
 * Returns the API of a cluster.
 * @param {Request} request sends requests with the rights of the user.
 */
export function tarsyApi(request) {
  let selectable = true;

  /**
   * Lists objects by a field; nothing where the cluster selects none by a field (Kubernetes before 1.31).
   * @param {string} path
   */
  async function listed(path) {
    try {
      return await pages(request, path);
    } catch (/** @type {any} */ error) {
      if (error?.status === 400) {
        return undefined;
      }
      throw error;
    }
  }

  return {
    /**
     * Reads an Investigation.
     * @param {string} namespace
     * @param {string} name
     * @returns {Promise<any>}
     */
    investigation: (namespace, name) => request(`${objects(namespace)}/investigations/${part(name)}`),

    /**
     * Reads what has changed in a timeline, and merges it into what is known.
     * @param {string} namespace
     * @param {string} name
     * @param {Timeline} [known] what was read before.
     * @returns {Promise<Timeline>}
     */
    async timeline(namespace, name, known) {
      const path = `/apis/${RECORD_GROUP}/${VERSION}/namespaces/${part(namespace)}/investigations/${part(name)}/timeline`;
      let found = known ?? { investigation: /** @type {any} */ (null), items: [], revision: 0 };
      for (let page = 0; page < MAX_PAGES; page += 1) {
        const read = await request(found.revision > 0 ? `${path}?after=${found.revision}` : path);
        const more = read.more && read.revision > found.revision;
        found = merged(found, read);
        if (!more) {
          break;
        }
      }
      return found;
    },

    /**
     * Lists the questions about an investigation with their answers, the oldest first.
     * @param {string} namespace
     * @param {string} name
     * @returns {Promise<Question[]>}
     */
    async questions(namespace, name) {
      const selector = `&fieldSelector=${encodeURIComponent(`spec.investigationRef.name=${name}`)}`;
      const path = `${objects(namespace)}/chatmessages?limit=200`;
      const items = selectable ? await listed(`${path}${selector}`) : undefined;
      selectable = items !== undefined;
      const all = items ?? (await pages(request, path));
      return all.filter(one => one.spec.investigationRef.name === name).map(question).sort(byTime);
    },

    /**
     * Asks a question. Admission records the user as its author.
     * @param {string} namespace
     * @param {string} name
     * @param {string} text
     * @returns {Promise<Question>}
     */
    async ask(namespace, name, text) {
      const wrong = whyNot(text);
      if (wrong) {
        throw new Error(wrong);
      }
      const body = {
        apiVersion: `${GROUP}/${VERSION}`,
        kind: 'ChatMessage',
        metadata: { generateName: 'question-', namespace },
        spec: { investigationRef: { name }, question: text.trim() },
      };
      return question(await request(`${objects(namespace)}/chatmessages`, post(body)));
    },

    /**
     * Returns whether the user may ask.
     * @param {string} namespace
     * @returns {Promise<boolean>}
     */
    async mayAsk(namespace) {
      const attributes = { namespace, verb: 'create', group: GROUP, resource: 'chatmessages' };
      const review = {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: attributes },
      };
      const read = await request('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', post(review));
      return read.status?.allowed === true;
    },
  };
}

/** @typedef {ReturnType<typeof tarsyApi>} TarsyApi */

/**
 * Returns what a list shows of an Investigation.
 * @param {any} object as the Kubernetes API returns it.
 */
export function row(object) {
  const status = object.status ?? {};
  return {
    alertType: plain(status.alertType ?? '', 200),
    severity: status.severity ?? '',
    chain: status.chain ?? '',
    phase: status.phase ?? 'Pending',
    progress: status.progress ?? '',
    confidence: plain(status.finding?.shownConfidence ?? status.finding?.confidence ?? '', 48),
    finding: plain(status.finding?.summary ?? status.lastError?.message ?? '', 200),
    cost: status.usage?.costUSD ?? '',
  };
}

/**
 * Returns whether nothing of a run changes any more.
 * @param {Timeline | undefined} timeline
 */
export function ended(timeline) {
  return timeline !== undefined && timeline.investigation.state in ENDS;
}

/**
 * Returns the state of a run in the words of kubectl.
 * @param {string} state
 */
export function phase(state) {
  return ENDS[state] ?? plain(state.charAt(0).toUpperCase() + state.slice(1), 40);
}

/**
 * Returns whether a question has its answer, or gets none.
 * @param {Question} one
 */
export function answered(one) {
  return Object.values(ENDS).includes(one.phase);
}

/**
 * Returns why a question cannot be asked; nothing if it can.
 * @param {string} text
 */
export function whyNot(text) {
  if (!text.trim()) {
    return 'Write a question first.';
  }
  return [...text].length > MAX_QUESTION ? `A question has at most ${MAX_QUESTION} characters.` : '';
}

/**
 * Returns a text from outside so that all of it is visible: characters that hide, or turn the direction of others, are
 * written by their code.
 * @param {string} text
 * @param {number} [longest] in characters; the rest is left out with a mark.
 */
export function plain(text, longest = 20_000) {
  const cut = text.length > longest ? `${text.slice(0, longest)}… (shortened)` : text;
  return cut.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]|[\u{e0000}-\u{e007f}]/gu,
    one => `\\u{${/** @type {number} */ (one.codePointAt(0)).toString(16)}}`
  );
}

/**
 * Returns a sentence about a failed request, with the remedy where there is one.
 * @param {any} error
 * @param {string} what that was tried, such as "read the timeline".
 * @param {string} role that allows it.
 */
export function sentence(error, what, role) {
  const said = plain(String(error?.message ?? error), 500);
  switch (error?.status) {
    case 401:
      return `Cannot ${what}: sign in to the cluster again.`;
    case 403:
      return `You may not ${what}. The role ${role} allows it. The API says: ${said}`;
    case 503:
      return `Cannot ${what} now: the operator does not answer. The API says: ${said}`;
    default:
      return `Cannot ${what}: ${said}`;
  }
}

/**
 * Lists objects page by page.
 * @param {Request} request
 * @param {string} path with a query.
 * @returns {Promise<any[]>}
 */
async function pages(request, path) {
  const items = [];
  let next = '';
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const read = await request(next ? `${path}&continue=${encodeURIComponent(next)}` : path);
    items.push(...read.items);
    next = read.metadata?.continue ?? '';
    if (!next) {
      break;
    }
  }
  return items;
}

/** @param {string} namespace */
function objects(namespace) {
  return `/apis/${GROUP}/${VERSION}/namespaces/${part(namespace)}`;
}

/**
 * Returns a name as a part of a path; it never leads out of it.
 * @param {string} name
 */
function part(name) {
  if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name)) {
    throw new Error(`${plain(name, 100)} is not a name of the Kubernetes API.`);
  }
  return name;
}

/** @param {object} body */
function post(body) {
  return { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
}

/**
 * @param {Timeline} known
 * @param {Timeline} read
 * @returns {Timeline}
 */
function merged(known, read) {
  const byId = new Map(known.items.map(one => [one.id, one]));
  for (const one of read.items) {
    byId.set(one.id, one);
  }
  const items = [...byId.values()].sort((one, other) => one.seq - other.seq);
  return { investigation: read.investigation, items, revision: Math.max(known.revision, read.revision) };
}

/**
 * @param {any} object
 * @returns {Question}
 */
function question(object) {
  return {
    name: object.metadata.name,
    question: object.spec.question,
    phase: object.status?.phase ?? 'Pending',
    answer: object.status?.answer ?? '',
    error: object.status?.lastError?.message ?? '',
    author: object.spec.author?.username ?? '',
    via: object.spec.via ?? '',
    createdAt: object.metadata.creationTimestamp ?? '',
  };
}

/**
 * @param {Question} one
 * @param {Question} other
 */
function byTime(one, other) {
  return one.createdAt.localeCompare(other.createdAt) || one.name.localeCompare(other.name);
}
