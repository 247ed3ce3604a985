// The hash of the address <-> the view and its parameters. Every view is a permalink.
//
// A hash reads #/sentence?text=…&token=4&mix=0,0,1&lang=zh. Parameters with default values are left out, and a long
// text is replaced by a key (stored-texts.js).

import { useEffect, useRef, useState } from "preact/hooks";
import { restored, shortened } from "/explorer/stored-texts.js";

export const VIEWS = [
  "sentence",
  "concordance",
  "compare",
  "senses",
  "timeline",
  "persons",
  "tasks",
  "model",
  "workspace",
];

const SHARED_PARAMS = ["lang", "model", "index", "corpus"]; // kept when the view changes

const lastParams = new Map(); // by view: a tab leads back to what its view showed last

export function parseHash(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const view = VIEWS.includes(path) ? path : VIEWS[0];
  const params = [...new URLSearchParams(query)].map(([name, value]) => [name, restored(value)]);
  return { view, params: Object.fromEntries(params) };
}

export function formatHash(view, params) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, shortened(String(value)));
  }
  // A hash may contain commas, and they keep permalinks readable.
  const text = query.toString().replaceAll("%2C", ",").replaceAll("stored%3A", "stored:");
  return `#/${view}${text && "?"}${text}`;
}

// A link to a view with these parameters (by default those it had last) and the shared ones.
export function linkTo(view, params = lastParams.get(view) ?? {}) {
  const current = parseHash(location.hash).params;
  const shared = Object.fromEntries(SHARED_PARAMS.map((name) => [name, current[name]]));
  return formatHash(view, { ...params, ...shared });
}

// The current route and navigate(changes, push): change parameters, with a new history entry if `push` is true.
export function useRoute() {
  const [route, setRoute] = useState(() => parseHash(location.hash));
  useEffect(() => {
    const update = () => {
      const opened = parseHash(location.hash);
      const short = formatHash(opened.view, opened.params);
      if (short.includes("stored:") && short !== location.hash) history.replaceState(null, "", short);
      setRoute(opened);
    };
    update();
    addEventListener("popstate", update);
    addEventListener("hashchange", update);
    return () => {
      removeEventListener("popstate", update);
      removeEventListener("hashchange", update);
    };
  }, []);
  useEffect(() => void lastParams.set(route.view, route.params), [route]);
  const navigate = (changes, push = false) => {
    // Read the address, not `route`: a delayed call must not undo later changes.
    const { view, params } = parseHash(location.hash);
    const hash = formatHash(view, { ...params, ...changes });
    if (hash === location.hash) return;
    history[push ? "pushState" : "replaceState"](null, "", hash);
    setRoute(parseHash(hash));
  };
  return [route, navigate];
}

// State of an input field: shown at once, passed to `onCommit` after a pause in typing. `hold` delays that
// until the next call without it.
export function useTyped(value, onCommit, delay = 220) {
  const [typed, setTyped] = useState(value);
  const committed = useRef(value);
  const timer = useRef(0);
  useEffect(() => {
    if (value === committed.current) return;
    // The value changed elsewhere (back, forward, an example) and replaces the typed one.
    committed.current = value;
    clearTimeout(timer.current);
    setTyped(value);
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (next, hold = false) => {
    setTyped(next);
    clearTimeout(timer.current);
    // On hold: an input method is composing a word, or a button will submit the value.
    if (hold) return;
    timer.current = setTimeout(() => {
      committed.current = next;
      onCommit(next);
    }, delay);
  };
  return [typed, type];
}
