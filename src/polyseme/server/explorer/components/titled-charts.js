// Charts for export, complete in themselves: with a title, a legend and all names.

import { html } from "/explorer/html-template.js";
import { percent, t } from "/explorer/i18n.js";
import { COLOURS, MAP_SIZE, MapDrawing, SenseSymbol } from "/explorer/components/usage-map.js";
import { groupName, heightOf, ShareRows, StackedBar } from "/explorer/components/sense-shares.js";
import { textWidth } from "/explorer/measure-width.js";

const WIDTH = 640;
const [TITLE_SIZE, FONT_SIZE, LINE_HEIGHT] = [16, 12, 20];
const BOLD = 1.2; // width of bold text relative to regular text
const MARGIN = 16;
const NAMED = 4; // neighbours in the name of a sense
const PAIR = { bar: 308, row: 50 };

// "Sense 2 (31%): nearest words"
export function senseNames(result) {
  return result.senses.map((sense, i) => {
    const name = `${groupName(result.kind, i)} (${percent(sense.share)})`;
    return `${name}: ${sense.neighbours.slice(0, NAMED).join(" · ")}`;
  });
}

export function TitledMap({ result, sense, area, title }) {
  return html`<${TitledChart} kind="map" title=${title} names=${senseNames(result)} width=${WIDTH} height=${MAP_SIZE.height}>
    <${MapDrawing} result=${result} sense=${sense} area=${area} />
  <//>`;
}

export function TitledShares({ result, rows, title }) {
  return html`<${TitledChart} kind="shares" title=${title} names=${senseNames(result)} width=${WIDTH} height=${heightOf(rows)}>
    <${ShareRows} rows=${rows} width=${WIDTH} />
  <//>`;
}

// Two bars per word, one for each index. The senses differ from word to word.
export function TitledChange({ rows, names, title }) {
  const senses = Math.max(...rows.map((row) => row.shares.length));
  const legend = Array.from({ length: senses }, (_, sense) => groupName("groups", sense));
  const left = 8 + Math.max(...rows.map((row) => textWidth(row.word, 14)));
  const start = left + 24 + Math.max(...names.map((name) => textWidth(name, FONT_SIZE)));
  const bar = (row, i, which) => {
    const y = i * PAIR.row + which * 20;
    return html`
      <text x=${start - 8} y=${y + 13} text-anchor="end">${names[which]}</text>
      <${StackedBar} shares=${row.shares.map((pair) => pair[which])} x=${start} y=${y} width=${PAIR.bar} height=${18} />
    `;
  };
  return html`
    <${TitledChart} kind="shares" title=${title} names=${legend} width=${start + PAIR.bar} height=${rows.length * PAIR.row}>
      ${rows.map(
        (row, i) => html`
          <text class="word" x="0" y=${i * PAIR.row + 23}>${row.word}</text>
          ${bar(row, i, 0)} ${bar(row, i, 1)}
        `,
      )}
    <//>
  `;
}

// A drawing below its title and legend, as wide as the widest of them.
function TitledChart({ kind, title, names, width, height, children }) {
  const entries = legendLayout(names, width);
  const legendWidth = Math.max(...entries.map((entry, i) => entry.x + entryWidth(names[i])));
  const innerWidth = Math.max(width, textWidth(title, TITLE_SIZE * BOLD), legendWidth);
  const top = MARGIN + TITLE_SIZE + 12 + LINE_HEIGHT * (entries.at(-1).row + 1) + 8;
  const [fullWidth, fullHeight] = [Math.ceil(innerWidth) + 2 * MARGIN, Math.ceil(top + height) + MARGIN];
  return html`
    <svg class=${kind} viewBox=${`0 0 ${fullWidth} ${fullHeight}`} width=${fullWidth} height=${fullHeight}>
      <text class="title" x=${MARGIN} y=${MARGIN + TITLE_SIZE}>${title}</text>
      ${names.map((name, i) => {
        const [x, y] = [MARGIN + entries[i].x, MARGIN + TITLE_SIZE + 12 + LINE_HEIGHT * entries[i].row];
        return html`
          <g key=${i} transform=${`translate(${x} ${y})`}>
            <g transform="translate(1 2)"><${LegendSymbol} kind=${kind} sense=${i} /></g>
            <text class="legend" x="20" y="13">${name}</text>
          </g>
        `;
      })}
      <g transform=${`translate(${MARGIN} ${top})`}>${children}</g>
    </svg>
  `;
}

// On a map, senses differ in shape as well.
function LegendSymbol({ kind, sense }) {
  if (kind === "map") return html`<${SenseSymbol} sense=${sense} />`;
  return html`<rect class=${`hue-${sense % COLOURS}`} width="12" height="12" />`;
}

function entryWidth(name) {
  return 20 + textWidth(name, FONT_SIZE) + 18;
}

// {x, row} of each entry: entries share a row while they fit.
function legendLayout(names, width) {
  let [x, row] = [0, 0];
  return names.map((name) => {
    if (x > 0 && x + entryWidth(name) > width) [x, row] = [0, row + 1];
    const entry = { x, row };
    x += entryWidth(name);
    return entry;
  });
}
