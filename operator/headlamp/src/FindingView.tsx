/** Shows the finding: summary, and each claim with what supports it. All texts are text, never markup. */
import { Alert, Box, Chip, Typography } from '@mui/material';
import type { Citation, Claim, Finding, Run } from './api.js';
import { plain } from './api.js';
import { Text } from './Text';

const COLOURS = { High: 'success', Medium: 'warning', Low: 'error', Inconclusive: 'default' } as const;

export function FindingView({ run }: { run: Run }) {
  if (run.failure) {
    return (
      <Alert severity="error">
        {plain(run.failure.reason)}: {plain(run.failure.message)}
      </Alert>
    );
  }
  if (!run.finding) {
    return <Typography>{run.finalAnalysis ? plain(run.finalAnalysis) : 'There is no finding yet.'}</Typography>;
  }
  return <Found finding={run.finding} />;
}

function Found({ finding }: { finding: Finding }) {
  const shown = finding.shownConfidence ?? finding.confidence;
  const doubted = shown !== finding.confidence;
  const colour = doubted ? 'warning' : COLOURS[finding.confidence as keyof typeof COLOURS] ?? 'default';
  return (
    <Box>
      <Chip size="small" color={colour} label={`Confidence: ${plain(shown, 48)}`} />
      <Text of={finding.summary} />
      {finding.claims.map((claim, at) => (
        <ClaimView key={at} claim={claim} />
      ))}
      {finding.notes.map((note, at) => (
        <Alert key={at} severity="info" sx={{ mt: 1 }}>
          {plain(note)}
        </Alert>
      ))}
    </Box>
  );
}

/** What the check of the record says of a claim. */
export function verdict(claim: Claim): string {
  if (claim.contradicted) {
    return 'Contradicted';
  }
  return claim.supported ? 'Supported' : 'Not supported';
}

function ClaimView({ claim }: { claim: Claim }) {
  const said = verdict(claim);
  return (
    <Box sx={{ mt: 2 }}>
      <Chip size="small" variant="outlined" color={said === 'Supported' ? 'success' : 'error'} label={said} />
      <Text of={claim.text} />
      {claim.citations.map((citation, at) => (
        <Box key={at} sx={{ ml: 2, pl: 1, borderLeft: 2, borderColor: 'divider' }}>
          <Typography variant="caption">{source(citation)}</Typography>
          <Text of={citation.quote} code />
        </Box>
      ))}
    </Box>
  );
}

function source(citation: Citation): string {
  const from = plain(citation.tool ?? 'a tool call', 200);
  if (!citation.supported) {
    return `${from}: ${plain(citation.reason ?? 'the record does not contain it', 300)}`;
  }
  return citation.integrity ? `${from} (evidence of class ${plain(citation.integrity, 4)})` : from;
}
