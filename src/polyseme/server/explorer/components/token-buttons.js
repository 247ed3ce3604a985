// Words of a sentence in; a row of buttons out, one of which is chosen. One tab stop, arrow keys within.

import { useRef, useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

// look(place): {class, style, title} of a word, for shades and underlines.
export function Tokens({ words, chosen, choose, label, lang, look = () => ({}) }) {
  const row = useRef(null);
  const [focused, setFocused] = useState(0);
  const stop = Math.min(focused, words.length - 1);
  const move = (event) => {
    const ends = { Home: 0, End: words.length - 1 };
    const next = ends[event.key] ?? stop + (STEPS[event.key] ?? NaN);
    if (!(next in words)) return;
    event.preventDefault();
    row.current.children[next].focus();
  };
  return html`
    <div class="tokens" role="group" aria-label=${label} lang=${lang} ref=${row} onKeyDown=${move}>
      ${words.map((word, place) => {
        const { class: name = "", ...rest } = look(place);
        return html`<button
          key=${place}
          type="button"
          class=${`token ${name}`}
          tabindex=${place === stop ? 0 : -1}
          aria-pressed=${String(place === chosen)}
          onFocus=${() => setFocused(place)}
          onClick=${() => choose(place)}
          ...${rest}
        >
          ${word}
        </button>`;
      })}
    </div>
  `;
}
