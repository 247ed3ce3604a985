// Shares of senses as stacked bars, one per document or period. Drawn as SVG, so that they can be exported.

import { html } from "/explorer/html-template.js";
import { percent, t } from "/explorer/i18n.js";
import { COLOURS } from "/explorer/components/usage-map.js";
import { useElementWidth, textWidth } from "/explorer/measure-width.js";

const ROW_HEIGHT = 26;
const FONT_SIZE = 12;

// rows: [[name, [share of sense 0, share of sense 1, …]], …]
export function ShareBars({ rows, name }) {
  const [frame, width] = useElementWidth();
  return html`
    <div ref=${frame}>
      <svg class="shares" role="img" aria-label=${name} viewBox=${`0 0 ${width} ${heightOf(rows)}`}>
        <${ShareRows} rows=${rows} width=${width} />
      </svg>
    </div>
  `;
}

export function heightOf(rows) {
  return rows.length * ROW_HEIGHT + 4;
}

export function ShareRows({ rows, width }) {
  const widest = Math.max(...rows.map(([label]) => textWidth(label, FONT_SIZE)));
  const left = Math.round(Math.min(widest + 14, width * 0.45));
  return rows.map(([label, shares], row) => {
    const y = row * ROW_HEIGHT + 4;
    return html`
      <g key=${label}>
        <title>${barText(label, shares)}</title>
        <text x=${left - 10} y=${y + 14} text-anchor="end">${truncateStart(label, left - 10)}</text>
        <${StackedBar} shares=${shares} x=${left} y=${y} width=${width - left} height=${ROW_HEIGHT - 8} />
      </g>
    `;
  });
}

// kind: "senses" if there is evidence that the groups are senses, else "groups".
export function groupName(kind, group) {
  return t(kind === "senses" ? "senses.name" : "groups.name", { number: group + 1 });
}

// names: tooltip of each sense, or undefined.
export function StackedBar({ shares, x, y, width, height, names }) {
  let next = x;
  return shares.map((share, sense) => {
    const start = next;
    next += share * width;
    const hasRoom = share * width > 34;
    return html`
      <g key=${sense}>
        ${names && html`<title>${names[sense]}</title>`}
        <rect
          class=${`share hue-${sense % COLOURS}`}
          x=${start}
          y=${y}
          width=${Math.max(0, share * width - 1)}
          height=${height}
        />
        ${hasRoom && html`<text class="figure on-hue" x=${start + 6} y=${y + height / 2 + 4}>${percent(share)}</text>`}
      </g>
    `;
  });
}

// The same values for screen readers.
export function ShareTable({ rows, heads, name }) {
  return html`
    <div class="visually-hidden">
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
                ${shares.map((share, sense) => html`<td key=${sense}>${percent(share)}</td>`)}
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}

export function barText(name, shares) {
  const parts = shares.map((share, sense) => `${groupName("groups", sense)} ${percent(share)}`);
  return t("change.bar", { name, shares: parts.join(", ") });
}

// The end of a path is more informative than its start.
function truncateStart(name, width) {
  if (textWidth(name, FONT_SIZE) <= width) return name;
  let end = Array.from(name);
  while (end.length > 1 && textWidth(`…${end.join("")}`, FONT_SIZE) > width) end = end.slice(1);
  return `…${end.join("")}`;
}
