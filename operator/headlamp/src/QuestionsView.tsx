/** Shows the questions with their answers, and takes a new one. */
import { Alert, Box, Button, TextField, Typography } from '@mui/material';
import { useState } from 'react';
import type { Question } from './api.js';
import { answered, plain, whyNot } from './api.js';
import { Text } from './Text';

export interface QuestionsProps {
  questions: Question[];
  /** Whether the user may ask; undefined: not known yet. */
  may?: boolean;
  /** Sends a question; its result is shown when it rejects. */
  ask: (text: string) => Promise<unknown>;
  /** Says what went wrong, in a sentence. */
  explain: (error: unknown) => string;
}

export function QuestionsView({ questions, may, ask, explain }: QuestionsProps) {
  const [text, setText] = useState('');
  const [sending, setSending] = useState(false);
  const [problem, setProblem] = useState('');

  async function send() {
    const wrong = whyNot(text);
    setProblem(wrong);
    if (wrong || sending) {
      return;
    }
    setSending(true);
    try {
      await ask(text);
      setText('');
    } catch (error) {
      setProblem(explain(error));
    } finally {
      setSending(false);
    }
  }

  return (
    <Box>
      {questions.map(one => (
        <Box key={one.name} sx={{ mb: 2 }}>
          <Typography variant="caption">{one.author ? plain(one.author, 200) : 'Question'}{one.via && ` via ${plain(one.via, 50)}`}</Typography>
          <Text of={one.question} />
          <Box sx={{ ml: 2, pl: 1, borderLeft: 2, borderColor: 'divider' }}>
            <Text of={one.answer || one.error || (answered(one) ? 'There is no answer.' : `${one.phase} …`)} />
          </Box>
        </Box>
      ))}
      {may === false ? (
        <Alert severity="info">You may not ask here. The role tarsy-investigator allows it.</Alert>
      ) : (
        <Box>
          <TextField
            fullWidth
            multiline
            minRows={2}
            label="Ask about this investigation"
            value={text}
            onChange={event => setText(event.target.value)}
          />
          <Button sx={{ mt: 1 }} variant="contained" disabled={sending} onClick={send}>
            Ask
          </Button>
        </Box>
      )}
      {problem && (
        <Alert severity="error" sx={{ mt: 1 }}>
          {problem}
        </Alert>
      )}
    </Box>
  );
}
