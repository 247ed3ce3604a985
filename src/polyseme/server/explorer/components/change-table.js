// Change of words between two indexes: distance, significance, and the shares of the senses.
//
// Parameters: from, to (indexes), words (separated by spaces; empty for all frequent words). The request is sent when
// both indexes are given.

import { renderOffscreen } from "/explorer/file-export.js";
import { html } from "/explorer/html-template.js";
import { number, percent, t } from "/explorer/i18n.js";
import { Await, useRequest } from "/explorer/components/server-request.js";
import { Code } from "/explorer/components/code-block.js";
import { ExportButtons } from "/explorer/components/export-buttons.js";
import { chosenIndex, languageOf, useInfo } from "/explorer/components/server-info.js";
import { COLOURS } from "/explorer/components/usage-map.js";
import { TitledChange } from "/explorer/components/titled-charts.js";
import { barText, groupName, StackedBar } from "/explorer/components/sense-shares.js";
import { textWidth } from "/explorer/measure-width.js";
import * as snippets from "/explorer/code-snippets.js";
import { linkTo, useTyped } from "/explorer/routing.js";

const SHOWN = 20;
const SHOWN_GROUPS = 2; // gained or lost, of a word
const BAR = { width: 220, height: 16 };
const FONT_SIZE = 11; // of the names of the indexes
const MAX_NAME_WIDTH = 90;

export function ChangeTable({ params, navigate }) {
  const info = useInfo();
  const words = params.words?.trim() ? params.words.trim().split(/[\s,，、]+/) : null;
  const { from, to } = params;
  const body = { first: from, second: to, words: words ?? [], k: SHOWN };
  const canCompare = info.indexes.length > 1;
  const request = useRequest(from && to ? "/change" : null, body);
  // The senses of the word are shown above the table, which stays.
  const sensesLink = (word) => linkTo("senses", { word, from, to, words: params.words });
  return html`
    <section aria-labelledby="change-title">
      <h2 id="change-title">${t("change.title")}</h2>
      ${canCompare && html`<${Form} info=${info} params=${params} navigate=${navigate} />`}
      ${!canCompare && html`<p class="hint">${t("change.need")}</p>`}
      <${Await} request=${request}>
        ${({ changes, complete = true }) => html`
          ${!complete && html`<p class="hint" role="status">${t("change.incomplete")}</p>`}
          ${changes.length > 0 && html`<${ChangeRows} changes=${changes} names=${[from, to]} linkOf=${sensesLink} />`}
          ${changes.length === 0 && html`<p>${t("change.none")}</p>`}
          <${Code} lines=${snippets.change({ from: chosenIndex(info, from), to: chosenIndex(info, to), words, k: SHOWN })} />
        `}
      <//>
    </section>
  `;
}

function Form({ info, params, navigate }) {
  const names = info.indexes.map((index) => index.name);
  const [typed, type] = useTyped(params.words ?? "", null);
  const submit = (event) => {
    event.preventDefault();
    navigate(Object.fromEntries(new FormData(event.target)), true);
  };
  const field = (name, value) => html`
    <label class="field">
      <span>${t(`change.${name}`)}</span>
      <select name=${name}>
        ${names.map((index) => html`<option key=${index} selected=${index === value}>${index}</option>`)}
      </select>
    </label>
  `;
  return html`
    <form class="form" onSubmit=${submit}>
      ${field("from", params.from ?? names[0])} ${field("to", params.to ?? names[1])}
      <label class="field grow">
        <span>${t("change.words")}</span>
        <input
          name="words"
          value=${typed}
          lang=${languageOf(info)}
          onInput=${(event) => type(event.target.value, true)}
        />
      </label>
      <button type="submit">${t("change.show")}</button>
    </form>
  `;
}

