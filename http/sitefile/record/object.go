package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// objectReader reads the records of a JSON text.
type objectReader struct {
	file *File
	list objectList
	text *text
	flat *flattener
}

// yieldRecords yields the objects of the list.
func (o *objectReader) yieldRecords(yield func(Record, error) bool) {
	o.file.info.NullGeometries = Count{}
	in := o.text.open()
	if _, err := io.CopyN(io.Discard, in, o.list.offset); err != nil {
		yield(Record{}, err)
		return
	}
	s := newJSONScanner(in)
	s.line = o.list.line
	if err := o.readAll(s, yield); err != nil && err != errStopped {
		yield(Record{}, err)
	}
}

// errStopped: the caller wants no more records.
var errStopped = errors.New("no more records are wanted")

func (o *objectReader) readAll(s *jsonScanner, yield func(Record, error) bool) error {
	read := func(key *string) error {
		_, err := s.peek()
		if err != nil {
			return err
		}
		line := s.line
		raw, err := s.readRaw()
		if err != nil || string(raw) == "null" {
			return err
		}
		values, err := o.flat.flatten(string(raw), line, key)
		if err != nil {
			return err
		}
		if !yield(Record{line, values}, nil) {
			return errStopped
		}
		return nil
	}
	switch {
	case o.list.isKeyed:
		return s.eachMember(func(name string) error { return read(&name) })
	case !o.list.isSequence:
		return s.eachElement(func() error { return read(nil) })
	}
	return readSequence(s, func() error { return read(nil) })
}

// readSequence reads values one after the other. Commas between them are skipped.
func readSequence(s *jsonScanner, read func() error) error {
	for {
		switch b, err := s.peek(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case b == ',':
			s.pos++
			continue
		}
		if err := read(); err != nil {
			return err
		}
	}
}

// maxColumns is how many different members the objects of a file may have.
const maxColumns = 10_000

// flattener makes values of the members of objects. Members of members are columns of their own, whose names dots join. A list, and
// an object that stands for one value, are one value.
type flattener struct {
	file       *File
	members    memberNode // of objects, and of features beside their properties
	properties memberNode // of features
	id         memberNode
	geometry   memberNode
	object     int     // how many objects were read
	values     []Value // of the object that is read
	used       int     // how many of them are
	parser     objectParser
}

// memberNode is a name in the tree of members. It has a column once it has a value that is no object with members of its own.
type memberNode struct {
	path     string
	column   int // from 1; 0: none
	children map[string]*memberNode
	object   int // the last object that had it
}

func newFlattener(f *File) *flattener {
	return &flattener{file: f, id: memberNode{path: "id"}, geometry: memberNode{path: "geometry"}}
}

// flatten is the values of an object that begins on a line, which a member of the name key holds. A feature's properties are values
// like an object's members; its type and bounds are none.
func (f *flattener) flatten(object string, line int, key *string) ([]Value, error) {
	f.object++
	f.values, f.used = make([]Value, len(f.file.columns)), 0
	f.parser = objectParser{text: object}
	err := f.flattenRecord(line, key)
	if err == nil && len(f.file.columns) > maxColumns {
		err = fmt.Errorf("the objects have more than %d different members: write what they list as a list", maxColumns)
	}
	if err != nil {
		return nil, &LineError{line + strings.Count(object[:min(f.parser.pos, len(object))], "\n"), err.Error()}
	}
	return f.values[:f.used:f.used], nil
}

func (f *flattener) flattenRecord(line int, key *string) error {
	if f.parser.peek() != '{' {
		return errors.New("this is no JSON object: write each place as an object with named members")
	}
	if key != nil {
		f.set(&f.id, FeatureID, Value{Text: *key})
	}
	members, err := f.parser.listMembers()
	if err != nil {
		return err
	}
	if isFeature(f.parser.text, members) {
		return f.flattenFeature(line, members)
	}
	for _, m := range members {
		f.parser.pos = m.start
		if err := f.flattenValue(f.members.child(m.name), m.name, 1); err != nil {
			return err
		}
	}
	return nil
}

func (f *flattener) flattenFeature(line int, members []member) error {
	hasGeometry := false
	for _, m := range members {
		f.parser.pos = m.start
		var err error
		switch m.name {
		case "type", "bbox":
		case "id":
			err = f.setNext(&f.id, FeatureID)
		case "geometry":
			hasGeometry = f.parser.peek() == '{'
			err = f.setNext(&f.geometry, Geometry)
		case "properties":
			err = f.flattenProperties()
		default:
			err = f.flattenValue(f.members.child(m.name), m.name, 1)
		}
		if err != nil {
			return err
		}
	}
	if !hasGeometry {
		f.file.info.NullGeometries.add(line)
	}
	return nil
}

