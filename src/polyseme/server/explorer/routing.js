// location.hash in, the view and its parameters out, and back: every view is a permalink.
//
// A hash reads #/sentence?text=…&token=4&mix=0,0,1&lang=zh. Parameters at their default are left out.

import { useEffect, useRef, useState } from "preact/hooks";

export const VIEWS = ["sentence", "compare", "senses", "model"];

// These hold for the whole page, so they go along from one view to the next.
const SHARED = ["lang", "index"];

// What each view showed last, so that its tab leads back there.
const last = new Map();

export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const view = VIEWS.includes(path) ? path : VIEWS[0];
  return { view, params: Object.fromEntries(new URLSearchParams(query)) };
}

export function hashOf(view, params) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  // A comma may stand in a hash as it is, and a permalink is for people too.
  const text = query.toString().replaceAll("%2C", ",");
  return `#/${view}${text && "?"}${text}`;
}

// The link of a view: what it showed last, or the parameters given, with those that all views share.
export function linkTo(view, params = last.get(view) ?? {}) {
  const here = parse(location.hash).params;
  const shared = Object.fromEntries(SHARED.map((name) => [name, here[name]]));
  return hashOf(view, { ...params, ...shared });
}

// The route now, and `go(changes, push)`: change some parameters, as a new step of the history or not.
export function useRoute() {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const follow = () => setRoute(parse(location.hash));
    addEventListener("popstate", follow);
    addEventListener("hashchange", follow);
    return () => {
      removeEventListener("popstate", follow);
      removeEventListener("hashchange", follow);
    };
  }, []);
  useEffect(() => void last.set(route.view, route.params), [route]);
  const go = (changes, push = false) => {
    // Read from the address and not from `route`: a delayed call must not undo what came between.
    const { view, params } = parse(location.hash);
    const hash = hashOf(view, { ...params, ...changes });
    if (hash === location.hash) return;
    history[push ? "pushState" : "replaceState"](null, "", hash);
    setRoute(parse(hash));
  };
  return [route, go];
}

// A value that is typed: shown at once, handed to `commit` when the typing rests (never, while it is held).
export function useTyped(value, commit, delay = 220) {
  const [typed, setTyped] = useState(value);
  const sent = useRef(value);
  const timer = useRef(0);
  useEffect(() => {
    if (value === sent.current) return;
    // The value came from elsewhere (back, forward, an example): it replaces what was typed.
    sent.current = value;
    clearTimeout(timer.current);
    setTyped(value);
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (next, held = false) => {
    setTyped(next);
    clearTimeout(timer.current);
    // Held: an input method is composing half a word, or a button will send the value.
    if (held) return;
    timer.current = setTimeout(() => {
      sent.current = next;
      commit(next);
    }, delay);
  };
  return [typed, type];
}
