// What is on screen in; pictures that speak for themselves out, for files: with a title, a legend, all names.

import { html } from "/explorer/html-template.js";
import { percent, t } from "/explorer/i18n.js";
import { HUES, MapDrawing, Sign, SIZE } from "/explorer/components/usage-map.js";
import { heightOf, ShareRows, Stack } from "/explorer/components/sense-shares.js";
import { widthOf } from "/explorer/measure-width.js";

const WIDTH = 640;
const [TITLE, LETTER, LINE] = [16, 12, 20];
const BOLD = 1.2; // as wide as plain letters
const EDGE = 16;
const NAMED = 4; // neighbours in the name of a sense
const PAIR = { bar: 308, row: 50 };

// Sense 2 (31%): the words nearest to it.
export function senseNames(found) {
  return found.senses.map((one, at) => {
    const name = `${t("senses.name", { number: at + 1 })} (${percent(one.share)})`;
    return `${name}: ${one.neighbours.slice(0, NAMED).join(" · ")}`;
  });
}

export function MapPicture({ found, sense, box, title }) {
  return html`<${Picture} kind="map" title=${title} names=${senseNames(found)} width=${WIDTH} height=${SIZE.height}>
    <${MapDrawing} found=${found} sense=${sense} box=${box} />
  <//>`;
}

export function SharePicture({ found, rows, title }) {
  return html`<${Picture} kind="shares" title=${title} names=${senseNames(found)} width=${WIDTH} height=${heightOf(rows)}>
    <${ShareRows} rows=${rows} width=${WIDTH} />
  <//>`;
}

// Two bars a word, with the words and the names of the two beside them. Each word has senses of its own.
export function PairPicture({ rows, names, title }) {
  const senses = Math.max(...rows.map((row) => row.shares.length));
  const legend = Array.from({ length: senses }, (_, sense) => t("senses.name", { number: sense + 1 }));
  const left = 8 + Math.max(...rows.map((row) => widthOf(row.word, 14)));
  const start = left + 24 + Math.max(...names.map((name) => widthOf(name, LETTER)));
  const side = (row, at, which) => {
    const y = at * PAIR.row + which * 20;
    return html`
      <text x=${start - 8} y=${y + 13} text-anchor="end">${names[which]}</text>
      <${Stack} shares=${row.shares.map((pair) => pair[which])} x=${start} y=${y} width=${PAIR.bar} height=${18} />
    `;
  };
  return html`
    <${Picture} kind="shares" title=${title} names=${legend} width=${start + PAIR.bar} height=${rows.length * PAIR.row}>
      ${rows.map(
        (row, at) => html`
          <text class="word" x="0" y=${at * PAIR.row + 23}>${row.word}</text>
          ${side(row, at, 0)} ${side(row, at, 1)}
        `,
      )}
    <//>
  `;
}

// A drawing under its title and its legend, as wide as the widest of them.
function Picture({ kind, title, names, width, height, children }) {
  const places = legendPlaces(names, width);
  const wide = Math.max(width, widthOf(title, TITLE * BOLD), ...places.map((place, at) => place.x + nameWidth(names[at])));
  const top = EDGE + TITLE + 12 + LINE * (places.at(-1).row + 1) + 8;
  const [all, high] = [Math.ceil(wide) + 2 * EDGE, Math.ceil(top + height) + EDGE];
  return html`
    <svg class=${kind} viewBox=${`0 0 ${all} ${high}`} width=${all} height=${high}>
      <text class="title" x=${EDGE} y=${EDGE + TITLE}>${title}</text>
      ${names.map((name, at) => {
        const [x, y] = [EDGE + places[at].x, EDGE + TITLE + 12 + LINE * places[at].row];
        return html`
          <g key=${at} transform=${`translate(${x} ${y})`}>
            <g transform="translate(1 2)"><${LegendSign} kind=${kind} sense=${at} /></g>
            <text class="legend" x="20" y="13">${name}</text>
          </g>
        `;
      })}
      <g transform=${`translate(${EDGE} ${top})`}>${children}</g>
    </svg>
  `;
}

// On a map every sense has a shape, too.
function LegendSign({ kind, sense }) {
  if (kind === "map") return html`<${Sign} sense=${sense} />`;
  return html`<rect class=${`hue-${sense % HUES}`} width="12" height="12" />`;
}

function nameWidth(name) {
  return 20 + widthOf(name, LETTER) + 18;
}

// Names stand behind each other as long as there is room in the row.
function legendPlaces(names, width) {
  let [x, row] = [0, 0];
  return names.map((name) => {
    if (x > 0 && x + nameWidth(name) > width) [x, row] = [0, row + 1];
    const place = { x, row };
    x += nameWidth(name);
    return place;
  });
}
