// A text with coloured spans: roles, mentions, entities, answers. Spans may be inside each other.

import { html } from "/explorer/html-template.js";

const GOLDEN_ANGLE = 137.508; // degrees between the hues of successive colours, so that neighbours differ

// spans: [{start, stop, label, title, colour}] with offsets in code points; `colour` is a small number.
export function MarkedText({ text, spans, lang }) {
  const points = Array.from(text);
  return html`<p class="marked-text" lang=${lang} dir="auto">${pieces(points, nest(spans), 0, points.length)}</p>`;
}

export function Swatch({ colour }) {
  return html`<span class="swatch" style=${paint(colour)} aria-hidden="true"></span>`;
}

// The spans as a tree: each with those inside it. One that crosses another is left out.
function nest(spans) {
  const roots = [];
  const open = [];
  for (const span of [...spans].sort((a, b) => a.start - b.start || b.stop - a.stop)) {
    while (open.length && open.at(-1).stop <= span.start) open.pop();
    if (open.length && open.at(-1).stop < span.stop) continue;
    const node = { ...span, inside: [] };
    (open.at(-1)?.inside ?? roots).push(node);
    open.push(node);
  }
  return roots;
}

function pieces(points, nodes, start, stop) {
  const parts = [];
  let position = start;
  for (const node of nodes) {
    parts.push(points.slice(position, node.start).join(""));
    parts.push(html`
      <mark class="span" style=${paint(node.colour)} title=${node.title}>
        ${pieces(points, node.inside, node.start, node.stop)}${node.label && html`<span class="span-label"> ${node.label}</span>`}
      </mark>
    `);
    position = node.stop;
  }
  return [...parts, points.slice(position, stop).join("")];
}

function paint(colour) {
  return { "--hue": Math.round((colour * GOLDEN_ANGLE + 35) % 360) };
}
