import { expect, test, vi } from 'vitest';
import { answered, ended, MAX_QUESTION, phase, plain, row, sentence, tarsyApi, whyNot } from '../src/api.js';

const RUN = { state: 'running', alertType: 'Disk', chain: 'c', finding: null, finalAnalysis: null, failure: null };

function event(id: string, seq: number, content = id) {
  return { id, seq, type: 'llm_response', status: 'completed', content, stage: 's', agent: 'a', createdAt: '' };
}

test('a timeline is read page by page, and later versions of an event replace earlier ones', async () => {
  const pages = [
    { investigation: RUN, items: [event('two', 2, 'half'), event('one', 1)], revision: 4, more: true },
    { investigation: { ...RUN, state: 'completed' }, items: [event('two', 2, 'whole')], revision: 7, more: false },
  ];
  const request = vi.fn(async () => pages.shift());
  const found = await tarsyApi(request).timeline('shop', 'inv');
  expect(found.items.map(one => one.content)).toEqual(['one', 'whole']);
  expect(found.revision).toBe(7);
  expect(ended(found)).toBe(true);
  expect(request.mock.calls.map(call => (call as unknown[])[0])).toEqual([
    '/apis/record.tarsy.dev/v1alpha1/namespaces/shop/investigations/inv/timeline',
    '/apis/record.tarsy.dev/v1alpha1/namespaces/shop/investigations/inv/timeline?after=4',
  ]);
});

test('what is known is kept when nothing is new', async () => {
  const known = { investigation: RUN, items: [event('one', 1)], revision: 3 };
  const request = async () => ({ investigation: RUN, items: [], revision: 3, more: false });
  expect(await tarsyApi(request).timeline('shop', 'inv', known)).toEqual(known);
});

test('a server that always has more is not asked for ever', async () => {
  let revision = 0;
  const request = vi.fn(async () => ({ investigation: RUN, items: [], revision: ++revision, more: true }));
  await tarsyApi(request).timeline('shop', 'inv');
  expect(request).toHaveBeenCalledTimes(50);
  const stuck = vi.fn(async () => ({ investigation: RUN, items: [], revision: 0, more: true }));
  await tarsyApi(stuck).timeline('shop', 'inv');
  expect(stuck).toHaveBeenCalledTimes(1);
});

test('a question is a ChatMessage without an author, which admission sets', async () => {
  const request = vi.fn(async (_path: string, options?: { body?: string }) => {
    const sent = JSON.parse(options?.body ?? '{}');
    return { ...sent, metadata: { name: 'question-x1', creationTimestamp: 't' } };
  });
  const asked = await tarsyApi(request).ask('shop', 'inv', '  Since when? ');
  expect(asked).toMatchObject({ name: 'question-x1', question: 'Since when?', phase: 'Pending', answer: '' });
  const [path, options] = request.mock.calls[0];
  expect(path).toBe('/apis/tarsy.dev/v1alpha1/namespaces/shop/chatmessages');
  expect(JSON.parse(options?.body ?? '{}').spec).toEqual({
    investigationRef: { name: 'inv' },
    question: 'Since when?',
  });
});

test('what is no question is not sent', async () => {
  const request = vi.fn(async () => ({}));
  await expect(tarsyApi(request).ask('shop', 'inv', ' \n')).rejects.toThrow('Write a question first.');
  expect(request).not.toHaveBeenCalled();
  expect(whyNot('x'.repeat(MAX_QUESTION))).toBe('');
  expect(whyNot('x'.repeat(MAX_QUESTION + 1))).toContain('at most 100000');
});

test('questions come with their answers, the oldest first', async () => {
  const made = (name: string, creationTimestamp: string, status = {}) => ({
    metadata: { name, creationTimestamp },
    spec: { question: 'Why?', author: { username: 'ada' }, investigationRef: { name: 'inv' } },
    status,
  });
  const later = made('b', '2026-01-02T00:00:00Z', { phase: 'Succeeded', answer: 'Because.' });
  const request = vi.fn(async () => ({ items: [later, made('a', '2026-01-01T00:00:00Z')] }));
  const found = await tarsyApi(request).questions('shop', 'inv');
  expect(found.map(one => [one.name, one.answer, answered(one)])).toEqual([
    ['a', '', false],
    ['b', 'Because.', true],
  ]);
  expect((request.mock.calls[0] as unknown[])[0]).toContain('fieldSelector=spec.investigationRef.name%3Dinv');
});

test('a cluster that selects by no field is asked for all questions, page by page', async () => {
  const made = (name: string, of: string) => ({ metadata: { name }, spec: { question: 'Why?', investigationRef: { name: of } } });
  const request = vi.fn(async (path: string) => {
    if (path.includes('fieldSelector')) {
      throw Object.assign(new Error('field label not supported'), { status: 400 });
    }
    return path.includes('continue=two%2F')
      ? { items: [made('b', 'inv')] }
      : { metadata: { continue: 'two/' }, items: [made('a', 'other')] };
  });
  const api = tarsyApi(request);
  expect((await api.questions('shop', 'inv')).map(one => one.name)).toEqual(['b']);
  await api.questions('shop', 'inv');
  expect(request.mock.calls.filter(([path]) => path.includes('fieldSelector'))).toHaveLength(1);
});

test('a list that is refused is not read in another way', async () => {
  const request = vi.fn(async () => Promise.reject(Object.assign(new Error('no'), { status: 403 })));
  await expect(tarsyApi(request).questions('shop', 'inv')).rejects.toThrow('no');
  expect(request).toHaveBeenCalledTimes(1);
});

test.each(['../secrets', 'a/b', 'A', '', 'a?x=1', 'a%2fb'])('%s is not made a path', async name => {
  const request = vi.fn(async () => ({}));
  await expect(tarsyApi(request).timeline('shop', name)).rejects.toThrow('not a name');
  expect(request).not.toHaveBeenCalled();
});

test('characters that hide or turn others are shown by their code, and long texts are cut', () => {
  expect(plain('a\u202eb\u200bc\u{e0041}\u0007')).toBe('a\\u{202e}b\\u{200b}c\\u{e0041}\\u{7}');
  expect(plain('line\n\ttab é 中')).toBe('line\n\ttab é 中');
  expect(plain('x'.repeat(10), 10)).toBe('x'.repeat(10));
  expect(plain('x'.repeat(11), 10)).toBe(`${'x'.repeat(10)}… (shortened)`);
});

test('an investigation without a status has a row', () => {
  expect(row({})).toMatchObject({ phase: 'Pending', finding: '', confidence: '' });
  const status = { phase: 'Succeeded', finding: { summary: 'The disk is full.', confidence: 'High' } };
  expect(row({ status })).toMatchObject({ phase: 'Succeeded', finding: 'The disk is full.', confidence: 'High' });
  const doubted = { finding: { ...status.finding, shownConfidence: 'High (12 of 20 right)' } };
  expect(row({ status: doubted }).confidence).toBe('High (12 of 20 right)');
  expect(row({ status: { lastError: { message: 'No model.' } } }).finding).toBe('No model.');
});

test.each([
  [401, 'sign in'],
  [403, 'The role tarsy-viewer allows it.'],
  [503, 'the operator does not answer'],
  [404, 'Cannot read it: gone'],
])('status %i is said with its remedy', (status, said) => {
  expect(sentence(Object.assign(new Error('gone'), { status }), 'read it', 'tarsy-viewer')).toContain(said);
});

test('states are said as kubectl says them', () => {
  expect(['completed', 'timed_out', 'running', 'parked'].map(phase)).toEqual(['Succeeded', 'TimedOut', 'Running', 'Parked']);
});
