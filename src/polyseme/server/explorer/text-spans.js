// Places in a text as the server counts them, in code points, to the pieces of a JavaScript string.
//
// JavaScript counts UTF-16 units: one rare character, 𠮷 or an emoji, would shift every place after it.

export function cut(text, start, stop) {
  const points = Array.from(text);
  return [points.slice(0, start), points.slice(start, stop), points.slice(stop)].map((part) => part.join(""));
}

// The text with one token in brackets, as `polyseme substitutes` reads it; brackets of the text get a backslash.
export function bracketed(text, token) {
  const escaped = cut(text, token.start, token.end).map((part) => part.replace(/[[\]]/g, "\\$&"));
  return `${escaped[0]}[${escaped[1]}]${escaped[2]}`;
}

// How often the token at `place` has come up to there, from 1, or null if the word stands there only once.
export function whichOf(words, place) {
  const same = words.flatMap((word, at) => (word === words[place] ? [at] : []));
  return same.length > 1 ? same.indexOf(place) + 1 : null;
}

// The sentence that the token at `place` stands in: its text, its tokens with their places in it, and which it is.
export function sentenceOf(text, tokens, place) {
  const first = tokens.findIndex((token) => token.sentence === tokens[place].sentence);
  const found = tokens.filter((token) => token.sentence === tokens[place].sentence);
  const { start } = found[0];
  return {
    text: cut(text, start, found.at(-1).end)[1].replaceAll("\n", " "),
    tokens: found.map((token) => ({ ...token, start: token.start - start, end: token.end - start })),
    place: place - first,
  };
}
