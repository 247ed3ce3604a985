// The senses view: the usages of a word as a map and as sentences, grouped by sense; shares by document or period;
// change between indexes.
//
// Parameters: word, index, max (senses), groups (1: also without evidence), sense (from 0), area (x0,y0,x1,y1 on the map), by (document or period), and
// those of components/change-table.js.

import { useState } from "preact/hooks";
import { renderOffscreen } from "/explorer/file-export.js";
import { html } from "/explorer/html-template.js";
import { number, percent, t } from "/explorer/i18n.js";
import { Await, useRequest } from "/explorer/components/server-request.js";
import { ChangeTable } from "/explorer/components/change-table.js";
import { Code } from "/explorer/components/code-block.js";
import { fetchAllLines } from "/explorer/all-lines.js";
import { LinkedWords } from "/explorer/components/corpus-links.js";
import { ExportButtons } from "/explorer/components/export-buttons.js";
import { IndexSelect, Select, useFocus } from "/explorer/components/form-fields.js";
import { chosenIndex, languageOf, useInfo } from "/explorer/components/server-info.js";
import { SenseSymbol, UsageMap, within } from "/explorer/components/usage-map.js";
import { TitledMap, TitledShares } from "/explorer/components/titled-charts.js";
import { periodsByDocument, sharesByPeriod } from "/explorer/document-periods.js";
import { UsageQuote, UsageSource } from "/explorer/components/usage-quote.js";
import { groupName, ShareBars, ShareTable } from "/explorer/components/sense-shares.js";
import { NoIndex } from "/explorer/components/nearest-usages.js";
import { Grammar } from "/explorer/components/sense-grammar.js";
import * as snippets from "/explorer/code-snippets.js";
import { linkTo, useTyped } from "/explorer/routing.js";
import { splitAt } from "/explorer/text-spans.js";
import { PersonLink } from "/explorer/views/persons.js";

const DEFAULT_MAX = 6; // senses
const MAX_OPTIONS = [2, 3, 4, 6, 8];
const [LOWEST_MAX, HIGHEST_MAX] = [1, 20]; // limits of the server
const PAGE = 30; // sentences before "show more"
const NAMED = 4; // neighbours in the name of a sense
const DRAWN = 24; // documents; the table and the CSV file have all
const LINE_WIDTH = 200; // characters on each side, of lines in the CSV file

export function Senses({ params, navigate }) {
  const info = useInfo();
  const index = chosenIndex(info, params.index);
  if (!index) return html`<${NoIndex} title=${t("view.senses")} text=${t("senses.noIndex")} />`;
  return html`<${WithIndex} info=${info} index=${index} params=${params} navigate=${navigate} />`;
}

function WithIndex({ info, index, params, navigate }) {
  const word = (params.word ?? "").trim();
  const max = parseMax(params.max);
  const groups = params.groups === "1";
  const hasSpace = /\s/.test(word);
  const request = useRequest(word && !hasSpace ? "/senses" : null, { word, index: index.name, max_senses: max, groups });
  const cleared = { sense: null, area: null };
  // The request is sent on submit, not while typing: grouping is costly, and half a word has no senses.
  const [typed, type] = useTyped(params.word ?? "", null);
  const field = useFocus(!word);
  const submit = (event) => {
    event.preventDefault();
    navigate({ word: typed.trim(), ...cleared }, true);
  };
  return html`
    <form class="form" onSubmit=${submit}>
      <label class="field grow">
        <span>${t("senses.word")}</span>
        <input ref=${field} value=${typed} lang=${languageOf(info)} onInput=${(event) => type(event.target.value, true)} />
      </label>
      <button type="submit">${t("senses.show")}</button>
      <${Select}
        label=${t("senses.max")}
        value=${String(max)}
        options=${[...new Set([...MAX_OPTIONS, max])].map((count) => [String(count), String(count)])}
        onCommit=${(next) => navigate({ max: next, ...cleared }, true)}
      />
      <${IndexSelect} info=${info} value=${index.name} onCommit=${(next) => navigate({ index: next, ...cleared }, true)} />
    </form>
    ${params.max && String(max) !== params.max && html`<p class="hint" role="status">${t("senses.invalidMax", { max, low: LOWEST_MAX, high: HIGHEST_MAX })}</p>`}
    ${hasSpace && html`<p class="hint" role="status">${t("senses.several")}</p>`}
    ${!word && html`<${Empty} info=${info} params=${params} />`}
    <${Await} request=${request}>
      ${(result) => html`<${SenseResult} result=${result} index=${index} params=${params} navigate=${navigate} /><${Code} lines=${snippets.senses({ word, index, max, groups })} />`}
    <//>
    <${ChangeTable} params=${params} navigate=${navigate} />
  `;
}

// The number in the permalink, moved into the limits of the server.
function parseMax(text) {
  const requested = Math.round(Number(text ?? DEFAULT_MAX));
  return Number.isNaN(requested) ? DEFAULT_MAX : Math.min(Math.max(requested, LOWEST_MAX), HIGHEST_MAX);
}

