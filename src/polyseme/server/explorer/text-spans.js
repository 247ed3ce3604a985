// Character offsets from the server (in code points) applied to JavaScript strings.
//
// JavaScript counts UTF-16 units: a rare character (𠮷) or an emoji would shift all offsets after it.

export function splitAt(text, start, stop) {
  const points = Array.from(text);
  return [points.slice(0, start), points.slice(start, stop), points.slice(stop)].map((part) => part.join(""));
}

// The text with one token in brackets, the input of `polyseme substitutes`. Brackets in the text are escaped.
export function bracketToken(text, token) {
  const escaped = splitAt(text, token.start, token.end).map((part) => part.replace(/[[\]]/g, "\\$&"));
  return `${escaped[0]}[${escaped[1]}]${escaped[2]}`;
}

// Which occurrence of its word the token at `position` is, from 1; null if the word occurs once.
export function occurrenceOf(words, position) {
  const positions = words.flatMap((word, i) => (word === words[position] ? [i] : []));
  return positions.length > 1 ? positions.indexOf(position) + 1 : null;
}

// The sentence of the token at `position`: its text, its tokens with offsets in that text, and the token's position.
export function sentenceOf(text, tokens, position) {
  const number = tokens[position].sentence;
  const first = tokens.findIndex((token) => token.sentence === number);
  const inSentence = tokens.filter((token) => token.sentence === number);
  const { start } = inSentence[0];
  return {
    text: splitAt(text, start, inSentence.at(-1).end)[1].replaceAll("\n", " "),
    tokens: inSentence.map((token) => ({ ...token, start: token.start - start, end: token.end - start })),
    position: position - first,
  };
}
