// Two indexes in; a table of words out: how far each moved, whether by chance, and the shares of its senses.
//
// Parameters: one, other (indexes), words (with spaces between, or none). Nothing is asked before "compare".

import { drawnAside } from "/explorer/file-export.js";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { Answer, useAnswer } from "/explorer/components/server-request.js";
import { Code } from "/explorer/components/code-block.js";
import { Exports } from "/explorer/components/export-buttons.js";
import { indexOf, tongueOf, useInfo } from "/explorer/components/server-info.js";
import { HUES } from "/explorer/components/usage-map.js";
import { PairPicture } from "/explorer/components/titled-charts.js";
import { barText, Stack } from "/explorer/components/sense-shares.js";
import { widthOf } from "/explorer/measure-width.js";
import * as snippets from "/explorer/code-snippets.js";
import { linkTo, useTyped } from "/explorer/routing.js";

const SHOWN = 20;
const BAR = { width: 220, height: 16 };
const LETTER = 11; // of the names beside the bars
const NAME = 90; // the widest that a name may be

export function ChangeTable({ params, go }) {
  const info = useInfo();
  const words = params.words?.trim() ? params.words.trim().split(/[\s,，、]+/) : null;
  const { one, other } = params;
  const body = { one, other, words, k: SHOWN };
  const several = info.indexes.length > 1;
  const answer = useAnswer(one && other ? "/change" : null, body);
  return html`
    <section aria-labelledby="change-title">
      <h2 id="change-title">${t("change.title")}</h2>
      ${several && html`<${Form} info=${info} params=${params} go=${go} />`}
      ${!several && html`<p class="hint">${t("change.need")}</p>`}
      <${Answer} of=${answer}>
        ${({ changes, complete = true }) => html`
          ${!complete && html`<p class="hint" role="status">${t("change.part")}</p>`}
          ${changes.length > 0 && html`<${Table} changes=${changes} params=${params} />`}
          ${changes.length === 0 && html`<p>${t("change.none")}</p>`}
          <${Code} lines=${snippets.change({ ...body, one: indexOf(info, one), other: indexOf(info, other) })} />
        `}
      <//>
    </section>
  `;
}

function Form({ info, params, go }) {
  const names = info.indexes.map((index) => index.name);
  const [typed, type] = useTyped(params.words ?? "", null);
  const submit = (event) => {
    event.preventDefault();
    go(Object.fromEntries(new FormData(event.target)), true);
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
      ${field("one", params.one ?? names[0])} ${field("other", params.other ?? names[1])}
      <label class="field grow">
        <span>${t("change.words")}</span>
        <input
          name="words"
          value=${typed}
          lang=${tongueOf(info)}
          onInput=${(event) => type(event.target.value, true)}
        />
      </label>
      <button type="submit">${t("change.show")}</button>
    </form>
  `;
}

function Table({ changes, params }) {
  const info = useInfo();
  const { one, other, words } = params;
  const names = [one, other];
  // The senses of the word come above, and the table stays as it is.
  const senses = (word) => linkTo("senses", { word, one, other, words });
  const heads = ["word", "shares", "verdict", "counts", "prototype", "p", "shift", "shiftP"];
  return html`
    <p class="hint">${t("change.hint")}</p>
    <${Legend} count=${Math.max(...changes.map((row) => row.shares.length))} />
    <div class="scroll" tabindex="0" role="group" aria-label=${t("change.title")}>
      <table class="change">
        <caption class="unseen">
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
                <th scope="row" lang=${tongueOf(info)}>
                  <a href=${senses(row.word)} onClick=${() => scrollTo({ top: 0 })}>${row.word}</a>
                </th>
                <td><${Bars} row=${row} names=${names} /></td>
                <td class=${row.changed ? "changed" : ""}>${t(row.changed ? "change.changed" : "change.same")}</td>
                <td>${row.counts.map((count) => number(count)).join(" → ")}</td>
                <td>${number(row.prototype, 3)}</td>
                <td>${chance(row.p)}</td>
                <td>${number(row.shift, 3)}</td>
                <td>${chance(row.shift_p)}</td>
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
    <${Exports}
      name=${t("change.title")}
      file=${`change-${names.join("-")}`}
      svg=${() => drawnAside(html`<${PairPicture} rows=${changes} names=${names} title=${`${t("change.title")}: ${names.join(" → ")}`} />`)}
      csv=${() => rows(changes, names)}
    />
  `;
}

// Which colour is which sense. Each word has senses of its own: their neighbours tell them, when pointed at.
function Legend({ count }) {
  return html`
    <p class="sense-legend hint">
      ${Array.from(
        { length: count },
        (_, sense) => html`
          <span key=${sense}>
            <svg width="12" height="12" aria-hidden="true"><rect class=${`hue-${sense % HUES}`} width="12" height="12" /></svg>
            ${" "}${t("senses.name", { number: sense + 1 })}
          </span>
        `,
      )}
      <span>${t("change.legend")}</span>
    </p>
  `;
}

// row.shares: [[in one, in the other], …] by sense.
function Bars({ row, names }) {
  const sides = [0, 1].map((side) => row.shares.map((pair) => pair[side]));
  const left = Math.min(NAME, Math.max(...names.map((name) => widthOf(name, LETTER)))) + 8;
  const [width, height] = [left + BAR.width, BAR.height * 2 + 2];
  const senses = row.shares.map((_, sense) => {
    const near = row.neighbours?.[sense] ?? [];
    return [t("senses.name", { number: sense + 1 }), near.join(" · ")].filter(Boolean).join(": ");
  });
  return html`
    <svg
      class="shares pair"
      role="img"
      width=${width}
      height=${height}
      viewBox=${`0 0 ${width} ${height}`}
      aria-label=${sides.map((side, at) => barText(names[at], side)).join("; ")}
    >
      ${sides.map((side, at) => {
        const y = at * (BAR.height + 2);
        const squeezed = widthOf(names[at], LETTER) > NAME ? { textLength: NAME, lengthAdjust: "spacingAndGlyphs" } : {};
        return html`
          <text class="figure" x=${left - 8} y=${y + 12} text-anchor="end" ...${squeezed}>${names[at]}</text>
          <${Stack} key=${at} shares=${side} x=${left} y=${y} ...${BAR} names=${senses} />
        `;
      })}
    </svg>
  `;
}

// A p of 0.0498 is below 0.05, and must not look as if it were not.
function chance(p) {
  if (p === null || number(p, 3) !== number(0.05, 3)) return number(p, 3);
  return p < 0.05 ? "< 0.05" : number(p, 4);
}

function rows(changes, names) {
  const head = [
    "word",
    ...names.map((name) => `usages ${name}`),
    "distance",
    "prototype",
    "p",
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
    row.p,
    row.shift,
    row.shift_p,
    row.changed,
  ];
  return [head, ...changes.map((row) => [...values(row), row.shares.map((pair) => pair.join(" ")).join("; ")])];
}