function Empty({ info, params }) {
  const lang = languageOf(info);
  const link = (word) => linkTo("senses", { ...params, word });
  const examples = chosenIndex(info, params.index).examples.words;
  return html`
    <div class="empty">
      <p>${t("senses.empty")}</p>
      ${
        examples.length > 0 &&
        html`<p>
          ${t("senses.try")}${" "}
          ${examples.map((word) => html`<a key=${word} lang=${lang} href=${link(word)}>${word}</a> `)}
        </p>`
      }
    </div>
  `;
}

function SenseResult({ result, index, params, navigate }) {
  const title = `${t("senses.map")}: ${result.word} (${index.name})`;
  const count = result.senses.length;
  const sense = Number(params.sense) in result.senses && params.sense !== undefined ? Number(params.sense) : null;
  const [corners, setCorners] = useTyped(params.area ?? "", (next) => navigate({ area: next }));
  const area = parseArea(corners);
  const total = result.senses.reduce((sum, { count }) => sum + count, 0);
  const sample = { shown: number(result.usages.length), count: number(total) };
  const titleKey = count === 1 ? "senses.single" : result.kind === "senses" ? "senses.count" : "groups.count";
  const setArea = (next) => setCorners((next ?? []).flat().map((value) => value.toFixed(3)).join(","));
  const shown = result.usages.filter(
    (usage) => (sense === null || usage.sense === sense) && (!area || within(usage, area)),
  );
  return html`
    <section aria-labelledby="senses-title">
      <h2 id="senses-title">${t(titleKey, { word: result.word, count })}</h2>
      <${PersonLink} word=${result.word} index=${index} />
      <${SenseFilter} result=${result} total=${total} sense=${sense} choose=${(next) => navigate({ sense: next }, true)} />
      <div class="columns even map-columns">
        <div class="map-column">
          <h3>${t("senses.map")}</h3>
          <${UsageMap} result=${result} sense=${sense} area=${area} setArea=${setArea} />
          <p class="under">
            <span class="hint" id="area-hint">${t("senses.areaHint")} ${result.usages.length < total && t("senses.sample", sample)}</span>
            <${ExportButtons}
              name=${t("senses.map")}
              file=${`senses-${result.word}`}
              svg=${() => renderOffscreen(html`<${TitledMap} result=${result} sense=${sense} area=${area} title=${title} />`)}
              csv=${async () => csvRows(area || result.usages.length === total ? shown.map(asLine) : await fetchUsages(result, index, params, sense))}
            />
          </p>
        </div>
        <${Sentences} kind=${result.kind} word=${result.word} total=${total} key=${`${result.word} ${sense}`} usages=${shown} area=${area} clear=${() => setArea(null)} />
      </div>
      ${result.evidence && html`<${Evidence} result=${result} index=${index} params=${params} navigate=${navigate} />`}
      <${Documents} result=${result} index=${index} params=${params} navigate=${navigate} />
    </section>
  `;
}

// Why the groups are senses, or are not; shows groups without evidence on request.
function Evidence({ result, index, params, navigate }) {
  const { topic, usual, overlap, is_grammatical: isGrammatical } = result.evidence;
  const values = {
    topic: number(topic, 2),
    usual: number(usual, 2),
    overlap: percent(overlap),
    stability: number(result.stability, 2),
  };
  const isMerged = result.senses.length === 1;
  const show = (groups) => navigate({ groups, sense: null, area: null }, true);
  return html`
    <p class="hint">
      ${result.kind === "groups" && t("groups.why", { count: result.candidates })}${" "}
      ${t("senses.evidence", values)}${" "}
      ${result.kind === "groups" && html`<button type="button" class="small" onClick=${() => show(isMerged ? "1" : null)}>${t(isMerged ? "groups.show" : "groups.merge")}</button>`}
    </p>
    ${isGrammatical && html`<${Grammar} result=${result} index=${index} merged=${isMerged || params.max === "1"} navigate=${navigate} />`}
  `;
}

function SenseFilter({ result, total, sense, choose }) {
  const all = t("senses.share", { share: "100%", count: number(total) });
  const button = (value, content) => html`
    <button type="button" class="sense" aria-pressed=${String(sense === value)} onClick=${() => choose(value)}>
      ${content}
    </button>
  `;
  return html`
    <div class="senses" role="group" aria-label=${t("senses.filter")}>
      ${button(null, html`<strong>${t(result.kind === "senses" ? "senses.all" : "groups.all")}</strong> <span class="hint">${all}</span>`)}
      ${result.senses.map(
        ({ neighbours, collocates, share, count }, i) => html`
          <div class="sense-card" key=${i}>
            ${button(
              i,
              html`
                <strong><${SenseSymbol} sense=${i} /> ${groupName(result.kind, i)}</strong>
                <span class="hint">${t("senses.share", { share: percent(share), count: number(count) })}</span>
              `,
            )}
            <p class="neighbours"><${LinkedWords} words=${neighbours.slice(0, NAMED)} /></p>
            ${collocates.length > 0 && html`<p class="collocate-words">${t("senses.with")} <${LinkedWords} words=${collocates.slice(0, NAMED)} /></p>`}
          </div>
        `,
      )}
    </div>
  `;
}

