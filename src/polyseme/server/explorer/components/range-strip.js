// A range of columns, chosen by dragging with the mouse or a finger, or with the arrow keys.
//
// A range is [first, last], both included. While a drag is under way the drawing follows it; the address changes when it
// ends.

import { useRef } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { t } from "/explorer/i18n.js";

// Pointer events that draw a range over an element whose columns fill it from `left` to `right` pixels from its edges.
// follow(range) is called on the way, finish(range) at the end. A click without a drag chooses one column.
export function useRangeDrag({ count, left = 0, right = 0, follow, finish }) {
  const anchor = useRef(null);
  const columnAt = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const share = (event.clientX - box.left - left) / Math.max(1, box.width - left - right);
    return Math.min(Math.max(Math.floor(share * count), 0), count - 1);
  };
  const rangeTo = (column) => [Math.min(anchor.current, column), Math.max(anchor.current, column)];
  const start = (event, fixed) => {
    if (event.button) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    anchor.current = fixed ?? columnAt(event);
    follow(rangeTo(columnAt(event)));
  };
  return {
    start,
    handlers: {
      onPointerDown: (event) => start(event),
      onPointerMove: (event) => anchor.current !== null && follow(rangeTo(columnAt(event))),
      onPointerUp: (event) => {
        if (anchor.current === null) return;
        const range = rangeTo(columnAt(event));
        anchor.current = null;
        finish(range);
      },
      onPointerCancel: () => {
        anchor.current = null;
        follow(null);
      },
    },
  };
}

// A track with two handles. names: of the columns; range: or null; letter: A or B; initial: the range of its button.
export function RangeStrip({ names, range, letter, label, left, right, initial, follow, finish }) {
  const count = names.length;
  const track = useRef(null);
  const { start, handlers } = useRangeDrag({ count, follow, finish });
  const place = (column) => `${(100 * column) / count}%`;
  const width = range && `${(100 * (range[1] - range[0] + 1)) / count}%`;
  const handle = (end) => {
    const grab = (event) => {
      // The track follows the pointer from here; the other end stays.
      event.preventDefault();
      event.currentTarget.focus();
      dragFrom(event, track.current, start, range[1 - end]);
    };
    const move = (event) => {
      const next = rangeAfterKey(event, range, end, count);
      if (!next) return;
      event.preventDefault();
      finish(next);
    };
    return html`
      <span
        class="range-handle"
        role="slider"
        tabindex="0"
        aria-label=${t(end ? "timeline.rangeEnd" : "timeline.rangeStart", { label })}
        aria-valuemin="0"
        aria-valuemax=${count - 1}
        aria-valuenow=${range[end]}
        aria-valuetext=${names[range[end]]}
        style=${{ left: place(range[end] + end) }}
        onPointerDown=${grab}
        onKeyDown=${move}
      ></span>
    `;
  };
  return html`
    <div class="range-strip" role="group" aria-label=${label}>
      <p class="range-label">
        <b class=${`range-letter range-${letter}`}>${letter}</b> ${label}${" "}
        ${range
          ? html`<span class="value">${rangeName(names, range)}</span>`
          : html`<button type="button" class="small" onClick=${() => finish(initial)}>${rangeName(names, initial)}</button>`}
      </p>
      <div class="range-track" ref=${track} style=${{ marginLeft: `${left}px`, marginRight: `${right}px` }} ...${handlers}>
        ${range && html`<span class=${`range-fill range-${letter}`} style=${{ left: place(range[0]), width }}></span>${handle(0)}${handle(1)}`}
      </div>
    </div>
  `;
}

export function rangeName(names, [first, last]) {
  return first === last ? names[first] : `${startOf(names[first])}–${endOf(names[last])}`;
}

// 1790–1829, not 1790-1799–1820-1829; and of the title of a chapter its number.
function startOf(name) {
  return /^(\d+)-\d+$/.exec(name)?.[1] ?? shortName(name);
}

function endOf(name) {
  return /^\d+-(\d+)$/.exec(name)?.[1] ?? shortName(name);
}

const LONG = 14; // characters of a name

export function shortName(name) {
  const [, chapter] = /^(\S+\s+[\dIVXLC]+\b|第\S+)/u.exec(name) ?? [];
  if (name.length <= LONG) return name;
  return chapter ?? `${name.slice(0, LONG - 1)}…`;
}

function dragFrom(event, track, start, fixed) {
  event.stopPropagation();
  start({ button: event.button, pointerId: event.pointerId, clientX: event.clientX, currentTarget: track }, fixed);
}

// Arrow keys move one end, Shift + arrow keys the whole range; Home and End go to the first and the last column.
function rangeAfterKey({ key, shiftKey }, range, end, count) {
  const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -count, End: count };
  if (!(key in steps)) return null;
  if (shiftKey) {
    const step = Math.min(Math.max(steps[key], -range[0]), count - 1 - range[1]);
    return range.map((column) => column + step);
  }
  const moved = Math.min(Math.max(range[end] + steps[key], 0), count - 1);
  return end ? [Math.min(range[0], moved), moved] : [moved, Math.max(range[1], moved)];
}
