package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// objectParser parses one record, which is wholly in memory. jsonScanner found its end by brackets and quotes; the text between
// them is checked here, value by value, as flattener reads it. Values share the memory of the record: a text without escapes is a
// piece of it, and so are the bytes of numbers and lists.
type objectParser struct {
	text string
	pos  int
	raw  []byte // text, once a value needs its bytes
}

// member is a member of an object, and where its value begins in the text.
type member struct {
	name  string
	start int
}

// errSyntax begins the sentence of an error; what was expected follows.
var errSyntax = errors.New("the JSON is wrong here")

// peek is the first byte of the next value or sign; 0 if there is none.
func (p *objectParser) peek() byte {
	for ; p.pos < len(p.text); p.pos++ {
		switch b := p.text[p.pos]; b {
		case ' ', '\t', '\r', '\n':
		default:
			return b
		}
	}
	return 0
}

// eachMember calls read for each member of the object at pos; read must leave pos after its value.
func (p *objectParser) eachMember(read func(name string) error) error {
	p.pos++ // the opening bracket
	for n := 0; ; n++ {
		switch b := p.peek(); {
		case b == '}':
			p.pos++
			return nil
		case n > 0 && b != ',':
			return fmt.Errorf("%w: a comma or a closing bracket is due", errSyntax)
		case n > 0:
			p.pos++
		}
		if p.peek() != '"' {
			return fmt.Errorf("%w: a name in quotes is due", errSyntax)
		}
		name, err := p.parseString()
		if err != nil {
			return err
		}
		if p.peek() != ':' {
			return fmt.Errorf("%w: a colon is due", errSyntax)
		}
		p.pos++
		p.peek()
		if err := read(name); err != nil {
			return err
		}
	}
}

// listMembers is the members of the object at pos, without looking into their values.
func (p *objectParser) listMembers() ([]member, error) {
	var members []member
	err := p.eachMember(func(name string) error {
		members = append(members, member{name, p.pos})
		return p.skip()
	})
	return members, err
}

// nextIsGeometry reports whether the object at pos is a geometry of GeoJSON.
func (p *objectParser) nextIsGeometry() bool {
	start := p.pos
	defer func() { p.pos = start }()
	if p.skip() != nil || !strings.Contains(p.text[start:p.pos], `"coordinates"`) {
		return false
	}
	p.pos = start
	members, err := p.listMembers()
	hasMember := func(name string) bool {
		return slices.ContainsFunc(members, func(m member) bool { return m.name == name })
	}
	return err == nil && hasMember("type") && hasMember("coordinates")
}

// tag is a key and where its value begins in the text.
type tag struct {
	key   string
	value int
}

// listTags returns the tags of the list at pos, and moves pos after it. They are objects of a k and a v, as OpenStreetMap's XML becomes in
// JSON, in which signs such as @ may precede the letters. It is nil if pos is not at a list of tags.
func (p *objectParser) listTags() []tag {
	start := p.pos
	if p.peek() != '[' {
		return nil
	}
	p.pos++
	var tags []tag
	for p.peek() == '{' {
		members, err := p.listMembers()
		if err != nil || len(members) != 2 || strings.Trim(members[0].name, "-@_") != "k" || strings.Trim(members[1].name, "-@_") != "v" ||
			p.text[members[0].start] != '"' {
			break
		}
		end := p.pos
		p.pos = members[0].start
		key, err := p.parseString()
		if err != nil {
			break
		}
		tags = append(tags, tag{key, members[1].start})
		switch p.pos = end; p.peek() {
		case ',':
			p.pos++
		case ']':
			p.pos++
			return tags
		}
	}
	p.pos = start
	return nil
}

// skip moves pos after the next value.
func (p *objectParser) skip() error {
	switch p.peek() {
	case '{', '[', '"':
		end := passBrackets(p.text[p.pos:])
		if end < 0 {
			return errSyntax
		}
		p.pos += end
	default:
		p.parseLiteral()
	}
	return nil
}

// passBrackets is the length of the string, list or object at the beginning of a text; -1 if it is not closed.
func passBrackets(text string) int {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '"':
			inString = !inString
		case inString:
			if b == '\\' {
				i++
			}
		case b == '{' || b == '[':
			depth++
		case b == '}' || b == ']':
			depth--
		}
		if depth == 0 && !inString {
			return i + 1
		}
	}
	return -1
}

