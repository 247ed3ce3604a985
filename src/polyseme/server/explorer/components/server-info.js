// What /info said, for every part of the page that needs it.

import { createContext } from "preact";
import { useContext } from "preact/hooks";

export const Info = createContext(null);

const TONGUES = { zh: "zh-Hans", en: "en" };

export function useInfo() {
  return useContext(Info);
}

// The language of the corpus, for fonts and screen readers; undefined where the server could not tell.
export function tongueOf(info) {
  return TONGUES[info.model.language];
}

// The chosen index, or the first one, or null.
export function indexOf(info, name) {
  return info.indexes.find((index) => index.name === name) ?? info.indexes[0] ?? null;
}
