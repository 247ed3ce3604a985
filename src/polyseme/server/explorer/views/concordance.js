// The concordance view: every usage of a word as a line, the words that stand near it, and its documents.
//
// Parameters: word, index, sort (document, left, right, sense, similarity), usage (its number, for similarity), near (a
// collocate: only lines with it), documents, senses (1: collocates by sense), read (a usage: the text around it).

import { useState } from "preact/hooks";
import { fetchAllLines } from "/explorer/all-lines.js";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { Await, useRequest } from "/explorer/components/server-request.js";
import { Code } from "/explorer/components/code-block.js";
import { CollocateTable, WINDOW } from "/explorer/components/collocate-table.js";
import { DocumentCounts } from "/explorer/components/document-counts.js";
import { ExportButtons } from "/explorer/components/export-buttons.js";
import { IndexSelect, Select, useFocus } from "/explorer/components/form-fields.js";
import { KwicPage, PAGE } from "/explorer/components/kwic-lines.js";
import { NoIndex } from "/explorer/components/nearest-usages.js";
import { chosenIndex, languageOf, useInfo } from "/explorer/components/server-info.js";
import { groupName } from "/explorer/components/sense-shares.js";
import { SenseSymbol } from "/explorer/components/usage-map.js";
import * as snippets from "/explorer/concordance-snippets.js";
import { linkTo, useTyped } from "/explorer/routing.js";

const ORDERS = ["document", "left", "right", "sense", "similarity"];
const NAMED = 4; // neighbours in the name of a sense

export function ConcordanceView({ params, navigate }) {
  const info = useInfo();
  const index = chosenIndex(info, params.index);
  if (!index) return html`<${NoIndex} title=${t("view.concordance")} text=${t("concordance.noIndex")} />`;
  return html`<${WithIndex} info=${info} index=${index} params=${params} navigate=${navigate} />`;
}

function WithIndex({ info, index, params, navigate }) {
  const word = (params.word ?? "").trim();
  const hasSpace = /\s/.test(word);
  const sort = ORDERS.includes(params.sort) ? params.sort : "document";
  const usage = sort === "similarity" && /^\d+$/.test(params.usage ?? "") ? Number(params.usage) : null;
  const body = requestBody({ word, index, sort, usage, params });
  const request = useRequest(word && !hasSpace ? "/concordance" : null, { ...body, k: PAGE });
  const [typed, type] = useTyped(params.word ?? "", null);
  const [documents, typeDocuments] = useTyped(params.documents ?? "", null);
  const field = useFocus(!word);
  const submit = (event) => {
    event.preventDefault();
    const isSame = typed.trim() === word;
    navigate({ word: typed.trim(), documents: documents.trim(), ...(!isSame && { near: null, usage: null }) }, true);
  };
  return html`
    <form class="form" onSubmit=${submit}>
      <label class="field grow">
        <span>${t("senses.word")}</span>
        <input ref=${field} value=${typed} lang=${languageOf(info)} onInput=${(event) => type(event.target.value, true)} />
      </label>
      ${
        index.documents.length > 1 &&
        html`<label class="field">
          <span>${t("concordance.documents")}</span>
          <input value=${documents} placeholder=${t("concordance.documentsHint")} size="26" onInput=${(event) => typeDocuments(event.target.value, true)} />
        </label>`
      }
      <button type="submit">${t("senses.show")}</button>
      <${Select}
        label=${t("concordance.sort")}
        value=${sort}
        options=${ORDERS.map((name) => [name, t(`concordance.sort.${name}`)])}
        onCommit=${(next) => navigate({ sort: next === "document" ? null : next, usage: null }, true)}
      />
      <${IndexSelect} info=${info} value=${index.name} onCommit=${(next) => navigate({ index: next, near: null, usage: null, documents: null }, true)} />
    </form>
    ${hasSpace && html`<p class="hint" role="status">${t("senses.several")}</p>`}
    ${!word && html`<${Empty} index=${index} lang=${languageOf(info)} />`}
    ${sort === "similarity" && usage === null && html`<p class="hint" role="status">${t("concordance.chooseUsage")}</p>`}
    <${Await} request=${request}>
      ${(result) => html`<${Result} key=${JSON.stringify(body)} result=${result} body=${body} index=${index} params=${params} navigate=${navigate} />`}
    <//>
  `;
}

