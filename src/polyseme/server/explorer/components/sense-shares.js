// Shares of senses by row in; stacked bars out, one row a document. Drawn as SVG, so that it can be saved.

import { html } from "/explorer/html-template.js";
import { percent, t } from "/explorer/i18n.js";
import { HUES } from "/explorer/components/usage-map.js";
import { useWidth, widthOf } from "/explorer/measure-width.js";

const ROW = 26;
const LETTER = 12;

// rows: [[name, [share of sense 0, share of sense 1, …]], …]
export function ShareBars({ rows, name }) {
  const [frame, width] = useWidth();
  return html`
    <div ref=${frame}>
      <svg class="shares" role="img" aria-label=${name} viewBox=${`0 0 ${width} ${heightOf(rows)}`}>
        <${ShareRows} rows=${rows} width=${width} />
      </svg>
    </div>
  `;
}

export function heightOf(rows) {
  return rows.length * ROW + 4;
}

export function ShareRows({ rows, width }) {
  const widest = Math.max(...rows.map(([label]) => widthOf(label, LETTER)));
  const left = Math.round(Math.min(widest + 14, width * 0.45));
  return rows.map(([label, shares], row) => {
    const y = row * ROW + 4;
    return html`
      <g key=${label}>
        <title>${barText(label, shares)}</title>
        <text x=${left - 10} y=${y + 14} text-anchor="end">${shortened(label, left - 10)}</text>
        <${Stack} shares=${shares} x=${left} y=${y} width=${width - left} height=${ROW - 8} />
      </g>
    `;
  });
}

// names: what to say of each sense to those who point at it, or nothing.
export function Stack({ shares, x, y, width, height, names }) {
  let start = x;
  return shares.map((share, sense) => {
    const from = start;
    start += share * width;
    const wide = share * width > 34;
    return html`
      <g key=${sense}>
        ${names && html`<title>${names[sense]}</title>`}
        <rect
          class=${`share hue-${sense % HUES}`}
          x=${from}
          y=${y}
          width=${Math.max(0, share * width - 1)}
          height=${height}
        />
        ${wide && html`<text class="figure on-hue" x=${from + 6} y=${y + height / 2 + 4}>${percent(share)}</text>`}
      </g>
    `;
  });
}

// The same rows for those who hear the page.
export function ShareTable({ rows, heads, name }) {
  return html`
    <div class="unseen">
      <table>
        <caption>${name}</caption>
        <thead>
          <tr>${heads.map((head) => html`<th key=${head} scope="col">${head}</th>`)}</tr>
        </thead>
        <tbody>
          ${rows.map(
            ([label, shares]) => html`
              <tr key=${label}>
                <th scope="row">${label}</th>
                ${shares.map((share, at) => html`<td key=${at}>${percent(share)}</td>`)}
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}

export function barText(name, shares) {
  const parts = shares.map((share, sense) => `${t("senses.name", { number: sense + 1 })} ${percent(share)}`);
  return t("change.bar", { name, shares: parts.join(", ") });
}

// The end of a path tells more than its beginning.
function shortened(name, width) {
  if (widthOf(name, LETTER) <= width) return name;
  let end = Array.from(name);
  while (end.length > 1 && widthOf(`…${end.join("")}`, LETTER) > width) end = end.slice(1);
  return `…${end.join("")}`;
}