// names: of the two corpora; linkOf: the address that the name of a word leads to.
export function ChangeRows({ changes, names, linkOf }) {
  const info = useInfo();
  const heads = ["word", "shares", "verdict", "counts", "prototype", "interval", "q", "percentile", "groups"];
  return html`
    <p class="hint">${t("change.hint")}</p>
    <${Legend} count=${Math.max(...changes.map((row) => row.shares.length))} />
    <div class="scroll" tabindex="0" role="group" aria-label=${t("change.title")}>
      <table class="change">
        <caption class="visually-hidden">
          ${t("change.title")}
        </caption>
        <thead>
          <tr>
            ${heads.map((name) => html`<th key=${name} scope="col">${t(`change.${name}`)}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${changes.map(
            (row) => html`
              <tr key=${row.word}>
                <th scope="row" lang=${languageOf(info)}>
                  <a href=${linkOf(row.word)} onClick=${() => scrollTo({ top: 0 })}>${row.word}</a>
                </th>
                <td><${Bars} row=${row} names=${names} /></td>
                <td class=${row.changed ? "changed" : ""}>${t(row.changed ? "change.changed" : "change.same")}</td>
                <td>${row.counts.map((count) => number(count)).join(" → ")}</td>
                <td>${number(row.prototype, 3)}</td>
                <td>${row.interval.map((value) => number(value, 2)).join("–")}</td>
                <td>${pText(row.q)}</td>
                <td>${row.percentile === null ? "" : percent(row.percentile)}</td>
                <td><${ChangedGroups} groups=${row.groups} lang=${languageOf(info)} /></td>
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
    <${ExportButtons}
      name=${t("change.title")}
      file=${`change-${names.join("-")}`}
      svg=${() => renderOffscreen(html`<${TitledChange} rows=${changes} names=${names} title=${`${t("change.title")}: ${names.join(" → ")}`} />`)}
      csv=${() => csvRows(changes, names)}
    />
  `;
}

// Groups of usages that one of the indexes does not have, each with a quotation.
function ChangedGroups({ groups, lang }) {
  return groups
    .filter(({ state }) => state !== "kept")
    .slice(0, SHOWN_GROUPS)
    .map(
      ({ state, examples }, i) => html`<p key=${i}>${t(`change.${state}`)} <q lang=${lang}>${examples[0]}</q></p>`,
    );
}

// The colour of each sense number. The senses differ from word to word; tooltips show their neighbours.
function Legend({ count }) {
  return html`
    <p class="sense-legend hint">
      ${Array.from(
        { length: count },
        (_, sense) => html`
          <span key=${sense}>
            <svg width="12" height="12" aria-hidden="true"><rect class=${`hue-${sense % COLOURS}`} width="12" height="12" /></svg>
            ${" "}${groupName("groups", sense)}
          </span>
        `,
      )}
      <span>${t("change.legend")}</span>
    </p>
  `;
}

// row.shares: [[share in the first index, share in the second], …] by sense.
function Bars({ row, names }) {
  const bars = [0, 1].map((i) => row.shares.map((pair) => pair[i]));
  const left = Math.min(MAX_NAME_WIDTH, Math.max(...names.map((name) => textWidth(name, FONT_SIZE)))) + 16;
  const [width, height] = [left + BAR.width, BAR.height * 2 + 2];
  const senses = row.shares.map((_, sense) => {
    const neighbours = row.neighbours?.[sense] ?? [];
    return [groupName("groups", sense), neighbours.join(" · ")].filter(Boolean).join(": ");
  });
  return html`
    <svg
      class="shares pair"
      role="img"
      width=${width}
      height=${height}
      viewBox=${`0 0 ${width} ${height}`}
      aria-label=${bars.map((shares, i) => barText(names[i], shares)).join("; ")}
    >
      ${bars.map((shares, i) => {
        const y = i * (BAR.height + 2);
        const squeezed = textWidth(names[i], FONT_SIZE) > MAX_NAME_WIDTH ? { textLength: MAX_NAME_WIDTH, lengthAdjust: "spacingAndGlyphs" } : {};
        return html`
          <text class="figure" x=${left - 8} y=${y + 12} text-anchor="end" ...${squeezed}>${names[i]}</text>
          <${StackedBar} key=${i} shares=${shares} x=${left} y=${y} ...${BAR} names=${senses} />
        `;
      })}
    </svg>
  `;
}

// 0.0498 is below 0.05 and must not be shown as 0.050.
function pText(p) {
  if (p === null || number(p, 3) !== number(0.05, 3)) return number(p, 3);
  return p < 0.05 ? "< 0.05" : number(p, 4);
}

function csvRows(changes, names) {
  const head = [
    "word",
    ...names.map((name) => `usages ${name}`),
    "distance",
    "prototype",
    "interval low",
    "interval high",
    "p",
    "q",
    "usual",
    "percentile",
    "shift",
    "shift_p",
    "changed",
    "shares",
  ];
  const values = (row) => [
    row.word,
    ...row.counts,
    row.distance,
    row.prototype,
    ...row.interval,
    row.p,
    row.q,
    row.usual,
    row.percentile,
    row.shift,
    row.shift_p,
    row.changed,
  ];
  return [head, ...changes.map((row) => [...values(row), row.shares.map((pair) => pair.join(" ")).join("; ")])];
}
