// A matrix of cosines between two rows of words in; a heat map and a table of the same values out.
//
// lit: the row or the column of a word that is chosen or pointed at: where it meets itself, the cell is marked.

import { useRef } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { Exports } from "/explorer/components/export-buttons.js";
import { isTwin } from "/explorer/components/word-links.js";
import { widthOf } from "/explorer/measure-width.js";

const CELL = 36;
const LETTER = 14;
const MOST = 60; // words of a sentence that are drawn: more would be a poster, and slow

// How strong the colour of a cosine is, from 0 to 1: the square keeps the many middling values pale.
export function strength(cosine) {
  return Math.min(1, cosine * cosine);
}

export function HeatMap({ one, other, matrix, lang, lit }) {
  const drawing = useRef(null);
  const rows = one.slice(0, MOST);
  const columns = other.slice(0, MOST);
  const csv = () => [["", ...other], ...matrix.map((row, at) => [one[at], ...row])];
  return html`
    <section aria-labelledby="matrix-title">
      <h2 id="matrix-title">${t("compare.matrix")}</h2>
      ${Math.max(one.length, other.length) > MOST && html`<p class="hint">${t("compare.most", { most: MOST })}</p>`}
      <div class="scroll" tabindex="0" role="group" aria-label=${t("compare.matrix")}>
        <${Drawing} rows=${rows} columns=${columns} matrix=${matrix} lang=${lang} lit=${lit} drawing=${drawing} />
      </div>
      <${Exports} name=${t("compare.matrix")} file="cosines" svg=${() => drawing.current} csv=${csv} />
      <details>
        <summary>${t("compare.table")}</summary>
        <${Values} rows=${rows} columns=${columns} matrix=${matrix} lang=${lang} />
      </details>
    </section>
  `;
}

function Drawing({ rows, columns, matrix, lang, lit, drawing }) {
  const left = widest(rows) + 12;
  const slanted = widest(columns) > CELL - 4;
  const top = slanted ? widest(columns) * 0.72 + 20 : LETTER + 12;
  const width = left + columns.length * CELL + (slanted ? top * 0.7 : 4);
  const height = top + rows.length * CELL + 4;
  const name = t("compare.matrixName", { rows: rows.length, columns: columns.length });
  return html`
    <svg
      ref=${drawing}
      class="heatmap"
      role="img"
      aria-label=${name}
      width=${width}
      height=${height}
      viewBox=${`0 0 ${width} ${height}`}
      lang=${lang}
    >
      <${Names} rows=${rows} columns=${columns} left=${left} top=${top} slanted=${slanted} />
      ${rows.flatMap((word, row) =>
        columns.map((same, column) => {
          const place = { x: left + column * CELL, y: top + row * CELL };
          return html`<${Cell}
            key=${`${row} ${column}`}
            ...${place}
            cosine=${matrix[row][column]}
            words=${[word, same]}
            lit=${lit && (lit.row === row || lit.column === column)}
          />`;
        }),
      )}
    </svg>
  `;
}

function Names({ rows, columns, left, top, slanted }) {
  const above = (at) => {
    const [x, y] = [left + (at + 0.5) * CELL, top - 8];
    const turned = { "text-anchor": "start", transform: `rotate(-45 ${x} ${y})` };
    return { x, y, ...(slanted ? turned : { "text-anchor": "middle" }) };
  };
  const beside = (at) => ({ x: left - 8, y: top + (at + 0.5) * CELL + LETTER * 0.35, "text-anchor": "end" });
  const names = (words, others, place) =>
    words.map((word, at) => {
      const shared = others.some((other) => isTwin(word, other));
      const look = { class: shared ? "shared" : "", ...place(at) };
      return html`<text key=${at} ...${look}>${word}</text>`;
    });
  return html`<g>${names(columns, rows, above)}</g><g>${names(rows, columns, beside)}</g>`;
}

function Cell({ x, y, cosine, words, lit }) {
  const same = isTwin(...words);
  const names = ["cell", cosine < 0 && "negative", same && "same", same && lit && "lit"];
  return html`
    <g>
      <title>${words.join(" · ")} ${number(cosine, 3)}</title>
      <rect
        class=${names.filter(Boolean).join(" ")}
        x=${x + 1}
        y=${y + 1}
        width=${CELL - 2}
        height=${CELL - 2}
        rx="3"
        fill-opacity=${strength(cosine)}
      />
      <text class="figure" x=${x + CELL / 2} y=${y + CELL / 2 + 4} text-anchor="middle">${number(cosine, 2)}</text>
    </g>
  `;
}

function Values({ rows, columns, matrix, lang }) {
  return html`
    <div class="scroll" tabindex="0" role="group" aria-label=${t("compare.table")}>
      <table class="values">
        <caption class="unseen">
          ${t("compare.matrix")}
        </caption>
        <thead lang=${lang}>
          <tr>
            <th scope="col">${t("compare.corner")}</th>
            ${columns.map((word, at) => html`<th key=${at} scope="col">${word}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            (word, row) => html`
              <tr key=${row}>
                <th scope="row" lang=${lang}>${word}</th>
                ${columns.map((_, column) => html`<td key=${column}>${number(matrix[row][column], 2)}</td>`)}
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}

function widest(words) {
  return Math.ceil(Math.max(LETTER, ...words.map((word) => widthOf(word, LETTER))));
}
