// The cosines between the words of two sentences, as a heat map and as a table.
//
// highlight: {row} or {column} of the chosen or pointed word. Its cells with the same word get a thicker border.

import { useRef } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { ExportButtons } from "/explorer/components/export-buttons.js";
import { isSameWord } from "/explorer/components/word-links.js";
import { textWidth } from "/explorer/measure-width.js";

const CELL = 36;
const FONT_SIZE = 14;
const MAX_WORDS = 60; // of a sentence; more would be slow to draw

// Opacity of the colour of a cosine, from 0 to 1. The square keeps medium values pale.
export function strength(cosine) {
  return Math.min(1, cosine * cosine);
}

export function HeatMap({ first, second, matrix, lang, highlight }) {
  const drawing = useRef(null);
  const rows = first.slice(0, MAX_WORDS);
  const columns = second.slice(0, MAX_WORDS);
  const csvRows = () => [["", ...second], ...matrix.map((row, i) => [first[i], ...row])];
  return html`
    <section aria-labelledby="matrix-title">
      <h2 id="matrix-title">${t("compare.matrix")}</h2>
      ${Math.max(first.length, second.length) > MAX_WORDS && html`<p class="hint">${t("compare.limit", { limit: MAX_WORDS })}</p>`}
      <div class="scroll" tabindex="0" role="group" aria-label=${t("compare.matrix")}>
        <${Drawing} rows=${rows} columns=${columns} matrix=${matrix} lang=${lang} highlight=${highlight} drawing=${drawing} />
      </div>
      <${ExportButtons} name=${t("compare.matrix")} file="cosines" svg=${() => drawing.current} csv=${csvRows} />
      <details>
        <summary>${t("compare.table")}</summary>
        <${Values} rows=${rows} columns=${columns} matrix=${matrix} lang=${lang} />
      </details>
    </section>
  `;
}

function Drawing({ rows, columns, matrix, lang, highlight, drawing }) {
  const left = widest(rows) + 12;
  const rotated = widest(columns) > CELL - 4;
  const top = rotated ? widest(columns) * 0.72 + 20 : FONT_SIZE + 12;
  const width = left + columns.length * CELL + (rotated ? top * 0.7 : 4);
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
      <${Names} rows=${rows} columns=${columns} left=${left} top=${top} rotated=${rotated} />
      ${rows.flatMap((word, row) =>
        columns.map((otherWord, column) => {
          const corner = { x: left + column * CELL, y: top + row * CELL };
          return html`<${Cell}
            key=${`${row} ${column}`}
            ...${corner}
            cosine=${matrix[row][column]}
            words=${[word, otherWord]}
            highlighted=${highlight && (highlight.row === row || highlight.column === column)}
          />`;
        }),
      )}
    </svg>
  `;
}

function Names({ rows, columns, left, top, rotated }) {
  const above = (i) => {
    const [x, y] = [left + (i + 0.5) * CELL, top - 8];
    const rotation = { "text-anchor": "start", transform: `rotate(-45 ${x} ${y})` };
    return { x, y, ...(rotated ? rotation : { "text-anchor": "middle" }) };
  };
  const beside = (i) => ({ x: left - 8, y: top + (i + 0.5) * CELL + FONT_SIZE * 0.35, "text-anchor": "end" });
  const names = (words, otherWords, layout) =>
    words.map((word, i) => {
      const shared = otherWords.some((otherWord) => isSameWord(word, otherWord));
      const look = { class: shared ? "shared" : "", ...layout(i) };
      return html`<text key=${i} ...${look}>${word}</text>`;
    });
  return html`<g>${names(columns, rows, above)}</g><g>${names(rows, columns, beside)}</g>`;
}

function Cell({ x, y, cosine, words, highlighted }) {
  const same = isSameWord(...words);
  const names = ["cell", cosine < 0 && "negative", same && "same", same && highlighted && "highlighted"];
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
        <caption class="visually-hidden">
          ${t("compare.matrix")}
        </caption>
        <thead lang=${lang}>
          <tr>
            <th scope="col">${t("compare.corner")}</th>
            ${columns.map((word, column) => html`<th key=${column} scope="col">${word}</th>`)}
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
  return Math.ceil(Math.max(FONT_SIZE, ...words.map((word) => textWidth(word, FONT_SIZE))));
}
