import { describe, expect, it } from 'vitest';
import type { Step } from '../../src/server';
import { stepsIn } from '../../src/view/plan-text';
import { inOrder } from '../../src/view/plan-tree';

describe('the steps of a plan', () => {
  const step = (id: number, parent: number | null): Step => ({ id, parent, operator: 'x', detail: '', estimated_rows: 1, rows: null, nanoseconds: null });

  it('stand below their parents', () => {
    expect(inOrder([step(0, null), step(2, 1), step(1, 0), step(3, 0)]).map(({ step: { id }, depth }) => [id, depth])).toEqual([[0, 0], [1, 1], [2, 2], [3, 1]]);
  });

  it('are all shown, even if their parents are wrong', () => {
    expect(inOrder([step(0, 1), step(1, 0), step(2, 2), step(3, 9)]).map(({ step: { id } }) => id).sort()).toEqual([0, 1, 2, 3]);
  });
});

const PROFILE = `plan for ?n ?c                                                         est. rows    rows      time  threads
├─ expand     "AUS" ←<http://example.org/air/ont#code>─ ?x                     1       1    8.0 µs        2
├─ union                                                                      42     196    9.8 µs        1
│  ├─ branch 1
│  │  └─ expand     ?z ─<http://example.org/air/ont#elev>→ (count)            21      98    3.8 µs        1
│  └─ branch 2
│     └─ expand     ?z ─<http://example.org/air/ont#longest>→ (count)         21      98    2.6 µs        1
├─ hash minus on ?z                                                          600  16,202    1.2 ms        1
│  └─ expand     "DFW" ←<http://example.org/air/ont#code>─ ?z                  1       1    413 ns        1
└─ slice      first 3                                                          3       3    1.2 µs        1
`;

describe('the text of a plan', () => {
  it('has steps with rows and times', () => {
    expect(stepsIn(PROFILE).map((step) => [step.id, step.parent, step.operator, step.detail, step.estimated_rows, step.rows, step.nanoseconds, step.threads])).toEqual([
      [0, null, 'expand', '"AUS" ←<http://example.org/air/ont#code>─ ?x', 1, 1, 8000, 2],
      [1, null, 'union', '', 42, 196, 9800, 1],
      [2, 1, 'branch', '1', null, null, null, null],
      [3, 2, 'expand', '?z ─<http://example.org/air/ont#elev>→ (count)', 21, 98, 3800, 1],
      [4, 1, 'branch', '2', null, null, null, null],
      [5, 4, 'expand', '?z ─<http://example.org/air/ont#longest>→ (count)', 21, 98, 2600, 1],
      [6, null, 'hash minus', 'on ?z', 600, 16202, 1.2e6, 1],
      [7, 6, 'expand', '"DFW" ←<http://example.org/air/ont#code>─ ?z', 1, 1, 413, 1],
      [8, null, 'slice', 'first 3', 3, 3, 1200, 1],
    ]);
  });

  it('has estimates alone if it did not run', () => {
    const text = 'plan for ?x                                      est. rows\n└─ expand     "a  b" ←<p>─ ?x                        1,234\n';
    expect(stepsIn(text)).toEqual([
      { id: 0, parent: null, operator: 'expand', detail: '"a  b" ←<p>─ ?x', estimated_rows: 1234, rows: null, nanoseconds: null, threads: null },
    ]);
  });

  it('has none if a line is of another kind', () => {
    expect(stepsIn(`${PROFILE}note: something new\n`)).toEqual([]);
    expect(stepsIn('no plan')).toEqual([]);
    expect(stepsIn('')).toEqual([]);
  });
});
