/** Shows a text from outside: as text, with its line breaks, and with its invisible characters by their code. */
import { Typography } from '@mui/material';
import { plain } from './api.js';

export function Text({ of, code = false }: { of: string; code?: boolean }) {
  return (
    <Typography
      component={code ? 'pre' : 'p'}
      variant="body2"
      sx={{
        my: 0.5,
        whiteSpace: 'pre-wrap',
        overflowWrap: 'anywhere',
        fontFamily: code ? 'monospace' : undefined,
      }}
    >
      {plain(of)}
    </Typography>
  );
}
