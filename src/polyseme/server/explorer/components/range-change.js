// Change of a word, or of all words, between two ranges of a timeline.

import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { Await, useRequest } from "/explorer/components/server-request.js";
import { ChangeRows } from "/explorer/components/change-table.js";
import { Code } from "/explorer/components/code-block.js";
import { rangeName } from "/explorer/components/range-strip.js";
import * as snippets from "/explorer/code-snippets.js";
import { linkTo } from "/explorer/routing.js";

const SHOWN = 20;
const LEAST = 5; // usages in each range: the server refuses to compare fewer

// ranges: {A: [first, last], B: …}, columns of `periods`.
export function RangeChange({ data, index, ranges, all, setAll }) {
  const { periods, word } = data;
  const chosen = [ranges.A, ranges.B].map((range) => periods.slice(range[0], range[1] + 1));
  const names = [ranges.A, ranges.B].map((range) => rangeName(periods.map(({ name }) => name), range));
  const [documents, against] = chosen.map((part) => joinSelections(part.map((period) => period.documents)));
  const body = { first: index.name, second: index.name, words: all ? [] : [word], k: SHOWN, documents, against };
  const isRare = !all && chosen.some((part) => countOf(part, "count") < LEAST);
  const request = useRequest(isRare ? null : "/change", body);
  const overlaps = ranges.A[0] <= ranges.B[1] && ranges.B[0] <= ranges.A[1];
  return html`
    <section aria-labelledby="range-change-title">
      <h2 id="range-change-title">${t("timeline.change", { first: names[0], second: names[1] })}</h2>
      <p>${frequencyChange(chosen, names)}</p>
      ${overlaps && html`<p class="hint" role="status">${t("timeline.overlap")}</p>`}
      <p class="choices" role="group" aria-label=${t("timeline.what")}>
        <button type="button" class="small" aria-pressed=${String(!all)} onClick=${() => setAll(false)}>${t("timeline.thisWord", { word })}</button>
        ${" "}<button type="button" class="small" aria-pressed=${String(all)} onClick=${() => setAll(true)}>${t("timeline.allWords")}</button>
      </p>
      ${isRare && html`<p class="hint" role="status">${t("timeline.rare", { word, least: LEAST })}</p>`}
      <${Await} request=${request}>
        ${({ changes, complete = true }) => html`
          ${!complete && html`<p class="hint" role="status">${t("change.incomplete")}</p>`}
          ${changes.length === 0 && html`<p>${t("change.none")}</p>`}
          ${changes.length > 0 &&
          html`<${ChangeRows}
            changes=${changes}
            names=${names}
            linkOf=${(other) => linkTo("timeline", { word: other })}
          />`}
          <${Code} lines=${snippets.changeOfParts({ index, words: all ? null : [word], documents, against, k: SHOWN })} />
        `}
      <//>
    </section>
  `;
}

// "1790–1829: 210 per million; 1990–2021: 845 per million"
function frequencyChange(chosen, names) {
  return chosen
    .map((part, i) => {
      const [count, total] = ["count", "total"].map((field) => countOf(part, field));
      return t("timeline.rangeFrequency", { name: names[i], count: number(count), frequency: number((1e6 * count) / total) });
    })
    .join(t("timeline.and"));
}

function countOf(part, field) {
  return part.reduce((sum, period) => sum + period[field], 0);
}

// Neighbouring ranges of document numbers become one: "1-3,4-9,12-12" is "1-9,12-12".
export function joinSelections(selections) {
  const spans = selections
    .flatMap((text) => text.split(","))
    .map((span) => span.split("-").map(Number))
    .sort(([a], [b]) => a - b);
  const joined = [];
  for (const [first, last] of spans) {
    const open = joined.at(-1);
    if (open && first <= open[1] + 1) open[1] = Math.max(open[1], last);
    else joined.push([first, last]);
  }
  return joined.map((span) => span.join("-")).join(",");
}
