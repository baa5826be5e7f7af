"""What a sentence takes back: an answer that it denies ('not Caddy'), and words such as 'I do not know, cannot help'.

Both languages are looked for in every reply, since small models mix them.
"""
from __future__ import annotations

import re

_NOT = r"""
    not(?!\s+(?:only|just|merely)\b) | no | never | neither | nor | cannot | without | unlike | except
  | (?:non|un|de|anti)(?=-) | rather\s+than | instead\s+of | \w+n't | (?:do|does|did|is|was|are|wo|ca)nt
  | không(?!\s+(?:chỉ|những)\b) | chẳng | chả | chưa | đâu\s+phải | thay\s+vì | ngoại\s+trừ"""
_BETWEEN = r"""
    the | an? | in | on | by | at | to | of | from | with | behind | be | been | being | used? | uses | using | runs?
  | running | called | named | equals? | exactly | really | actually | simply | have | has | needs? | contains? | it
  | it's | is
  | phải | hề | là | được | dùng | sử\s+dụng | chạy | nằm | đặt | đứng | ở | sau | trước | có | bằng | qua | trên
  | tới | đến | gồm | chứa | tên | gọi | vào | về"""
_DENIED_BEFORE = re.compile(rf"(?<![\w'])(?:{_NOT})(?:[\s\"“”«»(-]+(?:{_BETWEEN})(?!\w))*[\s\"“”«»'(-]*$",
                            re.VERBOSE | re.IGNORECASE)
_WRONG = r"wrong|incorrect|false|sai"
_RIGHT = r"right|correct|true|it|used|the\s+(?:right\s+|correct\s+)?(?:answer|one|case)|đúng|đáp\s+án|câu\s+trả\s+lời"
_DENIED_AFTER = re.compile(rf"""[\s\"”»')]*(?:
    (?:is|was|would\s+be|là|thì)\s+(?:{_WRONG})(?!\w)
  | (?:(?:is|was)\s+not|(?:is|was)n't|không|không\s+phải(?:\s+là)?|chưa)\s+(?:{_RIGHT})(?!\w))""",
    re.VERBOSE | re.IGNORECASE)

# A sentence that says that the answer is not known, or not in the sources, and where it begins.
_SOURCES = r"(?:notes?|documents?|passages?|texts?|sources?|context(?!\s+window)|excerpts?|materials?|articles?)"
_NOTES = rf"(?:{_SOURCES}|information|data)"
_GIVE = (r"(?:say|state|mention|give|provide|contain|include|specify|tell|cover|describe|answer|explain|hold|list|"
         r"have|discuss|address|indicate|reveal|offer)")
_GIVEN = (r"(?:mentioned|stated|specified|disclosed|provided|given|contained|included|covered|described|discussed|"
          r"listed|answered|available|found|known|indicated|addressed)")
_DO_NOT = r"(?:(?:do|does|did|can|could)\s+(?:not|n't)|(?:do|does|did|ca|could)n't|cannot|dont|doesnt)"
_BE_NOT = r"(?:(?:is|are|was|were|be|been)\s+not|(?:is|are|was|were)n't|isnt|not)"
_VI_NOTES = (r"(?:tài\s+liệu|ghi\s+chú|văn\s+bản|đoạn(?:\s+(?:văn|trích))?|ngữ\s+cảnh|nguồn|bài(?:\s+viết)?|"
             r"thông\s+tin)")