// What /concordance gets, without the page. Until a usage is chosen, the order is that of the text.
function requestBody({ word, index, sort, usage, params }) {
  return {
    word,
    index: index.name,
    sort: sort === "similarity" && usage === null ? "document" : sort,
    usage,
    collocate: params.near ?? null,
    window: WINDOW,
    documents: params.documents ?? null,
  };
}

function Empty({ index, lang }) {
  return html`
    <div class="empty">
      <p>${t("concordance.empty")}</p>
      ${
        index.examples.words.length > 0 &&
        html`<p>
          ${t("senses.try")}${" "}
          ${index.examples.words.map((word) => html`<a key=${word} lang=${lang} href=${linkTo("concordance", { word })}>${word}</a> `)}
        </p>`
      }
    </div>
  `;
}

function Result({ result, body, index, params, navigate }) {
  const [pages, setPages] = useState(1);
  const { word, total } = result;
  const remaining = Math.min(PAGE, total - pages * PAGE);
  const compare = (usage) => navigate({ sort: "similarity", usage }, true);
  return html`
    <div class="columns concordance">
      <section aria-labelledby="lines-title">
        <h2 id="lines-title">${t(total === 1 ? "concordance.one" : "concordance.title", { word, count: number(total) })}</h2>
        <p class="under">
          <span class="hint">
            ${params.near && html`${t("concordance.near", { collocate: params.near })} · <a href=${linkTo("concordance", { ...params, near: null })}>${t("concordance.all")}</a> · `}
            <a href=${linkTo("senses", { word })}>${t("concordance.senses", { word })}</a>
            ${["left", "right"].includes(body.sort) && html` · ${t("concordance.order")}`}
          </span>
          <${ExportButtons} name=${t("concordance.lines", { word })} file=${`usages-${word}`} csv=${async () => csvRows(await fetchAllLines(body))} />
        </p>
        <${SenseLegend} result=${result} />
        ${Array.from({ length: pages }, (_, page) => html`<${KwicPage} key=${page} page=${page} body=${body} first=${page === 0 && result} compare=${compare} chosen=${body.usage} />`)}
        ${remaining > 0 && html`<button type="button" onClick=${() => setPages(pages + 1)}>${t("concordance.more", { count: number(remaining) })}</button>`}
        <${Code} lines=${snippets.concordance({ word, index, k: PAGE, options: { sort: body.sort === "document" ? null : body.sort, usage: body.usage, collocate: body.collocate, documents: body.documents } })} />
      </section>
      <div>
        <${CollocateTable} word=${word} index=${index} params=${params} navigate=${navigate} />
        <${DocumentCounts} word=${word} counts=${result.documents} chosen=${params.documents} choose=${(documents) => navigate({ documents, usage: null }, true)} />
      </div>
    </div>
  `;
}

function SenseLegend({ result }) {
  if (!result.senses) return null;
  return html`
    <p class="sense-legend hint">
      ${result.senses.map(
        ({ neighbours, collocates }, i) => html`
          <span key=${i}><${SenseSymbol} sense=${i} /> ${groupName(result.kind, i)}: ${(collocates.length ? collocates : neighbours).slice(0, NAMED).join(" · ")}</span>
        `,
      )}
    </p>
  `;
}

function csvRows({ lines, senses }) {
  const head = ["left", "word", "right", "document", "title", "line"];
  const extra = [...(senses ? ["sense"] : []), ...(lines.some((line) => line.cosine !== null) ? ["cosine"] : [])];
  const values = (line) => [...head, ...extra].map((name) => (name === "sense" ? line.sense + 1 : line[name]));
  return [[...head, ...extra], ...lines.map(values)];
}
