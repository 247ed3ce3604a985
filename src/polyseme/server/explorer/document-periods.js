// Names of documents in; the period of each out, where all of them carry a year: years, decades, centuries.

const YEAR = /(?<!\d)(1\d{3}|20\d{2})(?!\d)/;
const WIDTHS = [1, 10, 50, 100];
const MOST = 12; // periods: the narrowest that make no more are taken

// A Map from name to period in the order of time, or null: a name without a year, or nothing to join.
export function periodsOf(names) {
  const years = names.map((name) => Number(YEAR.exec(name)?.[1]));
  if (years.some(Number.isNaN)) return null;
  const starts = (width) => years.map((year) => year - (year % width));
  const width = WIDTHS.find((one) => new Set(starts(one)).size <= MOST) ?? WIDTHS.at(-1);
  const count = new Set(starts(width)).size;
  if (count < 2 || count === names.length) return null;
  const found = names.map((name, at) => [name, starts(width)[at]]);
  found.sort(([, one], [, other]) => one - other);
  return new Map(found.map(([name, start]) => [name, width === 1 ? `${start}` : `${start}–${start + width - 1}`]));
}

// Shares of senses by period, [[period, [share of sense 0, …]], …]: documents count by their usages.
export function sharesByPeriod(found, periods) {
  const rows = [];
  for (const period of new Set(periods.values())) {
    const names = [...periods.keys()].filter((name) => periods.get(name) === period);
    const usages = names.reduce((sum, name) => sum + found.documents[name], 0);
    const inAll = (sense) => names.reduce((sum, name) => sum + (sense.documents[name] ?? 0) * found.documents[name], 0);
    rows.push([period, found.senses.map((sense) => inAll(sense) / usages)]);
  }
  return rows;
}
