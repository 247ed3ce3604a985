// The sentence of the dot that is pointed at, beside it. A click on a dot opens the text around its usage.

import { useEffect, useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { UsageQuote } from "/explorer/components/usage-quote.js";
import { readingLink } from "/explorer/components/corpus-links.js";
import { languageOf, useInfo } from "/explorer/components/server-info.js";
import { splitAt } from "/explorer/text-spans.js";

const NEAR = 12; // pixels between the pointer and a dot
const AROUND = 45; // characters on each side of the word

// frame: the ref of the element around the drawing. spot(usage): its position as shares of the drawing, from 0 to 1.
export function DotHint({ frame, usages, spot }) {
  const lang = languageOf(useInfo());
  const [pointed, setPointed] = useState(null);
  useEffect(() => {
    const { current } = frame;
    const find = (event) => nearestDot(event, current.querySelector("svg").getBoundingClientRect(), usages, spot);
    const move = (event) => setPointed(event.buttons ? null : find(event));
    const leave = () => setPointed(null);
    const open = (event) => {
      const usage = find(event);
      if (usage) location.hash = readingLink(usage.number);
    };
    const handlers = { pointermove: move, pointerdown: leave, pointerleave: leave, click: open };
    for (const [name, handler] of Object.entries(handlers)) current.addEventListener(name, handler);
    return () => {
      for (const [name, handler] of Object.entries(handlers)) current.removeEventListener(name, handler);
    };
  }, [usages]);
  if (!pointed) return null;
  const [x, y] = spot(pointed).map((share) => `${share * 100}%`);
  const [isRight, isLow] = spot(pointed).map((share) => share > 0.5);
  const beside = {
    [isRight ? "right" : "left"]: `calc(${isRight ? 100 - parseFloat(x) : parseFloat(x)}% + 12px)`,
    [isLow ? "bottom" : "top"]: `calc(${isLow ? 100 - parseFloat(y) : parseFloat(y)}% + 12px)`,
  };
  return html`
    <span class="dot-ring" data-screen-only="true" style=${{ left: x, top: y }}></span>
    <div class="dot-hint" data-screen-only="true" aria-hidden="true" style=${beside}><${UsageQuote} usage=${shortened(pointed)} lang=${lang} /></div>
  `;
}

function nearestDot(event, { left, top, width, height }, usages, spot) {
  let [best, distance] = [null, NEAR];
  for (const usage of usages) {
    const [x, y] = spot(usage);
    const away = Math.hypot(left + x * width - event.clientX, top + y * height - event.clientY);
    if (away < distance) [best, distance] = [usage, away];
  }
  return best;
}

// The usage with the part of its sentence around the word.
function shortened(usage) {
  const [before, word, after] = splitAt(usage.sentence, usage.start, usage.stop).map((part) => Array.from(part));
  const left = before.length > AROUND ? ["…", ...before.slice(-AROUND)] : before;
  const right = after.length > AROUND ? [...after.slice(0, AROUND), "…"] : after;
  return { sentence: [...left, ...word, ...right].join(""), start: left.length, stop: left.length + word.length };
}
