// The name of a text in, the text in the chosen language out: [English, 中文]. {name} stands for a value.

export const LANGUAGES = ["en", "zh"];

const TEXTS = {
  "app.about": ["words in context", "语境中的词"],
  "app.views": ["Views", "视图"],
  "app.skip": ["Skip to the content", "跳到正文"],
  "app.otherLanguage": ["中文", "English"],
  "app.theme": ["Theme", "主题"],
  "app.theme.auto": ["theme: auto", "主题：自动"],
  "app.theme.light": ["theme: light", "主题：浅色"],
  "app.theme.dark": ["theme: dark", "主题：深色"],
  "app.docs": ["HTTP routes", "HTTP 接口"],
  "app.index": ["Index", "索引"],
  "app.indexes": ["Indexes", "索引"],

  "view.sentence": ["Sentence", "句子"],
  "view.compare": ["Compare", "比较"],
  "view.senses": ["Senses", "义项"],
  "view.model": ["Model", "模型"],

  "state.loading": ["Loading…", "正在加载……"],
  "state.again": ["Try again", "重试"],
  "state.retry": ["It will be tried again in {seconds} s.", "{seconds} 秒后自动重试。"],
  "state.key": ["This server asks for an API key", "此服务器需要 API 密钥"],
  "state.keyHint": ["It stays in this window only.", "密钥只保留在当前窗口中。"],
  "state.useKey": ["Use this key", "使用此密钥"],
  "error.network": [
    "The server cannot be reached. Is polyseme serve still running?",
    "连不上服务器。polyseme serve 还在运行吗？",
  ],
  "error.usage": ["This cannot be answered.", "无法回答这个请求。"],
  "error.validation": ["The server refused the request.", "服务器拒绝了该请求。"],
  "error.too_large": ["This is too long for the server.", "内容太长，超出了服务器的限制。"],
  "error.busy": ["The server is busy.", "服务器正忙。"],
  "error.loading": ["The model is still loading.", "模型仍在加载。"],
  "error.draining": ["The server is shutting down.", "服务器正在关闭。"],
  "error.timeout": ["The answer took too long.", "等待结果超时。"],
  "error.unauthorized": ["The API key is missing or wrong.", "缺少 API 密钥，或密钥有误。"],
  "error.not_found": ["The server does not have this.", "服务器上没有这项内容。"],
  "error.memory": ["The server ran out of memory for this.", "服务器内存不足，无法完成该请求。"],
  "error.internal": ["Something went wrong in the server.", "服务器内部出错。"],

  "code.title": ["Python, curl, command line", "Python、curl、命令行"],
  "code.python": ["Python", "Python"],
  "code.curl": ["curl", "curl"],
  "code.cli": ["Command line", "命令行"],
  "code.copy": ["Copy", "复制"],
  "code.copyName": ["Copy: {name}", "复制：{name}"],
  "code.copied": ["Copied", "已复制"],
  "code.failed": ["Select and copy by hand", "请手动选中复制"],
  "code.noMix": [
    "The command line ranks by the layer of the index: a mix of its own is for Python and HTTP.",
    "命令行只按索引所存的层排序；自定的混合请用 Python 或 HTTP。",
  ],
  "code.noMatrix": [
    "The command line prints the cosine of the two sentences: word for word is for Python and HTTP.",
    "命令行给出两句整体的余弦；逐词的余弦请用 Python 或 HTTP。",
  ],
  "export.as": ["Save {name} as {kind}", "将“{name}”保存为 {kind}"],

  "sentence.text": ["Text", "文本"],
  "sentence.placeholder": ["Type or paste a sentence…", "输入或粘贴一个句子……"],
  "sentence.examples": ["Or begin with one of these:", "也可以从这些句子开始："],
  "sentence.empty": [
    "Type a sentence, choose one of its words, and see where in the corpus a word is used as it is here, what could stand in its place, and which layer of the model knows.",
    "输入一个句子，选中其中一个词，就能看到：语料中哪些地方的用法与此处相同，什么词可以替换它，以及模型的哪一层捕捉到了这一点。",
  ],
  "sentence.tokens": ["Words, as the model reads them", "分词结果（模型所见）"],
  "sentence.choose": ["Choose a word. Arrow keys move between words.", "请选择一个词，可用方向键移动。"],
  "sentence.none": ["No words were found in this text.", "这段文本里没有找到词。"],

  "usages.title": ["Nearest usages", "最相近的用法"],
  "usages.same": ["Only usages of “{word}”", "只看“{word}”的用法"],
  "usages.none": ["No usages were found.", "没有找到相近的用法。"],
  "usages.noIndex": [
    "This server has no index, so there is no corpus to look into. Make one and serve it:",
    "服务器没有加载索引，因此没有可供查找的语料。请先建立索引，再启动服务：",
  ],
  "usages.compare": ["compare", "比较"],
  "usages.compareName": ["Compare with this sentence", "与这句比较"],
  "usages.moved": ["was {rank}", "原第 {rank} 位"],
  "usages.cosine": ["cosine", "余弦"],
  "usages.inLayers": ["Cosine in each layer alone", "各层单独的余弦"],
  "usages.chart": ["Cosines of the nearest usages by layer", "最相近用法的各层余弦"],

  "mix.title": ["Mix of layers", "层的混合"],
  "mix.holds": ["The index {index} holds layer {layer}.", "索引 {index} 存的是第 {layer} 层。"],
  "mix.holdsTop": ["The index {index} holds the top layer, {layer}.", "索引 {index} 存的是最高层（第 {layer} 层）。"],
  "mix.holdsMean": ["The index {index} holds the mean of all layers.", "索引 {index} 存的是各层的平均。"],
  "mix.untouched": [
    "The list is its answer; move a slider, and its {count} nearest usages are ranked again, at once.",
    "下面就是按它查得的结果；拖动滑块，会立即对最相近的 {count} 个用法重新排序。",
  ],
  "mix.moved": [
    "Its {count} nearest usages are ranked again by this mix.",
    "最相近的 {count} 个用法已按此混合重新排序。",
  ],
  "mix.alone": [
    "{text}. Alone: {same} of its best {of} are the same word, mean cosine {cosine}",
    "{text}。只用此层：前 {of} 个中有 {same} 个是同一个词，平均余弦 {cosine}",
  ],
  "mix.silent": ["All weights are zero: the order is the server’s.", "所有权重为零：保持服务器给出的顺序。"],
  "mix.reset": ["As the index", "恢复为索引的层"],
  "layer.mean": ["mean of all", "各层平均"],
  "layer.top": ["top", "最高层"],
  "layer.name": ["Layer {layer}", "第 {layer} 层"],
  "layer.tokens": ["The word itself, without context", "词本身，不含语境"],
  "layer.low": ["Syntax, close context", "句法与近处语境"],
  "layer.high": ["Meaning in context", "语境中的意义"],

  "types.title": ["Nearest words", "最相近的词"],
  "types.hint": ["By the mean of all their usages.", "按各词全部用法的平均向量计算。"],
  "types.common": [
    "By the mean of all their usages; of words with at least {count}.",
    "按各词全部用法的平均向量计算；只列至少 {count} 次的词。",
  ],
  "types.none": ["No neighbours were found.", "没有找到相近的词。"],
  "types.count": ["{count} usages", "{count} 次"],
  "types.senses": ["Senses of {word}", "“{word}”的义项"],
  "subs.title": ["What could stand here", "此处可以填什么"],
  "subs.forward": ["from the left", "据上文"],
  "subs.joint": ["from both sides", "据上下文"],
  "subs.backward": ["from the right", "据下文"],
  "subs.rank": ["“{word}” itself: rank {rank}", "“{word}”本身：第 {rank} 位"],
  "subs.noRank": ["“{word}” is not in the vocabulary", "“{word}”不在词表中"],
  "subs.noSoftmax": [
    "This model came without its softmax, so it cannot propose words.",
    "此模型不带 softmax，无法推荐替换词。",
  ],

  "compare.one": ["First sentence", "第一句"],
  "compare.other": ["Second sentence", "第二句"],
  "compare.empty": [
    "Two sentences, word against word: how near is each word of the first to each word of the second, in its context?",
    "逐词比较两个句子：在各自的语境里，第一句的每个词与第二句的每个词有多接近？",
  ],
  "compare.example": ["Show an example", "看一个例子"],
  "compare.swap": ["Swap", "对调"],
  "compare.layer": ["Layer", "层"],
  "compare.whole": ["Cosine of the two sentences: {cosine}", "两句整体的余弦：{cosine}"],
  "compare.words": ["Word for word", "逐词对照"],
  "compare.hint": [
    "Choose a word: the other sentence is shaded by its cosines. Words that stand in both are underlined and linked.",
    "选择一个词，另一句会按余弦深浅着色。两句共有的词带下划线，并用线相连。",
  ],
  "compare.best": ["Nearest to “{word}”: {others}", "与“{word}”最近的：{others}"],
  "compare.twins": ["“{word}” in both sentences: cosine {cosine}.", "两句中的“{word}”：余弦 {cosine}。"],
  "compare.noWords": [
    "One of these texts has no words, so there is nothing to compare.",
    "其中一段文本里没有词，无法比较。",
  ],
  "compare.matrix": ["Cosines of all words", "所有词的余弦"],
  "compare.matrixName": [
    "Heat map of cosines, {rows} by {columns} words; the table below has the values",
    "余弦热力图，{rows} × {columns} 个词；数值见下表",
  ],
  "compare.table": ["Values as a table", "以表格查看数值"],
  "compare.most": [
    "The first {most} words of each sentence are drawn; the CSV has all.",
    "每句只画出前 {most} 个词；CSV 中有全部数值。",
  ],
  "compare.corner": ["first \\ second", "第一句 \\ 第二句"],

  "senses.word": ["Word", "词"],
  "senses.most": ["Senses at most", "最多义项数"],
  "senses.show": ["Show", "查看"],
  "senses.empty": [
    "Type a word of the corpus: its usages are laid out on a map and grouped into senses.",
    "输入语料中的一个词，它的全部用法会铺成一张图，并归为若干义项。",
  ],
  "senses.try": ["Try:", "试试："],
  "senses.noIndex": [
    "Senses are groups of usages in a corpus, and this server has no index.",
    "义项是语料中用法的分组，而服务器没有加载索引。",
  ],
  "senses.found": ["{word}: {count} senses", "{word}：{count} 个义项"],
  "senses.one": ["{word}: one sense", "{word}：一个义项"],
  "senses.quality": ["stability {stability}, silhouette {silhouette}", "稳定性 {stability}，轮廓系数 {silhouette}"],
  "senses.map": ["Map of usages", "用法分布图"],
  "senses.mapName": [
    "Map of {count} usages of {word}, coloured by sense; the list of sentences has the same",
    "“{word}”的 {count} 个用法分布图，按义项着色；句子列表内容相同",
  ],
  "senses.brush": [
    "Draw a rectangle on the map to read the sentences in it. With the keyboard: arrow keys move it, with Shift they change its size, Escape clears it.",
    "在图上拖出一个矩形，即可阅读其中的句子。也可用键盘：方向键移动矩形，按住 Shift 改变大小，Esc 清除。",
  ],
  "senses.brushName": ["Rectangle on the map", "图上的矩形"],
  "senses.sample": [
    "{shown} of {count} usages are shown, chosen at random; the senses and shares are of all {count}.",
    "共 {count} 个用法，图和列表随机显示其中 {shown} 个；义项与占比按全部 {count} 个计算。",
  ],
  "senses.name": ["Sense {number}", "义项 {number}"],
  "senses.all": ["All senses", "全部义项"],
  "senses.filter": ["Show sentences of", "显示句子"],
  "senses.clear": ["Clear the rectangle", "清除矩形"],
  "senses.sentences": ["Sentences ({count})", "句子（{count}）"],
  "senses.more": ["Show {count} more", "再显示 {count} 句"],
  "senses.nothing": [
    "No sentences here. Choose another sense, or clear the rectangle.",
    "这里没有句子。请换一个义项，或清除矩形。",
  ],
  "senses.documents": ["Shares by document", "各文档中的占比"],
  "senses.drawn": [
    "{drawn} of {count} documents are drawn; the CSV has all.",
    "共 {count} 篇文档，图中为前 {drawn} 篇；CSV 中有全部数值。",
  ],
  "senses.document": ["Document", "文档"],
  "senses.by": ["Shares by", "占比按"],
  "senses.period": ["Period", "时期"],
  "senses.periods": ["Shares by period", "各时期的占比"],
  "senses.share": ["{share} · {count} usages", "{share} · {count} 次"],

  "change.title": ["Change between two indexes", "两个索引之间的变化"],
  "change.need": [
    "Serve two indexes of one model, of two periods or authors, to see which words changed.",
    "如果同时加载同一模型的两个索引（如两个时期或两位作者），就能看出哪些词变了。",
  ],
  "change.one": ["From", "从"],
  "change.other": ["To", "到"],
  "change.words": ["Words (all frequent ones if left empty)", "词（留空则取全部常用词）"],
  "change.show": ["Compare", "比较"],
  "change.hint": [
    "“Changed” means that the shares of the senses differ by more than chance (p < 0.05).",
    "“有变化”指义项占比的差异超出随机波动（p < 0.05）。",
  ],
  "change.none": ["No words have enough usages in both indexes.", "没有在两个索引中都足够常见的词。"],
  "change.word": ["word", "词"],
  "change.counts": ["usages", "用法数"],
  "change.prototype": ["distance of the means", "均值间的距离"],
  "change.p": ["p", "p"],
  "change.shift": ["shift of senses", "义项偏移"],
  "change.shiftP": ["p of the shift", "偏移的 p"],
  "change.shares": ["shares of the senses", "义项占比"],
  "change.changed": ["changed", "有变化"],
  "change.same": ["no", "无"],
  "change.verdict": ["changed?", "是否变化"],
  "change.bar": ["{name}: {shares}", "{name}：{shares}"],

  "model.facts": ["Facts", "概况"],
  "model.layers": ["Layers", "层"],
  "model.layersText": [
    "{layers} layers, {size} values each. A word’s vector is any mix of them.",
    "共 {layers} 层，每层 {size} 维。词向量可以是各层的任意混合。",
  ],
  "fact.tokens": ["tokens", "词的输入"],
  "fact.layers": ["layers", "层"],
  "fact.vector": ["vector", "向量"],
  "fact.parameters": ["parameters", "参数"],
  "fact.segmentation": ["segmentation", "分词"],
  "fact.vocabulary": ["vocabulary", "词表"],
  "fact.softmax": ["softmax", "softmax"],
  "fact.origin: trained on": ["trained on", "训练语料"],
  "fact.origin: held-out perplexity": ["held-out perplexity", "留出集困惑度"],
  "fact.origin: unknown words": ["unknown words", "未登录词"],
  "fact.origin: optimiser": ["optimiser", "优化器"],
  "fact.origin: seed": ["seed", "随机种子"],
  "model.curves": ["Perplexity while training", "训练过程中的困惑度"],
  "model.curvesName": [
    "Perplexity of held-out text against tokens read, forward, backward and mean",
    "留出文本的困惑度随训练词数的变化：前向、后向与平均",
  ],
  "model.noCurves": ["No curve was saved with this model.", "此模型没有保存训练曲线。"],
  "model.tokens": ["tokens read", "已读词数"],
  "model.perplexity": ["perplexity", "困惑度"],
  "model.forward": ["forward", "前向"],
  "model.backward": ["backward", "后向"],
  "model.mean": ["mean", "平均"],
  "model.values": ["Values as a table", "以表格查看数值"],
  "model.card": ["Model card", "模型卡"],
  "model.noCard": ["This model came without a card.", "此模型没有附带模型卡。"],
  "model.limits": ["Limits of this server", "服务器限制"],
  "model.limit.body_bytes": ["bytes of a request", "单个请求的字节数"],
  "model.limit.texts": ["texts in a request", "单个请求的文本数"],
  "model.limit.tokens": ["tokens in a text", "单个文本的词数"],
  "model.limit.queue": ["texts waiting", "排队的文本数"],
  "model.limit.concurrent": ["requests at once", "并发请求数"],
  "model.limit.seconds": ["seconds for an answer", "回答时限（秒）"],
  "model.limit.grace": ["seconds to finish when stopped", "停止前的宽限（秒）"],
  "model.limit.batch_tokens": ["tokens in a batch", "每批的词数"],
  "model.limit.answer_values": ["numbers in an answer", "单个回答的数值个数"],
  "model.limit.wait": ["seconds to wait for a batch", "等待组批的时间（秒）"],
  "model.noIndexes": ["None is served.", "没有加载索引。"],
  "model.indexName": ["name", "名称"],
  "model.indexUsages": ["usages", "用法数"],
  "model.indexWords": ["words", "词数"],
  "model.indexLayer": ["layer", "层"],
  "model.indexDocuments": ["documents", "文档"],
  "model.tasks": ["Tasks", "任务"],
  "model.licence": ["Licence", "许可证"],
  "model.licenceNone": ["The model card says nothing of a licence.", "模型卡没有说明许可证。"],
  "model.licencePage": [
    "Polyseme {version} is under the Apache License 2.0. This page uses",
    "Polyseme {version} 采用 Apache 许可证 2.0。本页面使用了",
  ],
};

let language = 0;

export function setLanguage(name) {
  language = LANGUAGES.indexOf(name);
}

export function t(name, values = {}) {
  // An error type of a newer server has no text here: the server's own sentence says enough.
  const text = TEXTS[name]?.[language] ?? "";
  return text.replace(/\{(\w+)\}/g, (_, key) => String(values[key]));
}

export function number(value, digits = 0) {
  if (value === null || value === undefined) return "–"; // JSON has no infinite numbers
  const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return value.toLocaleString(LANGUAGES[language], options);
}

export function percent(share) {
  return `${Math.round(share * 100)}%`;
}
