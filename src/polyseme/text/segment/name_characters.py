"""What is known of Chinese names before a text is read: surnames, titles, verbs of speech, function words.

text.segment.name_characters  ->  text.segment.discovery

Priors only: `discovery` asks the text itself before anything becomes a word.
"""

from __future__ import annotations


def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


# 百家姓 and frequent surnames of today; those that are everyday characters, too, are in AMBIGUOUS_SURNAMES.
SURNAMES = frozenset(
    "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许吕张孔曹严华魏陶姜戚谢邹喻柏窦苏潘葛奚范彭郎鲁韦昌苗凤俞袁柳酆鲍唐费廉岑薛雷贺"
    "倪汤滕殷罗毕郝邬傅卞齐康伍余卜顾孟黄穆萧尹姚邵湛汪祁毛禹狄米贝臧戴谈宋茅庞熊纪舒屈项祝董梁杜阮蓝闵席季贾娄危童颜郭梅"
    "盛林刁钟徐邱丘骆蔡田樊胡凌霍虞柯昝卢房裘缪丁贲邓郁杭洪包诸石崔吉钮龚程嵇邢裴陆荣翁荀羊惠甄曲芮羿储靳汲邴糜段巫乌焦"
    "隗侯宓蓬郗仲伊宁仇栾甘钭厉戎符刘景詹龙叶韶郜黎蓟蒲邰鄂索咸籍赖卓蔺屠池乔胥苍莘翟谭贡逄姬申冉宰郦雍郤璩桑桂濮牛寿扈"
    "燕冀郏浦温庄晏柴瞿阎慕茹宦艾慎戈廖庾暨衡耿弘匡寇禄阙殳沃蔚夔隆巩厍聂晁敖訾辛阚简饶曾毋沙乜鞠巢蒯荆竺逯桓闫汝鄢涂钦"
    "岳帅缑亢琴牟佘佴伯赏墨谯笪佟肖覃付仝邸揭逢丰冷霜骊虬"
)
AMBIGUOUS_SURNAMES = frozenset(
    "水方安常乐于时平明计成路解单松谷车全秋宫双通边鱼容易步国文广东利越空须关查红游盖公商爱代江高金马花云元任强夏章史左巴祖"
    "武怀阴闻扶古师法白何莫尚满封权束伏幸宣施班蒙池钱滑强卫支管井富弓牧山薄印宿党劳堵勾融权益况阳束仰终应经干宗连海司练"
)
COMPOUND_SURNAMES = _split(
    "万俟 司马 上官 欧阳 夏侯 诸葛 闻人 东方 赫连 皇甫 尉迟 公羊 澹台 公冶 宗政 濮阳 "
    "淳于 单于 太叔 申屠 公孙 仲孙 轩辕 令狐 钟离 宇文 长孙 慕容 鲜于 闾丘 司徒 司空 "
    "端木 百里 呼延 东郭 南门 南宫 独孤 完颜 耶律 拓跋 西门 左丘 东门 梁丘 公西 漆雕 "
    "乐正 壤驷 钟离 纳兰 爱新 叶赫 哥舒 贺兰 长孙 第五 羊舌 微生 梁丘"
)
FAMILIAR = frozenset("老小阿")  # before a surname: 老孙, 小李, 阿朱
TITLES = _split(
    "夫人 太太 奶奶 姑娘 小姐 丫头 姐姐 妹妹 姨妈 姨娘 姥姥 嬷嬷 婆婆 公公 爷爷 伯伯 "
    "叔叔 大爷 二爷 三爷 老爷 少爷 公子 相公 员外 先生 师父 师傅 师太 师兄 师弟 师姐 "
    "师妹 师叔 师伯 道长 道人 真人 大师 长老 法师 和尚 禅师 方丈 居士 上人 帮主 教主 "
    "掌门 庄主 寨主 谷主 岛主 盟主 舵主 堂主 坛主 城主 楼主 宫主 少侠 大侠 女侠 前辈 "
    "老人 大王 娘娘 公主 太子 王爷 皇后 皇帝 将军 元帅 先锋 太尉 太师 丞相 都督 太守 "
    "知府 知县 提辖 教头 都头 押司 虞候 都监 制使 统制 参谋 枢密 招讨 安抚 尚书 侍郎 "
    "学士 大人 大哥 二哥 三哥 大嫂 二嫂 大姐 二姐 三姐 二娘 三娘 大叔 大婶 大妈 老师 "
    "老板 老伯 伯母 伯父 婶婶 阿姨 同志 教授 医生 博士 主任 经理 总管 管家 媳妇 老儿 "
    "寡妇 天王 行者 大圣 菩萨 夫妇 兄弟 姊妹"
)
# Last characters of places and things: 潇湘馆, 绝情谷, 全真教.
KINDS = frozenset(
    "馆寺庵关谷山城庄殿院府宫亭洞派教帮门功掌拳剑刀经诀阵丹"
    "峰岭岛河湖江海堂楼阁坞寨镇村县州国族堡桥塔园庙观崖王子"
)
# Verbs of speech and perception: what follows a person more often than a thing.
SPEECH = frozenset("道曰说笑问听见叫喝答想哭骂叹闻怒惊喜忙")
# What may follow a name and is glued to it by mistake; `discovery` learns more of them from the text.
AFTER_NAMES = SPEECH | frozenset("心看等便乃遂引教令又也却就都将把自已不大即亦谓唤皆俱与之的了是在有来去")
BEFORE_NAMES = frozenset("见与和向对那这叫请问闻令使被把将唤被替同跟因是有却又只听")
NUMERALS = frozenset("一二三四五六七八九十")
# Characters that begin or end no new word, unless a surname or the strings around them say otherwise.
NEVER_FIRST = frozenset(
    "的了着是在不一那这又便就都来去我你他她它们之其此与及和把被将向对于从只却也很更最么吗呢吧啊何如若则而且或因为所以有无没见听说道"
    "曰问笑叫再已正自各每某该两二三四五六七八九十几多数半个众诸忽遂即乃亦皆俱但恐欲未勿甚可能会要使令教待并别还既已曾方才"
    "谁哪甚怎句件条张封支队名位匹把根块片座间层项届次第"
)
NEVER_LAST = SPEECH | frozenset(
    "的了着是在不一那这又便就都来去我你他她它们之其此与及和把被将向对于从只却也很更最么吗呢吧啊何若则而且或因为所以有无没再已正自各"
    "每某该个上下里中内外前后时等皆俱亦乃遂即忽得未毕罢处看些曾"
)