// parseValue parses the next value. NaN and Infinity, which Python writes, are empty.
func (p *objectParser) parseValue() (Value, error) {
	// The first character determines the kind of a value.
	switch p.peek() {
	case '"':
		text, err := p.parseString()
		return Value{Text: text}, err
	case '{', '[':
		raw, err := p.parseRaw()
		return Value{JSON: raw}, err
	}
	start := p.pos
	switch literal := p.parseLiteral(); {
	case literal == "null" || isNoNumber(literal):
		return Value{}, nil
	case json.Valid([]byte(literal)):
		return Value{Text: literal, JSON: p.bytes(start, p.pos)}, nil
	default:
		p.pos = start
		return Value{}, fmt.Errorf("%w: %.40q is no value; a text needs quotes, and so does a number that begins with 0", errSyntax, literal)
	}
}

// parseLiteral is the text up to the next sign or space.
func (p *objectParser) parseLiteral() string {
	start := p.pos
	if end := strings.IndexAny(p.text[start:], ",]}{[:\" \t\r\n"); end >= 0 {
		p.pos += end
	} else {
		p.pos = len(p.text)
	}
	return p.text[start:p.pos]
}

// isNoNumber reports whether a literal is what Python and JavaScript write for NaN or an infinity.
func isNoNumber(literal string) bool {
	switch literal {
	case "NaN", "Infinity", "-Infinity", "-NaN":
		return true
	}
	return false
}

// bytes is a part of the text. All parts of one text share their memory.
func (p *objectParser) bytes(start, end int) json.RawMessage {
	if p.raw == nil {
		p.raw = []byte(p.text)
	}
	return p.raw[start:end:end]
}

// parseRaw returns the bytes of the next list or object, which are valid JSON. NaN and Infinity are replaced by null: their
// readers use encoding/json, which refuses both.
func (p *objectParser) parseRaw() (json.RawMessage, error) {
	start := p.pos
	if err := p.skip(); err != nil {
		return nil, err
	}
	raw := p.bytes(start, p.pos)
	if json.Valid(raw) {
		return raw, nil
	}
	if raw = nullNoNumbers(p.text[start:p.pos]); json.Valid(raw) {
		return raw, nil
	}
	p.pos = start
	return nil, fmt.Errorf("%w: the list or object that begins here holds a value that is none", errSyntax)
}

// nullNoNumbers is JSON with null for NaN and Infinity.
func nullNoNumbers(text string) []byte {
	var out []byte
	for p := (objectParser{text: text}); p.pos < len(text); {
		start := p.pos
		switch b := text[start]; {
		case b == '"':
			if p.skip() != nil {
				return nil
			}
			out = append(out, text[start:p.pos]...)
		case b == 'N' || b == 'I' || b == '-':
			literal := p.parseLiteral()
			if isNoNumber(literal) {
				literal = "null"
			}
			out = append(out, literal...)
		default:
			out = append(out, b)
			p.pos++
		}
	}
	return out
}

// parseString parses the string at pos. Control characters are accepted: JSON wants them escaped, but programs that write
// it by hand forget that, and the text is unambiguous.
func (p *objectParser) parseString() (string, error) {
	start, isEscaped := p.pos+1, false
	for i := start; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			isEscaped = true
			i++
		case '"':
			p.pos = i + 1
			if !isEscaped {
				return p.text[start:i], nil
			}
			return unescape(p.text[start:i])
		}
	}
	return "", fmt.Errorf("%w: a text in quotes is not closed", errSyntax)
}

// escapes are the characters for which letters after a backslash stand.
var escapes = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\/`, `/`, `\b`, "\b", `\f`, "\f", `\n`, "\n", `\r`, "\r", `\t`, "\t")

// unescape is the text of a string with escapes. Half of a UTF-16 pair is U+FFFD.
func unescape(s string) (string, error) {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			out = append(out, s[i])
			i++
			continue
		}
		if s[i+1] != 'u' {
			sign := escapes.Replace(s[i : i+2])
			if len(sign) != 1 {
				return "", fmt.Errorf("%w: %q is no escape", errSyntax, s[i:i+2])
			}
			out = append(out, sign...)
			i += 2
			continue
		}
		r, ok := parseEscapedRune(s[i:])
		if !ok {
			return "", fmt.Errorf("%w: four hexadecimal digits are due behind \\u", errSyntax)
		}
		i += 6
		if low, ok := parseEscapedRune(s[i:]); ok && utf16.IsSurrogate(r) && utf16.DecodeRune(r, low) != utf8.RuneError {
			r = utf16.DecodeRune(r, low)
			i += 6
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out), nil
}

// parseEscapedRune is the character of an escape \u00e9 at the beginning of a text.
func parseEscapedRune(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
}
