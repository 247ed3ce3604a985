// A word in; its usages out as a map and as sentences, by sense; shares by document or period; change between indexes.
//
// Parameters: word, index, most (senses), sense (from 0), box (x0,y0,x1,y1 on the map), by (document or period), and those of parts/change.js.

import { useState } from "preact/hooks";
import { drawnAside } from "/explorer/file-export.js";
import { html } from "/explorer/html-template.js";
import { number, percent, t } from "/explorer/i18n.js";
import { Answer, useAnswer } from "/explorer/components/server-request.js";
import { ChangeTable } from "/explorer/components/change-table.js";
import { Code } from "/explorer/components/code-block.js";
import { Exports } from "/explorer/components/export-buttons.js";
import { Choice, IndexChoice } from "/explorer/components/form-fields.js";
import { indexOf, tongueOf, useInfo } from "/explorer/components/server-info.js";
import { Sign, UsageMap, within } from "/explorer/components/usage-map.js";
import { MapPicture, SharePicture } from "/explorer/components/titled-charts.js";
import { periodsOf, sharesByPeriod } from "/explorer/document-periods.js";
import { Quote, Source } from "/explorer/components/usage-quote.js";
import { ShareBars, ShareTable } from "/explorer/components/sense-shares.js";
import { NoIndex } from "/explorer/components/nearest-usages.js";
import * as snippets from "/explorer/code-snippets.js";
import { linkTo, useTyped } from "/explorer/routing.js";

const MOST = 6; // senses, where nothing is chosen
const CHOICES = [2, 3, 4, 6, 8];
const [LEAST, GREATEST] = [1, 20]; // as the server takes them
const PAGE = 30; // sentences before "show more"
const NAMED = 4; // neighbours in the name of a sense
const DRAWN = 24; // documents; the table and the CSV have all

export function Senses({ params, go }) {
  const info = useInfo();
  const index = indexOf(info, params.index);
  if (!index) return html`<${NoIndex} title=${t("view.senses")} text=${t("senses.noIndex")} />`;
  return html`<${WithIndex} info=${info} index=${index} params=${params} go=${go} />`;
}

function WithIndex({ info, index, params, go }) {
  const word = (params.word ?? "").trim();
  const most = mostOf(params.most);
  const body = { word, index: index.name, most };
  const several = /\s/.test(word);
  const answer = useAnswer(word && !several ? "/senses" : null, body);
  const fresh = { sense: null, box: null };
  // Half a word has no senses, and grouping is work for the server: the word is asked for when it is entered.
  const [typed, type] = useTyped(params.word ?? "", null);
  const submit = (event) => {
    event.preventDefault();
    go({ word: typed.trim(), ...fresh }, true);
  };
  return html`
    <form class="form" onSubmit=${submit}>
      <label class="field grow">
        <span>${t("senses.word")}</span>
        <input value=${typed} lang=${tongueOf(info)} onInput=${(event) => type(event.target.value, true)} />
      </label>
      <button type="submit">${t("senses.show")}</button>
      <${Choice}
        label=${t("senses.most")}
        value=${String(most)}
        options=${CHOICES.includes(most) ? CHOICES.map(named) : [...CHOICES, most].map(named)}
        commit=${(next) => go({ most: next, ...fresh }, true)}
      />
      <${IndexChoice} info=${info} value=${index.name} commit=${(next) => go({ index: next, ...fresh }, true)} />
    </form>
    ${params.most && String(most) !== params.most && html`<p class="hint" role="status">${t("senses.mostWrong", { most, least: LEAST, greatest: GREATEST })}</p>`}
    ${several && html`<p class="hint" role="status">${t("senses.several")}</p>`}
    ${!word && html`<${Empty} info=${info} params=${params} />`}
    <${Answer} of=${answer}>
      ${(found) => html`<${Found} found=${found} index=${index} params=${params} go=${go} /><${Code} lines=${snippets.senses({ ...body, index })} />`}
    <//>
    <${ChangeTable} params=${params} go=${go} />
  `;
}

// What a permalink asks for, as far as the server takes it.
function mostOf(text) {
  const asked = Math.round(Number(text ?? MOST));
  return Number.isNaN(asked) ? MOST : Math.min(Math.max(asked, LEAST), GREATEST);
}

function named(count) {
  return [String(count), String(count)];
}

