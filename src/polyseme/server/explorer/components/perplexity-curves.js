// Perplexity by training tokens, as curves and as a table.

import { useRef } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { ExportButtons } from "/explorer/components/export-buttons.js";
import { useElementWidth } from "/explorer/measure-width.js";

const { extent, format, line, scaleLinear, scaleLog } = globalThis.d3;

const SIZE = { height: 300, left: 56, right: 84, top: 14, bottom: 42 };
const NAMES = ["forward", "backward", "mean"];

export function PerplexityCurves({ curves, file }) {
  const drawing = useRef(null);
  const csv = () => [["tokens", ...NAMES], ...curves.map((row) => [row.tokens, ...NAMES.map((name) => row[name])])];
  return html`
    <${Drawing} curves=${curves} drawing=${drawing} />
    <${ExportButtons} name=${t("model.curves")} file=${`${file}-perplexity`} svg=${() => drawing.current} csv=${csv} />
    <details>
      <summary>${t("model.values")}</summary>
      <${Values} curves=${curves} />
    </details>
  `;
}

function Drawing({ curves, drawing }) {
  const [frame, width] = useElementWidth();
  const { height, left, right, top, bottom } = SIZE;
  const x = scaleLinear([0, curves.at(-1).tokens], [left, width - right]);
  const values = curves.flatMap((row) => NAMES.map((name) => row[name]));
  const [low, high] = extent(values);
  // A logarithmic axis only for values that span more than a decade.
  const y = (high > 10 * low ? scaleLog : scaleLinear)([low, high], [height - bottom, top]).nice();
  return html`
    <div ref=${frame}>
      <svg
        ref=${drawing}
        class="curves"
        role="img"
        aria-label=${t("model.curvesName")}
        viewBox=${`0 0 ${width} ${height}`}
      >
        <${Axes} x=${x} y=${y} width=${width} />
        ${NAMES.map((name) => html`<path key=${name} class=${`curve ${name}`} d=${path(curves, name, x, y)} />`)}
        ${labels(curves.at(-1), y).map(
          ([name, labelY]) => html`
            <text key=${name} class=${`label ${name}`} x=${width - right + 8} y=${labelY + 4}>${t(`model.${name}`)}</text>
          `,
        )}
      </svg>
    </div>
  `;
}

function Axes({ x, y, width }) {
  const { height, left, right, top, bottom } = SIZE;
  // A log scale (it has a base) labels some of its ticks; a linear one with small values needs a decimal.
  const digits = y.domain()[1] - y.domain()[0] < 5 ? 1 : 0;
  const tickText = y.base ? y.tickFormat(4, ",") : (value) => number(value, digits);
  return html`
    ${y.ticks(5).map(
      (value) => html`
        <g key=${value}>
          <line class="grid" x1=${left} x2=${width - right} y1=${y(value)} y2=${y(value)} />
          <text x=${left - 8} y=${y(value) + 4} text-anchor="end">${tickText(value)}</text>
        </g>
      `,
    )}
    ${x.ticks(width < 420 ? 3 : 5).map(
      (value) => html`
        <text key=${value} x=${x(value)} y=${height - bottom + 18} text-anchor="middle">${format("~s")(value)}</text>
      `,
    )}
    <text class="axis" x=${(left + width - right) / 2} y=${height - 6} text-anchor="middle">
      ${t("model.tokens")}
    </text>
    <text
      class="axis"
      transform=${`translate(14 ${(top + height - bottom) / 2}) rotate(-90)`}
      text-anchor="middle"
    >
      ${t("model.perplexity")}
    </text>
  `;
}

function path(curves, name, x, y) {
  return line(
    (row) => x(row.tokens),
    (row) => y(row[name]),
  )(curves);
}

// [name, y]: the curves end close together, so their labels are moved apart.
function labels(row, y) {
  const sorted = NAMES.map((name) => [name, y(row[name])]).sort((a, b) => a[1] - b[1]);
  const middle = sorted[1][1];
  return sorted.map(([name, end], i) => [
    name,
    i === 0 ? Math.min(end, middle - 16) : i === 2 ? Math.max(end, middle + 16) : end,
  ]);
}

function Values({ curves }) {
  return html`
    <div class="scroll" tabindex="0" role="group" aria-label=${t("model.values")}>
      <table class="values">
        <caption class="visually-hidden">
          ${t("model.curves")}
        </caption>
        <thead>
          <tr>
            <th scope="col">${t("model.tokens")}</th>
            ${NAMES.map((name) => html`<th key=${name} scope="col">${t(`model.${name}`)}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${curves.map(
            (row) =>
              html`<tr key=${row.tokens}>
                <th scope="row">${number(row.tokens)}</th>
                ${NAMES.map((name) => html`<td key=${name}>${number(row[name], 1)}</td>`)}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  `;
}
