// A map of usages, coloured by sense, on which an area can be selected.
//
// Keyboard: arrow keys create and move the area, Shift + arrow keys resize it, Escape clears it.
// The permalink holds the area in data units: [[x0, y0], [x1, y1]].

import { useEffect, useRef } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { t } from "/explorer/i18n.js";
import { DotHint } from "/explorer/components/dot-hint.js";
import { useElementWidth, textWidth } from "/explorer/measure-width.js";

const { brush: newBrush, extent, median, scaleLinear, select, symbol, symbolsFill } = globalThis.d3;

export const MAP_SIZE = { width: 640, height: 460, edge: 14 };
const NAMED = 2; // neighbours in the label of a sense
const FONT_SIZE = 13; // of the labels, in pixels
const BOLD = 1.15; // width of bold text relative to regular text
const STEP = 20; // of an arrow key, in units of the drawing
const ARROWS = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };
const INITIAL_AREA = [
  [MAP_SIZE.width / 4, MAP_SIZE.height / 4],
  [(MAP_SIZE.width * 3) / 4, (MAP_SIZE.height * 3) / 4],
];

export const COLOURS = 8; // in the style sheet, .hue-0 to .hue-7

export function UsageMap({ result, sense, area, setArea }) {
  const layer = useRef(null);
  const [frame, width] = useElementWidth();
  const scales = scalesOf(result.usages);
  const name = t("senses.mapName", { count: result.usages.length, word: result.word });
  useBrush(layer, result, scales, area, setArea);
  const handleKey = (event) => {
    const next = areaAfterKey(event, area && toPixels(area, scales));
    if (next === undefined) return;
    event.preventDefault();
    setArea(next && toData(next, scales));
  };
  return html`
    <div
      ref=${frame}
      class="map-area"
      tabindex="0"
      role="application"
      aria-label=${t("senses.areaName")}
      aria-describedby="area-hint"
      onKeyDown=${handleKey}
    >
      <svg class="map" role="img" aria-label=${name} viewBox=${`0 0 ${MAP_SIZE.width} ${MAP_SIZE.height}`}>
        <rect class="frame" x="0.5" y="0.5" width=${MAP_SIZE.width - 1} height=${MAP_SIZE.height - 1} rx="6" />
        <${Dots} result=${result} sense=${sense} area=${area} scales=${scales} />
        <${Labels} result=${result} sense=${sense} scales=${scales} fontSize=${FONT_SIZE * Math.max(1, MAP_SIZE.width / width)} />
        <g ref=${layer} class="brush" data-screen-only="true"></g>
      </svg>
      <${DotHint} frame=${frame} usages=${result.usages} spot=${({ x, y }) => [scales.x(x) / MAP_SIZE.width, scales.y(y) / MAP_SIZE.height]} />
    </div>
  `;
}

// The same map for export, without the selection.
export function MapDrawing({ result, sense, area }) {
  const scales = scalesOf(result.usages);
  return html`
    <rect class="frame" x="0.5" y="0.5" width=${MAP_SIZE.width - 1} height=${MAP_SIZE.height - 1} rx="6" />
    <${Dots} result=${result} sense=${sense} area=${area} scales=${scales} />
    <${Labels} result=${result} sense=${sense} scales=${scales} fontSize=${FONT_SIZE} />
  `;
}

function Dots({ result, sense, area, scales }) {
  return result.usages.map((usage, i) => {
    const faded = (sense !== null && usage.sense !== sense) || (area && !within(usage, area));
    return html`<path
      key=${i}
      class=${`dot hue-${usage.sense % COLOURS} ${faded ? "faded" : ""}`}
      d=${shapeOf(usage.sense, 34)}
      transform=${`translate(${scales.x(usage.x)} ${scales.y(usage.y)})`}
    />`;
  });
}

// The number and nearest words of each sense, at the median of its usages. A single sense has no label.
// fontSize is in units of the drawing: larger if the drawing is shown small.
function Labels({ result, sense, scales, fontSize }) {
  if (result.senses.length < 2) return null;
  const names = result.senses.map(({ neighbours }, i) => [i + 1, ...neighbours.slice(0, NAMED)].join(" "));
  return labelPositions(result, names, scales, fontSize).map(
    ({ label, x, y }) => html`
      <text
        key=${label}
        class=${`label hue-${label % COLOURS} ${sense !== null && sense !== label ? "faded" : ""}`}
        x=${x}
        y=${y}
        text-anchor="middle"
        style=${{ fontSize: `${fontSize}px` }}
      >
        ${names[label]}
      </text>
    `,
  );
}

