// Usages with their places on a plane in; a map out, coloured by sense, with a rectangle to draw.
//
// The keyboard has the same rectangle: arrow keys make and move it, with Shift they size it, Escape clears it.
// The rectangle lives in the permalink in the units of the data: [[x0, y0], [x1, y1]].

import { useEffect, useRef } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { t } from "/explorer/i18n.js";
import { useWidth, widthOf } from "/explorer/measure-width.js";

const { brush: newBrush, extent, median, scaleLinear, select, symbol, symbolsFill } = globalThis.d3;

export const SIZE = { width: 640, height: 460, edge: 14 };
const NAMED = 2; // nearest words of a sense on the map
const LETTER = 13; // of these names, in pixels
const BOLD = 1.15; // as wide as plain letters
const STEP = 20; // how far an arrow key moves the rectangle, in units of the drawing
const ARROWS = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };
const MIDDLE = [
  [SIZE.width / 4, SIZE.height / 4],
  [(SIZE.width * 3) / 4, (SIZE.height * 3) / 4],
];

export const HUES = 8; // colours of the style sheet, .hue-0 to .hue-7

export function UsageMap({ found, sense, box, setBox }) {
  const layer = useRef(null);
  const [frame, width] = useWidth();
  const scales = scalesOf(found.usages);
  const name = t("senses.mapName", { count: found.usages.length, word: found.word });
  useBrush(layer, found, scales, box, setBox);
  const press = (event) => {
    const next = pressed(event, box && toPixels(box, scales));
    if (next === undefined) return;
    event.preventDefault();
    setBox(next && toData(next, scales));
  };
  return html`
    <div
      ref=${frame}
      class="brushed"
      tabindex="0"
      role="application"
      aria-label=${t("senses.brushName")}
      aria-describedby="brush-hint"
      onKeyDown=${press}
    >
      <svg class="map" role="img" aria-label=${name} viewBox=${`0 0 ${SIZE.width} ${SIZE.height}`}>
        <rect class="frame" x="0.5" y="0.5" width=${SIZE.width - 1} height=${SIZE.height - 1} rx="6" />
        <${Dots} found=${found} sense=${sense} box=${box} scales=${scales} />
        <${Labels} found=${found} sense=${sense} scales=${scales} size=${LETTER * Math.max(1, SIZE.width / width)} />
        <g ref=${layer} class="brush" data-screen-only="true"></g>
      </svg>
    </div>
  `;
}

// The same map for a file, at its upper left corner: without the rectangle to draw, with all that is shown.
export function MapDrawing({ found, sense, box }) {
  const scales = scalesOf(found.usages);
  return html`
    <rect class="frame" x="0.5" y="0.5" width=${SIZE.width - 1} height=${SIZE.height - 1} rx="6" />
    <${Dots} found=${found} sense=${sense} box=${box} scales=${scales} />
    <${Labels} found=${found} sense=${sense} scales=${scales} size=${LETTER} />
  `;
}

function Dots({ found, sense, box, scales }) {
  return found.usages.map((usage, at) => {
    const faded = (sense !== null && usage.sense !== sense) || (box && !within(usage, box));
    return html`<path
      key=${at}
      class=${`dot hue-${usage.sense % HUES} ${faded ? "faded" : ""}`}
      d=${shapeOf(usage.sense, 34)}
      transform=${`translate(${scales.x(usage.x)} ${scales.y(usage.y)})`}
    />`;
  });
}

// The number of each sense and its nearest words, in the middle of its usages; one sense alone needs no name.
// size: of the letters in units of the drawing, larger where it is shown small.
function Labels({ found, sense, scales, size }) {
  if (found.senses.length < 2) return null;
  const names = found.senses.map((one, at) => [at + 1, ...one.neighbours.slice(0, NAMED)].join(" "));
  return placesOf(found, names, scales, size).map(
    ([at, x, y]) => html`
      <text
        key=${at}
        class=${`label hue-${at % HUES} ${sense !== null && sense !== at ? "faded" : ""}`}
        x=${x}
        y=${y}
        text-anchor="middle"
        style=${{ fontSize: `${size}px` }}
      >
        ${names[at]}
      </text>
    `,
  );
}

