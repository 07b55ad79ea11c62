import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Run, tarsyApi } from '../src/api.js';
import { FindingView } from '../src/FindingView';
import { SECONDS } from '../src/following';
import { InvestigationView } from '../src/InvestigationView';
import { QuestionsView } from '../src/QuestionsView';
import { nameOf, SHOWN, TimelineView } from '../src/TimelineView';

const HOSTILE = '<img src=x onerror=alert(1)> [link](javascript:alert(1)) \u202etxt';
const RUN: Run = { state: 'completed', alertType: 'Disk', chain: 'c', finding: null, finalAnalysis: null, failure: null };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

function event(at: number, content = 'text') {
  return { id: `${at}`, seq: at, type: 'llm_tool_call', status: 'completed', content, stage: 's', agent: 'a', createdAt: '' };
}

test('texts from outside are text: no element, no link, nothing hidden', () => {
  const citation = { quote: HOSTILE, supported: true, reason: null, tool: HOSTILE, integrity: 'X' };
  const claim = { text: HOSTILE, supported: true, contradicted: false, citations: [citation] };
  const finding = { summary: HOSTILE, confidence: 'High', claims: [claim], notes: [HOSTILE] };
  const { container } = render(
    <>
      <FindingView run={{ ...RUN, finding }} />
      <TimelineView items={[event(1, HOSTILE)]} />
    </>
  );
  expect(container.querySelector('img, a, script')).toBeNull();
  expect(container.textContent).not.toContain('\u202e');
  expect(container.textContent).toContain('<img src=x onerror=alert(1)>');
});

test('a claim says whether the record bears it out, and why not', () => {
  const cited = (supported: boolean) => ({
    quote: 'q',
    supported,
    reason: 'There is no such call.',
    tool: 'kubernetes.logs',
    integrity: null,
  });
  const claims = [
    { text: 'one', supported: true, contradicted: false, citations: [cited(true)] },
    { text: 'two', supported: false, contradicted: false, citations: [cited(false)] },
    { text: 'three', supported: true, contradicted: true, citations: [] },
  ];
  const { container } = render(
    <FindingView run={{ ...RUN, finding: { summary: 's', confidence: 'Low', claims, notes: [] } }} />
  );
  const labels = [...container.querySelectorAll('.MuiChip-label')].map(one => one.textContent);
  expect(labels).toEqual(['Confidence: Low', 'Supported', 'Not supported', 'Contradicted']);
  expect(screen.getByText('kubernetes.logs: There is no such call.')).toBeTruthy();
});

test('a confidence that people found wrong too often is shown with its count', () => {
  const finding = { summary: 's', confidence: 'High', shownConfidence: 'High (12 of 20 right)', claims: [], notes: [] };
  const { container } = render(<FindingView run={{ ...RUN, finding }} />);
  expect(container.querySelector('.MuiChip-label')?.textContent).toBe('Confidence: High (12 of 20 right)');
});

test('a failed run says why', () => {
  render(<FindingView run={{ ...RUN, state: 'failed', failure: { reason: 'NoModel', message: 'No key.' } }} />);
  expect(screen.getByText('NoModel: No key.')).toBeTruthy();
});

test('a long timeline shows its last events, and says so', () => {
  const at = (count: number) => Array.from({ length: count }, (_, index) => event(index));
  const { container, rerender } = render(<TimelineView items={at(SHOWN)} />);
  expect(container.querySelectorAll('pre')).toHaveLength(SHOWN);
  rerender(<TimelineView items={at(SHOWN + 1)} />);
  expect(container.querySelectorAll('pre')).toHaveLength(SHOWN);
  expect(screen.getByText('The first 1 events are left out.')).toBeTruthy();
  expect(nameOf('a_new_type')).toBe('a new type');
});

test('who may not ask gets no form but the role', () => {
  render(<QuestionsView questions={[]} may={false} ask={vi.fn()} explain={String} />);
  expect(screen.queryByRole('button', { name: 'Ask' })).toBeNull();
  expect(screen.getByText(/tarsy-investigator/)).toBeTruthy();
});

