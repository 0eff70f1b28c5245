/** The rendered page and the SQL say what the table says. */
import { describe, expect, test } from 'vitest';
import { TASK_STATUSES } from './states.ts';
import { renderSqlChecks, renderTransitionDiagram } from './transition-diagram.ts';
import { MOVES, TRANSITIONS } from './transitions.ts';

describe('renderTransitionDiagram', () => {
  const page = renderTransitionDiagram();
  const arrows = [...page.matchAll(/^ {2}(\w+) --> (\w+): ([\d, ]+)$/gm)];

  test('the diagram has one arrow per legal move', () => {
    // SPEC S3.2
    const drawn = arrows.map(([, from, to]) => `${from} ${to}`);
    expect(drawn).toEqual(MOVES.map((move) => `${move.from} ${move.to}`));
  });

  test('an arrow names the rows it comes from', () => {
    // SPEC S3.2
    expect(page).toContain('  QUEUED --> LEASED: 16\n');
    expect(page).toContain('  SUCCESS --> PENDING: 36\n');
    expect(page).toContain('  [*] --> PENDING: 1, 2\n');
    expect(page).toContain('  SKIPPED --> [*]\n');
  });

  test('the table has every row with the same number of cells', () => {
    // SPEC S3.2
    const lines = page.split('\n').filter((line) => line.startsWith('|'));
    expect(lines).toHaveLength(TRANSITIONS.length + 2);
    expect(new Set(lines.map((line) => line.split('|').length))).toEqual(new Set([11]));
  });

  test('the page is the same every time and ends with a newline', () => {
    expect(renderTransitionDiagram()).toBe(page);
    expect(page.endsWith('|\n')).toBe(true);
  });
});

describe('renderSqlChecks', () => {
  const sql = renderSqlChecks();

  test('the status check lists all statuses', () => {
    // SPEC S3.1
    const list = TASK_STATUSES.map((status) => `'${status}'`).join(', ');
    expect(sql).toContain(`check (status in (${list}))`);
  });

  test('the lease columns are set exactly in LEASED and RUNNING', () => {
    // SPEC S3.2
    expect(sql).toContain(
      [
        "  case when status in ('LEASED', 'RUNNING')",
        '    then lease_id is not null and leased_by is not null and lease_expires_at is not null',
        '    else lease_id is null and leased_by is null and lease_expires_at is null',
        '  end',
      ].join('\n'),
    );
  });

  test('the values list holds every legal pair', () => {
    // SPEC S3.2
    const pairs = [...sql.matchAll(/^ {2}\('(\w+)', '(\w+)'\)/gm)].map(([, from, to]) => `${from} ${to}`);
    expect(pairs).toEqual(MOVES.map((move) => `${move.from} ${move.to}`));
    expect(sql.endsWith("')\n")).toBe(true);
  });
});
