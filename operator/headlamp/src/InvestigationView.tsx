/** Shows one investigation: finding, questions, timeline. */
import { Alert, Box, Typography } from '@mui/material';
import { type ReactNode, useEffect, useState } from 'react';
import { answered, ended, phase, plain, type Question, sentence, type TarsyApi, type Timeline } from './api.js';
import { FindingView } from './FindingView';
import { useFollowed } from './following';
import { QuestionsView } from './QuestionsView';
import { TimelineView } from './TimelineView';

export interface InvestigationProps {
  api: TarsyApi;
  namespace: string;
  name: string;
  /** Frames a part of the page under a title. */
  section: (title: string, content: ReactNode) => ReactNode;
}

export function InvestigationView({ api, namespace, name, section }: InvestigationProps) {
  const [asked, setAsked] = useState(0);
  const may = useMayAsk(api, namespace);
  const timeline = useFollowed<Timeline>(before => api.timeline(namespace, name, before), ended, [api, namespace, name]);
  const questions = useFollowed<Question[]>(
    () => api.questions(namespace, name),
    found => found.every(answered),
    [api, namespace, name, asked]
  );
  const run = timeline.found?.investigation;

  async function ask(text: string) {
    await api.ask(namespace, name, text);
    setAsked(count => count + 1);
  }

  return (
    <Box>
      {timeline.error !== undefined && (
        <Alert severity="warning">{sentence(timeline.error, 'read the timeline', 'tarsy-viewer')}</Alert>
      )}
      {run &&
        section(
          `${plain(run.alertType, 200)} in ${namespace}`,
          <Typography>{`${name}: ${phase(run.state)}, chain ${plain(run.chain, 200)}`}</Typography>
        )}
      {run && section('Finding', <FindingView run={run} />)}
      {section(
        'Questions',
        <>
          {questions.error !== undefined && (
            <Alert severity="warning">{sentence(questions.error, 'read the questions', 'tarsy-viewer')}</Alert>
          )}
          <QuestionsView
            questions={questions.found ?? []}
            may={may}
            ask={ask}
            explain={error => sentence(error, 'ask', 'tarsy-investigator')}
          />
        </>
      )}
      {timeline.found && section('Timeline', <TimelineView items={timeline.found.items} />)}
    </Box>
  );
}

function useMayAsk(api: TarsyApi, namespace: string): boolean | undefined {
  const [may, setMay] = useState<boolean>();
  useEffect(() => {
    let gone = false;
    setMay(undefined);
    api.mayAsk(namespace).then(
      found => gone || setMay(found),
      () => undefined // the form stays; the API says no when the question is sent
    );
    return () => {
      gone = true;
    };
  }, [api, namespace]);
  return may;
}