function Empty({ info, params }) {
  const lang = tongueOf(info);
  const link = (word) => linkTo("senses", { ...params, word });
  const examples = indexOf(info, params.index).examples.words;
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

function Found({ found, index, params, go }) {
  const title = `${t("senses.map")}: ${found.word} (${index.name})`;
  const count = found.senses.length;
  const sense = Number(params.sense) in found.senses && params.sense !== undefined ? Number(params.sense) : null;
  const [corners, setCorners] = useTyped(params.box ?? "", (next) => go({ box: next }));
  const box = boxOf(corners);
  const total = found.senses.reduce((sum, one) => sum + one.count, 0);
  const sample = { shown: number(found.usages.length), count: number(total) };
  const quality = { stability: number(found.stability, 2), silhouette: number(found.silhouette, 2) };
  const setBox = (next) => setCorners((next ?? []).flat().map((value) => value.toFixed(3)).join(","));
  const shown = found.usages.filter(
    (usage) => (sense === null || usage.sense === sense) && (!box || within(usage, box)),
  );
  return html`
    <section aria-labelledby="senses-title">
      <h2 id="senses-title">${t(count === 1 ? "senses.one" : "senses.found", { word: found.word, count })}</h2>
      ${count > 1 && html`<p class="hint">${t("senses.quality", quality)}</p>`}
      <${SenseChoice} found=${found} total=${total} sense=${sense} choose=${(next) => go({ sense: next }, true)} />
      <div class="columns even">
        <div class="stays">
          <h3>${t("senses.map")}</h3>
          ${found.usages.length < total && html`<p class="hint">${t("senses.sample", sample)}</p>`}
          <${UsageMap} found=${found} sense=${sense} box=${box} setBox=${setBox} />
          <p class="under">
            <span class="hint" id="brush-hint">${t("senses.brush")}</span>
            <${Exports}
              name=${t("senses.map")}
              file=${`senses-${found.word}`}
              svg=${() => drawnAside(html`<${MapPicture} found=${found} sense=${sense} box=${box} title=${title} />`)}
              csv=${() => rows(shown)}
            />
          </p>
          <${Documents} found=${found} index=${index} params=${params} go=${go} />
        </div>
        <${Sentences} key=${`${found.word} ${sense}`} usages=${shown} box=${box} clear=${() => setBox(null)} />
      </div>
    </section>
  `;
}

function SenseChoice({ found, total, sense, choose }) {
  const all = t("senses.share", { share: "100%", count: number(total) });
  const button = (value, content) => html`
    <button type="button" class="sense" aria-pressed=${String(sense === value)} onClick=${() => choose(value)}>
      ${content}
    </button>
  `;
  return html`
    <div class="senses" role="group" aria-label=${t("senses.filter")}>
      ${button(null, html`<strong>${t("senses.all")}</strong> <span class="hint">${all}</span>`)}
      ${found.senses.map((one, at) =>
        button(
          at,
          html`
            <strong><${Sign} sense=${at} /> ${t("senses.name", { number: at + 1 })}</strong>
            <span class="neighbours">${one.neighbours.slice(0, NAMED).join(" · ")}</span>
            <span class="hint">${t("senses.share", { share: percent(one.share), count: number(one.count) })}</span>
          `,
        ),
      )}
    </div>
  `;
}

function Sentences({ usages, box, clear }) {
  const info = useInfo();
  const [most, setMost] = useState(PAGE);
  const rest = Math.min(PAGE, usages.length - most);
  const more = () => setMost(most + PAGE);
  return html`
    <div>
      <h3 aria-live="polite">${t("senses.sentences", { count: number(usages.length) })}</h3>
      ${box && html`<p><button type="button" class="small" onClick=${clear}>${t("senses.clear")}</button></p>`}
      ${!usages.length && html`<p>${t("senses.nothing")}</p>`}
      <ul class="sentences">
        ${usages.slice(0, most).map(
          (usage, at) => html`
            <li key=${at}>
              <${Sign} sense=${usage.sense} />
              <span class="unseen">${t("senses.name", { number: usage.sense + 1 })}</span>
              <span><${Quote} usage=${usage} lang=${tongueOf(info)} /> <${Source} usage=${usage} /></span>
            </li>
          `,
        )}
      </ul>
      ${rest > 0 && html`<button type="button" onClick=${more}>${t("senses.more", { count: rest })}</button>`}
    </div>
  `;
}

// A sense knows its share of the word's usages in every document, so a document's shares add up to one.
function Documents({ found, index, params, go }) {
  const names = Object.keys(found.documents);
  names.sort((one, other) => one.localeCompare(other, "en", { numeric: true })); // chapter 10 after chapter 9
  if (!names.length) return null;
  const periods = periodsOf(names);
  const by = periods && params.by !== "document" ? "period" : "document";
  const short = folderOf(names).length;
  const rowOf = (name) => [name.slice(short), found.senses.map((sense) => sense.documents[name] ?? 0)];
  const shares = by === "period" ? sharesByPeriod(found, periods) : names.map(rowOf);
  const heads = [t(`senses.${by}`), ...found.senses.map((_, at) => t("senses.name", { number: at + 1 }))];
  const title = t(`senses.${by}s`);
  const full = `${title}: ${found.word} (${index.name})`;
  const choices = ["period", "document"].map((one) => [one, t(`senses.${one}`)]);
  const choose = (next) => go({ by: next }, true);
  return html`
    <h3>${title}</h3>
    ${periods && html`<${Choice} label=${t("senses.by")} value=${by} options=${choices} commit=${choose} />`}
    ${shares.length > DRAWN && html`<p class="hint">${t("senses.drawn", { drawn: DRAWN, count: shares.length })}</p>`}
    <${ShareBars} rows=${shares.slice(0, DRAWN)} name=${title} />
    <${Exports}
      name=${title}
      file=${`${by}s-${found.word}`}
      svg=${() => drawnAside(html`<${SharePicture} found=${found} rows=${shares.slice(0, DRAWN)} title=${full} />`)}
      csv=${() => [heads, ...shares.map(([name, row]) => [name, ...row])]}
    />
    <${ShareTable} rows=${shares} heads=${heads} name=${title} />
  `;
}

// The folder that all documents lie in says nothing about any of them.
function folderOf(names) {
  const parts = names[0].split("/").slice(0, -1);
  while (!names.every((name) => name.startsWith(parts.map((part) => `${part}/`).join("")))) parts.pop();
  return parts.map((part) => `${part}/`).join("");
}

function boxOf(text) {
  const values = (text ?? "").split(",").map(Number);
  if (!text || values.length !== 4 || values.some(Number.isNaN)) return null;
  return [values.slice(0, 2), values.slice(2)];
}

function rows(usages) {
  const head = ["sense", "word", "sentence", "start", "stop", "document", "line", "x", "y"];
  return [head, ...usages.map((usage) => head.map((name) => (name === "sense" ? usage.sense + 1 : usage[name])))];
}
