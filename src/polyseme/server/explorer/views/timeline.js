// The timeline view: how often a word is used, and in which senses, by document, chapter or year; and how its use
// changed between two ranges that are drawn on it.
//
// Parameters: word, index, by, max (senses), groups (1: also without evidence), from and to (ranges of periods, 0-5,
// counted from 0), all (1: compare all words of the ranges).

import { useState } from "preact/hooks";
import { renderOffscreen } from "/explorer/file-export.js";
import { html } from "/explorer/html-template.js";
import { number, percent, t } from "/explorer/i18n.js";
import { Await, useRequest } from "/explorer/components/server-request.js";
import { Code } from "/explorer/components/code-block.js";
import { ExportButtons } from "/explorer/components/export-buttons.js";
import { Select, IndexSelect } from "/explorer/components/form-fields.js";
import { NoIndex } from "/explorer/components/nearest-usages.js";
import { RangeChange } from "/explorer/components/range-change.js";
import { RangeStrip } from "/explorer/components/range-strip.js";
import { groupName } from "/explorer/components/sense-shares.js";
import { chosenIndex, languageOf, useInfo } from "/explorer/components/server-info.js";
import { EDGES, heightOf, shareText, TimelineChart, TimelineDrawing } from "/explorer/components/timeline-chart.js";
import { SenseSymbol } from "/explorer/components/usage-map.js";
import { useElementWidth } from "/explorer/measure-width.js";
import * as snippets from "/explorer/code-snippets.js";
import { linkTo, useTyped } from "/explorer/routing.js";

const NAMED = 5; // words in the name of a sense
const CLEARED = { from: null, to: null };

export function TimelineView({ params, navigate }) {
  const info = useInfo();
  const index = chosenIndex(info, params.index);
  if (!index) return html`<${NoIndex} title=${t("view.timeline")} text=${t("senses.noIndex")} />`;
  return html`<${WithIndex} info=${info} index=${index} params=${params} navigate=${navigate} />`;
}

function WithIndex({ info, index, params, navigate }) {
  const word = (params.word ?? "").trim();
  const hasSpace = /\s/.test(word);
  const body = { word, index: index.name, by: params.by ?? null, groups: params.groups === "1" };
  const request = useRequest(word && !hasSpace ? "/timeline" : null, body);
  const [typed, type] = useTyped(params.word ?? "", null);
  const submit = (event) => {
    event.preventDefault();
    navigate({ word: typed.trim() }, true);
  };
  const choices = request.data?.choices ?? [];
  return html`
    <form class="form" onSubmit=${submit}>
      <label class="field grow">
        <span>${t("senses.word")}</span>
        <input value=${typed} lang=${languageOf(info)} onInput=${(event) => type(event.target.value, true)} />
      </label>
      <button type="submit">${t("senses.show")}</button>
      ${choices.length > 1 &&
      html`<${Select}
        label=${t("senses.by")}
        value=${request.data.by}
        options=${choices.map((name) => [name, groupingName(name)])}
        onCommit=${(by) => navigate({ by, ...CLEARED }, true)}
      />`}
      <${IndexSelect} info=${info} value=${index.name} onCommit=${(next) => navigate({ index: next, by: null, ...CLEARED }, true)} />
    </form>
    ${hasSpace && html`<p class="hint" role="status">${t("senses.several")}</p>`}
    ${!word && html`<${Empty} index=${index} lang=${languageOf(info)} />`}
    <${Await} request=${request}>
      ${(data) => html`
        <${Result} key=${`${data.by} ${index.name}`} data=${data} index=${index} params=${params} navigate=${navigate} />
        <${Code} lines=${snippets.timeline({ word: data.word, index, by: data.by, groups: body.groups })} />
      `}
    <//>
  `;
}

function Empty({ index, lang }) {
  return html`
    <div class="empty">
      <p>${t("timeline.empty")}</p>
      ${index.examples.words.length > 0 &&
      html`<p>
        ${t("senses.try")}${" "}
        ${index.examples.words.map((word) => html`<a key=${word} lang=${lang} href=${linkTo("timeline", { word })}>${word}</a> `)}
      </p>`}
    </div>
  `;
}

