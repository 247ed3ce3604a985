// Fetches every usage of a word, page by page: what is on screen may be a part of them.

import { fetchJson } from "/explorer/api.js";

const PAGE = 1000; // lines, the most that the server returns at once

// body: as for /concordance. Returns {lines, senses, kind, …} with all lines.
export async function fetchAllLines(body) {
  const lines = [];
  let result;
  do {
    result = await fetchJson("/concordance", { ...body, start: lines.length, k: PAGE });
    lines.push(...result.lines);
  } while (lines.length < result.total && result.lines.length > 0);
  return { ...result, lines };
}
