// The words that stand near a word, with their log-likelihood and the senses of the word that they stand near.

import { useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { Await, useRequest } from "/explorer/components/server-request.js";
import { Code } from "/explorer/components/code-block.js";
import { ExportButtons } from "/explorer/components/export-buttons.js";
import { LinkedWord } from "/explorer/components/corpus-links.js";
import { barText, groupName, StackedBar } from "/explorer/components/sense-shares.js";
import * as snippets from "/explorer/concordance-snippets.js";

export const WINDOW = 5; // words on each side
const SHOWN = 12;
const MOST = 200; // in the CSV file and after "show more"
const BAR = { width: 72, height: 14 };

// params.near: the collocate whose lines are shown. params.senses "1" counts near which sense each stands.
export function CollocateTable({ word, index, params, navigate }) {
  const [shown, setShown] = useState(SHOWN);
  const bySense = params.senses === "1";
  const body = { word, index: index.name, k: MOST, window: WINDOW, documents: params.documents ?? null };
  const request = useRequest("/collocates", body);
  const senses = useRequest(bySense ? "/collocates" : null, { ...body, senses: true });
  return html`
    <section aria-labelledby="collocates-title">
      <h3 id="collocates-title">${t("collocates.title")}</h3>
      <p class="hint">${t("collocates.hint", { window: WINDOW })}</p>
      <${Await} request=${bySense && (senses.data || senses.error) ? senses : request}>
        ${(data) => html`<${Table} data=${data} shown=${shown} params=${params} navigate=${navigate} />
          <p class="under">
            ${data.collocates.length > shown && html`<button type="button" class="small" onClick=${() => setShown(MOST)}>${t("collocates.more")}</button>`}
            ${!bySense && html`<button type="button" class="small" onClick=${() => navigate({ senses: "1" }, true)}>${t("collocates.bySense")}</button>`}
            <${ExportButtons} name=${t("collocates.title")} file=${`collocates-${word}`} csv=${() => csvRows(data)} />
          </p>`}
      <//>
      ${bySense && senses.busy && html`<p class="loading" role="status">${t("state.loading")}</p>`}
      <${Code} lines=${snippets.collocates({ word, index, window: WINDOW, k: SHOWN, documents: params.documents, senses: bySense })} />
    </section>
  `;
}

function Table({ data, shown, params, navigate }) {
  if (!data.collocates.length) return html`<p>${t("collocates.none")}</p>`;
  const showSenses = data.senses?.length > 1;
  const heads = ["word", "count", "score", ...(showSenses ? ["senses"] : [])];
  return html`
    ${data.senses?.length === 1 && html`<p class="hint">${t("collocates.oneSense", { word: data.word })}</p>`}
    <table class="collocates">
      <thead>
        <tr>
          ${heads.map((name) => html`<th key=${name} scope="col">${t(`collocates.${name}`)}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${data.collocates.slice(0, shown).map((row) => {
          const label = t("collocates.lines", { count: number(row.count), word: row.word });
          const isNear = params.near === row.word;
          return html`
            <tr key=${row.word}>
              <th scope="row"><${LinkedWord} word=${row.word} /></th>
              <td>
                <button type="button" class="small" aria-pressed=${String(isNear)} aria-label=${label} title=${label} onClick=${() => navigate({ near: isNear ? null : row.word, usage: null }, true)}>${number(row.count)}</button>
              </td>
              <td>${number(row.log_likelihood, 1)}</td>
              ${showSenses && html`<td><${Bar} row=${row} data=${data} /></td>`}
            </tr>
          `;
        })}
      </tbody>
    </table>
  `;
}

// With which sense of the word a collocate stands.
function Bar({ row, data }) {
  const shares = row.senses.map((count) => count / row.count);
  const names = data.senses.map((sense, i) => `${groupName(data.kind, i)}: ${sense.neighbours.slice(0, 4).join(" · ")}`);
  return html`
    <svg class="shares pair" role="img" width=${BAR.width} height=${BAR.height} viewBox=${`0 0 ${BAR.width} ${BAR.height}`} aria-label=${barText(row.word, shares)}>
      <${StackedBar} shares=${shares} x=${0} y=${0} ...${BAR} names=${names} />
    </svg>
  `;
}

function csvRows({ collocates, senses }) {
  const names = (senses ?? []).map((_, i) => `sense ${i + 1}`);
  const head = ["word", "count", "left", "right", "total", "expected", "log_likelihood"];
  return [[...head, ...names], ...collocates.map((row) => [...head.map((name) => row[name]), ...row.senses])];
}