function Sentences({ kind, word, total, usages, area, clear }) {
  const info = useInfo();
  const [limit, setLimit] = useState(PAGE);
  const remaining = Math.min(PAGE, usages.length - limit);
  const showMore = () => setLimit(limit + PAGE);
  return html`
    <div>
      <h3 aria-live="polite">${t("senses.sentences", { count: number(usages.length) })}</h3>
      ${area && html`<p><button type="button" class="small" onClick=${clear}>${t("senses.clear")}</button></p>`}
      ${!usages.length && html`<p>${t("senses.nothing")}</p>`}
      <div class="sentences-box" tabindex="0" role="group" aria-label=${t("senses.list")}>
        <ul class="sentences">
        ${usages.slice(0, limit).map(
          (usage, i) => html`
            <li key=${i}>
              <${SenseSymbol} sense=${usage.sense} />
              <span class="visually-hidden">${groupName(kind, usage.sense)}</span>
              <span><${UsageQuote} usage=${usage} lang=${languageOf(info)} /> <${UsageSource} usage=${usage} /></span>
            </li>
          `,
        )}
        </ul>
        ${remaining > 0 && html`<button type="button" onClick=${showMore}>${t("senses.more", { count: remaining })}</button>`}
        <p><a href=${linkTo("concordance", { word, sort: "sense" })}>${t("senses.allUsages", { count: number(total) })}</a></p>
      </div>
    </div>
  `;
}

// The shares of a document add up to one.
function Documents({ result, index, params, navigate }) {
  const names = Object.keys(result.documents);
  names.sort((a, b) => a.localeCompare(b, "en", { numeric: true })); // chapter 10 after chapter 9
  if (!names.length) return null;
  const periods = periodsByDocument(names);
  const by = periods && params.by !== "document" ? "period" : "document";
  const prefix = commonFolder(names).length;
  const rowOf = (name) => [name.slice(prefix), result.senses.map((sense) => sense.documents[name] ?? 0)];
  const shares = by === "period" ? sharesByPeriod(result, periods) : names.map(rowOf);
  const heads = [t(`senses.${by}`), ...result.senses.map((_, i) => groupName(result.kind, i))];
  const title = t(`senses.${by}s`);
  const fullTitle = `${title}: ${result.word} (${index.name})`;
  const options = ["period", "document"].map((name) => [name, t(`senses.${name}`)]);
  const setGrouping = (next) => navigate({ by: next }, true);
  return html`
    <h3>${title}</h3>
    ${periods && html`<${Select} label=${t("senses.by")} value=${by} options=${options} onCommit=${setGrouping} />`}
    ${shares.length > DRAWN && html`<p class="hint">${t("senses.drawn", { drawn: DRAWN, count: shares.length })}</p>`}
    <${ShareBars} rows=${shares.slice(0, DRAWN)} name=${title} />
    <${ExportButtons}
      name=${title}
      file=${`${by}s-${result.word}`}
      svg=${() => renderOffscreen(html`<${TitledShares} result=${result} rows=${shares.slice(0, DRAWN)} title=${fullTitle} />`)}
      csv=${() => [heads, ...shares.map(([name, row]) => [name, ...row])]}
    />
    <${ShareTable} rows=${shares} heads=${heads} name=${title} />
  `;
}

// The folder of all documents, which is left out of their names.
function commonFolder(names) {
  const parts = names[0].split("/").slice(0, -1);
  while (!names.every((name) => name.startsWith(parts.map((part) => `${part}/`).join("")))) parts.pop();
  return parts.map((part) => `${part}/`).join("");
}

function parseArea(text) {
  const values = (text ?? "").split(",").map(Number);
  if (!text || values.length !== 4 || values.some(Number.isNaN)) return null;
  return [values.slice(0, 2), values.slice(2)];
}

const CSV_HEAD = ["sense", "left", "word", "right", "document", "title", "line", "x", "y"];

function csvRows(usages) {
  return [CSV_HEAD, ...usages.map((usage) => CSV_HEAD.map((name) => (name === "sense" ? usage.sense + 1 : usage[name])))];
}

// A usage of the map as a line of a concordance.
function asLine(usage) {
  const [left, word, right] = splitAt(usage.sentence, usage.start, usage.stop);
  return { ...usage, left, word, right };
}

// Every usage of the chosen sense; those that the map does not show have no coordinates.
async function fetchUsages(result, index, params, sense) {
  const points = new Map(result.usages.map(({ number: id, x, y }) => [id, { x, y }]));
  const settings = { max_senses: parseMax(params.max), groups: params.groups === "1", width: LINE_WIDTH };
  const { lines } = await fetchAllLines({ word: result.word, index: index.name, sort: "sense", ...settings });
  return lines.filter((line) => sense === null || line.sense === sense).map((line) => ({ ...line, ...points.get(line.number) }));
}