// [sense, x, y] of every name, from above to below; those that would lie on one another are moved apart.
function placesOf(found, names, scales, size) {
  const half = (at) => widthOf(names[at], size * BOLD) / 2;
  const line = size * 1.3;
  const places = names.flatMap((_, at) => {
    const own = found.usages.filter((usage) => usage.sense === at);
    if (!own.length) return [];
    const [x, y] = ["x", "y"].map((name) => scales[name](median(own, (usage) => usage[name])));
    return [[at, Math.min(Math.max(x, half(at) + 6), SIZE.width - half(at) - 6), Math.max(y, line)]];
  });
  places.sort((one, other) => one[2] - other[2]);
  places.forEach((place, row) => {
    for (const above of places.slice(0, row)) {
      const beside = Math.abs(above[1] - place[1]) > half(above[0]) + half(place[0]);
      if (!beside && place[2] < above[2] + line) place[2] = above[2] + line;
    }
  });
  const over = Math.max(0, ...places.map((place) => place[2] - (SIZE.height - 8)));
  return places.map(([at, x, y]) => [at, x, y - over]);
}

export function within({ x, y }, [[x0, y0], [x1, y1]]) {
  return x >= x0 && x <= x1 && y >= y0 && y <= y1;
}

// Colours alone would leave some readers out: every sense has its own shape, too.
export function Sign({ sense }) {
  return html`
    <svg class="sign" viewBox="-8 -8 16 16" width="14" height="14" aria-hidden="true">
      <path class=${`dot hue-${sense % HUES}`} d=${shapeOf(sense, 90)} />
    </svg>
  `;
}

function shapeOf(sense, size) {
  return symbol(symbolsFill[sense % symbolsFill.length], size)();
}

function scalesOf(usages) {
  const { width, height, edge } = SIZE;
  const scale = (name, range) => scaleLinear(padded(extent(usages, (usage) => usage[name])), range);
  return { x: scale("x", [edge, width - edge]), y: scale("y", [height - edge, edge]) };
}

// One usage alone, or all at one place, have no extent to scale by.
function padded([low = 0, high = 0]) {
  return low === high ? [low - 1, high + 1] : [low, high];
}

// The rectangle after a key, in pixels; null: none; undefined: the key means nothing here.
function pressed({ key, shiftKey }, pixels) {
  if (key === "Escape") return pixels ? null : undefined;
  if (!(key in ARROWS)) return undefined;
  if (!pixels) return MIDDLE;
  const [[left, top], [right, bottom]] = pixels;
  const [across, down] = ARROWS[key];
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  if (shiftKey) {
    const corner = [clamp(right + across, left + STEP, SIZE.width), clamp(bottom + down, top + STEP, SIZE.height)];
    return [pixels[0], corner];
  }
  const dx = clamp(across, -left, SIZE.width - right);
  const dy = clamp(down, -top, SIZE.height - bottom);
  return [
    [left + dx, top + dy],
    [right + dx, bottom + dy],
  ];
}

// On the screen y grows downwards, in the data upwards.
function toPixels([[x0, y0], [x1, y1]], { x, y }) {
  return [
    [x(x0), y(y1)],
    [x(x1), y(y0)],
  ];
}

function toData([[left, top], [right, bottom]], { x, y }) {
  return [
    [x.invert(left), y.invert(bottom)],
    [x.invert(right), y.invert(top)],
  ];
}

function useBrush(layer, found, scales, box, setBox) {
  const brush = useRef(null);
  const tell = useRef(setBox);
  const held = useRef(false); // while a person draws, what the code below moves late would set it back
  tell.current = setBox;
  useEffect(() => {
    const brushed = ({ type, selection, sourceEvent }) => {
      if (!sourceEvent) return; // moved by the code below, not by a person
      held.current = type !== "end";
      if (!selection) return tell.current(null);
      tell.current(toData(selection, scales));
    };
    brush.current = newBrush()
      .extent([
        [0, 0],
        [SIZE.width, SIZE.height],
      ])
      .on("brush end", brushed);
    select(layer.current).call(brush.current);
  }, [found]);
  useEffect(() => {
    if (held.current) return;
    select(layer.current).call(brush.current.move, box && toPixels(box, scales));
  }, [found, box?.toString()]);
}
