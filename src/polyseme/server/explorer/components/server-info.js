// The response of /info as a Preact context, and what is derived from it.

import { createContext } from "preact";
import { useContext } from "preact/hooks";

export const Info = createContext(null);

const LANGUAGE_TAGS = { zh: "zh-Hans", en: "en" };

export function useInfo() {
  return useContext(Info);
}

// The language of the corpus, for fonts and screen readers; undefined if the server does not know it.
export function languageOf(info) {
  return LANGUAGE_TAGS[info.model.language];
}

// The index with this name, else the first one, else null.
export function chosenIndex(info, name) {
  return info.indexes.find((index) => index.name === name) ?? info.indexes[0] ?? null;
}