// {label, x, y} of each sense, from top to bottom. Labels that would overlap are moved apart.
function labelPositions(result, names, scales, fontSize) {
  const halfWidth = (label) => textWidth(names[label], fontSize * BOLD) / 2;
  const lineHeight = fontSize * 1.3;
  const positions = names.flatMap((_, label) => {
    const usages = result.usages.filter((usage) => usage.sense === label);
    if (!usages.length) return [];
    const [x, y] = ["x", "y"].map((axis) => scales[axis](median(usages, (usage) => usage[axis])));
    const margin = halfWidth(label) + 6;
    return [{ label, x: Math.min(Math.max(x, margin), MAP_SIZE.width - margin), y: Math.max(y, lineHeight) }];
  });
  positions.sort((a, b) => a.y - b.y);
  positions.forEach((position, i) => {
    for (const above of positions.slice(0, i)) {
      const overlaps = Math.abs(above.x - position.x) <= halfWidth(above.label) + halfWidth(position.label);
      if (overlaps && position.y < above.y + lineHeight) position.y = above.y + lineHeight;
    }
  });
  const overflow = Math.max(0, ...positions.map(({ y }) => y - (MAP_SIZE.height - 8)));
  return positions.map(({ label, x, y }) => ({ label, x, y: y - overflow }));
}

export function within({ x, y }, [[x0, y0], [x1, y1]]) {
  return x >= x0 && x <= x1 && y >= y0 && y <= y1;
}

// Senses differ in shape as well as in colour, for readers who cannot tell the colours apart.
export function SenseSymbol({ sense }) {
  return html`
    <svg class="sign" viewBox="-8 -8 16 16" width="14" height="14" aria-hidden="true">
      <path class=${`dot hue-${sense % COLOURS}`} d=${shapeOf(sense, 90)} />
    </svg>
  `;
}

function shapeOf(sense, size) {
  return symbol(symbolsFill[sense % symbolsFill.length], size)();
}

function scalesOf(usages) {
  const { width, height, edge } = MAP_SIZE;
  const scale = (name, range) => scaleLinear(padded(extent(usages, (usage) => usage[name])), range);
  return { x: scale("x", [edge, width - edge]), y: scale("y", [height - edge, edge]) };
}

// A scale needs an extent even if all usages are at the same point.
function padded([low = 0, high = 0]) {
  return low === high ? [low - 1, high + 1] : [low, high];
}

// The area after a key, in pixels; null if cleared, undefined for other keys.
function areaAfterKey({ key, shiftKey }, pixels) {
  if (key === "Escape") return pixels ? null : undefined;
  if (!(key in ARROWS)) return undefined;
  if (!pixels) return INITIAL_AREA;
  const [[left, top], [right, bottom]] = pixels;
  const [across, down] = ARROWS[key];
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  if (shiftKey) {
    const corner = [clamp(right + across, left + STEP, MAP_SIZE.width), clamp(bottom + down, top + STEP, MAP_SIZE.height)];
    return [pixels[0], corner];
  }
  const dx = clamp(across, -left, MAP_SIZE.width - right);
  const dy = clamp(down, -top, MAP_SIZE.height - bottom);
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

function useBrush(layer, result, scales, area, setArea) {
  const brush = useRef(null);
  const callback = useRef(setArea);
  const dragging = useRef(false); // a delayed move by the code below must not undo a drag
  callback.current = setArea;
  useEffect(() => {
    const brushed = ({ type, selection, sourceEvent }) => {
      if (!sourceEvent) return; // moved by the code below, not by the user
      dragging.current = type !== "end";
      callback.current(selection && toData(selection, scales));
    };
    brush.current = newBrush()
      .extent([
        [0, 0],
        [MAP_SIZE.width, MAP_SIZE.height],
      ])
      .on("brush end", brushed);
    select(layer.current).call(brush.current);
  }, [result]);
  useEffect(() => {
    if (dragging.current) return;
    select(layer.current).call(brush.current.move, area && toPixels(area, scales));
  }, [result, area?.toString()]);
}