_VI_GIVEN = r"(?:nói|đề\s+cập|nêu|cho\s+biết|ghi|nhắc|cung\s+cấp|chứa|đưa\s+ra|trả\s+lời|viết|liệt\s+kê)"
_VI_NOT = r"(?:không|chưa|chẳng|chả)(?:\s+(?:hề|thể|được|có))*"
_ABSTAINS = re.compile(rf"""(?<!\w)(?:
    (?:i|we)\s+(?:\w+\s+)?{_DO_NOT}\s+(?:\w+\s+)?(?:know|answer|say|tell|determine|find|provide|confirm|recall|
      assist|help(?!\s+(?:but|\w+ing)\b))
  | (?:i|we)\s+{_DO_NOT}\s+(?:\w+\s+)?have\s+(?:\w+\s+){{0,3}}(?:information|data|answer|details?|knowledge|access)
  | (?:i|we)\s+(?:\w+\s+)?(?:am|are)\s+(?:not\s+(?:sure|certain|aware|able)|unsure|uncertain|unable)
  | i'm\s+(?:\w+\s+)?(?:not\s+(?:sure|certain|aware|able)|unsure|uncertain|unable) | there\s+is\s+no\s+answer
  | (?:i|we)\s+have\s+no\s+(?:idea|information|data|answer|knowledge|way) | (?:i|we)\s+(?:have|has)\s+not\s+found
  | {_NOTES}\s+(?:\w+\s+){{0,4}}{_DO_NOT}\s+(?:\w+\s+)?(?:{_GIVE}|know)
  | (?:none|neither)\s+of\s+the\s+(?:\w+\s+)?{_NOTES}\s+(?:\w+s?) | answer\s+unknown
  | {_BE_NOT}\s+(?:\w+\s+){{0,2}}(?:mentioned|stated|specified|disclosed)
  | {_BE_NOT}\s+(?:\w+\s+)?(?:{_GIVEN}\s+)?(?:in|by|from|part\s+of)\s+(?:\w+\s+){{0,3}}{_SOURCES}
  | (?:{_DO_NOT}|can\s+not)\s+be\s+(?:answered|determined|inferred|found|known)
  | {_NOTES}\s+(?:is|are)\s+(?:not\s+(?:available|given|sufficient|enough|provided)|unavailable|insufficient)
  | (?:no|(?:(?:is|are|was)n't|not)\s+enough|insufficient)\s+(?:\w+\s+)?
      (?:information|mention|data|details?|record)(?=\s*(?:$|[.,;:!?(])|\s+(?:about|on|in|of|for|to|that|regarding|was|is|are|available|given|provided|found|
                                  here|there)\b)
  | {_NOTES}\s+(?:\w+\s+)?(?:(?:say|state|mention|contain|give|have|hold|provide|offer)s?|has)\s+
      (?:nothing|no\s+(?:\w+\s+)?\w+)
  | {_NOTES}\s+lacks?\s+(?:this|that|the|any)\s+(?:information|answer)
  | {_NOTES}\s+never\s+{_GIVE}s? | no\s+{_SOURCES}\s+{_GIVE}s? | nothing\s+(?:\w+\s+){{0,4}}in\s+(?:the\s+)?{_SOURCES}
  | (?:it|they|this|that)\s+{_DO_NOT}\s+(?:say|tell|state|mention|specify)
  | (?:impossible|hard)\s+to\s+(?:say|tell|know|determine) | it's\s+(?:not\s+(?:there|given|known)|unknown)
  | (?:information|answer)\s+(?:is\s+|was\s+)?(?:(?:is|was)n't|not)\s+{_GIVEN}
  | (?:information|answer|that|it)\s+(?:is|was)\s+missing\s+(?:from|in)\s+(?:\w+\s+){{0,3}}{_SOURCES}
  | (?:i|we)\s+(?:\w+\s+)?(?:dunno|(?:found|see|know)\s+nothing|have\s+no\s+clue|was\s+(?:unable|not\s+able))
  | (?:không|chưa)\s+(?:có\s+)?{_VI_NOTES}\s+nào\s+(?:\w+\s+)?{_VI_GIVEN}
  | (?:is|are|was|remains?)\s+(?:\w+\s+)?(?:unknown|not\s+known)(?=\s*(?:$|[.,;!?]|from|in|to\s+me))
  | (?:tôi|mình|em|chúng\s+tôi)\s+(?:\w+\s+){{0,2}}{_VI_NOT}\s+
      (?:biết|rõ|chắc|nhớ|tìm|trả\s+lời|xác\s+định|thông\s+tin|dữ\s+liệu|hỗ\s+trợ|giúp)
  | {_VI_NOTES}\s+(?:\w+\s+){{0,5}}{_VI_NOT}\s+(?:{_VI_GIVEN}|thông\s+tin|câu\s+trả\s+lời|đáp\s+án)
  | {_VI_NOTES}\s+(?:(?:này|đó|trên|của\s+tôi)\s+)?(?:không|chưa)\s+có
  | (?:không|chưa)\s+(?:có|nằm|thấy|tìm\s+thấy|xuất\s+hiện)\s+(?:\w+\s+){{0,3}}trong\s+(?:\w+\s+){{0,2}}{_VI_NOTES}
  | (?:không|chưa)\s+(?:có|đủ|tìm\s+thấy|tìm\s+được)\s+(?:\w+\s+){{0,2}}(?:thông\s+tin|dữ\s+liệu|câu\s+trả\s+lời)
  | (?:không|chưa)\s+(?:được\s+(?:đề\s+cập|nêu|nhắc|cung\s+cấp|ghi|nói)|thể\s+(?:trả\s+lời|xác\s+định|biết))
)(?!\w)""", re.VERBOSE | re.IGNORECASE)
_BARE = re.compile(r"""(?:sorry,?\s+|xin\s+lỗi,?\s+|the\s+answer\s+is\s+|câu\s+trả\s+lời\s+(?:này\s+|là\s+)?)?(?:
    (?:do\s+not|don't|dont)\s+know | unknown | not\s+known | not\s+sure | unsure | no\s+idea | n/a
  | not\s+(?:found|given|stated|available|mentioned|specified|provided|answerable) | unanswerable | no\s+answer
  | (?:cannot|can't|unable\s+to|not\s+able\s+to)\s+(?:answer|determine|tell|say|find|provide)
  | (?:không|chưa|chẳng|chả)\s+(?:biết|rõ|chắc)(?!\s*\w+\s*\?)
  | không\s+(?:tìm\s+thấy|đề\s+cập|nêu|xác\s+định|ai\s+biết)
)(?!\w)(?=\s*(?:$|[.;:!?,(…"')*-])
  | \s+(?:in|from|by|at|to|for|on|yet|here|whether|if|what|which|who|how|why|where|when|about|this|that|the|it|of|any
         |đâu|gì|trong|từ|theo|về|điều|câu|nữa|lắm|là|có|vì|được|ai|số|cái|này|đó|ở|ạ)(?!\w))
""", re.VERBOSE | re.IGNORECASE)
_CLAUSE_END = re.compile(r"[.;:!?,](?=\s|$)|\s(?:but|though|although|however|yet|nhưng|song|tuy)\s|\s[-–—]\s",
                         re.IGNORECASE)


def is_denied(text: str, start: int, end: int) -> bool:
    """Whether a text takes back what stands from `start` to `end`: 'not X', 'does not use X', 'X is wrong'."""
    before, after = text[max(0, start - 80):start], text[end:end + 60]
    return bool(_DENIED_BEFORE.search(before) or _DENIED_AFTER.match(after))


def abstentions(text: str) -> list[tuple[int, int, int]]:
    """Where a text says that it does not know, or that the sources do not say: (start, end, end of the clause)."""
    bare = _BARE.match(text.lstrip(" \"'“(*"))
    found = list(_ABSTAINS.finditer(text))
    starts = [(0, bare.end() + len(text) - len(text.lstrip(" \"'“(*")))] if bare else []
    return [(start, end, _clause_end(text, end)) for start, end in starts + [match.span() for match in found]]


def abstains(text: str) -> bool:
    """Whether a text says anywhere that it does not know, or that the sources do not say."""
    return bool(abstentions(text))


def _clause_end(text: str, start: int) -> int:
    match = _CLAUSE_END.search(text, start)
    return match.start() if match else len(text)
