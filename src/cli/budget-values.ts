/** `--budget tokens=200000,cost_usd=5` → what a run may use. */
import type { BudgetRequest } from '../app/api.ts';
import { RelayError } from '../base/errors.ts';

/** Reads the option, for commander. */
export function readBudget(text: string): BudgetRequest {
  const budget: { tokens?: number; cost_usd?: number } = {};
  for (const part of text.split(',')) {
    const [name = '', written = ''] = part.split('=').map((piece) => piece.trim());
    const value = Number(written.replaceAll('_', ''));
    const isRight =
      written !== '' &&
      ((name === 'tokens' && Number.isSafeInteger(value) && value >= 1) ||
        (name === 'cost_usd' && Number.isFinite(value) && value > 0));
    if (!isRight)
      throw new RelayError('USAGE', `--budget takes tokens=N and cost_usd=N, not \`${part}\``, {
        hint: 'for example: --budget tokens=500000,cost_usd=10',
      });
    budget[name as 'tokens' | 'cost_usd'] = value;
  }
  return budget;
}
