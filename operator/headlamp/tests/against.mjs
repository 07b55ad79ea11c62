/**
 * Runs the API layer against a Kubernetes API: `node against.mjs`, with one JSON object on the standard input:
 * {server, ca, token, namespace, investigation, question}. It prints what it has read as JSON.
 *
 * The request function stands for Headlamp's `ApiProxy.request`: JSON of the answer, or an error with `status`.
 */
import { request as send } from 'node:https';
import { text } from 'node:stream/consumers';
import { answered, ended, GROUP, row, tarsyApi, VERSION } from '../src/api.js';

const TRIES = 600;
/** @type {{server: string, ca: string, token: string, namespace: string, investigation: string, question: string}} */
let given;
/** @type {string[]} */
const paths = [];

/** @type {import('../src/api.js').Request} */
function request(path, options = {}) {
  paths.push(`${options.method ?? 'GET'} ${path}`);
  return new Promise((resolve, reject) => {
    const sent = send(
      new URL(path, given.server),
      {
        method: options.method ?? 'GET',
        ca: given.ca,
        headers: { ...options.headers, Authorization: `Bearer ${given.token}`, Accept: 'application/json' },
        timeout: 30_000,
      },
      async answer => {
        const body = JSON.parse((await text(answer)) || 'null');
        if ((answer.statusCode ?? 0) >= 400) {
          reject(Object.assign(new Error(body?.message ?? ''), { status: answer.statusCode }));
        } else {
          resolve(body);
        }
      }
    );
    sent.on('timeout', () => sent.destroy(new Error('no answer within 30 s')));
    sent.on('error', reject);
    sent.end(options.body);
  });
}

/**
 * Reads until it is enough, as the views do.
 * @template T
 * @param {(before?: T) => Promise<T>} read
 * @param {(found: T) => boolean} enough
 * @returns {Promise<T>}
 */
async function until(read, enough) {
  let found;
  for (let tries = 0; tries < TRIES; tries += 1) {
    found = await read(found);
    if (enough(found)) {
      return found;
    }
    await new Promise(done => setTimeout(done, 100));
  }
  throw new Error(`not within ${TRIES} tries: ${JSON.stringify(found)}`);
}

/** @returns {Promise<object>} */
async function seen() {
  const api = tarsyApi(request);
  const { namespace, investigation } = given;
  const list = await request(`/apis/${GROUP}/${VERSION}/namespaces/${namespace}/investigations`);
  const timeline = await until(before => api.timeline(namespace, investigation, before), ended);
  const found = {
    rows: list.items.map(row),
    timeline,
    again: await api.timeline(namespace, investigation, timeline),
    mayAsk: await api.mayAsk(namespace),
  };
  if (!given.question) {
    return found;
  }
  const asked = await api.ask(namespace, investigation, given.question);
  const questions = await until(
    () => api.questions(namespace, investigation),
    all => all.some(one => one.name === asked.name) && all.every(answered)
  );
  return { ...found, asked, questions };
}

async function main() {
  given = JSON.parse(await text(process.stdin));
  try {
    console.log(JSON.stringify({ ...(await seen()), paths }));
  } catch (/** @type {any} */ error) {
    console.log(JSON.stringify({ error: String(error), status: error.status, paths }));
  }
}

void main();
