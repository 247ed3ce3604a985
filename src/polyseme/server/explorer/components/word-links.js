// Lines between the words that two sentences share.
//
// They run below the sentences if these stand side by side, and between them if one is above the other. They are pale
// and drawn over the words, so that a wrapped row does not hide them. If there are many, only those of the chosen or
// pointed word are drawn.

import { useLayoutEffect, useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";

const MAX_LINKS = 8;

// Punctuation is in every sentence and is not linked.
export function isSameWord(word, otherWord) {
  return word === otherWord && /[\p{L}\p{N}]/u.test(word);
}

export function hasManyLinks(tokens) {
  return sharedWords(...tokens).length > MAX_LINKS;
}

export function WordLinks({ frame, tokens, active }) {
  const [paths, setPaths] = useState([]);
  const pairs = sharedWords(...tokens);
  const key = JSON.stringify(tokens);
  useLayoutEffect(() => {
    const draw = () => setPaths(linkPaths(frame.current, pairs));
    const observer = new ResizeObserver(draw);
    observer.observe(frame.current);
    draw();
    return () => observer.disconnect();
  }, [key]);
  return html`
    <svg class="links" aria-hidden="true">
      ${pairs.map((pair, i) => {
        const highlighted = active && pair[active.sentence] === active.position;
        if (!paths[i] || (pairs.length > MAX_LINKS && !highlighted)) return null;
        const { path, ends } = paths[i];
        return html`<g key=${i} class=${highlighted ? "link highlighted" : "link"}>
          <path d=${path} />
          ${ends.map(([x, y]) => html`<circle cx=${x} cy=${y} r="3" />`)}
        </g>`;
      })}
    </svg>
  `;
}

// [[position in the first sentence, position in the second], …]
function sharedWords(first, second) {
  return first.flatMap((word, row) =>
    second.flatMap((otherWord, column) => (isSameWord(word, otherWord) ? [[row, column]] : [])),
  );
}

function linkPaths(frame, pairs) {
  const origin = frame.getBoundingClientRect();
  const rows = frame.querySelectorAll(".tokens");
  const [first, second] = [...rows].map((row) => row.getBoundingClientRect());
  const stacked = second.top >= first.bottom;
  const bottom = Math.round(Math.max(first.bottom, second.bottom) - origin.top);
  return pairs.map(([row, column], i) => {
    const from = rows[0].children[row].getBoundingClientRect();
    const to = rows[1].children[column].getBoundingClientRect();
    const [x0, x1] = [from, to].map((token) => Math.round(token.left + token.width / 2 - origin.left));
    const y0 = Math.round(from.bottom - origin.top);
    const y1 = Math.round((stacked ? to.top : to.bottom) - origin.top);
    const middle = stacked ? (y0 + y1) / 2 : bottom + 14 + (i % 4) * 8;
    return {
      path: `M${x0},${y0} C${x0},${middle} ${x1},${middle} ${x1},${y1}`,
      ends: [
        [x0, y0],
        [x1, y1],
      ],
    };
  });
}
