// What is on screen in, the same as Python, curl and command line out, to copy.

import { hasKey } from "/explorer/api.js";
import { bracketed, whichOf } from "/explorer/places.js";

// A JSON string is a Python string, too.
const py = (value) => JSON.stringify(value);

function sh(value) {
  const text = String(value);
  return /^[\p{L}\p{N}_./-]+$/u.test(text) && !text.startsWith("-") ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export function curl(path, body) {
  const key = hasKey() ? ' -H "Authorization: Bearer $POLYSEME_KEY"' : "";
  if (body === undefined) return `curl ${location.origin}${path}${key}`;
  const json = JSON.stringify(body);
  return `curl ${location.origin}${path}${key} -H 'Content-Type: application/json' -d ${sh(json)}`;
}

export function usages({ text, words, place, index, same, k }) {
  const word = words[place];
  const which = whichOf(words, place);
  const python = [py(word), py(text), k, same && "same_word=True", which && `which=${which}`];
  const cli = [
    "polyseme nearest",
    sh(index),
    sh(word),
    "--in",
    sh(text),
    same && "--word",
    which && `--which ${which}`,
  ];
  return {
    python: script(
      `index = polyseme.open_index(${py(index)})`,
      `for usage in index.usages(${list(python)}):`,
      '    print(f"{usage.cosine:.3f}", usage.marked())',
    ),
    curl: curl("/nearest", { word, tokens: words, place, index, k, same_word: same }),
    cli: [...cli, `-k ${k}`].filter(Boolean).join(" "),
  };
}

export function types({ word, index, model, k }) {
  return {
    python: script(`print(polyseme.nearest(${py(index ?? model)}, ${py(word)}, ${k}))`),
    curl: curl("/nearest", { word, index, k }),
    cli: `polyseme nearest ${sh(index ?? model)} ${sh(word)} -k ${k}`,
  };
}

export function substitutes({ text, token, words, place, model, k }) {
  const marked = bracketed(text, token);
  return {
    python: script(
      `model = polyseme.load(${py(model)})`,
      `found = polyseme.substitutes(model, ${py(marked)}, ${k})`,
      "print(found.joint.best)",
    ),
    curl: curl("/substitutes", { tokens: words, place, k }),
    cli: `polyseme substitutes ${sh(model)} ${sh(marked)} -k ${k}`,
  };
}

export function compare({ texts, layer, model }) {
  const chosen = layer === "mean" ? "" : `, layer=${typeof layer === "number" ? layer : py(layer)}`;
  return {
    python: script(
      "from numpy.linalg import norm",
      "",
      `one, other = polyseme.load(${py(model)}).embed([${list(texts.map(py))}]${chosen})`,
      "one = one / norm(one, axis=1, keepdims=True)",
      "other = other / norm(other, axis=1, keepdims=True)",
      "print((one @ other.T).round(2))",
    ),
    curl: curl("/similarity", { texts, layer }),
    cli: [
      `printf '%s\\n' ${texts.map(sh).join(" ")} > two.txt`,
      `polyseme embed ${sh(model)} two.txt --out two.npz --layer ${layer}`,
    ].join("\n"),
  };
}

export function senses({ word, index, most }) {
  return {
    python: script(
      `index = polyseme.open_index(${py(index)})`,
      `for sense in polyseme.senses(index, ${py(word)}, most=${most}).senses:`,
      '    print(f"{sense.share:.0%}", *sense.neighbours)',
    ),
    curl: curl("/senses", { word, index, most }),
    cli: `polyseme senses ${sh(index)} ${sh(word)} --most ${most}`,
  };
}

export function change({ one, other, words, k }) {
  const asked = words ? `, ${py(words)}` : "";
  return {
    python: script(
      `for change in polyseme.change(${py(one)}, ${py(other)}${asked})[:${k}]:`,
      '    print(change.word, f"{change.distance:.3f}", change.changed)',
    ),
    curl: curl("/change", { one, other, words, k }),
    cli: `polyseme change ${[one, other, ...(words ?? [])].map(sh).join(" ")} -k ${k}`,
  };
}

export function model({ model: name }) {
  return {
    python: script(
      `print(polyseme.info(${py(name)}))`,
      `model = polyseme.load(${py(name)})`,
      'vectors = model.embed(["…"])',
    ),
    curl: curl("/info"),
    cli: `polyseme info ${sh(name)}`,
  };
}

function script(...lines) {
  return ["import polyseme", "", ...lines].join("\n");
}

function list(values) {
  return values.filter((value) => value !== false && value !== null).join(", ");
}
