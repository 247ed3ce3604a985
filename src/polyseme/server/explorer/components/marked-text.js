// A text with coloured spans: roles, mentions, entities, answers. Spans may be inside each other.
//
// The span under the pointer, or with the focus, is explained below the text. The text is one stop of the Tab key; the
// arrow keys move between its spans.

import { useRef, useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";

const GOLDEN_ANGLE = 137.508; // degrees between the hues of successive colours, so that neighbours differ
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

// spans: [{start, stop, label, title, colour}] with offsets in code points; `colour` is a small number.
export function MarkedText({ text, spans, lang }) {
  const points = Array.from(text);
  const nodes = number(nest(spans));
  const details = useDetails(nodes.titles);
  return html`
    <p class="marked-text" lang=${lang} dir="auto" ref=${details.frame}>${pieces(points, nodes.roots, 0, points.length, details)}</p>
    <${Detail} text=${details.shown} />
  `;
}

// What explains spans: props(i) of the element of span i, and the text to show.
export function useDetails(titles) {
  const frame = useRef(null);
  const [stop, setStop] = useState(0); // the span that the Tab key reaches
  const [active, setActive] = useState(null);
  const props = (i) => {
    if (!titles[i]) return {};
    const leave = () => setActive((before) => (before === i ? null : before));
    const move = (event) => {
      const next = STEPS[event.key] && frame.current.querySelector(`[data-span="${i + STEPS[event.key]}"]`);
      if (!next) return;
      event.preventDefault();
      event.stopPropagation();
      next.focus();
    };
    const show = (event) => {
      event.stopPropagation();
      setActive(i);
    };
    return {
      "data-span": i,
      tabindex: i === Math.min(stop, titles.length - 1) ? 0 : -1,
      onPointerOver: show,
      onPointerOut: leave,
      onFocus: (event) => {
        show(event);
        setStop(i);
      },
      onBlur: leave,
      onKeyDown: move,
    };
  };
  return { frame, props, shown: active === null ? "" : (titles[active] ?? "") };
}

// Always there, so that nothing moves when it is filled; read out when it changes.
export function Detail({ text }) {
  return html`<p class="span-detail" role="status">${text}</p>`;
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

// Numbers the spans in the order of the text.
function number(roots) {
  const titles = [];
  const visit = (node) => {
    node.number = titles.push(node.title) - 1;
    node.inside.forEach(visit);
  };
  roots.forEach(visit);
  return { roots, titles };
}

function pieces(points, nodes, start, stop, details) {
  const parts = [];
  let position = start;
  for (const node of nodes) {
    parts.push(points.slice(position, node.start).join(""));
    parts.push(html`
      <mark class="span" style=${paint(node.colour)} title=${node.title} ...${details.props(node.number)}>
        ${pieces(points, node.inside, node.start, node.stop, details)}${node.label && html`<span class="span-label"> ${node.label}</span>`}
      </mark>
    `);
    position = node.stop;
  }
  return [...parts, points.slice(position, stop).join("")];
}

function paint(colour) {
  return { "--hue": Math.round((colour * GOLDEN_ANGLE + 35) % 360) };
}