// flattenProperties flattens the properties of a feature; null and other values are none.
func (f *flattener) flattenProperties() error {
	if f.parser.peek() != '{' {
		return nil
	}
	return f.flattenMembers(&f.properties, 0)
}

// flattenMembers flattens the members of the next object.
func (f *flattener) flattenMembers(node *memberNode, depth int) error {
	return f.parser.eachMember(func(name string) error {
		return f.flattenValue(node.child(name), name, depth+1)
	})
}

// flattenValue sets the next value, or those of its members. Of members of one name the last counts.
func (f *flattener) flattenValue(node *memberNode, name string, depth int) error {
	if node.object == f.object {
		f.clear(node)
	}
	node.object = f.object
	if tags := f.parser.listTags(); tags != nil {
		return f.flattenTags(node, tags)
	}
	if f.parser.peek() != '{' || depth >= maxDepth || isKeptWhole(name) || f.parser.nextIsGeometry() {
		return f.setNext(node, Property)
	}
	return f.flattenMembers(node, depth)
}

// flattenTags sets a value for each tag of a list; the key of the tag is its name.
func (f *flattener) flattenTags(node *memberNode, tags []tag) error {
	end := f.parser.pos
	for _, t := range tags {
		f.parser.pos = t.value
		if err := f.setNext(node.child(t.key), Property); err != nil {
			return err
		}
	}
	f.parser.pos = end
	return nil
}

// clear takes back what a member set before.
func (f *flattener) clear(node *memberNode) {
	if node.column > 0 && node.column <= len(f.values) {
		f.values[node.column-1] = Value{}
	}
	for _, c := range node.children {
		f.clear(c)
	}
}

// setNext sets the next value of the text, whole.
func (f *flattener) setNext(node *memberNode, kind ColumnKind) error {
	v, err := f.parser.parseValue()
	if err == nil {
		f.set(node, kind, v)
	}
	return err
}

func (f *flattener) set(node *memberNode, kind ColumnKind, v Value) {
	if node.column == 0 {
		f.file.columns = append(f.file.columns, Column{node.path, kind})
		node.column = len(f.file.columns)
	}
	for len(f.values) < node.column {
		f.values = append(f.values, Value{})
	}
	f.values[node.column-1] = v
	f.used = max(f.used, node.column)
}

func (n *memberNode) child(name string) *memberNode {
	if c, ok := n.children[name]; ok {
		return c
	}
	if n.children == nil {
		n.children = map[string]*memberNode{}
	}
	c := &memberNode{path: strings.TrimSpace(name)}
	if n.path != "" {
		c.path = n.path + "." + c.path
	}
	n.children[strings.Clone(name)] = c
	return c
}

// isKeptWhole reports whether an object of this name is one value: hours and free facts have a form of their own.
func isKeptWhole(name string) bool {
	switch name {
	case "proprietes", "horaires", "opening_hours", "openingHoursSpecification":
		return true
	}
	return false
}

// isFeature reports whether an object is a GeoJSON feature: by its type, or because it has properties and a geometry.
func isFeature(text string, members []member) bool {
	properties, geometry := false, false
	for _, m := range members {
		switch m.name {
		case "type":
			return strings.HasPrefix(text[m.start:], `"Feature"`)
		case "properties":
			properties = true
		case "geometry":
			geometry = true
		}
	}
	return properties && geometry
}

// objectParser parses a JSON value that is in memory.
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

var errSyntax = errors.New("the JSON is wrong here")

// peek is the first byte of the next value or sign; 0: there is none.
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

// eachMember calls read for each member of the object at pos; read must leave pos behind its value.
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

// listTags is the tags of the list at pos, and moves pos behind it. They are objects of a k and a v, as OpenStreetMap's XML becomes in
// JSON, where signs such as @ may stand before the letters. nil: what is at pos is no list of tags.
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

// skip moves pos behind the next value.
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

// passBrackets is the length of the string, list or object that a text begins with; -1: it is not closed.
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

// parseRaw is the bytes of the next list or object. Where they hold NaN or Infinity, null stands for these.
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

// parseString parses the string at pos. Signs below the space are read as they are; JSON would escape them.
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

// escapes are the characters that letters behind a backslash stand for.
var escapes = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\/`, `/`, `\b`, "\b", `\f`, "\f", `\n`, "\n", `\r`, "\r", `\t`, "\t")

// unescape is the text of a string with escapes. One half of a pair of UTF-16 alone is U+FFFD.
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

// parseEscapedRune is the character of an escape \u00e9 that a text begins with.
func parseEscapedRune(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
}
