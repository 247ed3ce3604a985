// Groups documents into periods by the years in their names: years, decades, half centuries or centuries.

const YEAR = /(?<!\d)(1\d{3}|20\d{2})(?!\d)/;
const PERIOD_YEARS = [1, 10, 50, 100];
const MAX_PERIODS = 12; // the shortest periods that give no more than this are used

// A Map from document to period, oldest first; null if a name has no year or if there is nothing to group.
export function periodsByDocument(names) {
  const years = names.map((name) => Number(YEAR.exec(name)?.[1]));
  if (years.some(Number.isNaN)) return null;
  const startsOf = (length) => years.map((year) => year - (year % length));
  const length = PERIOD_YEARS.find((years) => new Set(startsOf(years)).size <= MAX_PERIODS) ?? PERIOD_YEARS.at(-1);
  const starts = startsOf(length);
  const count = new Set(starts).size;
  if (count < 2 || count === names.length) return null;
  const entries = names.map((name, i) => [name, starts[i]]).sort(([, a], [, b]) => a - b);
  return new Map(entries.map(([name, start]) => [name, length === 1 ? `${start}` : `${start}–${start + length - 1}`]));
}

// [[period, [share of sense 0, …]], …]; documents are weighted by their number of usages.
export function sharesByPeriod(result, periods) {
  const rows = [];
  for (const period of new Set(periods.values())) {
    const names = [...periods.keys()].filter((name) => periods.get(name) === period);
    const usages = names.reduce((sum, name) => sum + result.documents[name], 0);
    const usagesOf = (sense) =>
      names.reduce((sum, name) => sum + (sense.documents[name] ?? 0) * result.documents[name], 0);
    rows.push([period, result.senses.map((sense) => usagesOf(sense) / usages)]);
  }
  return rows;
}
