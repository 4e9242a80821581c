package clean

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/text/encoding/charmap"
)

// decodeAgain undoes a wrong decoding: bytes that are not UTF-8 and C1 characters are Windows-1252, and characters
// such as Ã© or â€™ are UTF-8 that was read as Windows-1252, perhaps twice.
func decodeAgain(s string) string {
	if isASCII(s) {
		return s
	}
	s = decodeInvalid(s)
	for {
		decoded := decodeMojibake(s)
		if decoded == s {
			break
		}
		s = decoded // each round makes the text shorter
	}
	return strings.Map(func(r rune) rune {
		if 0x80 <= r && r <= 0x9f {
			return charmap.Windows1252.DecodeByte(byte(r))
		}
		return r
	}, s)
}

// isASCII reports whether a text is plain ASCII, which no wrong decoding changes.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// decodeInvalid decodes each byte that is not UTF-8 as Windows-1252.
func decodeInvalid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var out strings.Builder
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			r = charmap.Windows1252.DecodeByte(s[0])
		}
		out.WriteRune(r)
		s = s[size:]
	}
	return out.String()
}

// decodeMojibake decodes the groups of characters that are UTF-8 read as Windows-1252. Such text shows an à as Ã and a space that
// does not break, which other programs turned into a plain one. It is read so if other groups show that the text was decoded wrongly.
func decodeMojibake(s string) string {
	var out strings.Builder
	runes, found := []rune(s), false
	for i := 0; i < len(runes); {
		r, n := decodeGroup(runes[i:])
		found = found || n > 1
		out.WriteRune(r)
		i += n
	}
	if !found {
		return s
	}
	decoded := strings.ReplaceAll(out.String(), "Ã ", "à ")
	if before, isLast := strings.CutSuffix(decoded, "Ã"); isLast {
		return before + "à"
	}
	return decoded
}

// decodeGroup decodes the characters at the beginning of a text: it returns the letter that they stand for and their number, or the
// first one and 1.
// Only groups that stand for Latin letters, punctuation and emoji are decoded: É» in «CAFÉ» is not a group.
func decodeGroup(runes []rune) (r rune, n int) {
	switch first := runes[0]; first {
	case 'Â', 'Ã', 'Å':
		n = 2
	case 'â', 'ï':
		n = 3
	case 'ð':
		n = 4
	default:
		return first, 1
	}
	var group []byte
	for _, sign := range runes[:min(n, len(runes))] {
		b, ok := encodeWindows1252(sign)
		if !ok {
			return runes[0], 1
		}
		group = append(group, b)
	}
	r, size := utf8.DecodeRune(group)
	if r == utf8.RuneError || size != n || n == 3 && !isPunctuation(r) {
		return runes[0], 1
	}
	return r, n
}

// isPunctuation reports whether a character of three bytes is usual in texts: marks, signs, the byte order mark, and the
// replacement character.
func isPunctuation(r rune) bool {
	return 0x2000 <= r && r <= 0x2bff || r == 0xfeff || r == 0xfffd || 0xfb00 <= r && r <= 0xfb06
}

// encodeWindows1252 is the byte of a character in Windows-1252. A C1 character is the byte from which it was decoded.
func encodeWindows1252(r rune) (byte, bool) {
	if 0x80 <= r && r <= 0x9f {
		return byte(r), true
	}
	return charmap.Windows1252.EncodeRune(r)
}

// stripHTML removes the tags of HTML and decodes entities. Line breaks, paragraphs and items of lists end a line. Only
// real tags count: a < b stays.
func stripHTML(s string, keepLines bool) string {
	if !strings.ContainsAny(s, "<&") {
		return s
	}
	return decodeEntities(stripTags(s, keepLines))
}

// stripTags removes tags, comments, styles and scripts from a text.
func stripTags(s string, keepLines bool) string {
	if !strings.Contains(s, "<") {
		return s
	}
	var out strings.Builder
	tokens := html.NewTokenizer(strings.NewReader(s))
	isHidden := false
	for {
		kind := tokens.Next()
		raw := string(tokens.Raw())
		if kind == html.ErrorToken {
			out.WriteString(raw) // a tag that breaks off is text
			return out.String()
		}
		text, hides := replaceToken(kind, raw, tokens, keepLines)
		if !isHidden || kind != html.TextToken {
			out.WriteString(text)
		}
		isHidden = hides
	}
}

// replaceToken is the text that replaces a token of HTML, and whether the token hides the text after it.
func replaceToken(kind html.TokenType, raw string, tokens *html.Tokenizer, keepLines bool) (text string, hides bool) {
	switch kind {
	case html.CommentToken:
		if strings.HasPrefix(raw, "<!--") && strings.HasSuffix(raw, "-->") {
			return "", false
		}
	case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
		name, _ := tokens.TagName()
		tag := atom.Lookup(name)
		if tag == 0 || !isRealTag(raw) {
			return raw, false
		}
		hides = kind == html.StartTagToken && (tag == atom.Script || tag == atom.Style)
		return separatorOf(tag, keepLines), hides
	}
	return raw, false
}

// isRealTag reports whether the text between < and > is a tag and not part of a sentence: whatever follows its name sets a
// value.
func isRealTag(raw string) bool {
	_, attributes, hasAttributes := strings.Cut(strings.TrimRight(raw, "/> \t\r\n"), " ")
	return !hasAttributes || strings.TrimSpace(attributes) == "" || strings.Contains(attributes, "=")
}

// separatorOf separates the texts before and after a tag. It is empty for tags that only change letters.
func separatorOf(tag atom.Atom, keepLines bool) string {
	switch tag {
	case atom.B, atom.I, atom.U, atom.S, atom.Em, atom.Strong, atom.Span, atom.A, atom.Font, atom.Sup, atom.Sub, atom.Small, atom.Big,
		atom.Abbr, atom.Mark:
		return ""
	case atom.Br, atom.P, atom.Div, atom.Li, atom.Ul, atom.Ol, atom.Tr, atom.Table, atom.Hr,
		atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		if keepLines {
			return "\n"
		}
	}
	return " "
}

// longestEntity is the most bytes of an entity between & and ;.
const longestEntity = 32

// decodeEntities decodes entities that end in a semicolon: &eacute; and &#233; and &amp;. Without one they stay: &copy=2 in
// a URL is not ©. A resulting & may begin an entity too, as in &amp;eacute;.
func decodeEntities(s string) string {
	if !strings.Contains(s, "&") {
		return s
	}
	text, out := []byte(s), make([]byte, 0, len(s))
	for i := 0; i < len(text); {
		letter, length := decodeEntity(text[i:])
		if length > 1 && letter == "&" {
			i += length - 1
			text[i] = '&' // over the semicolon
			continue
		}
		out = append(out, letter...)
		i += length
	}
	return string(out)
}

// decodeEntity decodes the entity at the beginning of a text, and returns how many bytes it takes.
func decodeEntity(text []byte) (letter string, length int) {
	end := -1
	if text[0] == '&' {
		end = bytes.IndexByte(text[:min(len(text), longestEntity)], ';')
	}
	if end < 0 {
		return string(text[:1]), 1
	}
	entity := string(text[:end+1])
	letter = html.UnescapeString(entity)
	if letter == entity || strings.HasSuffix(letter, ";") && letter != ";" { // &ampx; begins with one that has no semicolon
		return "&", 1
	}
	return letter, end + 1
}
