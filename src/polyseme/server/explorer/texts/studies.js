// Texts of the views of a word through a corpus and of its persons, [English, 中文].

export const STUDY_TEXTS = {
  "view.timeline": ["Timeline", "时间线"],

  "timeline.empty": [
    "Type a word to see how often it is used, and in which senses, from year to year or from chapter to chapter. Then draw two ranges on the chart to see how its use changed between them.",
    "输入一个词，即可逐年或逐章查看它的频率和各义项的占比；再在图上拖出两个区间，即可比较其用法的变化。",
  ],
  "timeline.title": ["{word} over time: {grouping}", "“{word}”的时间线：{grouping}"],
  "timeline.chartName": [
    "Frequency of {word} and shares of its senses in {count} periods; the table below has the values",
    "“{word}”在 {count} 个时段中的频率与各义项占比；数值见下表",
  ],
  "timeline.perMillion": ["per million words", "每百万词"],
  "timeline.usages": ["usages", "用例数"],
  "timeline.senseShares": ["shares of senses", "义项占比"],
  "timeline.groupShares": ["shares of groups", "各组占比"],
  "timeline.frequency": [
    "{name}: {count} usages, {frequency} per million ({low}–{high})",
    "{name}：{count} 个用例，每百万词 {frequency} 次（{low}–{high}）",
  ],
  "timeline.few": [
    "The word has too few usages to find senses.",
    "这个词的用例太少，无法划分义项。",
  ],
  "timeline.one": [
    "The corpus is a single document, so there is no development to see. Build the index with --documents auto to divide a book into chapters.",
    "语料只有一篇文档，看不出变化。建立索引时加上 --documents auto，可将一本书分为各章。",
  ],
  "timeline.from": ["Range A", "区间 A"],
  "timeline.to": ["Range B", "区间 B"],
  "timeline.rangeStart": ["{label}: start", "{label}：起点"],
  "timeline.rangeEnd": ["{label}: end", "{label}：终点"],
  "timeline.hint": [
    "Whiskers and bands are 95% intervals. Drag over the chart to draw range A, then again for range B, or drag their ends below. Keyboard: arrow keys move an end, Shift + arrow keys the whole range.",
    "竖线与色带为 95% 区间。在图上拖动可画出区间 A，再拖动一次画出区间 B；也可拖动下方的端点。键盘操作：方向键移动端点，Shift + 方向键移动整个区间。",
  ],
  "timeline.change": ["Change from {first} to {second}", "从 {first} 到 {second} 的变化"],
  "timeline.rangeFrequency": [
    "{name}: {count} usages, {frequency} per million",
    "{name}：{count} 个用例，每百万词 {frequency} 次",
  ],
  "timeline.and": ["; ", "；"],
  "timeline.overlap": [
    "The ranges overlap, so the difference is smaller than that of separate ranges.",
    "两个区间有重叠，所得差异会偏小。",
  ],
  "timeline.rare": [
    "“{word}” has fewer than {least} usages in one of the ranges, too few to compare how it is used.",
    "“{word}”在其中一个区间里不足 {least} 个用例，无法比较用法。",
  ],
  "timeline.what": ["What to compare", "比较内容"],
  "timeline.thisWord": ["Only “{word}”", "只看“{word}”"],
  "timeline.allWords": ["Words that changed most", "变化最大的词"],
  "timeline.by.document": ["documents", "文档"],
  "timeline.by.documents": ["{width} documents each", "每 {width} 篇文档"],
  "timeline.by.year": ["years", "年份"],
  "timeline.by.years": ["{width} years each", "每 {width} 年"],

  "compare.fromIndex": ["of the index, corrected", "索引所用的层（已校正）"],
  "compare.uncorrected": [
    "These are plain vectors of the model, whose cosines are all high, whatever the words mean. With an index, cosines are corrected and compared with what is usual.",
    "这里是模型的原始向量，余弦普遍偏高，与词义关系不大。使用索引时，余弦会经过校正，并与通常的数值对照。",
  ],
  "compare.scaleName": [
    "Scale of usual cosines, with the words that both sentences share; the list below has the same values",
    "通常余弦的标尺，标出两句共有的词；下方列表内容相同",
  ],
  "compare.usual.same_word": ["usages of one word", "同一个词的用例"],
  "compare.usual.random": ["random words", "任意两个词"],
  "compare.usualRange": [
    "{name}: 90% of pairs are from {low} to {high}, half below {middle}",
    "{name}：90% 在 {low} 到 {high} 之间，中位数 {middle}",
  ],
  "compare.scaleHint": [
    "What is usual in this index: 90% of random pairs of usages lie in the thin bands, half of them in the thick ones.",
    "标尺取自此索引中随机抽取的用例对：细带含 90%，粗带含一半。",
  ],
  "compare.verdict.different": [
    "“{word}” is used differently: {cosine} is below all but {same} of pairs of usages of one word (and above {random} of random pairs).",
    "“{word}”的用法不同：{cosine} 仅高于同一个词用例对的 {same}（高于任意词对的 {random}）。",
  ],
  "compare.verdict.between": [
    "“{word}”: {cosine} is above {same} of pairs of usages of one word, and above {random} of random pairs.",
    "“{word}”：{cosine} 高于同一个词用例对的 {same}，高于任意词对的 {random}。",
  ],
  "compare.verdict.alike": [
    "“{word}” is used alike: {cosine} is above {same} of pairs of usages of one word.",
    "“{word}”的用法相近：{cosine} 高于同一个词用例对的 {same}。",
  ],

  "view.persons": ["Persons", "人物"],
  "persons.title": ["{count} persons in {index}", "{index} 中的 {count} 个人物"],
  "persons.hint": [
    "Names found in the text, most frequent first. Choose one for chapters, companions and passages.",
    "人名由程序从正文中发现，按出现次数排列。选择一个人物，可查看其出场章节、同现人物与段落。",
  ],
  "persons.finding": [
    "Finding the persons of this index. This is done once, and takes up to a minute.",
    "正在此索引中查找人物。只需一次，最多约一分钟。",
  ],
  "persons.none": ["No names of persons were found in this index.", "在此索引中没有找到人名。"],
  "persons.unknown": [
    "“{name}” is not among the most frequent persons of this index.",
    "“{name}”不在此索引最常见的人物之中。",
  ],
  "persons.page": ["{name} as a person: chapters, companions, passages", "人物“{name}”：出场章节、同现人物与段落"],
  "persons.all": ["All persons", "全部人物"],
  "persons.name": ["name", "人名"],
  "persons.count": ["mentions", "提及"],
  "persons.documents": ["documents", "文档"],
  "persons.companions": ["Often together with", "常同时出现"],
  "persons.alike": ["Spoken of alike", "语境相近"],
  "persons.aliases": ["Also called {names}", "又称 {names}"],
  "persons.summary": ["{count} mentions in {documents} of {of} documents", "提及 {count} 次，见于 {of} 篇文档中的 {documents} 篇"],
  "persons.byDocument": ["Mentions of {name} by document", "“{name}”在各文档中的提及次数"],
  "persons.network": ["Who occurs with whom", "人物关系网"],
  "persons.networkHint": [
    "Lines join persons who share many paragraphs; colours are groups who often occur together.",
    "连线表示两人常出现在同一段落；颜色表示经常一起出现的人物群。",
  ],
  "persons.around": ["Around {name}", "“{name}”周围的人物"],
  "persons.alone": ["No other person of the list occurs in the same paragraphs.", "没有其他人物与其出现在同一段落。"],
  "persons.pair": ["{first} and {second}: {count} paragraphs", "{first}与{second}：{count} 段"],
  "persons.mentions": ["{name}: {count} mentions", "{name}：提及 {count} 次"],
  "persons.listsHint": [
    "Together: paragraphs that mention both. Alike: cosine of the mean contextual vectors of the names.",
    "同时出现：提及两人的段落数。语境相近：两个名字平均上下文词向量的余弦。",
  ],
  "persons.passages": ["Passages about {name}", "有关“{name}”的段落"],
  "persons.coref": ["Who is {name} here?", "哪些词指“{name}”？"],
  "persons.noCoref": [
    "With a task model for coreference (polyseme train coref …), served beside the index, words such as “he” are resolved here.",
    "若同时加载共指消解任务模型（polyseme train coref …），此处还会标出“他”等词指谁。",
  ],
  "persons.noCluster": ["The model finds no second mention of {name} in this passage.", "模型在这段中没有找到“{name}”的其他指称。"],

  "tasks.entities": ["Select a word in the text, then mark it:", "在文本中选中一个词，再标记为："],
  "tasks.mark": ["entity {name}", "实体 {name}"],
  "tasks.textProbability": [
    "Probability of this text: {probability}% (natural logarithm {log})",
    "这段文本的概率：{probability}%（自然对数 {log}）",
  ],

  "grammar.why": [
    "These groups are mainly grammatical positions, such as subject and object, rather than meanings: the words beside a usage and its place in the sentence tell its group (agreement {value}; 0 is chance, 1 is certainty).",
    "这些组主要反映语法位置（如主语与宾语），而非词义的差别：仅凭相邻的词和句中位置就能判断用例属于哪一组（一致度 {value}，0 为随机，1 为完全确定）。",
  ],
  "grammar.also": [
    "These senses also differ in grammatical position: the words beside a usage and its place in the sentence tell its sense (agreement {value}; 0 is chance, 1 is certainty).",
    "这些义项在语法位置上也有差别：仅凭相邻的词和句中位置就能判断用例属于哪个义项（一致度 {value}，0 为随机，1 为完全确定）。",
  ],
  "grammar.command": ["An index of contexts", "上下文索引"],
  "grammar.contexts": ["Group by context instead ({name})", "改按上下文分组（{name}）"],
  "grammar.build": [
    "Group by context instead: build an index of contexts and serve both",
    "改按上下文分组：建立上下文索引，并同时加载两个索引",
  ],
};