test('a refused question stays in the form with the reason', async () => {
  const ask = vi.fn(async () => Promise.reject(new Error('no')));
  render(<QuestionsView questions={[]} may ask={ask} explain={() => 'You may not ask.'} />);
  const field = screen.getByLabelText('Ask about this investigation') as HTMLTextAreaElement;
  fireEvent.change(field, { target: { value: 'Why?' } });
  await act(async () => fireEvent.click(screen.getByRole('button', { name: 'Ask' })));
  expect(ask).toHaveBeenCalledWith('Why?');
  expect(screen.getByText('You may not ask.')).toBeTruthy();
  expect(field.value).toBe('Why?');
});

/** A cluster with one run, which ends at its second reading. */
function cluster() {
  const read: string[] = [];
  const questions: object[] = [];
  const request = async (path: string, options?: { method?: string; body?: string }) => {
    read.push(`${options?.method ?? 'GET'} ${path.replace(/^.*\/namespaces\/shop\//, '')}`);
    if (path.endsWith('selfsubjectaccessreviews')) {
      return { status: { allowed: true } };
    }
    if (options?.method === 'POST') {
      const sent = JSON.parse(options.body ?? '{}');
      const object = { ...sent, metadata: { name: 'q1', creationTimestamp: 't' }, status: { phase: 'Succeeded', answer: 'Since noon.' } };
      questions.push(object);
      return object;
    }
    if (path.includes('chatmessages')) {
      return { items: questions };
    }
    const later = path.includes('after=');
    const finding = { summary: 'The disk is full.', confidence: 'High', claims: [], notes: [] };
    return {
      investigation: later ? { ...RUN, finding } : { ...RUN, state: 'running' },
      items: [event(later ? 2 : 1, later ? 'second' : 'first')],
      revision: later ? 2 : 1,
      more: false,
    };
  };
  return { read, api: tarsyApi(request) };
}

async function pass(seconds: number) {
  await act(async () => void (await vi.advanceTimersByTimeAsync(seconds * 1000)));
}

test('a run is followed to its end, and a question is asked and answered', async () => {
  const { api, read } = cluster();
  render(<InvestigationView api={api} namespace="shop" name="inv" section={(title, content) => <section aria-label={title}>{content}</section>} />);
  await pass(0);
  expect(screen.getByText('There is no finding yet.')).toBeTruthy();
  await pass(SECONDS);
  expect(screen.getByText('The disk is full.')).toBeTruthy();
  expect(screen.getByText('first')).toBeTruthy();
  const before = read.length;
  await pass(SECONDS * 10);
  expect(read.length).toBe(before);
  fireEvent.change(screen.getByLabelText('Ask about this investigation'), { target: { value: 'Since when?' } });
  await act(async () => fireEvent.click(screen.getByRole('button', { name: 'Ask' })));
  await pass(0);
  expect(screen.getByText('Since noon.')).toBeTruthy();
  expect(read).toContain('POST chatmessages');
});

test('nothing is read any more when the view is gone', async () => {
  const { api, read } = cluster();
  const { unmount } = render(<InvestigationView api={api} namespace="shop" name="inv" section={(_, content) => content} />);
  await pass(0);
  unmount();
  const before = read.length;
  await pass(SECONDS * 10);
  expect(read.length).toBe(before);
});

test('who may not read the timeline is told the role, and sees it as soon as it is given', async () => {
  const { api } = cluster();
  const timeline = vi.fn(api.timeline).mockRejectedValueOnce(Object.assign(new Error('forbidden'), { status: 403 }));
  render(<InvestigationView api={{ ...api, timeline }} namespace="shop" name="inv" section={(_, content) => content} />);
  await pass(0);
  expect(screen.getByText(/You may not read the timeline. The role tarsy-viewer allows it./)).toBeTruthy();
  await pass(SECONDS);
  expect(screen.queryByText(/You may not read/)).toBeNull();
});
