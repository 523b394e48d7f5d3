// Formats numbers for display.

export function count(value: number): string {
  return value.toLocaleString('en');
}

/** `1 row`, `2 rows`. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${value === 1 ? noun : plural(noun)}`;
}

function plural(noun: string): string {
  return noun.endsWith('vertex') ? noun.replace(/vertex$/, 'vertices') : `${noun}s`;
}

export function bytes(value: number): string {
  if (value < 1000) return `${value} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let [scaled, unit] = [value / 1000, 0];
  while (scaled >= 999.5 && unit + 1 < units.length) [scaled, unit] = [scaled / 1000, unit + 1];
  return `${digits(scaled)} ${units[unit]}`;
}

/** `nanoseconds` in the unit that leaves at most three digits. */
export function duration(nanoseconds: number): string {
  const units = ['ns', 'µs', 'ms', 's'];
  let [scaled, unit] = [nanoseconds, 0];
  while (scaled >= 999.5 && unit + 1 < units.length) [scaled, unit] = [scaled / 1000, unit + 1];
  return `${unit === 0 ? Math.round(scaled) : digits(scaled)} ${units[unit]}`;
}

function digits(value: number): string {
  if (value >= 99.95) return Math.round(value).toLocaleString('en');
  return value.toFixed(value >= 9.995 ? 1 : 2).replace(/\.?0+$/, '');
}
