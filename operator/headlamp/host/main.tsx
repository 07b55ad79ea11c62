/** Shows the view of one investigation without Headlamp, for pictures: ?namespace=...&name=... of the API at /k8s. */
import { Box, CssBaseline, Paper, Typography } from '@mui/material';
import { createRoot } from 'react-dom/client';
import { type Request, tarsyApi } from '../src/api.js';
import { InvestigationView } from '../src/InvestigationView';

const request: Request = async (path, options) => {
  const answer = await fetch(`/k8s${path}`, options);
  const body = await answer.json();
  if (!answer.ok) {
    throw Object.assign(new Error(body.message), { status: answer.status });
  }
  return body;
};

const asked = new URLSearchParams(location.search);
createRoot(document.getElementById('root') as HTMLElement).render(
  <Box sx={{ maxWidth: 1100, mx: 'auto', p: 2 }}>
    <CssBaseline />
    <InvestigationView
      api={tarsyApi(request)}
      namespace={asked.get('namespace') ?? ''}
      name={asked.get('name') ?? ''}
      section={(title, content) => (
        <Paper variant="outlined" sx={{ p: 2, mb: 2 }}>
          <Typography variant="h6">{title}</Typography>
          {content}
        </Paper>
      )}
    />
  </Box>
);