function Result({ data, index, params, navigate }) {
  const [frame, width] = useElementWidth();
  const count = data.periods.length;
  const [draft, setDraft] = useState(null); // {letter, range} while a drag is under way
  const ranges = { A: parseRange(params.from, count), B: parseRange(params.to, count) };
  const shown = draft?.range ? { ...ranges, [draft.letter]: draft.range } : ranges;
  const save = (letter) => (range) => {
    setDraft(null);
    navigate({ [letter === "A" ? "from" : "to"]: range.join("-") }, true);
  };
  const follow = (letter) => (range) => setDraft(range && { letter, range });
  // On the chart, the first drag draws A and the next one B; a third begins again.
  const next = ranges.A && !ranges.B ? "B" : "A";
  const draw = (range) => {
    setDraft(null);
    navigate(next === "A" ? { from: range.join("-"), to: null } : { to: range.join("-") }, true);
  };
  const names = data.periods.map(({ name }) => name);
  const title = t("timeline.title", { word: data.word, grouping: groupingName(data.by) });
  const third = Math.max(1, Math.floor(count / 3));
  const strip = (letter, label, initial) => html`
    <${RangeStrip}
      names=${names}
      range=${shown[letter]}
      letter=${letter}
      label=${label}
      initial=${initial}
      ...${EDGES}
      follow=${follow(letter)}
      finish=${save(letter)}
    />
  `;
  return html`
    <section aria-labelledby="timeline-title">
      <h2 id="timeline-title">${title}</h2>
      <${SenseLegend} data=${data} />
      ${count < 2 && html`<p class="hint" role="status">${t("timeline.one")}</p>`}
      <div ref=${frame}>
        <${TimelineChart} data=${data} width=${width} ranges=${shown} follow=${follow(next)} finish=${draw} />
        ${count > 1 && html`${strip("A", t("timeline.from"), [0, third - 1])} ${strip("B", t("timeline.to"), [count - third, count - 1])}`}
      </div>
      <p class="under">
        <span class="hint">${count > 1 && t("timeline.hint")}</span>
        <${ExportButtons}
          name=${t("view.timeline")}
          file=${`timeline-${data.word}`}
          svg=${() => renderOffscreen(html`<${TitledTimeline} data=${data} title=${`${title} (${index.name})`} ranges=${ranges} />`)}
          csv=${() => csvRows(data)}
        />
      </p>
      <${Values} data=${data} title=${title} />
    </section>
    ${ranges.A && ranges.B && html`<${RangeChange}
      data=${data}
      index=${index}
      ranges=${ranges}
      all=${params.all === "1"}
      setAll=${(all) => navigate({ all: all ? "1" : null }, true)}
    />`}
  `;
}

function SenseLegend({ data }) {
  if (data.kind === null) return html`<p class="hint">${t("timeline.few")}</p>`;
  if (data.senses.length < 2) return html`<p class="hint">${t("senses.single", { word: data.word })}</p>`;
  return html`
    <ul class="sense-legend">
      ${data.senses.map(
        ({ collocates, neighbours, share }, i) => html`
          <li key=${i}><${SenseSymbol} sense=${i} /> ${senseName(data, i)} <span class="hint">${percent(share)}</span></li>
        `,
      )}
    </ul>
  `;
}

function senseName({ kind, senses }, i) {
  const words = senses[i].collocates.length ? senses[i].collocates : senses[i].neighbours;
  return `${groupName(kind, i)}: ${words.slice(0, NAMED).join(" · ")}`;
}

// The chart with its title and the names of the senses, for export.
function TitledTimeline({ data, title, ranges }) {
  const [width, line] = [900, 20];
  const names = data.senses.length > 1 ? data.senses.map((_, i) => senseName(data, i)) : [];
  const top = 40 + line * names.length;
  const height = top + heightOf(data) + 10;
  return html`
    <svg class="timeline" viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height}>
      <text class="title" x="16" y="28">${title}</text>
      ${names.map(
        (name, i) => html`
          <g key=${i} transform=${`translate(16 ${36 + line * i})`}>
            <${SenseSymbol} sense=${i} /><text x="20" y="13">${name}</text>
          </g>
        `,
      )}
      <g transform=${`translate(0 ${top})`}><${TimelineDrawing} data=${data} width=${width} ranges=${ranges} /></g>
    </svg>
  `;
}

function Values({ data, title }) {
  const senses = data.senses.length > 1 ? data.senses.map((_, i) => i) : [];
  return html`
    <details>
      <summary>${t("model.values")}</summary>
      <div class="scroll" tabindex="0" role="group" aria-label=${title}>
        <table class="values">
          <caption class="visually-hidden">${title}</caption>
          <thead>
            <tr>
              <th scope="col">${groupingName(data.by)}</th>
              <th scope="col">${t("timeline.usages")}</th>
              <th scope="col">${t("timeline.perMillion")}</th>
              <th scope="col">${t("change.interval")}</th>
              ${senses.map((i) => html`<th key=${i} scope="col">${groupName(data.kind, i)}</th>`)}
            </tr>
          </thead>
          <tbody>
            ${data.periods.map(
              (period, row) => html`
                <tr key=${row}>
                  <th scope="row">${period.name}</th>
                  <td>${number(period.count)}</td>
                  <td>${number(period.frequency)}</td>
                  <td>${period.interval.map((value) => number(value)).join("–")}</td>
                  ${senses.map((i) => html`<td key=${i}>${period.shares.length ? shareText(period, i) : "–"}</td>`)}
                </tr>
              `,
            )}
          </tbody>
        </table>
      </div>
    </details>
  `;
}

function csvRows({ periods, senses, kind }) {
  const ofSenses = senses.flatMap((_, i) => {
    const name = groupName(kind, i);
    return [name, `${name} low`, `${name} high`];
  });
  const head = ["period", "documents", "usages", "all usages", "per million", "low", "high", ...ofSenses];
  const rows = periods.map((period) => [
    period.name,
    period.documents,
    period.count,
    period.total,
    period.frequency,
    ...period.interval,
    ...period.shares.flatMap((share, i) => [share, ...period.share_intervals[i]]),
  ]);
  return [head, ...rows];
}

// year/10 -> "10 years"; a field that the page does not know keeps its name.
function groupingName(by) {
  const [field, width] = by.split("/");
  return t(width ? `timeline.by.${field}s` : `timeline.by.${field}`, { width }) || by;
}

// "3-9" -> [3, 9]; null if it does not fit the periods.
function parseRange(text, count) {
  const match = /^(\d+)-(\d+)$/.exec(text ?? "");
  if (!match) return null;
  const [first, last] = match.slice(1).map(Number);
  return first <= last && last < count ? [first, last] : null;
}
