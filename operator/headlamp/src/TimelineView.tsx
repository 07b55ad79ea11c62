/** Shows the timeline: who did what, and when. */
import { Box, Typography } from '@mui/material';
import type { TimelineEvent } from './api.js';
import { plain } from './api.js';
import { Text } from './Text';

const NAMES: Record<string, string> = {
  llm_thinking: 'Thinking',
  llm_response: 'Model',
  llm_tool_call: 'Tool call',
  mcp_tool_summary: 'Summary of a result',
  final_analysis: 'Conclusion',
  executive_summary: 'Summary',
  user_question: 'Question',
  error: 'Error',
};
/** Events that are shown at once; the rest on request. */
export const SHOWN = 200;

/** The name of a type of event; of a newer one its own word. */
export function nameOf(type: string): string {
  return NAMES[type] ?? plain(type, 60).replace(/_/g, ' ');
}

export function TimelineView({ items }: { items: TimelineEvent[] }) {
  if (items.length === 0) {
    return <Typography>Nothing has happened yet.</Typography>;
  }
  const left = items.length - SHOWN;
  return (
    <Box component="ol" sx={{ listStyle: 'none', m: 0, p: 0 }}>
      {left > 0 && <Typography component="li">{`The first ${left} events are left out.`}</Typography>}
      {items.slice(-SHOWN).map(event => (
        <Event key={event.id} event={event} />
      ))}
    </Box>
  );
}

function Event({ event }: { event: TimelineEvent }) {
  const where = [event.stage, event.agent].filter(Boolean).map(one => plain(one ?? '', 100));
  const head = [time(event.createdAt), ...where, nameOf(event.type)];
  if (event.status !== 'completed') {
    head.push(plain(event.status, 40));
  }
  return (
    <Box component="li" sx={{ py: 1, borderBottom: 1, borderColor: 'divider' }}>
      <Typography variant="caption">{head.join(' · ')}</Typography>
      <Text of={event.content} code={event.type === 'llm_tool_call'} />
    </Box>
  );
}

function time(written: string): string {
  const moment = new Date(written);
  return Number.isNaN(moment.valueOf()) ? '' : moment.toLocaleTimeString();
}
