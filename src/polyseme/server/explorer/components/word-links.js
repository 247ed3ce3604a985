// Two rows of words on the screen in; lines between the words that stand in both out.
//
// The lines run below the words where the sentences stand side by side, and between them where one stands over the
// other. They are pale and drawn over the words, so that none is lost behind a second row of them. Many of them would
// be a tangle: then only those of the word that is chosen or pointed at are drawn.

import { useLayoutEffect, useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";

const MOST = 8; // lines at a time

// Punctuation stands in every sentence and links nothing.
export function isTwin(one, other) {
  return one === other && /[\p{L}\p{N}]/u.test(one);
}

export function areMany(tokens) {
  return pairsOf(...tokens).length > MOST;
}

export function Links({ frame, tokens, active }) {
  const [paths, setPaths] = useState([]);
  const pairs = pairsOf(...tokens);
  const name = JSON.stringify(tokens);
  useLayoutEffect(() => {
    const draw = () => setPaths(pathsOf(frame.current, pairs));
    const watch = new ResizeObserver(draw);
    watch.observe(frame.current);
    draw();
    return () => watch.disconnect();
  }, [name]);
  return html`
    <svg class="links" aria-hidden="true">
      ${pairs.map((pair, at) => {
        const lit = active && pair[active.side] === active.place;
        if (!paths[at] || (pairs.length > MOST && !lit)) return null;
        const { path, ends } = paths[at];
        return html`<g key=${at} class=${lit ? "linking lit" : "linking"}>
          <path class=${lit ? "link lit" : "link"} d=${path} />
          ${ends.map(([x, y]) => html`<circle cx=${x} cy=${y} r="3" />`)}
        </g>`;
      })}
    </svg>
  `;
}

function pairsOf(one, other) {
  return one.flatMap((word, row) => other.flatMap((same, column) => (isTwin(word, same) ? [[row, column]] : [])));
}

function pathsOf(frame, pairs) {
  const origin = frame.getBoundingClientRect();
  const rows = frame.querySelectorAll(".tokens");
  const [first, second] = [...rows].map((row) => row.getBoundingClientRect());
  const stacked = second.top >= first.bottom;
  const floor = Math.round(Math.max(first.bottom, second.bottom) - origin.top);
  return pairs.map(([row, column], at) => {
    const one = rows[0].children[row].getBoundingClientRect();
    const other = rows[1].children[column].getBoundingClientRect();
    const [x0, x1] = [one, other].map((box) => Math.round(box.left + box.width / 2 - origin.left));
    const y0 = Math.round(one.bottom - origin.top);
    const y1 = Math.round((stacked ? other.top : other.bottom) - origin.top);
    const middle = stacked ? (y0 + y1) / 2 : floor + 14 + (at % 4) * 8;
    return {
      path: `M${x0},${y0} C${x0},${middle} ${x1},${middle} ${x1},${y1}`,
      ends: [
        [x0, y0],
        [x1, y1],
      ],
    };
  });
}
