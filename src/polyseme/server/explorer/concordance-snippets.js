// Python, curl and command line for the concordance and the collocates on screen; see code-snippets.js.

import { command, curl, list, py, script, sh } from "/explorer/code-snippets.js";

// options: {sort, usage, collocate, documents}, those that are set.
export function concordance({ word, index, k, options }) {
  const set = Object.entries(options).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const python = set.map(([name, value]) => `${name}=${py(value)}`);
  return {
    python: script(
      `result = polyseme.concordance(${list([py(index.path), py(word), String(k), ...python])})`,
      "for line in result.lines:",
      '    print(line.left, f"[{line.word}]", line.right)',
    ),
    curl: curl("/concordance", { word, index: index.name, k, ...Object.fromEntries(set) }),
    cli: command("concordance", index.path, [word], [`-k ${k}`, ...set.map(([name, value]) => `--${name}=${sh(value)}`)]),
  };
}

export function collocates({ word, index, window, k, documents, senses }) {
  const options = [`window=${window}`, senses && "senses=True", documents && `documents=${py(documents)}`];
  return {
    python: script(
      `for collocate in polyseme.collocates(${list([py(index.path), py(word), String(k), ...options.filter(Boolean)])}):`,
      '    print(collocate.word, collocate.count, f"{collocate.log_likelihood:.1f}")',
    ),
    curl: curl("/collocates", { word, index: index.name, k, window, senses: senses || undefined, documents: documents || undefined }),
    cli: command("collocates", index.path, [word], [`-k ${k}`, `--window ${window}`, senses && "--senses", documents && `--documents=${sh(documents)}`]),
  };
}
