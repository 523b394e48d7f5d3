// The display order of the steps of a plan.
import type { Step } from '../server';

/** Steps below their parents, in their original order. Steps in a cycle or without a parent are roots. */
export function inOrder(steps: readonly Step[]): { step: Step; depth: number }[] {
  const ids = new Set(steps.map(({ id }) => id));
  const children = new Map<number | null, Step[]>();
  for (const step of steps) {
    const parent = step.parent !== null && ids.has(step.parent) && step.parent !== step.id ? step.parent : null;
    children.set(parent, [...(children.get(parent) ?? []), step]);
  }
  const found: { step: Step; depth: number }[] = [];
  const seen = new Set<Step>();
  const visit = (step: Step, depth: number): void => {
    if (seen.has(step)) return;
    seen.add(step);
    found.push({ step, depth });
    for (const child of children.get(step.id) ?? []) visit(child, depth + 1);
  };
  for (const root of children.get(null) ?? []) visit(root, 0);
  for (const step of steps) visit(step, 0);
  return found;
}
