// Gram matrices of the layers of usages in, cosines of any mix of layers out: new ranks without the server.
//
// L layers. own[i][j] = h_i · h_j within a usage, cross[i][j] = q_i · c_j from the query to a usage. A mix with
// weights w is the vector sum_l w_l h_l, so its products are quadratic forms of w in these matrices.

function form(weights, gram) {
  let sum = 0;
  for (let i = 0; i < weights.length; i++) {
    for (let j = 0; j < weights.length; j++) sum += weights[i] * weights[j] * gram[i][j];
  }
  return sum;
}

export function cosine(weights, query, usage) {
  const lengths = form(weights, query.own) * form(weights, usage.own);
  // All weights at zero leave no vector, and a vector of no length has no direction.
  return lengths > 0 ? form(weights, usage.cross) / Math.sqrt(lengths) : 0;
}

export function oneLayer(layer, layers) {
  return Array.from({ length: layers }, (_, at) => (at === layer ? 1 : 0));
}

// The weights that an index was made with: its layer is "top", "mean" or a number.
export function weightsOf(layer, layers) {
  if (layer === "mean") return Array(layers).fill(1);
  const number = layer === "top" || layer === undefined ? layers - 1 : Number(layer);
  return oneLayer(Number.isInteger(number) && number < layers ? number : layers - 1, layers);
}

// The weights that a permalink holds, 0,0.5,1, or null where it holds none that fit, or those of the index.
export function parseMix(text, usual) {
  const weights = (text ?? "").split(",").map(Number);
  const fits = weights.length === usual.length && weights.every((weight) => weight >= 0 && weight <= 1);
  return text && fits && String(weights) !== String(usual) ? weights : null;
}

// Usages by falling cosine in the mix, each with `cosine`, the cosine in every layer alone, and where it stood before.
// Without a mix of its own (`weights` null, or nothing but zeros) the list is the server's, in order and in cosines.
export function rank(answer, weights, most) {
  const count = answer.query.own.length;
  const layers = Array.from({ length: count }, (_, layer) => oneLayer(layer, count));
  const mixed = weights?.some((weight) => weight > 0);
  const ranked = answer.usages.map((usage, before) => ({
    ...usage,
    before,
    cosine: mixed ? cosine(weights, answer.query, usage) : usage.cosine,
    layers: layers.map((layer) => cosine(layer, answer.query, usage)),
  }));
  if (mixed) ranked.sort((one, other) => other.cosine - one.cosine || one.before - other.before);
  return ranked.slice(0, most);
}

// What a layer alone would find: how many of its best are the same word, and their mean cosine.
export function layerAlone(answer, layer, layers, word, most) {
  const best = rank(answer, oneLayer(layer, layers), most);
  return {
    same: best.filter((usage) => usage.word === word).length,
    of: best.length,
    cosine: best.reduce((sum, usage) => sum + usage.cosine, 0) / Math.max(best.length, 1),
  };
}
