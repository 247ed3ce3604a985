// The tokens of a sentence as a row of buttons; one can be chosen. One tab stop, arrow keys move within.

import { useRef, useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

// look(position): {class, style, title} of a token, for shades and underlines.
export function TokenButtons({ words, chosen, choose, label, lang, look = () => ({}) }) {
  const row = useRef(null);
  const [focused, setFocused] = useState(0);
  const tabStop = Math.min(focused, words.length - 1);
  const move = (event) => {
    const ends = { Home: 0, End: words.length - 1 };
    const next = ends[event.key] ?? tabStop + (STEPS[event.key] ?? NaN);
    if (!(next in words)) return;
    event.preventDefault();
    row.current.children[next].focus();
  };
  return html`
    <div class="tokens" role="group" aria-label=${label} lang=${lang} ref=${row} onKeyDown=${move}>
      ${words.map((word, position) => {
        const { class: name = "", ...rest } = look(position);
        return html`<button
          key=${position}
          type="button"
          class=${`token ${name}`}
          tabindex=${position === tabStop ? 0 : -1}
          aria-pressed=${String(position === chosen)}
          onFocus=${() => setFocused(position)}
          onClick=${() => choose(position)}
          ...${rest}
        >
          ${word}
        </button>`;
      })}
    </div>
  `;
}
