// How often a word is used in each document, as bars. A document leads to its usages.

import { useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { ExportButtons } from "/explorer/components/export-buttons.js";
import { languageOf, useInfo } from "/explorer/components/server-info.js";

const SHOWN = 12;

// counts: of all documents, in the order of the text. chosen: the documents that are shown, as typed.
export function DocumentCounts({ word, counts, chosen, choose }) {
  const lang = languageOf(useInfo());
  const [isWhole, setWhole] = useState(false);
  const used = counts.filter(({ count }) => count > 0);
  if (counts.length < 2 && !chosen) return null;
  const rows = isWhole ? used : [...used].sort((a, b) => b.per_10_000 - a.per_10_000).slice(0, SHOWN);
  const highest = Math.max(...used.map((row) => row.per_10_000));
  return html`
    <section aria-labelledby="frequency-title">
      <h3 id="frequency-title">${t("frequency.title")}</h3>
      <p class="hint">${t("frequency.hint")}</p>
      <ol class="frequencies">
        ${rows.map((row) => {
          const values = t("frequency.row", { count: number(row.count), rate: number(row.per_10_000, 1) });
          const isChosen = chosen === row.name;
          return html`
            <li key=${row.name} title=${values}>
              <button type="button" aria-pressed=${String(isChosen)} aria-label=${`${t("frequency.only", { name: row.name })}: ${values}`} onClick=${() => choose(isChosen ? null : row.name)}>
                <span class="name" lang=${lang}>${row.name}</span>
                <span class="track" aria-hidden="true"><span style=${{ width: `${(100 * row.per_10_000) / highest}%` }}></span></span>
                <span class="value">${number(row.count)}</span>
              </button>
            </li>
          `;
        })}
      </ol>
      <p class="under">
        ${used.length > rows.length && html`<button type="button" class="small" onClick=${() => setWhole(true)}>${t("frequency.more", { count: number(used.length) })}</button>`}
        <${ExportButtons} name=${t("frequency.title")} file=${`documents-${word}`} csv=${() => csvRows(counts)} />
      </p>
    </section>
  `;
}

function csvRows(counts) {
  const head = ["name", "count", "total", "per_10_000"];
  return [head, ...counts.map((row) => head.map((name) => row[name]))];
}
